"""A finding: one sentence at the top of a look page, and helpers that the rules share."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from inscape._core.result import REAL, TAIL, Z95, Range
from inscape.report.look.checkup import Checkup
from inscape.report.look.parts import Measured, Score

if TYPE_CHECKING:
    from inscape.report.look.look import Look

#: Findings below this severity inform and do not warn.
CALM = 30
#: With fewer examples than this, no rule speaks of an accuracy.
FEWEST = 20


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One sentence at the top of the page: a result, its section, and what to do.

    Attributes:
        rule: Name of the rule that made it.
        severity: How much it should worry the reader, 0 to 100.
        text: The sentence, with its numbers.
        advice: What to do, or "".
        section: The instrument whose section has the rest, or "scores", "model" or "slice".
    """

    rule: str
    severity: int
    text: str
    advice: str = ""
    section: str = "scores"


Rule = Callable[["Look", Checkup], Finding | None]


def measurement(look: "Look", name: str) -> Measured | None:
    """Return what the instrument of that name measured, if it was run."""
    return next((measured for measured in look.measurements if measured.name == name), None)


def score(look: "Look", rows: str) -> Score | None:
    """Return how well the network does on training or test examples."""
    own = [score for score in look.scores if score.who == "the network" and score.rows == rows]
    return own[0] if own else None


def linear_label(look: "Look") -> str:
    """Return what the linear model is called."""
    return "logistic regression" if look.data.task == "classes" else "the linear model"


def mean_interval(values: Tensor, *, range: Range = REAL) -> tuple[float, float]:
    """Return the 95% interval of the mean of independent values in a range.

    Where all are alike, others may lie at the ends of the range, as often as they may go unseen.
    """
    if bool((values == values[0]).all()):
        mean, unseen = float(values[0]), 1 - TAIL ** (1 / len(values))
        return mean - unseen * (mean - range[0]), mean + unseen * (range[1] - mean)
    half = Z95 * float(values.std()) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def class_name(look: "Look", k: int) -> str:
    """Return what a class is called."""
    names = getattr(look.data, "names", ())
    return str(names[k]) if k < len(names) else str(k)


def are(count: int) -> str:
    """Return "is" for one and "are" for more."""
    return "is" if count == 1 else "are"
