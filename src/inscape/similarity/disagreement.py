"""Disagreement: how often two networks give different classes, and on which examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range, share_summary
from inscape.functional.jacobians import MEMORY
from inscape.similarity._pair import NO_OTHER, Other, paired, perturbed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disagreement(Result):
    """The class of each example in both networks, and how far their probabilities differ."""

    range: ClassVar[Range] = PROPORTION

    classes: Int64[Tensor, " n"]
    other_classes: Int64[Tensor, " n"]
    distances: Float64[Tensor, " n"]

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return 1 where the classes differ, else 0."""
        return (self.classes != self.other_classes).double()

    def most(self, count: int = 10) -> Int64[Tensor, " k"]:
        """Return the numbers of the examples whose probabilities differ most, largest first."""
        checks.whole(1, count=count)
        return self.distances.argsort(descending=True, stable=True)[:count]

    def rows(self) -> Iterator[Row]:
        """Yield one row for each example."""
        columns = (self.classes.tolist(), self.other_classes.tolist(), self.distances.tolist())
        for k, (first, second, distance) in enumerate(zip(*columns, strict=True)):
            yield {"example": k, "class": first, "other_class": second, "distance": distance}

    def summary(self) -> Summary:
        """Return the fraction of examples with different classes, with Wilson's interval."""
        basis = f"{len(self.classes)} examples"
        return share_summary(self.per_sample(), kind="estimate", basis=basis)


@instrument(
    reads="pair",
    larger="more examples are classified otherwise",
    cost="instant",
    work=lambda n, c: 2 * n,
    meaning="Of the examples the fraction {value} is classified otherwise by the second network.",
    cites="sattelberg2026linearity, section 7.3.4; klabunde2025similarity",
    example=perturbed,
    by_default=False,
)
@torch.no_grad()
def disagreement(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    level: float = 0.0,
    memory: int = MEMORY,
) -> Disagreement | NotApplicable:
    r"""Measure how often two networks give an example different classes.

    .. math:: \mathrm{Pr}_x \, [\arg\max f(x) \neq \arg\max g(x)], \qquad
              d(x) = \frac{1}{2} \lVert \sigma(f(x)) - \sigma(g(x)) \rVert_1

    An estimate with Wilson's interval over the examples. The total variation distance ``d`` of the
    softmax outputs orders the examples: :meth:`Disagreement.most`. A network with one output has
    two classes, above ``level`` and not; its probability is the logistic function of what is above.

    Args:
        f: The first network.
        x: Examples.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        level: Level that separates the classes of a single output.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> points = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, 2.0]])
    >>> disagreement(lambda x: x, points, other=lambda x: x.flip(1)).summary().value
    1.0
    """
    checks.number(level=level)
    checks.whole(1, memory=memory)
    checks.points(x)
    if other is None:
        return NotApplicable(what="disagreement", reason=NO_OTHER)
    pair = paired(f, x, other, other_x, same_inputs=False)
    first, second = (side.double() for side in pair.outputs(pair.rows(memory)))
    if pair.first.outputs == 1:
        first, second = (_two_classes(side, level) for side in (first, second))
    probabilities = [side.softmax(1) for side in (first, second)]
    return Disagreement(
        classes=first.argmax(1),
        other_classes=second.argmax(1),
        distances=(probabilities[0] - probabilities[1]).abs().sum(1) / 2,
    )


def _two_classes(outputs: Float64[Tensor, "n 1"], level: float) -> Float64[Tensor, "n 2"]:
    """Return logits of "not above the level" and "above it"."""
    above = outputs - level
    return torch.cat([torch.zeros_like(above), above], dim=1)
