"""What a worker does with cells of a sweep: open a model and the data once, and measure.

A cell is one instrument on one model. Its settings say how to open both: paths and options, or
the digest of an object that is in the memory of this process. Work is fixed: an instrument is
called as anybody would call it, on the same samples of every model.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from inspect import isclass, isfunction
from typing import Any

import torch

from inscape._core import DataError, Instrument, NotApplicable, Result, instruments
from inscape._core.result import Summary, mean_summary, share_summary
from inscape._core.sampling import generator
from inscape.functional.jacobians import cached_probes
from inscape.lab.encoding import canonical
from inscape.lab.experiment import CellValues, Experiment, Settings
from inscape.loaders import OpenedData, OpenedModel, fit_together, one_output, open_data, open_model
from inscape.loaders.performance import per_sample
from inscape.report.look.hooks import hooks_kept
from inscape.report.look.subject import Subject, subject_of
from inscape.report.look.watch import BudgetWatch
from inscape.runtime.progress import silence

#: The cell that says how well a model does, and what it is.
PERFORMANCE = "performance"


@dataclass(eq=False)
class Shelf:
    """What this process holds open: objects of the caller's, one data set, one model."""

    objects: dict[str, object] = field(default_factory=dict)
    data: dict[str, OpenedData] = field(default_factory=dict)
    subjects: dict[str, "Opened"] = field(default_factory=dict)

    def clear(self) -> None:
        """Let go of everything."""
        for held in (self.objects, self.data, self.subjects):
            held.clear()


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """A model with the data in the form that it takes, as ``subject``."""

    model: OpenedModel
    data: OpenedData
    subject: Subject


SHELF = Shelf()


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, CellValues | Exception]]:
    """Measure cells, one after the other; what one of them raises is yielded in its place.

    A model that cannot be opened is tried once for all of its cells.
    """
    broken: dict[str, Exception] = {}
    for index, cell in enumerate(cells):
        model = _same_model(cell)
        outcome: CellValues | Exception | None = broken.get(model)
        try:
            if outcome is None:
                with redirect_stdout(sys.stderr), silence():  # what a model prints is no result
                    outcome = measured(cell)
        except Exception as error:
            outcome = error
            if not is_open(cell):
                broken[model] = error
        yield index, outcome


def measured(cell: Settings) -> CellValues:
    """Return the values of a cell: one instrument on one model."""
    opened = open_cell(cell)
    with cached_probes(), hooks_kept(opened.subject.model):
        if cell["instrument"] == PERFORMANCE:
            return performance_of(opened)
        return outcome_of(call(opened.subject, instruments()[cell["instrument"]]))


def call(subject: Subject, instrument: Instrument) -> Result:
    """Return the result of an instrument called once, with the work that it takes by itself."""
    if (refusal := subject.lacks(instrument)) is not None:
        return refusal
    x, y, settings = subject.arguments(instrument)
    result: Result = instrument.measure(subject.model, x, y, **settings)
    return result


def open_cell(cell: Settings) -> Opened:
    """Return the model and the data of a cell; only those of the last cell are kept open."""
    name = _opening(cell)
    if name not in SHELF.subjects:
        SHELF.subjects.clear()  # before the next one takes its memory
        SHELF.subjects[name] = _open(cell["model"], cell["data"], cell["seed"])
    return SHELF.subjects[name]


def is_open(cell: Settings) -> bool:
    """Tell whether the model and the data of a cell are open in this process."""
    return _opening(cell) in SHELF.subjects


def _opening(cell: Settings) -> str:
    return canonical({key: cell[key] for key in ("model", "data", "seed")})


