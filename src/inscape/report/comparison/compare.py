"""``compare``: do two networks, or more, do the same, and where do they differ?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from inscape._core import Result
from inscape._core.result import Scalar, Summary
from inscape.escaping import visible_line
from inscape.loaders.sources import IN_MEMORY
from inscape.report.comparison.inputs import DisagreedInput
from inscape.report.sweeps.table import Sweep
from inscape.report.words import jsonable


@dataclass(frozen=True, eq=False, kw_only=True)
class PairMeasurement:
    """What one measure of similarity gives for two networks, or a status that says why nothing."""

    instrument: str
    first: str
    second: str
    status: str
    summary: Summary | None = None
    result: Result | None = field(default=None, repr=False)
    seconds: float = 0.0

    def row(self) -> dict[str, Scalar]:
        """Return a row of a table."""
        keys = ("value", "low", "high", "kind", "basis")
        return {
            "instrument": self.instrument, "first": self.first, "second": self.second,
            **{key: getattr(self.summary, key, None) for key in keys},
            "seconds": self.seconds, "status": self.status,
        }  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Compare:
    """Two or more networks, compared on the same examples.

    Attributes:
        sweep: The models, and the ordinary instruments of each.
        pairs: The measures of similarity of every two networks.
        inputs: The examples on which one pair disagrees most, and inputs near the data.
        pair: The names of that pair: of more than two networks, those that disagree most.
        budget: Seconds that it might take.
        left_out: What there was no time for, with the seconds that it was expected to take.
    """

    sweep: Sweep
    pairs: tuple[PairMeasurement, ...]
    inputs: tuple[DisagreedInput, ...] = field(default=(), repr=False)
    pair: tuple[str, str]
    budget: float
    left_out: Mapping[str, float] = field(default_factory=dict)
    command: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the networks."""
        return tuple(model.name for model in self.sweep.models)

    @property
    def title(self) -> str:
        """Return which networks are compared."""
        first, second, *others = self.names
        return f"{len(self.names)} networks" if others else f"{first} and {second}"

    @property
    def is_named(self) -> bool:
        """Tell whether the data have a name of their own; tensors in memory have none."""
        return self.sweep.data not in IN_MEMORY

    @property
    def data(self) -> str:
        """Return what the data are called, or how many examples they are."""
        return self.sweep.data if self.is_named else f"{self.sweep.rows_measured:,} examples"

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """Return the measures that have a number for some pair."""
        return tuple(dict.fromkeys(p.instrument for p in self.pairs if p.summary is not None))

    @property
    def failed(self) -> tuple[PairMeasurement, ...]:
        """Return the measures that raised an error."""
        return tuple(pair for pair in self.pairs if pair.status.startswith("failed"))

    def measurement(self, instrument: str, first: str, second: str) -> PairMeasurement | None:
        """Return what a measure gives for two networks, in this order or else in the other."""
        known = {(p.first, p.second): p for p in self.pairs if p.instrument == instrument}
        return known.get((first, second)) or known.get((second, first))

    def value(self, instrument: str, first: str, second: str) -> float | None:
        """Return the number of a measure for two networks, if there is one."""
        summary = getattr(self.measurement(instrument, first, second), "summary", None)
        return None if summary is None else float(summary.value)

    def result(self, instrument: str) -> Result | None:
        """Return the result of a measure for the pair that is shown."""
        return getattr(self.measurement(instrument, *self.pair), "result", None)

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield one row for each measure of each pair."""
        for pair in self.pairs:
            yield pair.row()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but single samples and pictures as plain values, for JSON."""
        parts: dict[str, Any] = {
            "models": [asdict(model) for model in self.sweep.models],
            "pairs": list(self.rows()),
            "measurements": list(self.sweep.rows()),
            "differences": [difference.row() for difference in self.sweep.differences(*self.pair)],
            "inputs": [shown.row() for shown in self.inputs],
            "data": self.sweep.data,
            "rows_measured": self.sweep.rows_measured,
            "seed": self.sweep.seed,
            "left_out": dict(self.left_out),
            "seconds": self.sweep.seconds,
            "notes": list(self.sweep.notes),
            "command": self.command,
        }
        return {key: jsonable(value) for key, value in parts.items()}

    def save(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page, or the numbers as JSON or CSV."""
        from inscape.report.comparison.page import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        return visible_line(f"Compare({self.title} on {self.data}: {', '.join(self.measures)})")


def compare(
    f: object,
    g: object,
    x: object,
    y: Tensor | None = None,
    *,
    more: Sequence[object] = (),
    names: Sequence[str] | None = None,
    budget: float = 60.0,
    seed: int = 0,
    only: str | Sequence[str] | None = None,
    model: object = None,
    limit: int | None = None,
    take: str | int | None = None,
    trust: bool = False,
    data_options: Mapping[str, Any] | None = None,
    quiet: bool | None = None,
) -> Compare:
    """Compare two networks, or more, on the same examples.

    Every measure of similarity that applies, the examples on which they disagree most, a slice
    with both decision boundaries, and every ordinary instrument of each, whose differences are
    taken example by example. Where there are test examples, those are measured. How many examples
    fit into the budget is decided beforehand, the same for all networks; ``limit`` fixes it.

    Args:
        f: The first network: a module in eval mode, what ``inscape.loaders.open_model`` returned,
            or a path.
        g: The second network.
        x: Examples, a data set, a path or the name of one: what ``inscape.look`` takes.
        y: Labels, where ``x`` holds examples alone; without any, what needs them is left out.
        more: Further networks: then matrices of all pairs are made.
        names: What the networks are called.
        budget: Seconds that it may take.
        seed: Seed of every draw.
        only: Names of instruments or families, of one network or of two.
        model: Builds the network of files that hold weights alone.
        limit: Examples of each split to keep, drawn with seed 0.
        take: Which output to compare where a model returns several.
        trust: Allow files that run code of their own when they are opened.
        data_options: Further arguments of ``inscape.loaders.open_data``.
        quiet: True shows no progress, False does; None asks the environment.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2)).eval()
    >>> points = torch.eye(2).repeat(4, 1) + torch.arange(8.0)[:, None]
    >>> same = compare(net, net, points, only="disagreement", quiet=True)
    >>> same.value("disagreement", *same.names)
    0.0
    """
    from inscape.report.comparison.session import prepare

    data: object = x if y is None else (x, y)
    prepared = prepare(
        [f, g, *more], data, names=names, budget=budget, seed=seed, only=only, model=model,
        limit=limit, take=take, trust=trust, data_options=data_options,
    )  # fmt: skip
    return prepared.run(quiet=quiet)
