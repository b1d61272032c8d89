"""The measurements of a look as tasks: of the network, the linear model and initialisations."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal

from torch import nn

from inscape._core import (
    BudgetError,
    Instrument,
    NotApplicable,
    Result,
    Summary,
    UnsupportedModelError,
)
from inscape._core.result import ALIKE as UNKNOWN
from inscape.report.look.baselines import (
    INITIALISATION,
    at_initialisation,
    bound_reference,
    from_results,
)
from inscape.report.look.hooks import hooks_kept
from inscape.report.look.linear_model import LinearFit, linear_fit
from inscape.report.look.parts import LeftOut, Measured, Reference, Skipped, sentence_of
from inscape.report.look.schedule import LookTask
from inscape.report.look.subject import Subject
from inscape.report.look.work import ROLES, WorkCounts
from inscape.report.words import command_for, number, one_line, seconds

#: How many times the network is drawn anew, where time allows.
DRAWS = 3
#: What a command for a left-out instrument asks for, over the predicted time.
SPARE = 1.5
#: How much the width of a baseline's interval counts beside that of the network's, and how long its
#: first slice is; of a further draw at initialisation less.
BASELINE, FURTHER = 0.3, 0.1
#: How much an estimate has to gain whose samples are all alike so far.
ALIKE = 0.5
#: How much a further draw at initialisation has to gain before it has any answer.
DRAW = 0.5


class MeasurementTasks:
    """The tasks of all instruments, and their results.

    Args:
        subject: The model and its data.
        chosen: The instruments, by name.
        work: How many answers to take where a look is repeated; all by default.
    """

    def __init__(
        self, subject: Subject, chosen: Mapping[str, Instrument], work: WorkCounts
    ) -> None:
        self.subject = subject
        self.chosen = chosen
        self._work = work
        self._drawn: dict[int, nn.Module] = {}
        self.fitting = LookTask(
            name="linear_model",
            role="network",
            start=self._fits,
            gain=lambda fit: 1.0,
            most=work.most("linear_model", "network"),
        )
        self.own = {name: self._task(name, "network", self._network) for name in chosen}
        self.linear: dict[str, LookTask] = {}
        self.draws: dict[str, list[LookTask]] = {}

    @property
    def fit(self) -> LinearFit | None:
        """Return the linear model, as far as it is fitted."""
        fit: LinearFit | None = self.fitting.answer
        return fit

    @property
    def tasks(self) -> list[LookTask]:
        """Return all tasks that there are so far."""
        draws = [task for tasks in self.draws.values() for task in tasks]
        return [self.fitting, *self.own.values(), *self.linear.values(), *draws]

    def own_tasks(self) -> list[LookTask]:
        """Return the tasks of the network, those first that should take least.

        So that what takes a moment is not lost where time is too short for all of them.
        """
        return sorted(
            self.own.values(), key=lambda task: self.subject.predicted(self.chosen[task.name])
        )

    def baseline_tasks(self) -> list[LookTask]:
        """Return tasks for the linear model and one initialisation of every measured number.

        Those first that have taken least for the network itself.
        """
        names = [name for name, task in self.own.items() if _number(task.answer) is not None]
        if self.fit is not None:
            self.linear = {n: self._task(n, "linear", self._linear, BASELINE) for n in names}
        self.draws = {
            name: [
                self._task(name, role, partial(self._fresh, k), FURTHER if k else BASELINE)
                for k, role in enumerate(ROLES[2 : 2 + DRAWS])
            ]
            for name in names
        }
        for first, *further in self.draws.values():
            for task in further:
                task.like = first
        tasks = [*self.linear.values(), *(draws[0] for draws in self.draws.values())]
        return sorted(tasks, key=lambda task: self.own[task.name].seconds)

    def _task(
        self, name: str, role: str, model: Callable[[], nn.Module], weight: float = 1.0
    ) -> LookTask:
        return LookTask(
            name=name,
            role=role,
            start=lambda: answers(self.subject, self.chosen[name], model()),
            gain=relative_width,
            weight=weight,
            most=self._work.most(name, role),
        )

    def _network(self) -> nn.Module:
        return self.subject.model

    def _linear(self) -> nn.Module:
        assert self.fit is not None
        return self.fit.model

    def _fresh(self, k: int) -> nn.Module:
        if k not in self._drawn:
            self._drawn[k] = at_initialisation(self.subject.model, seed=self.subject.seed + k)
        return self._drawn[k]

    def _fits(self) -> Iterator[LinearFit]:
        subject = self.subject
        return linear_fit.refine(
            subject.x_train,
            subject.y_train,
            task=subject.task,
            outputs=subject.probe.outputs,
            seed=subject.seed,
            probability=subject.probability,
        )

    def outcome(self) -> "Outcome":
        """Return the results of all tasks, with baselines beside each number."""
        outcome = Outcome(measurements={}, left_out=[], not_applicable=[], failed=[])
        for name, task in self.own.items():
            error, answer = task.error, task.answer
            if isinstance(answer, NotApplicable):
                outcome.not_applicable.append(Skipped(name=name, reason=answer.reason))
            elif answer is not None:
                outcome.measurements[name] = self._measured(name, task)
                if self._is_late(name):
                    outcome.left_out.append(self._left_out(name, "references", task.seconds))
            elif isinstance(error, UnsupportedModelError | BudgetError):
                outcome.not_applicable.append(Skipped(name=name, reason=one_line(error)))
            elif error is not None:
                reason = f"{type(error).__name__}: {one_line(error)}"
                outcome.failed.append(Skipped(name=name, reason=reason))
            else:
                predicted = self.subject.predicted(self.chosen[name])
                needed = (2 + DRAWS) * max(predicted, 2 * task.seconds)
                outcome.left_out.append(self._left_out(name, "instrument", needed))
        return outcome

    def _measured(self, name: str, task: LookTask) -> Measured:
        instrument, result = self.chosen[name], task.answer
        summary = result.summary()
        references = (
            self._initialisation(name),
            self._of_linear(name),
            bound_reference(instrument, self.subject.x, self.subject.y),
        )
        return Measured(
            name=name,
            title=instrument.title,
            family=instrument.family,
            meaning=sentence_of(result) or instrument.meaning.replace("{value}", said(summary)),
            cites=instrument.cites,
            doc=instrument.function.__doc__ or "",
            result=result,
            summary=summary,
            references=tuple(reference for reference in references if reference is not None),
            seconds=task.seconds,
            command=self._alone(name, (2 + DRAWS) * task.seconds),
            work=_work_done(task),
            rows=self.subject.trained_on if instrument.of_training else "",
        )

    def _of_linear(self, name: str) -> Reference:
        label = "logistic regression" if self.subject.task == "classes" else "the linear model"
        missing = partial(Reference, name="linear", label=label)
        if self.fit is None:
            return missing(reason=_reason(self.fitting))
        task = self.linear.get(name)
        if task is None or task.answer is None:
            return missing(reason=_reason(task))
        return from_results("linear", self.fit.label, [task.answer], note=self.fit.note)

    def _initialisation(self, name: str) -> Reference:
        tasks = self.draws.get(name, [])
        done = [task for task in tasks if task.answer is not None]
        if not done:
            reason = _reason(tasks[0] if tasks else None)
            return Reference(name="initialisation", label=INITIALISATION, reason=reason)
        drawn = "one draw" if len(done) == 1 else f"mean and range of {len(done)} draws"
        return from_results(
            "initialisation",
            INITIALISATION,
            [task.answer for task in done],
            note=f"{drawn} by reset_parameters",
        )

    def _is_late(self, name: str) -> bool:
        """Tell whether a baseline is missing for no other reason than time."""
        first = [self.fitting, self.linear.get(name), *self.draws.get(name, [None])[:1]]
        if _number(self.own[name].answer) is None:
            return False
        if self.subject.y_train is None or self.fitting.error is not None:
            first = first[2:]
        return any(task is None or (task.answer is None and task.error is None) for task in first)

    def _alone(self, name: str, needed: float) -> str:
        budget = max(10.0, SPARE * needed)
        return command_for(self.subject.command, name, budget, seed=self.subject.seed)

    def _left_out(
        self, name: str, part: Literal["instrument", "references"], needed: float
    ) -> LeftOut:
        command = self._alone(name, needed)
        return LeftOut(name=name, part=part, seconds=needed, command=command)


@dataclass(eq=False, kw_only=True)
class Outcome:
    """The results of all instruments: measurements, left out, not applicable, failed."""

    measurements: dict[str, Measured]
    left_out: list[LeftOut]
    not_applicable: list[Skipped]
    failed: list[Skipped]


def answers(subject: Subject, instrument: Instrument, model: nn.Module) -> Iterator[Result]:
    """Yield ever better results of an instrument, for this network or one beside it."""
    if (refusal := subject.lacks(instrument)) is not None:
        yield refusal
        return
    subject, model = subject.on_tokens(instrument, model)
    x, y, settings = subject.arguments(instrument)
    steps = instrument.refine(model, x, y, **settings)
    while True:
        with hooks_kept(model):
            first = list(islice(steps, 1))
        if not first:
            return
        yield first[0]


def relative_width(result: Result | None) -> float:
    """Return the half width of a result's interval over its value, or the fraction not covered."""
    if result is None:
        return DRAW
    summary = _number(result)
    if summary is None:
        return 0.0
    missing = 1.0 - float(getattr(result, "covered", 1.0))
    if summary.basis.endswith(UNKNOWN):  # what is alike so far says little of what is to come
        return max(missing, ALIKE)
    if summary.low is None or summary.high is None or not math.isfinite(summary.high):
        return missing
    half = (summary.high - summary.low) / 2
    return max(missing, min(1.0, half / abs(summary.value)) if summary.value else 1.0)


def _number(result: Result | None) -> Any:
    if result is None or isinstance(result, NotApplicable):
        return None
    return result.summary()


def said(summary: Summary | None) -> str:
    """Return a number as a sentence holds it: of a bound, which side of it is known."""
    if summary is None:
        return ""
    side = {"lower bound": "at least ", "upper bound": "at most "}.get(summary.kind, "")
    return f"{side}{number(summary.value)}"


def _reason(task: LookTask | None) -> str:
    """Say why a baseline has no number."""
    if task is None or task.error is None:
        return "left out for time"
    return f"not available: {one_line(task.error)}"


def _work_done(task: LookTask) -> str:
    """Say how much of a measurement was done, and in what time."""
    took = seconds(task.seconds)
    if task.complete:
        return f"complete, in {took}"
    return f"{task.taken} answer{'s' * (task.taken != 1)}, each better than the last, in {took}"