def _open(model: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> Opened:
    opened = _opened_model(model)
    given = _opened_data(data, opened)
    with cached_probes():
        opened = one_output(opened, given, model["take"])
        fitted = fit_together(opened, given)
        subject = subject_of(
            opened.model,
            fitted,
            clock=BudgetWatch(math.inf),
            seed=seed,
            command=None,
            wanted_threads=1,
        )
    return Opened(model=opened, data=fitted, subject=subject)


def _opened_model(settings: Mapping[str, Any]) -> OpenedModel:
    options = {key: settings[key] for key in ("trust", "device", "dtype", "max_size")}
    if "object" in settings:
        given: Any = _object(settings["object"])
        if isinstance(given, OpenedModel):
            return given
        built = given() if isfunction(given) or isclass(given) else given
        return open_model(built, weights=settings["weights"], **options)
    return open_model(settings["spec"], weights=settings["weights"], **options)


def _opened_data(settings: Mapping[str, Any], opened: OpenedModel) -> OpenedData:
    """Return the data; opened once for all models of one precision."""
    floats = (p.dtype for p in opened.model.parameters() if p.is_floating_point())
    precision = next(floats, torch.float32)
    name = canonical({**settings, "precision": str(precision)})
    if name not in SHELF.data:
        SHELF.data.clear()
        SHELF.data[name] = read_data(settings, precision)
    return SHELF.data[name]


def read_data(settings: Mapping[str, Any], precision: torch.dtype = torch.float32) -> OpenedData:
    """Open the data of a sweep; refuse those that have changed since it was planned."""
    if "object" in settings:
        given: Any = _object(settings["object"])
        return fewer(given, settings["limit"])
    options = {key: value for key, value in settings.items() if key not in ("spec", "hash")}
    data = open_data(settings["spec"], **{"dtype": precision, **options})
    if settings.get("hash") not in (None, data.hash):
        raise DataError(
            f"the data {settings['spec']} must stay as they are during a sweep, found others than "
            "at its start: start the sweep again."
        )
    return data


def fewer(data: OpenedData, limit: int | None) -> OpenedData:
    """Return opened data with at most so many examples of each split, drawn with seed 0."""
    parts: dict[str, Any] = {}
    for x, y in (("x", "y"), ("x_test", "y_test")):
        inputs, labels = getattr(data, x), getattr(data, y)
        if limit is None or inputs is None or len(inputs) <= limit:
            continue
        rows = torch.randperm(len(inputs), generator=generator(0))[:limit].sort().values
        rows = rows.to(inputs.device)
        parts |= {x: inputs[rows], y: None if labels is None else labels[rows]}
    return replace(data, **parts)


def _object(digest: str) -> object:
    if digest not in SHELF.objects:
        raise RuntimeError(
            "a model or data in the memory of one process must be measured there, found another "
            "process: leave out executor=, or save them and give their paths."
        )
    return SHELF.objects[digest]


def outcome_of(result: Result) -> CellValues:
    """Return what a record keeps of a result: status, number and values by sample."""
    summary = None if isinstance(result, NotApplicable) else result.summary()
    kept = {"status": result.status, "name": "", **_number(summary, result.per_sample())}
    return {"measures": [kept], "about": {}}


def _number(summary: Summary | None, samples: torch.Tensor | None) -> dict[str, Any]:
    kept: dict[str, Any] = {"summary": None if summary is None else asdict(summary)}
    if summary is not None and samples is not None:
        kept["samples"] = samples.detach().double().cpu().numpy()
    return kept


def performance_of(opened: Opened) -> CellValues:
    """Return accuracy and loss on the measured examples, and what the model is."""
    model, data = opened.model.model, opened.data
    about = {
        "class": type(model).__name__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "source": opened.model.source,
        "notes": list(opened.model.notes),
    }
    x, y = data.measured
    if y is None or data.loss is None:
        return {"measures": [], "about": about}
    losses, correct = per_sample(model, x, y, data.loss)
    basis = f"{len(x)} samples"
    loss = mean_summary(losses, kind="estimate", basis=f"{data.loss}, {basis}")
    measurements = [{"status": "ok", "name": "loss", **_number(loss, losses)}]
    if data.task == "classes":
        right = share_summary(correct, kind="estimate", basis=basis)
        measurements.insert(0, {"status": "ok", "name": "accuracy", **_number(right, correct)})
    return {"measures": measurements, "about": about}


def _same_model(settings: Settings) -> str:
    return canonical(settings["model"])


EXPERIMENT = Experiment(
    shows="a sweep",
    title="Instruments on models",
    together=together,
    alike=_same_model,
    batch=1000,
)
