"""The course of a comparison: open the networks, share the time among what there is to measure.

How many examples are measured is decided beforehand, from how long a forward pass takes. The
ordinary instruments follow, the quickest first, while there is time; what takes longer than was
foreseen is interrupted at the end of the budget.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from torch import Tensor, nn

from inscape._core import Instrument, NotApplicable, Result, checks, instruments
from inscape.errors import BudgetError
from inscape.functional.jacobians import cached_probes
from inscape.report.comparison.compare import Compare, PairMeasurement
from inscape.report.comparison.inputs import DisagreedInput, most_disagreed
from inscape.report.comparison.near_data import near_inputs, same_numbers
from inscape.report.look.hooks import hooks_kept
from inscape.report.look.watch import BudgetWatch, Interrupted
from inscape.report.sweeps.cells import (
    PERFORMANCE,
    SHELF,
    Opened,
    call,
    fewer,
    open_cell,
    outcome_of,
    performance_of,
)
from inscape.report.sweeps.models import ListedModel, entries, short_names
from inscape.report.sweeps.planning import ROWS, predicted_seconds
from inscape.report.sweeps.run import data_settings
from inscape.report.sweeps.table import Measurement, Sweep
from inscape.report.sweeps.tabulation import measurements_of, sampling, swept_model
from inscape.report.words import listed, one_line
from inscape.runtime.deadline import now
from inscape.runtime.progress import progress, silence
from inscape.selection import selected, selected_instruments
from inscape.similarity import Disagreement, SliceDifference
from inscape.similarity.invariances import DIRECTED

T = TypeVar("T")

#: Fractions of the budget that the measures of pairs, and the instruments of each, are planned for.
PAIRS, EACH = 0.4, 0.4
#: Examples below which the instruments of each are left out rather than measured on fewer.
ENOUGH = 1000
#: Fraction of the budget that is kept for the page.
PAGE = 0.1
#: Examples of measures whose cost grows with the square of their number, at most.
MOST_ROWS = 2000
#: Measures of local maps take at most so many examples: a row of them is a Jacobian.
MAPS, MAP_ROWS = ("map_distance", "map_alignment", "map_transfer"), 500
#: Fraction of the budget that one slice may take, and the seconds that it needs for the export.
SLICE, LEAST = 0.25, 10.0
#: Fraction of the window of a slice below which nothing is said of it.
SEEN = 0.5
#: What a measure is called that takes too long to be made without being asked for.
LONG = ("minutes", "hours")


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedCompare:
    """A comparison before it runs: the networks, and what will be measured of them."""

    entries: tuple[ListedModel, ...]
    opened: tuple[Opened, ...]
    measures: Mapping[str, Instrument]
    chosen: Mapping[str, Instrument]
    left_out: Mapping[str, float]
    limit: int | None
    seed: int
    budget: float
    watch: BudgetWatch
    notes: tuple[str, ...]
    command: str | None = None
    late: dict[str, float] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return the numbers of every two networks."""
        return list(itertools.combinations(range(len(self.entries)), 2))

    @property
    def forecast(self) -> dict[str, float]:
        """Return the seconds that each instrument is expected to take, of all networks together."""
        return forecast(self.opened, self.measures, self.chosen)

    def run(self, *, quiet: bool | None = None) -> Compare:
        """Measure, and return the comparison."""
        steps = len(self.entries) * (1 + len(self.chosen)) + len(self.pairs) * len(self.measures)
        with ExitStack() as stack:
            bar = stack.enter_context(progress(steps, label="comparing", quiet=quiet))
            stack.enter_context(self.watch.watching())
            stack.enter_context(cached_probes())
            stack.enter_context(silence())
            measurements = [row for rows in self._performance() for row in rows]
            bar.advance(len(self.entries))
            pairs = list(self._pairs(bar.advance))
            shown = _farthest(pairs, self.entries)
            inputs = self._inputs(pairs, shown)
            measurements += [row for rows in self._by_network(bar.advance) for row in rows]
        SHELF.clear()
        return Compare(
            sweep=self._sweep(measurements),
            pairs=tuple(pairs),
            inputs=inputs,
            pair=shown,
            budget=self.budget,
            left_out={**self.left_out, **self.late},
            command=self._command(),
        )

    def _timed(self, name: str, make: Callable[[], T]) -> T | None:
        """Return what is made, or None where the time is over; note what it was."""
        if not self.watch.over:
            try:
                with self.watch.limit(self.watch.left):
                    return make()
            except (Interrupted, BudgetError):
                pass
        self.late.setdefault(name, 0.0)
        return None

    def _performance(self) -> Iterator[list[Measurement]]:
        for entry, opened in zip(self.entries, self.opened, strict=True):
            values = performance_of(opened)
            yield self._measurements(entry, PERFORMANCE, PERFORMANCE, values, 0.0)

    def _by_network(self, advance: Callable[[int], None]) -> Iterator[list[Measurement]]:
        """Yield the ordinary instruments of every network, the quickest first."""
        predicted = self.forecast
        for name in sorted(self.chosen, key=lambda name: predicted[name]):
            instrument = self.chosen[name]
            if not self.watch.allows(predicted[name]):
                advance(len(self.entries))
                self.late[name] = predicted[name]
                continue
            for entry, opened in zip(self.entries, self.opened, strict=True):
                advance(1)
                begun = now()
                values = self._timed(name, partial(_values, opened, instrument))
                if values is None:
                    break
                yield self._measurements(entry, name, instrument.family, values, now() - begun)

    def _measurements(
        self, entry: ListedModel, name: str, family: str, values: Mapping[str, Any], seconds: float
    ) -> list[Measurement]:
        belongs = sampling(self.seed, self.opened[0].data.hash, self.limit)
        return list(
            measurements_of(
                values, model=entry.name, instrument=name, family=family, sampling=belongs,
                seconds=seconds,
            )
        )  # fmt: skip

    def _pairs(self, advance: Callable[[int], None]) -> Iterator[PairMeasurement]:
        for name, measure in self.measures.items():
            for i, j in self.pairs:
                advance(1)
                for first, second in ((i, j), (j, i)) if name in DIRECTED else ((i, j),):
                    begun = now()
                    sides = self.opened[first], self.opened[second]
                    result = self._timed(name, partial(self._measured, measure, *sides))
                    if result is None:
                        break
                    names = self.entries[first].name, self.entries[second].name
                    yield _pair_measurement(name, names, result, now() - begun)

    def _measured(self, measure: Instrument, first: Opened, second: Opened) -> Result | Exception:
        try:
            with hooks_kept(first.subject.model), hooks_kept(second.subject.model):
                seconds = min(self.watch.left / 2, max(LEAST, SLICE * self.budget))
                return measured_pair(measure, first, second, seconds)
        except BudgetError:
            raise
        except (ValueError, TypeError) as error:  # what does not fit, in our own words
            return NotApplicable(what=measure.name, reason=one_line(error))
        except Exception as error:
            return error

    def _inputs(
        self, pairs: Sequence[PairMeasurement], shown: tuple[str, str]
    ) -> tuple[DisagreedInput, ...]:
        names = [entry.name for entry in self.entries]
        first, second = (self.opened[names.index(name)] for name in shown)
        for pair in pairs:
            if (pair.first, pair.second) == shown and isinstance(pair.result, Disagreement):
                makers = {"inputs": most_disagreed, "inputs near the data": near_inputs}
                outcomes = [
                    self._timed(name, partial(make, first, second, pair.result)) or ()
                    for name, make in makers.items()
                ]
                return (*outcomes[0], *outcomes[1])
        return ()

    def _sweep(self, measurements: list[Measurement]) -> Sweep:
        order = {entry.name: k for k, entry in enumerate(self.entries)}
        models = [
            swept_model(entry, performance_of(opened)["about"])
            for entry, opened in zip(self.entries, self.opened, strict=True)
        ]
        data = self.opened[0].data
        return Sweep(
            models=tuple(models),
            measurements=tuple(sorted(measurements, key=lambda row: order[row.model])),
            data=data.name,
            rows_measured=len(data.measured[0]),
            seed=self.seed,
            left_out=self.left_out,
            seconds=self.watch.spent,
            notes=self.notes,
        )

    def _command(self) -> str:
        if self.command is None:
            return ""
        limit = "" if self.limit is None or "--limit" in self.command else f" --limit {self.limit}"
        return f"{self.command}{limit}"


