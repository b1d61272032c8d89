"""The quantities that claims are judged by, kept beside the records as one file.

``python -m inscape.lab.quantity_file`` writes ``results/quantities.json``. Tests judge and mutate
claims by it, and a rewrite of an analysis shows there which number it moved.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from inscape.files.atomic import write
from inscape.lab import catalogue
from inscape.lab.experiment import Estimate
from inscape.lab.experiment_outcome import ExperimentOutcome, stored_outcome
from inscape.lab.store import Store

FILE = "quantities.json"
NUMBERS = ("value", "low", "high", "se")
#: Numbers that JSON has not.
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_plain(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON can hold it."""
    content: dict[str, Any] = {
        name: float(number) if math.isfinite(number) else str(float(number))
        for name in NUMBERS
        for number in [getattr(estimate, name)]
    }
    content["n"] = int(estimate.n)
    words = {name: getattr(estimate, name) for name in ("exact", "method", "interval", "units")}
    return content | {name: value for name, value in words.items() if value}


def from_plain(content: Mapping[str, Any]) -> Estimate:
    """Return the estimate that ``to_plain`` wrote."""
    numbers = {
        name: NOT_FINITE[content[name]] if isinstance(content[name], str) else content[name]
        for name in NUMBERS
    }
    return Estimate(**{**content, **numbers, "units": tuple(content.get("units", ()))})


def write_quantities(outcomes: Sequence[ExperimentOutcome], path: Path) -> None:
    """Write the quantities that are judged at the scale of their records.

    Args:
        outcomes: Outcomes of experiments.
        path: The file.
    """
    judged = {
        outcome.id: {
            name: to_plain(outcome.quantities[name])
            for name in dict.fromkeys(
                judgement.claim.of
                for judgement in outcome.judgements
                if judgement.verdict != "not run"
            )
        }
        for outcome in outcomes
    }
    quantities = {id: known for id, known in judged.items() if known}
    write(path, (json.dumps(quantities, indent=None, separators=(",", ":")) + "\n").encode())


@cache
def read_quantities(path: Path) -> Mapping[str, Mapping[str, Estimate]]:
    """Return the quantities of each experiment, by name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        id: {name: from_plain(part) for name, part in quantities.items()}
        for id, quantities in content.items()
    }


if __name__ == "__main__":
    records = Store("results", mends=False)
    write_quantities(
        [stored_outcome(listing.id, records) for listing in catalogue.experiments()],
        records.root / FILE,
    )
