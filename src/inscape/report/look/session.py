"""The course of a look: prepare model and data, then share the time budget among its tasks.

Tasks run in the order of importance, so that the least important is lost where time is short: the
accuracy, the linear model, a first answer of every instrument, what the findings need, the
baselines, the explained predictions; then everything that can still become more precise.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from torch import nn

from inscape._core import Instrument, NotApplicable, checks
from inscape._core.anytime import batches
from inscape.files import size_limits
from inscape.functional.jacobians import cached_probes
from inscape.loaders import OpenedData, OpenedModel, fit_together, one_input, one_output
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.planes.slices import SlicePicture
from inscape.report.look.attribution import ATTRIBUTION, Attribution
from inscape.report.look.checkup import Checkup, checkup
from inscape.report.look.explanation import AttributionPlan, exact_if_in_time, plan
from inscape.report.look.explanation import explain as explained
from inscape.report.look.facts import data_facts, model_facts, provenance
from inscape.report.look.hooks import hooks_kept
from inscape.report.look.look import Look
from inscape.report.look.other_instruments import elsewhere
from inscape.report.look.parts import Elsewhere, Score, Skipped
from inscape.report.look.pulse import Pulse, pulse
from inscape.report.look.reserve import MOST, SOME, PlainFigure, page_seconds
from inscape.report.look.schedule import SLICE, LookTask, TaskSchedule
from inscape.report.look.scores import NETWORK, scores
from inscape.report.look.slice import ROWS, slice_of
from inscape.report.look.subject import Subject, opened_data, opened_model, subject_of
from inscape.report.look.tasks import BASELINE, DRAWS, MeasurementTasks
from inscape.report.look.warmup import compile_ahead
from inscape.report.look.watch import BudgetWatch
from inscape.report.look.work import ROLES, WorkCounts, read_work, work_of
from inscape.report.words import one_line, whole_command
from inscape.runtime.deadline import now
from inscape.runtime.threads import on_threads, one_pool
from inscape.selection import selected, selected_instruments
from inscape.training.trajectory import Trajectory

T = TypeVar("T")

#: Fractions of the budget that fitting the linear model may take at first, and once every
#: instrument has an answer for the network.
FITTING, FURTHER = 0.08, 0.04
#: Seconds that a part of a look counts for in its progress, beside those that are foreseen.
COUNTED = 0.1
#: Fraction of the budget that loading or compiling kernels counts for, at most: to compile them,
#: once on a machine, may take longer than a whole look.
COMPILING = 0.5
#: What the work of a look calls a part of the page that there was no time for.
LOST = "without_"
#: Fraction of the budget that is planned for exporting the network.
EXPORT = 0.05
#: Explaining by a recorded training is kept so many times the seconds that it was foreseen to take.
SPARE = 1.25
#: Fraction of the budget that one extra of the page may take, and that its slice is planned for.
EXTRA, SLICED = 0.1, 0.08


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A look before it is taken: what there is to measure, and the time for it, which runs."""

    opened: OpenedModel
    data: OpenedData
    subject: Subject
    chosen: dict[str, Instrument]
    explaining: AttributionPlan | None
    work: WorkCounts | None
    command: str | None
    budget: float
    elsewhere: tuple[Elsewhere, ...] = ()
    page: bool = True
    failed: list[Skipped] = field(default_factory=list)
    extras: list[LookTask] = field(default_factory=list)

    @property
    def seconds(self) -> dict[str, float]:
        """Return the seconds that each instrument is expected to take if time is no object."""
        times = {
            name: self.subject.predicted(instrument) for name, instrument in self.chosen.items()
        }
        times = dict(sorted(times.items(), key=lambda item: item[1]))
        if self.explaining is not None:
            times[ATTRIBUTION] = self.explaining.seconds
        return times

    @property
    def whole(self) -> float:
        """Return the expected seconds of the whole look: every instrument and its baselines."""
        times = self.seconds
        explaining = times.pop(ATTRIBUTION, 0.0)
        return min(self.budget, explaining + (2 + DRAWS) * sum(times.values()))

    def run(self, *, quiet: bool | None = None) -> Look:
        """Run the look and return it."""
        watch = self.subject.clock

        with ExitStack() as stack:
            moved = stack.enter_context(pulse(watch.left, quiet=quiet))
            stack.enter_context(cached_probes())
            stack.enter_context(batches(self.subject.rows))
            stack.enter_context(one_pool())
            stack.enter_context(on_threads(self.subject.threads))
            stack.enter_context(watch.watching())
            return self._look(moved)

    def _look(self, moved: Pulse) -> Look:
        subject, watch = self.subject, self.subject.clock
        measurements = MeasurementTasks(subject, self.chosen, self.work or WorkCounts())
        plain = PlainFigure.timed() if self.page and self.work is None else None
        self._reserve(self.chosen, plain, most=SOME)
        slice = min(SLICE, watch.budget / (2 * max(1, 3 * len(self.chosen))))
        schedule = TaskSchedule(
            watch, slice=slice, announce=partial(self._tell, moved, measurements)
        )
        rate = partial(scores, subject, self.data)
        own = self._extra(schedule, "scores", lambda: rate(self.opened.model, NETWORK)) or ()
        self._give(schedule, [measurements.fitting], FITTING * watch.budget)
        self._export(schedule)
        self._give(schedule, measurements.own_tasks())
        shown = [name for name, task in measurements.own.items() if task.answer is not None]
        self._reserve(shown, plain)
        self._give(schedule, [measurements.fitting], FURTHER * watch.budget)
        measurements.fitting.ended = True  # what is measured of it is measured of one model
        beside: tuple[Score, ...] = ()
        if (fit := measurements.fit) is not None:
            model, label = fit.model, fit.label
            beside = self._extra(schedule, "linear_scores", lambda: rate(model, label)) or ()
        linear = None if fit is None else fit.model
        health = self._extra(schedule, "checkup", lambda: checkup(subject, linear))
        if health is None and not self._has_failed("checkup"):
            health = checkup(subject, None, rows=0)  # no time: the weights alone
        cut = self._extra(schedule, "slice", self._slice)
        self._give(schedule, measurements.baseline_tasks(), BASELINE * slice)
        attribution = self._explained(schedule)
        if self.work is None:
            schedule.refine(measurements.tasks)
        else:
            schedule.finish(measurements.tasks)
        return self._made(measurements, (*own, *beside), health, cut, attribution)

    def _reserve(
        self, shown: Iterable[str], plain: PlainFigure | None, *, most: float = MOST
    ) -> None:
        """Keep time for explaining and for a page with the figures of these instruments.

        For the page at most this fraction of the budget: at first less, since which instruments
        will have a figure is not known yet.
        """
        watch, page = self.subject.clock, 0.0
        if watch.over:
            return
        if plain is not None:
            figure = plain.now(watch, self.subject.threads)
            page = min(most * watch.budget, page_seconds(shown, figure, budget=watch.budget))
        watch.reserve(page + self._explaining_seconds)

    @property
    def _explaining_seconds(self) -> float:
        """Return the seconds to keep for explaining predictions by a recorded training."""
        plan = self.explaining
        return 0.0 if plan is None or plan.recorded is None else SPARE * plan.seconds

    def _export(self, schedule: TaskSchedule) -> None:
        """Export the network once for all instruments that read its graph, before their slices.

        An interrupted export is lost, and would be begun anew by each of them.
        """
        if not any(instrument.family == "regions" for instrument in self.chosen.values()):
            return
        task = LookTask(name="graph", role="network", start=lambda: iter([self._graph()]), most=1)
        self._give(schedule, [task], EXPORT * self.subject.clock.budget)

    def _graph(self) -> object:
        return piecewise(self.subject.model, self.subject.x[:2])

    def _slice(self) -> SlicePicture | NotApplicable:
        rows = self.subject.affordable("slice", SLICED * self.subject.clock.budget, ROWS)
        return slice_of(self.subject, rows, self.data.names)

    def _give(
        self, schedule: TaskSchedule, tasks: Sequence[LookTask], seconds: float | None = None
    ) -> None:
        """Give tasks a first slice, or all that they take where a look is repeated."""
        if self.work is None:
            schedule.first(tasks, seconds)
        else:
            schedule.finish(tasks)

    def _extra(self, schedule: TaskSchedule, name: str, *versions: Callable[[], T]) -> T | None:
        """Return what one part of the page is made of; where that fails, say so and go on.

        Later versions are better, and are made if there is time.
        """

        def start() -> Iterator[Any]:
            for make in versions:
                with hooks_kept(self.subject.model):
                    part = make()
                yield (part,)

        if self.work is not None and self.work.rows.get(f"{LOST}{name}"):
            self.subject.counts[f"{LOST}{name}"] = 1
            return None
        task = LookTask(name=name, role="network", start=start, most=len(versions))
        counts = self.subject.counts
        before = set(counts)
        self.extras.append(task)
        self._give(schedule, [task], EXTRA * self.subject.clock.budget)
        if task.answer is None and task.error is None:
            for planned in set(counts) - before:
                del counts[planned]  # examples of what was not done
            counts[f"{LOST}{name}"] = 1  # so that repeating leaves it out as well
        if task.error is not None:
            reason = f"{type(task.error).__name__}: {one_line(task.error)}"
            self.failed.append(Skipped(name=name, reason=reason))
        return None if task.answer is None else task.answer[0]

    def _has_failed(self, name: str) -> bool:
        return any(failure.name == name for failure in self.failed)

    def _explained(self, schedule: TaskSchedule) -> Attribution | None:
        plan = self.explaining
        if plan is None:
            return None
        watch = self.subject.clock
        watch.reserve(watch.reserved - self._explaining_seconds)
        arguments = (self.subject, self.data, plan)
        versions = [partial(explained, *arguments)]
        if plan.first_order and self.work is None:
            versions.append(partial(exact_if_in_time, *arguments))
        attribution = self._extra(schedule, ATTRIBUTION, *versions)
        if attribution is None and not self._has_failed(ATTRIBUTION):
            attribution = explained(self.subject, self.data, plan.without_time())
        return attribution

    def _made(
        self,
        measurements: MeasurementTasks,
        scored: tuple[Score, ...],
        health: Checkup | None,
        cut: SlicePicture | NotApplicable | None,
        attribution: Attribution | None,
    ) -> Look:
        subject, watch = self.subject, self.subject.clock
        outcome = measurements.outcome()
        work = str(work_of(measurements.tasks, subject.counts))
        return Look(
            model=model_facts(self.opened, subject.x, outputs=subject.probe.outputs),
            data=data_facts(self.data, rows=len(subject.x)),
            scores=scored,
            measurements=tuple(
                outcome.measurements[n] for n in self.chosen if n in outcome.measurements
            ),
            left_out=tuple(outcome.left_out),
            not_applicable=tuple(outcome.not_applicable),
            failed=(*outcome.failed, *self.failed),
            provenance=provenance(
                subject.x, seed=subject.seed, budget=self.budget, spent=watch.spent
            ),
            command=whole_command(self.command, work, seed=subject.seed),
            attribution=attribution,
            checkup=health,
            slice=cut,
            work=work,
            peak=watch.peak,
            elsewhere=self.elsewhere,
        )

    def _tell(self, moved: Pulse, measurements: MeasurementTasks, task: LookTask) -> None:
        """Show which task runs, and the fraction of the expected work that has ended."""
        moved.bar.note = task.name if task.role == "network" else f"{task.name} ({task.role})"
        times = self.seconds
        tasks = [*measurements.tasks, *self.extras]
        names = [planned.name for planned in tasks]
        if not measurements.draws:  # baselines are not planned yet
            names += [name for name in self.chosen for _ in ROLES[1:]]
        if self.explaining is not None and ATTRIBUTION not in names:
            names.append(ATTRIBUTION)
        ended = sum(COUNTED + times.get(planned.name, 0.0) for planned in tasks if planned.ended)
        moved.ended = ended / sum(COUNTED + times.get(name, 0.0) for name in names)


