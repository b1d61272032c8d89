"""A plan: the cells of an experiment, which of them are missing, and what they will cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inscape._core import checks
from inscape.lab import catalogue
from inscape.lab.encoding import canonical, cell_key
from inscape.lab.experiment import SCALES, Axes, Experiment, ScaleName
from inscape.lab.index_file import Index
from inscape.lab.layout import layout
from inscape.lab.store import Record, Store

BYTES = 2000  # of a record, where there is none yet to go by


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What a run will do.

    Attributes:
        id: The experiment as it was asked for.
        experiment: The experiment itself: its claims and its analysis.
        source: Id of the experiment whose cells are run; the same, but for ``same_as``.
        runs: That experiment.
        name: Its name in the store.
        scale: The scale.
        axes: The layout, overrides applied.
        cells: Settings of each cell.
        keys: Key of each cell.
        data: Data hash of each cell.
        missing: Indices of the cells that are to be computed.
        claims: Hashes of the claims that go into each record.
        guesses: Estimated time of each cell on its threads, in seconds.
        bytes: Estimated size of the missing records.
    """

    id: str
    experiment: Experiment
    source: str
    runs: Experiment
    name: str
    scale: ScaleName
    axes: Axes
    cells: tuple[Mapping[str, Any], ...]
    keys: tuple[str, ...]
    data: tuple[str, ...]
    missing: tuple[int, ...]
    claims: Mapping[str, str]
    guesses: tuple[float, ...]
    bytes: int

    @property
    def seconds(self) -> float:
        """Return the estimated time of the missing cells, one after the other."""
        return sum(self.guesses[index] for index in self.missing)

    def wall(self, jobs: int) -> float:
        """Return the estimated time with ``jobs`` cells at a time: no less than the longest."""
        longest = max((self.guesses[index] for index in self.missing), default=0.0)
        return max(self.seconds / jobs, longest)

    def records(self, store: Store) -> list[Record]:
        """Return the records of the plan that are there, in the order of the cells."""
        return store.records(self.name, self.scale, self.keys)


def plan(
    id: str,
    *,
    scale: ScaleName = "laptop",
    overrides: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | None = None,
    only: Sequence[str] | None = None,
    store: Store,
    fresh: bool = False,
) -> RunPlan:
    """Lay out an experiment and look up which cells are missing.

    Args:
        id: ``paper/item``, or the path of a file of one's own.
        scale: ``smoke``, ``laptop`` or ``paper``.
        overrides: New values for an axis, by its name.
        seeds: Number of seeds: the first of the axis ``seed``, and more that follow them.
        only: Names of instruments: the axis ``measures`` becomes this one list.
        store: Where the records are.
        fresh: Whether to compute again what is there.
    """
    checks.one_of(SCALES, scale=scale)
    source = catalogue.source(id)
    runs, name = catalogue.experiment(source), catalogue.name_of(source)
    axes = layout(id, runs, scale, overrides or {}, seeds, only)
    cells = tuple(runs.cells(axes))
    hashes = _data_hashes(runs, cells)
    keys = tuple(
        cell_key(name, c, runs.schema, data) for c, data in zip(cells, hashes, strict=True)
    )
    recorded = set() if fresh else {r.key for r in store.records(name, scale, keys)}
    missing = tuple(index for index, key in enumerate(keys) if key not in recorded)
    guesses, size = _cost(runs, name, cells, store)
    return RunPlan(
        id=id,
        experiment=catalogue.experiment(id),
        source=source,
        runs=runs,
        name=name,
        scale=scale,
        axes=axes,
        cells=cells,
        keys=keys,
        data=hashes,
        missing=missing,
        claims=catalogue.claim_hashes(source),
        guesses=guesses,
        bytes=size * len(missing),
    )


def recorded(id: str, *, scale: ScaleName, store: Store) -> list[Record]:
    """Return the records of an experiment at a scale, in the order of its cells; reads no data.

    Records under other settings (``--set``) or of an older schema are left out. Where there are
    several of one cell, from different data, the latest counts.
    """
    source = catalogue.source(id)
    runs = catalogue.experiment(source)
    latest: dict[str, Record] = {}
    for record in store.records(catalogue.name_of(source), scale):
        cell = canonical(record.settings)
        known = latest.get(cell)
        if record.version == runs.schema and (known is None or _start(record) > _start(known)):
            latest[cell] = record
    wanted = (canonical(cell) for cell in runs.cells(runs.axes(scale)))
    return [latest[cell] for cell in wanted if cell in latest]


def _start(record: Record) -> str:
    return str(record.provenance.get("started", ""))


def _data_hashes(runs: Experiment, cells: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the data hash of each cell, asking once for cells that agree in what it looks at."""
    requested: list[tuple[dict[str, Any], str]] = []
    hashes = []
    for cell in cells:
        for read, answer in requested:
            if all(name in cell and _same(cell[name], value) for name, value in read.items()):
                hashes.append(answer)
                break
        else:
            watched = _Watched(cell)
            answer = runs.data(watched)
            requested.append((watched.read, answer))
            hashes.append(answer)
    return tuple(hashes)


def _same(value: Any, other: Any) -> bool:
    return canonical({"value": value}) == canonical({"value": other})


class _Watched(Mapping[str, Any]):
    """Settings that remember which of them were looked at."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        self.read[name] = self.settings[name]
        return self.settings[name]

    def __iter__(self) -> Iterator[str]:
        self.read.update(self.settings)
        return iter(self.settings)

    def __len__(self) -> int:
        self.read.update(self.settings)
        return len(self.settings)


def _cost(
    runs: Experiment, name: str, cells: Sequence[Mapping[str, Any]], store: Store
) -> tuple[tuple[float, ...], int]:
    """Return the estimated seconds of each cell, and bytes of one.

    The guess of the experiment is scaled by what its stored records took, where there are any.
    """
    guesses = [float(runs.seconds(cell)) for cell in cells]
    entries = Index(store).entries(name)
    if not entries:
        return tuple(guesses), BYTES
    size = sum(entry.bytes for entry in entries) // len(entries)
    try:
        guessed = sum(float(runs.seconds(entry.settings)) for entry in entries)
    except (KeyError, TypeError, ValueError):  # records under settings of an older form
        return tuple(guesses), size
    ratio = sum(entry.seconds for entry in entries) / guessed if guessed else 1.0
    return tuple(guess * ratio for guess in guesses), size
