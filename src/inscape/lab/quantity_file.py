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
    plain: dict[str, Any] = {
        name: float(number) if math.isfinite(number) else str(float(number))
        for name in NUMBERS
        for number in [getattr(estimate, name)]
    }
    plain["n"] = int(estimate.n)
    words = {name: getattr(estimate, name) for name in ("exact", "method", "interval", "units")}
    return plain | {name: value for name, value in words.items() if value}


def from_plain(plain: Mapping[str, Any]) -> Estimate:
    """Return the estimate that ``to_plain`` wrote."""
    numbers = {
        name: NOT_FINITE[plain[name]] if isinstance(plain[name], str) else plain[name]
        for name in NUMBERS
    }
    return Estimate(**{**plain, **numbers, "units": tuple(plain.get("units", ()))})


def write_quantities(outcomes: Sequence[ExperimentOutcome], path: Path) -> None:
    """Write the quantities that are judged at the scale of their records.

    Args:
        outcomes: Outcomes of experiments.
        path: The file.
    """
    content = {
        outcome.id: {
            name: to_plain(outcome.quantities[name])
            for name in dict.fromkeys(
                judged.claim.of for judged in outcome.judgements if judged.verdict != "not run"
            )
        }
        for outcome in outcomes
    }
    kept = {id: quantities for id, quantities in content.items() if quantities}
    write(path, (json.dumps(kept, indent=None, separators=(",", ":")) + "\n").encode())


@cache
def read_quantities(path: Path) -> Mapping[str, Mapping[str, Estimate]]:
    """Return the quantities of each experiment, by name."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        id: {name: from_plain(plain) for name, plain in quantities.items()}
        for id, quantities in content.items()
    }


if __name__ == "__main__":
    records = Store("results", mends=False)
    write_quantities(
        [stored_outcome(listing.id, records) for listing in catalogue.experiments()],
        records.root / FILE,
    )