def prepare(
    model: nn.Module | OpenedModel,
    data: object,
    *,
    budget: float = 60.0,
    seed: int = 0,
    only: str | Sequence[str] | None = None,
    trajectory: Trajectory | None = None,
    explain: Sequence[int] | None = None,
    memory: int | None = None,
    threads: int | None = None,
    take: str | int | None = None,
    embedding: str | None = None,
    work: str | None = None,
    command: str | None = None,
    page: bool = True,
) -> Prepared:
    """Open and check everything that a look needs; its time runs from here on.

    Arguments are those of :func:`inscape.look`, and whether there will be a page. A few
    examples pass through the model to check it. Kernels that are not on disk yet are compiled
    first, which is part of the time.
    """
    checks.at_least(0, budget=budget)
    checks.seed(seed)
    chosen = selected_instruments(only, also=(ATTRIBUTION,))
    known = None if work is None else read_work(work, names=(*chosen, "linear_model"))
    begun = now()
    compile_ahead(chosen)
    seconds = budget if known is None else math.inf  # what is repeated takes the time it takes
    watch = BudgetWatch(seconds, memory=size_limits.memory() // 4 if memory is None else memory)
    watch.start -= min(COMPILING * budget, now() - begun)
    opened = opened_model(model)
    with cached_probes():
        opened_set = opened_data(data, opened.model)
        opened, opened_set = one_input(opened, opened_set, embedding)
        opened = one_output(opened, opened_set, take)
        fitted = fit_together(opened, opened_set)
        subject = subject_of(
            opened.model, fitted, clock=watch, seed=seed, command=command,
            work=None if known is None else known.rows, wanted_threads=threads,
        )  # fmt: skip
        watch.count_memory()
        with on_threads(subject.threads), batches(subject.rows):
            explaining = None
            if explains(only, explain):
                explaining = plan(subject, fitted, trajectory, explain)
    return Prepared(
        opened=opened,
        data=fitted,
        subject=subject,
        chosen=chosen,
        explaining=explaining,
        work=known,
        command=command,
        budget=budget,
        page=page,
        elsewhere=elsewhere(subject) if only is None else (),
    )


def explains(only: str | Sequence[str] | None, explain: Sequence[int] | None) -> bool:
    """Tell whether predictions are to be explained."""
    if explain is not None:
        return len(explain) > 0
    return only is None or ATTRIBUTION in selected(only, also=(ATTRIBUTION,))


def names_chosen(only: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the instruments that a look runs."""
    return tuple(selected_instruments(only, also=(ATTRIBUTION,)))
