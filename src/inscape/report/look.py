"""``look``: measure a network in every way that applies, within a time budget."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from inscape._core import Instrument, NotApplicable, checks, instruments
from inscape._core.result import Scalar
from inscape._core.slices import SlicePicture
from inscape._core.trajectory import Trajectory
from inscape.intake import OpenedModel, fit_together
from inscape.report.attribution import ATTRIBUTION, Attribution
from inscape.report.checkup import Checkup, checkup
from inscape.report.explaining import explain as explained
from inscape.report.explaining import plan
from inscape.report.facts import data_facts, model_facts, provenance
from inscape.report.finding import Finding
from inscape.report.findings import findings, unchecked
from inscape.report.parts import (
    DataFacts,
    LeftOut,
    Measured,
    ModelFacts,
    Provenance,
    Score,
    Skipped,
)
from inscape.report.pulse import pulse
from inscape.report.runs import DRAWS, compare_all, measure_all
from inscape.report.scores import NETWORK, scores
from inscape.report.slice import ROWS, slice_of
from inscape.report.subject import Clock, opened_data, opened_model, subject_of
from inscape.report.words import jsonable, whole_command


@dataclass(frozen=True, eq=False, kw_only=True)
class Look:
    """What was found out about one model on one data set."""

    model: ModelFacts
    data: DataFacts
    scores: tuple[Score, ...]
    measures: tuple[Measured, ...]
    left_out: tuple[LeftOut, ...]
    not_applicable: tuple[Skipped, ...]
    failed: tuple[Skipped, ...]
    provenance: Provenance
    command: str
    attribution: Attribution | None = None
    checkup: Checkup | None = None
    slice: SlicePicture | NotApplicable | None = None

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Return the sentences that open the page, the most worrying first."""
        return findings(self)

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """Return what the findings could not look into, and why, a sentence each."""
        return unchecked(self)

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield one row for each instrument: its number and references, or why there is none."""
        for measured in self.measures:
            yield _row(measured)
        for late in self.left_out:
            if late.what == "measure":
                yield {"measure": late.name, "status": f"left out for time: {late.command}"}
        for skipped in self.not_applicable:
            yield {"measure": skipped.name, "status": f"not applicable: {skipped.reason}"}
        for skipped in self.failed:
            yield {"measure": skipped.name, "status": f"failed: {skipped.reason}"}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single samples as plain values, for JSON."""
        parts = {
            "model": asdict(self.model),
            "data": asdict(self.data),
            "scores": [asdict(score) for score in self.scores],
            "measures": [_plain(measured) for measured in self.measures],
            "left_out": [asdict(late) for late in self.left_out],
            "not_applicable": [asdict(skipped) for skipped in self.not_applicable],
            "failed": [asdict(skipped) for skipped in self.failed],
            "provenance": asdict(self.provenance),
            "command": self.command,
            "attribution": None if self.attribution is None else self.attribution.to_dict(),
            "findings": [asdict(finding) for finding in self.findings],
            "unchecked": list(self.unchecked),
        }
        return {key: jsonable(value) for key, value in parts.items()}

    def save(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page, or the numbers as JSON."""
        from inscape.report.page import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        names = ", ".join(measured.name for measured in self.measures) or "nothing measured"
        return f"Look({self.model.name} on {self.data.name}: {names})"

    def _repr_html_(self) -> str:
        from inscape.report.page import notebook_table

        return notebook_table(self)


def look(
    model: nn.Module | OpenedModel,
    data: object,
    *,
    budget: float = 60.0,
    seed: int = 0,
    only: str | Sequence[str] | None = None,
    trajectory: Trajectory | None = None,
    explain: Sequence[int] | None = None,
    quiet: bool | None = None,
    command: str | None = None,
) -> Look:
    """Measure a model in every way that applies, and say what each number can be held against.

    Instruments run in the order of their predicted time until the budget is spent; then the same
    measures are taken, as far as time allows, of the network at initialisation and of a linear
    model of the data. What did not fit is listed with the command that runs it. Where there are
    test rows, those are measured.

    Some predictions are explained as well: with the ``trajectory`` of the training as sums of what
    every training row has added, by the path kernel, which takes up to half of the budget; without
    it by the rows that are nearest for the network.

    Args:
        model: A module in eval mode, or what ``inscape.intake.open_model`` returned.
        data: A pair ``(x, y)``, ``x`` alone, a data set, a DataLoader, or what
            ``inscape.intake.open_data`` returned.
        budget: Seconds that all measuring may take.
        seed: Seed of every draw.
        only: Names of the instruments to run; by default all that apply and are quick to read.
            ``"attribution"`` explains predictions.
        trajectory: The recorded training, ``fit(..., record=...).trajectory``, of this model on the
            training rows of these data.
        explain: Numbers of measured rows whose predictions are explained; by default some that are
            right and some that are wrong, and none if ``only`` names instruments.
        quiet: True shows no progress, False does; None asks the environment.
        command: The command line to print as what repeats the look; Python by default.
    """
    checks.at_least(0, budget=budget)
    chosen = _chosen(only)
    clock = Clock(budget)
    opened = opened_model(model)
    given, done = fit_together(opened, opened_data(data, opened.model))
    subject = subject_of(opened.model, given, clock=clock, seed=seed, command=command)
    made = plan(subject, given, trajectory, explain) if explains(only, explain) else None
    expected = clock.spent + (2 + DRAWS) * sum(map(subject.predicted, chosen.values()))
    expected += 0.0 if made is None else made.seconds
    with pulse(min(budget, expected), quiet=quiet) as moved:
        own = scores(subject, given, opened.model, NETWORK, done=done)
        moved.bar.note = ATTRIBUTION
        attribution = None if made is None else explained(subject, given, made)
        outcome = measure_all(subject, chosen, moved)
        fit = compare_all(subject, chosen, outcome, moved)
        other = scores(subject, given, fit.model, fit.label) if fit is not None else ()
        seen = checkup(subject, None if fit is None else fit.model)
        pace = max(subject.pace, 1e-9)
        cut = slice_of(subject, min(ROWS, int(0.05 * budget / pace)), given.names)
    return Look(
        model=model_facts(opened, subject.x, outputs=subject.probe.outputs),
        data=data_facts(given, rows=len(subject.x)),
        scores=(*own, *other),
        measures=tuple(outcome.measures[name] for name in chosen if name in outcome.measures),
        left_out=tuple(outcome.left_out),
        not_applicable=tuple(outcome.not_applicable),
        failed=tuple(outcome.failed),
        provenance=provenance(subject.x, seed=seed, budget=budget, spent=clock.spent),
        command=whole_command(command, budget, seed=seed),
        attribution=attribution,
        checkup=seen,
        slice=cut,
    )


def explains(only: str | Sequence[str] | None, explain: Sequence[int] | None) -> bool:
    """Tell whether predictions are to be explained."""
    if explain is not None:
        return len(explain) > 0
    return only is None or ATTRIBUTION in ([only] if isinstance(only, str) else only)


def _chosen(only: str | Sequence[str] | None) -> dict[str, Instrument]:
    """Return the instruments that can look at one model and its data, in their order."""
    known = {
        name: instrument
        for name, instrument in instruments().items()
        if instrument.reads not in ("trajectory", "pair")
    }
    if only is None:
        return {name: one for name, one in known.items() if one.by_default}
    names = [only] if isinstance(only, str) else list(only)
    for name in names:
        checks.one_of((*known, ATTRIBUTION), only=name)
    return {name: instrument for name, instrument in known.items() if name in names}


def _row(measured: Measured) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"measure": measured.name}
    for key in ("value", "low", "high", "kind"):
        row[key] = getattr(measured.summary, key, None)
    for name in ("initialisation", "linear", "bound"):
        row[name] = getattr(measured.reference(name), "value", None)
    return {**row, "seconds": measured.seconds, "status": measured.result.status}


def _plain(measured: Measured) -> dict[str, Any]:
    return {
        "name": measured.name,
        "title": measured.title,
        "family": measured.family,
        "meaning": measured.meaning,
        "cites": measured.cites,
        "summary": None if measured.summary is None else asdict(measured.summary),
        "settings": settings(measured),
        "references": [asdict(reference) for reference in measured.references],
        "seconds": measured.seconds,
        "command": measured.command,
    }


def settings(measured: Measured) -> dict[str, Any]:
    """Return the fields of the result that are no tensors."""
    fields = measured.result.to_dict()
    return {key: value for key, value in fields.items() if not isinstance(value, Tensor)}
