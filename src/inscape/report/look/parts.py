"""The parts of a report: facts of the model and the data, measurements, baselines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inscape._core import Result, Summary
from inscape._core.result import Kind
from inscape.loaders.sources import IN_MEMORY


@dataclass(frozen=True, kw_only=True)
class LayerFacts:
    """A module of the network: its path, type, output for one example, and own parameters."""

    name: str
    kind: str
    shape: tuple[int, ...] | None
    parameters: int
    calls: int


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """Facts of the model: class, shapes, parameters, layers."""

    name: str
    source: str
    layers: tuple[LayerFacts, ...]
    parameters: int
    trainable: int
    dtype: str
    device: str
    inputs: tuple[int, ...]
    outputs: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What the data are, and which examples were measured.

    ``guess`` is the note on what the labels are taken for, empty where that is known; ``names`` are
    what class numbers stand for, empty where these are the labels themselves.
    """

    name: str
    n: int
    n_train: int
    n_test: int
    shape: tuple[int, ...]
    task: str
    measured: Literal["test examples", "all examples"]
    split: str
    hash: str
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    guess: str = ""
    names: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Tell whether the data have a name of their own; tensors in memory have none."""
        return self.name not in IN_MEMORY

    @property
    def title(self) -> str:
        """Return what the data are called, or how many examples they are."""
        return self.name if self.is_named else f"{self.n:,} examples"


@dataclass(frozen=True, kw_only=True)
class Score:
    """Loss and accuracy of a model on a split; accuracy is None for regression."""

    who: str
    rows: str
    n: int
    loss_name: str
    loss: float
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The same number for a baseline; without a value, ``reason`` says why."""

    name: Literal["initialisation", "linear", "bound"]
    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    kind: Kind = "estimate"
    reason: str = ""
    note: str = ""

    def text(self, write: Callable[[float], str]) -> str:
        """Return the value in words; that of a bound with what it bounds."""
        if self.value is None:
            return ""
        beyond = self.name != "bound" and self.kind == "lower bound"
        return f"≥ {write(self.value)}" if beyond else write(self.value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """What one instrument measured, with its baselines.

    ``work`` says how much of it there was time for, ``rows`` on what it was measured if not on the
    data of the others, and ``command`` runs it alone.
    """

    name: str
    title: str
    family: str
    meaning: str
    cites: str
    doc: str
    result: Result
    summary: Summary | None
    references: tuple[Reference, ...]
    seconds: float
    command: str
    work: str = ""
    rows: str = ""

    def reference(self, name: str) -> Reference | None:
        """Return the reference of that name, if there is one."""
        return next((reference for reference in self.references if reference.name == name), None)

    @property
    def covered(self) -> float:
        """Return the fraction of the lines or the window that there was time for."""
        return float(getattr(self.result, "covered", 1.0))

    @property
    def is_partial(self) -> bool:
        """Tell whether the number is that of a part."""
        return self.covered < 1

    @property
    def certainty(self) -> str:
        """Return what a number without an interval is: its kind, and of how much it is known."""
        kind = "" if self.summary is None else self.summary.kind
        if not self.is_partial:
            return kind
        part = f"{self.covered:.0%}" if self.covered >= 0.01 else "under 1%"
        return f"{kind}, {part} covered"


def sentence_of(result: Result) -> str:
    """Return what a result that is more than a number means; an empty text for others."""
    return str(getattr(result, "sentence", "")).replace("these data", "its training data")


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """An instrument, or its baselines, that did not fit into the time budget."""

    name: str
    part: Literal["instrument", "references"]
    seconds: float
    command: str


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """An instrument that is not part of a look: why not, and the command that runs it alone."""

    name: str
    reason: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """An instrument without a number, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """With what, where and when the numbers were made."""

    inscape: str
    torch: str
    python: str
    device: str
    dtype: str
    threads: int
    seed: int
    budget: float
    seconds: float
    date: str
