"""An experiment: one table or figure of a paper, as cells, a way to run them, and claims.

Nothing here computes. The runner turns settings into records, the verdicts compare records with
claims, the page shows both.
"""

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from inscape.lab.margins import QuantityKind
from inscape.lab.records import Record, Records, in_view

if TYPE_CHECKING:
    import matplotlib.axes
    from matplotlib.figure import Figure as Figure

    Panel = matplotlib.axes.Axes
else:
    Figure = Panel = Any  # matplotlib is loaded once something is drawn

ScaleName = Literal["smoke", "laptop", "paper"]
SCALES: tuple[ScaleName, ...] = ("smoke", "laptop", "paper")

#: One cell: names of settings and JSON values (numbers, strings, booleans, None, lists of them).
Settings = Mapping[str, Any]

#: What a cell gives: JSON values, and NumPy arrays where there are many numbers.
CellValues = Mapping[str, Any]
#: Cells as they are done, each by its index; an error where one failed and others go on.
CellsRun = Iterator[tuple[int, CellValues | Exception]]

#: How one scale is laid out: each setting with the values that it takes.
Axes = Mapping[str, Sequence[Any]]


#: How an interval was made, which decides how many units it needs; nothing where nobody knows.
IntervalKind = Literal[
    "",
    "exact",
    "t",
    "studentised",
    "normal",
    "percentile",
    "sign",
    "permutation",
    "binomial",
    "resampled",
    "none",
]

