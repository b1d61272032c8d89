"""Running instruments within a time budget: first every measure, then what to compare it with."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Literal

from torch import nn

from inscape._core import BudgetError, Instrument, NotApplicable, Result, UnsupportedModelError
from inscape.report.linear import Fit, UnavailableError, fit_seconds, linear_fit
from inscape.report.parts import LeftOut, Measured, Reference, Skipped
from inscape.report.pulse import Pulse
from inscape.report.references import (
    INITIALISATION,
    at_initialisation,
    attempted,
    bound_reference,
    from_results,
)
from inscape.report.subject import Subject, seconds_per_row
from inscape.report.words import command_for, number, one_line, seconds

#: How many times the network is drawn anew, where time allows.
DRAWS = 3
#: What a command for a left-out measure asks for, over the predicted time.
SPARE = 1.5


@dataclass(eq=False, kw_only=True)
class Outcome:
    """What came of all instruments."""

    measures: dict[str, Measured]
    left_out: list[LeftOut]
    not_applicable: list[Skipped]
    failed: list[Skipped]


def measure_all(subject: Subject, chosen: dict[str, Instrument], pulse: Pulse) -> Outcome:
    """Run the chosen instruments, the quickest first, for as long as the budget lasts."""
    outcome = Outcome(measures={}, left_out=[], not_applicable=[], failed=[])
    for name, instrument in sorted(chosen.items(), key=lambda item: subject.predicted(item[1])):
        predicted = subject.predicted(instrument)
        if not subject.clock.allows(predicted) and not subject.fewer(instrument):
            outcome.left_out.append(_left_out(subject, name, "measure", (2 + DRAWS) * predicted))
            continue
        pulse.bar.note = name
        start = perf_counter()
        try:
            result = subject.result(instrument, subject.model)
        except (UnsupportedModelError, BudgetError) as error:
            outcome.not_applicable.append(Skipped(name=name, reason=one_line(error)))
        except Exception as error:
            outcome.failed.append(
                Skipped(name=name, reason=f"{type(error).__name__}: {one_line(error)}")
            )
        else:
            if isinstance(result, NotApplicable):
                outcome.not_applicable.append(Skipped(name=name, reason=result.reason))
            else:
                took = perf_counter() - start
                outcome.measures[name] = _measured(subject, instrument, result, took)
    return outcome


def _measured(subject: Subject, instrument: Instrument, result: Result, took: float) -> Measured:
    summary = result.summary()
    value = "" if summary is None else number(summary.value)
    return Measured(
        name=instrument.name,
        title=instrument.title,
        family=instrument.family,
        meaning=instrument.meaning.replace("{value}", value),
        cites=instrument.cites,
        doc=instrument.function.__doc__ or "",
        result=result,
        summary=summary,
        references=(),
        seconds=took,
        command=_alone(subject, instrument.name, (2 + DRAWS) * took),
    )


def _alone(subject: Subject, name: str, needed: float) -> str:
    return command_for(subject.command, name, max(10.0, SPARE * needed), seed=subject.seed)


def _left_out(
    subject: Subject, name: str, what: Literal["measure", "references"], needed: float
) -> LeftOut:
    command = _alone(subject, name, needed)
    return LeftOut(name=name, what=what, seconds=needed, command=command)


def compare_all(
    subject: Subject, chosen: dict[str, Instrument], outcome: Outcome, pulse: Pulse
) -> Fit | None:
    """Add the references to every measure, as far as the budget allows; return the linear model.

    A first round gives each measure its bound, the linear model and one draw of the network, a
    second one the further draws.
    """
    others = Others(subject)
    more = (1 + DRAWS) * sum(measured.seconds for measured in outcome.measures.values())
    pulse.expected = min(subject.clock.budget, subject.clock.spent + more)
    names = sorted(outcome.measures, key=lambda name: outcome.measures[name].seconds)
    draws: dict[str, list[Result]] = {name: [] for name in names}
    firsts: dict[str, tuple[Reference | None, Reference]] = {}
    for name in names:
        pulse.bar.note = f"references of {name}"
        measured = outcome.measures[name]
        bound = bound_reference(chosen[name], subject.x, subject.y)
        firsts[name] = (bound, others.linear(chosen[name], measured))
        others.draw_again(chosen[name], measured, draws[name])
    for name in names:
        for _ in range(1, DRAWS):
            others.draw_again(chosen[name], outcome.measures[name], draws[name])
    for name in names:
        measured = outcome.measures[name]
        bound, linear = firsts[name]
        found = (others.initialisation(name, draws[name]), linear, bound)
        references = tuple(reference for reference in found if reference is not None)
        outcome.measures[name] = replace(measured, references=references)
        if name in others.late:
            needed = (2 + DRAWS) * measured.seconds + others.fitting
            outcome.left_out.append(_left_out(subject, name, "references", needed))
    return others.fit if isinstance(others.fit, Fit) else None


class Others:
    """The models that the network is compared with, made when first needed and then kept."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.late: set[str] = set()
        self.reasons: dict[str, str] = {}
        self._fresh: dict[int, nn.Module] = {}
        self.fitting = fit_seconds(
            subject.x_train, outputs=subject.probe.outputs, task=subject.task
        )

    @cached_property
    def fit(self) -> Fit | UnavailableError:
        """Return the linear model of the data, or why there is none."""
        subject = self.subject
        try:
            return linear_fit(
                subject.x_train,
                subject.y_train,
                task=subject.task,
                outputs=subject.probe.outputs,
                seed=subject.seed,
                probability=subject.probability,
            )
        except UnavailableError as error:
            return error

    @cached_property
    def linear_pace(self) -> float:
        """Return the seconds that one row takes through the linear model."""
        if isinstance(self.fit, UnavailableError):
            return 0.0
        return seconds_per_row(self.fit.model, self.subject.x, self.subject.probe)

    def linear(self, instrument: Instrument, measured: Measured) -> Reference:
        """Return the measure of the linear model."""
        label = "logistic regression" if self.subject.task == "classes" else "the linear model"
        late = partial(Reference, name="linear", label=label)
        if "fit" not in self.__dict__ and not self.subject.clock.allows(self.fitting):
            self.late.add(measured.name)
            return late(reason=f"left out for time: the fit takes about {seconds(self.fitting)}")
        work = instrument.work(len(self.subject.x), self.subject.probe.outputs)
        predicted = min(measured.seconds, max(0.1, 2 * work * self.linear_pace))
        if not self.subject.clock.allows(predicted):
            self.late.add(measured.name)
            return late(reason=f"left out for time: it takes about {seconds(predicted)}")

        def make() -> Reference:
            if isinstance(self.fit, UnavailableError):
                raise self.fit
            result = self.subject.result(instrument, self.fit.model)
            return from_results("linear", self.fit.label, [result], note=self.fit.note)

        return attempted("linear", label, make)

    def draw_again(self, instrument: Instrument, measured: Measured, done: list[Result]) -> None:
        """Measure one more draw of the network, if it can be drawn and there is time."""
        if measured.name in self.reasons:
            return
        if not self.subject.clock.allows(measured.seconds):
            self.late.add(measured.name)
            return
        try:
            done.append(self.subject.result(instrument, self._drawn(len(done))))
        except Exception as error:
            self.reasons[measured.name] = f"not available: {one_line(error)}"

    def _drawn(self, k: int) -> nn.Module:
        if k not in self._fresh:
            self._fresh[k] = at_initialisation(self.subject.model, seed=self.subject.seed + k)
        return self._fresh[k]

    def initialisation(self, name: str, done: list[Result]) -> Reference:
        """Return the measure of the drawn networks: their mean and range."""
        missing = partial(Reference, name="initialisation", label=INITIALISATION)
        if name in self.reasons:
            return missing(reason=self.reasons[name])
        if not done:
            return missing(reason="left out for time")
        some = "one draw" if len(done) == 1 else f"mean and range of {len(done)} draws"
        note = f"{some} by reset_parameters"
        return from_results("initialisation", INITIALISATION, done, note=note)