def prepare(
    models: Sequence[object],
    data: object,
    *,
    names: Sequence[str] | None = None,
    budget: float = 60.0,
    seed: int = 0,
    only: str | Sequence[str] | None = None,
    model: object = None,
    limit: int | None = None,
    take: str | int | None = None,
    trust: bool = False,
    device: str = "cpu",
    dtype: str | None = None,
    max_size: int | None = None,
    data_options: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> PreparedCompare:
    """Open and check what a comparison needs; its time runs from here on.

    Arguments are those of :func:`inscape.compare`; ``max_size`` bounds what a file unpacks to.
    """
    checks.at_least(0, budget=budget)
    checks.seed(seed)
    watch = BudgetWatch(budget)
    watch.reserve(PAGE * budget)
    measures, chosen = _chosen(only)
    options = {"take": take, "trust": trust, "device": device, "dtype": dtype, "max_size": max_size}
    listed_models = _entries(models, names, model, options)
    about = {**(data_options or {}), "limit": limit, "device": device, "max_size": max_size}
    settings = data_settings(data, about)
    opened = tuple(_open(entry, settings, seed) for entry in listed_models)
    _refuse_others(listed_models, opened)
    rows, left_out = _plan(opened, measures, chosen, budget)
    if rows is not None:
        opened = tuple(_with_fewer(part, rows) for part in opened)
    return PreparedCompare(
        entries=listed_models,
        opened=opened,
        measures={name: m for name, m in measures.items() if name not in left_out},
        chosen=chosen,
        left_out=left_out,
        limit=limit if rows is None else rows,
        seed=seed,
        budget=budget,
        watch=watch,
        notes=_notes(listed_models, opened),
        command=command,
    )


def _chosen(
    only: str | Sequence[str] | None,
) -> tuple[dict[str, Instrument], dict[str, Instrument]]:
    """Return the measures of two networks and the instruments of one that are asked for."""
    register = instruments()
    pairs = {name: i for name, i in register.items() if i.reads == "pair" and i.family == FAMILY}
    if only is None:
        usual = {name: i for name, i in pairs.items() if i.cost not in LONG}
        return usual, selected_instruments(None)
    words = [only] if isinstance(only, str) else list(only)
    parts = [part.strip() for word in words for part in word.split(",")]
    names = dict.fromkeys(n for p in parts for n in ([*pairs] if p == FAMILY else selected(p)))
    own = [name for name in names if name not in pairs]
    chosen = selected_instruments(own, usual_of_families=True) if own else {}
    return {name: pairs[name] for name in names if name in pairs}, chosen


#: The family whose instruments compare two networks.
FAMILY = "similarity"


def _entries(
    models: Sequence[object],
    names: Sequence[str] | None,
    model: object,
    options: Mapping[str, Any],
) -> tuple[ListedModel, ...]:
    if names is not None and len(names) != len(models):
        raise ValueError(
            f"names must be one for each of the {len(models)} networks, found {len(names)}."
        )
    texts = all(isinstance(item, str) for item in models)
    sources: object = list(models)
    if names is not None or not texts:
        words = [str(name) for name in names or short_names(models)]
        sources = dict(zip(words, models, strict=True))
    networks = entries(sources, factory=model, options=options)
    if len(networks) < 2:
        raise ValueError(
            f"a comparison needs at least two different networks, found {len(networks)}: name "
            "another file or pass another module."
        )
    return networks


def _open(entry: ListedModel, data: Mapping[str, Any], seed: int) -> Opened:
    return open_cell({"model": entry.settings, "data": data, "seed": seed})


def _with_fewer(opened: Opened, rows: int) -> Opened:
    data = fewer(opened.data, rows)
    x, y = data.measured
    subject = replace(opened.subject, x=x, y=y, x_train=data.x, y_train=data.y)
    for name in ("plane", "rows", "labels"):
        subject.__dict__.pop(name, None)
    return replace(opened, data=data, subject=subject)


def _refuse_others(networks: Sequence[ListedModel], opened: Sequence[Opened]) -> None:
    """Refuse networks whose examples are not the same ones."""
    sizes = {len(part.subject.x) for part in opened}
    if len(sizes) > 1:
        counts = [f"{len(part.subject.x)} of {entry.name}"
                  for entry, part in zip(networks, opened, strict=True)]  # fmt: skip
        raise ValueError(
            f"all networks must measure the same examples, found {listed(counts)}: give data that "
            "every one of them accepts."
        )


def forecast(
    opened: Sequence[Opened],
    measures: Mapping[str, Instrument],
    chosen: Mapping[str, Instrument],
    rows: int | None = None,
) -> dict[str, float]:
    """Return the seconds that each instrument is expected to take on so many examples."""
    count = len(opened[0].subject.x) if rows is None else rows
    times = {
        name: sum(predicted_seconds(part.subject, i, count) for part in opened)
        for name, i in chosen.items()
    }
    pace = sum(part.subject.pace for part in opened) / len(opened)
    outputs = max(part.subject.probe.outputs for part in opened)
    pairs = len(opened) * (len(opened) - 1) / 2
    for name, measure in measures.items():
        work = measure.work(min(count, _most_rows(name)), outputs)
        times[name] = pairs * (measure.setup + work * pace)
    return times


def _most_rows(name: str) -> int:
    return MAP_ROWS if name in MAPS else MOST_ROWS


def _plan(
    opened: Sequence[Opened],
    measures: Mapping[str, Instrument],
    chosen: Mapping[str, Instrument],
    budget: float,
) -> tuple[int | None, dict[str, float]]:
    """Return how many examples fit into the budget, None for all, and measures that never fit."""
    have = len(opened[0].subject.x)
    for rows in (None, *(rows for rows in ROWS if rows < have)):
        times = forecast(opened, measures, chosen, rows)
        enough = (have if rows is None else rows) <= ENOUGH
        fits = enough or sum(times[name] for name in chosen) <= EACH * budget
        if fits and sum(times[name] for name in measures) <= PAIRS * budget:
            break
    left_out: dict[str, float] = {}
    over = sum(times[name] for name in measures) - 2 * PAIRS * budget
    for name in sorted(measures, key=lambda name: -times[name]):
        if over > 0:
            left_out[name] = times[name]
            over -= times[name]
    return rows, left_out


def _notes(networks: Sequence[ListedModel], opened: Sequence[Opened]) -> tuple[str, ...]:
    """Return what is said of the data: once what all networks say, else with their names."""
    sides = [part.data.notes for part in opened]
    common = [note for note in sides[0] if all(note in side for side in sides)]
    own = [
        f"{entry.name}: {note}"
        for entry, side in zip(networks, sides, strict=True)
        for note in side
        if note not in common
    ]
    return (*common, *own)


def _values(opened: Opened, instrument: Instrument) -> dict[str, Any]:
    """Return what an instrument measures of a network, or why it failed."""
    try:
        with hooks_kept(opened.subject.model):
            return dict(outcome_of(call(opened.subject, instrument)))
    except BudgetError:
        raise
    except Exception as error:
        status = f"failed: {type(error).__name__}: {one_line(error)}"
        return {"measures": [{"status": status, "name": "", "summary": None}], "about": {}}


def measured_pair(measure: Instrument, first: Opened, second: Opened, seconds: float) -> Result:
    """Return a measure of two networks, each with the examples as it takes them."""
    side, other = first.subject, second.subject
    if len(side.x) < measure.least_rows:
        reason = f"it needs at least {measure.least_rows} examples, the data have {len(side.x)}"
        return NotApplicable(what=measure.name, reason=reason)
    if measure.name == "slice_difference":
        return _slice(measure, first, second, seconds)
    rows = _most_rows(measure.name)
    settings: dict[str, Any] = {"other": other.model, "other_x": other.x[:rows]}
    data: tuple[Tensor, ...] = (side.x[:rows],)
    if measure.wants_labels:
        if side.y is None:
            return NotApplicable(what=measure.name, reason="it needs labels, the data have none")
        data = (*data, side.y[:rows])
    result: Result = measure.function(side.model, *data, **settings)
    return result


def _slice(measure: Instrument, first: Opened, second: Opened, seconds: float) -> Result:
    """Return the slice of both networks, which must take the same numbers in some shape."""
    side, other = first.subject, second.subject
    if not same_numbers(first, second):
        reason = "both networks must take the same input, and each has preprocessing of its own"
        return NotApplicable(what=measure.name, reason=reason)
    model: nn.Module = other.model
    if side.x.shape != other.x.shape:
        model = Reshaped(model, tuple(other.x.shape[1:])).eval()
    result: Result = measure.function(
        side.model, side.x, other=model, seconds=max(0.5, seconds), regions=200_000, **side.plane
    )
    if isinstance(result, SliceDifference) and result.covered < SEEN:
        reason = f"there was time for {result.covered:.1%} of its window: raise the budget"
        return NotApplicable(what=measure.name, reason=reason)
    return result


class Reshaped(nn.Module):
    """A network that takes the same numbers in another shape."""

    def __init__(self, model: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.model, self.shape = model, shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of the network."""
        outputs: Tensor = self.model(x.reshape(-1, *self.shape))
        return outputs


def _pair_measurement(
    name: str, names: tuple[str, str], result: Result | Exception, seconds: float
) -> PairMeasurement:
    first, second = names
    if isinstance(result, Exception):
        status = f"failed: {one_line(result)}"
        return PairMeasurement(instrument=name, first=first, second=second, status=status)
    is_number = not isinstance(result, NotApplicable)
    return PairMeasurement(
        instrument=name,
        first=first,
        second=second,
        status=result.status,
        summary=result.summary() if is_number else None,
        result=result if is_number else None,
        seconds=seconds,
    )


def _farthest(pairs: Sequence[PairMeasurement], networks: Sequence[ListedModel]) -> tuple[str, str]:
    """Return the two networks that disagree most, of several; else the first two."""
    known = [p for p in pairs if p.instrument == "disagreement" and p.summary is not None]
    if known:
        most = max(known, key=lambda p: p.summary.value if p.summary else 0.0)
        return most.first, most.second
    return networks[0].name, networks[1].name