#: Whose claim it is: the paper's, that of the raw results which came with it, or ours.
Origin = Literal["paper", "raw data", "ours"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number from an analysis of records, with its 95% interval.

    Attributes:
        value: The number itself.
        low: Lower end of the interval; the value itself where it is exact.
        high: Upper end of the interval.
        se: Standard error; 0 where it is exact.
        n: How many independent things (data sets, networks) it was taken over.
        exact: Whether there is no sampling in it.
        method: How the interval was made, in a few words.
        interval: What kind of interval it is; nothing counts as the weakest kind.
        units: The number of each independent thing, where the value is their mean.
    """

    value: float
    low: float
    high: float
    se: float
    n: int
    exact: bool = False
    method: str = ""
    interval: IntervalKind = ""
    units: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a claim is judged by beyond its wording; no part of its hash.

    Attributes:
        origin: Whose claim it is.
        kind: What the quantity is: it decides the margin where there is no tolerance.
        published_n: Over how many independent things the published number was taken.
        published_of: The number of runs that a published count or proportion is out of.
        published_units: The published number of each data set, in the order of our units: the
            comparison is then paired.
        corrected: The number that is judged where the printed one is an erratum.
        erratum: Its identifier.
        by_construction: Why the claim cannot fail; it is then not counted.
        struck: Why the claim was struck out after its records were made.
        added: Why the claim was written after the records that it is judged by, if it was.
        null: What the quantity is without the effect that the claim is about.
        effect: The setting that the effect is of: permuted among the records, the claim must fail.
        baseline: A quantity that must be above ``chance`` by 2 margins, or nothing can be said.
        chance: What guessing gives.
        covers: Claims of the paper that it stands for, by their ids.
    """

    origin: Origin = "paper"
    kind: QuantityKind = "number"
    published_n: int | None = None
    published_of: int | None = None
    published_units: tuple[float, ...] = ()
    corrected: float | None = None
    erratum: str = ""
    by_construction: str = ""
    struck: str = ""
    added: str = ""
    null: float | None = None
    effect: str = ""
    baseline: str = ""
    chance: float = 0.0
    covers: tuple[str, ...] = ()


#: Names of what may change about a claim without making it another.
STANDING = frozenset(part.name for part in fields(Standing))


@dataclass(frozen=True, kw_only=True)
class Value(Standing):
    """A claim that a number is what the paper printed.

    Attributes:
        name: Short name of the claim, unique in its experiment.
        says: What the paper says, in one sentence.
        of: Name of the quantity, as the analysis calls it.
        published: The printed number.
        published_se: Its standard error, where the paper gives a spread.
        tolerance: How far ours may be off, where the paper gives none; written before the run.
        side: On which side of ``bound`` the number lies, if that is the message: what is still
            true where the number itself is missed is the same trend.
        bound: The other side of that comparison.
        at: Row and column of the printed table.
        source: Where it is printed, or how it follows from what is.
        scales: Scales whose settings are those of the published number.
    """

    name: str
    says: str
    of: str
    published: float
    published_se: float | None = None
    tolerance: float | None = None
    side: Literal["above", "below"] | None = None
    bound: float = 0.0
    at: tuple[str, str] = ("", "")
    source: str = ""
    scales: tuple[ScaleName, ...] = ("laptop", "paper")

    @property
    def number(self) -> float:
        """Return the number that ours is compared with: the printed one, or what corrects it."""
        return self.published if self.corrected is None else self.corrected


@dataclass(frozen=True, kw_only=True)
class Trend(Standing):
    """A claim that a quantity lies on one side of a bound: a slope, a difference, a correlation.

    Attributes:
        name: Short name of the claim, unique in its experiment.
        says: What the paper says, in one sentence.
        of: Name of the quantity, as the analysis calls it.
        side: On which side of ``bound`` it lies by the claim; ``"between"`` needs both bounds.
        bound: The bound; the lower one for ``"between"``.
        upper: The upper bound for ``"between"``.
        test: The test behind the interval, in a few words, for the page.
        source: Where the paper says it.
        scales: Scales at which the claim can be judged.
    """

    name: str
    says: str
    of: str
    side: Literal["above", "below", "between"]
    bound: float = 0.0
    upper: float | None = None
    test: str = "95% interval from a bootstrap over data sets"
    source: str = ""
    scales: tuple[ScaleName, ...] = ("laptop", "paper")

    def __post_init__(self) -> None:
        """Refuse an interval with one bound, or whose bounds are the wrong way round."""
        if self.side == "between" and (self.upper is None or not self.bound < self.upper):
            raise ValueError(
                f"claim {self.name!r} of a trend between two bounds needs upper above bound, found "
                f"{self.upper} and {self.bound}: correct the claim."
            )


Claim = Value | Trend


def claim_hash(claim: Claim) -> str:
    """Return the fingerprint of a claim: another word in it, another hash.

    What it is judged by beyond its words (``Standing``) is no part of it.
    """
    words = {name: value for name, value in asdict(claim).items() if name not in STANDING}
    text = json.dumps({type(claim).__name__: words}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def no_data(settings: Settings) -> str:
    """Return the data hash of a cell that makes its own data."""
    return "none"


def all_cells(settings: Settings) -> bool:
    """Keep every cell of a grid."""
    return True


def one_second(settings: Settings) -> float:
    """Guess one second for every cell."""
    return 1.0


def _viewing(function: Callable[[Records], Any]) -> Callable[[Records], Any]:
    """Return a function that is given any records and sees them as :class:`Records`."""

    @functools.wraps(function)
    def viewing(records: Sequence[Record]) -> Any:
        return function(in_view(records))

    return viewing


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One table or figure of a paper.

    Exactly one of ``cell``, ``together`` and ``same_as`` says where records come from.

    Attributes:
        shows: What of the paper it shows, e.g. ``"Table 4.1"``.
        title: What that is about, in one line.
        smoke: Settings that take seconds; for CI, never a verdict.
        laptop: Settings that take minutes to an hour on two cores.
        paper: The paper's own settings.
        settings: Settings of the scales that are not given.
        departures: For each scale, how its settings depart from the paper's, one sentence each.
        cell: Runs one cell: ``cell(**settings) -> outcome``.
        together: Runs many cells at once and yields ``(index, outcome)`` as each is done; the
            outcome of a cell does not depend on which others it shares a call with. The error of
            a cell that fails by itself is yielded in place of its outcome.
        batch: Largest number of cells in one call of ``together``.
        alike: Cells may share a call of ``together`` where this is equal.
        same_as: Another experiment of the same paper whose records this one shows.
        keeps: Which cells of the grid exist.
        data: Hash of the data that a cell reads; raises ``DataError`` where they are missing.
        seconds: Guess of the time of a cell on one core, for the estimate before the first run.
        threads: Threads that a cell runs with, always the same, so that its bits are.
        schema: Raised when the cell's code changes what the numbers mean.
        analyse: Turns records into named quantities, for the claims; never trains.
        draw: Draws the paper's figure from records alone.
        conclude: Says what the records show beyond the claims, one sentence each.
        claims: What the paper says, written before the run.
        errata: Identifiers of errata that matter here.
        notes: What a reader of the page should know, one sentence each.
        outside: For each scale whose settings lie outside of the paper's range in what the claims
            are about, which ones; there is then no verdict.
    """

    shows: str
    title: str
    smoke: Axes = field(default_factory=dict)
    laptop: Axes = field(default_factory=dict)
    paper: Axes = field(default_factory=dict)
    settings: Axes = field(default_factory=dict)
    departures: Mapping[ScaleName, tuple[str, ...]] = field(default_factory=dict)
    cell: Callable[..., CellValues] | None = None
    together: Callable[[Sequence[Settings]], CellsRun] | None = None
    batch: int = 1
    alike: Callable[[Settings], Hashable] = all_cells
    same_as: str = ""
    keeps: Callable[[Settings], bool] = all_cells
    data: Callable[[Settings], str] = no_data
    seconds: Callable[[Settings], float] = one_second
    threads: int = 1
    schema: int = 1
    analyse: Callable[[Records], Mapping[str, Estimate]] | None = None
    draw: Callable[[Records], "Figure"] | None = None
    conclude: Callable[[Records], Sequence[str]] | None = None
    claims: tuple[Claim, ...] = ()
    errata: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outside: Mapping[ScaleName, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an experiment without a source of records, or with several."""
        ways = [name for name in ("cell", "together", "same_as") if getattr(self, name)]
        if len(ways) != 1:
            raise ValueError(
                f"an experiment needs exactly one of cell, together and same_as, found "
                f"{', '.join(ways) or 'none'} in {self.shows!r}."
            )
        for scale in SCALES if self.settings else ():
            object.__setattr__(self, scale, self.axes(scale) or self.settings)
        for name in ("analyse", "draw", "conclude"):
            if inspect.isfunction(function := getattr(self, name)):
                object.__setattr__(self, name, _viewing(function))
        names = [claim.name for claim in self.claims]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"the claims of an experiment need different names, found {', '.join(twice)} more "
                f"than once in {self.shows!r}."
            )

    def axes(self, scale: ScaleName) -> Axes:
        """Return the layout of a scale."""
        return {"smoke": self.smoke, "laptop": self.laptop, "paper": self.paper}[scale]

    def cells(self, axes: Axes) -> list[dict[str, Any]]:
        """Return the cells of a grid, the last axis running fastest."""
        rows = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return [row for row in rows if self.keeps(row)]

    def run(self, cells: Sequence[Settings]) -> CellsRun:
        """Run cells, one after the other or together, and yield each with its index."""
        if self.together is not None:
            yield from self.together(cells)
        elif self.cell is not None:
            for index, settings in enumerate(cells):
                yield index, self.cell(**settings)
