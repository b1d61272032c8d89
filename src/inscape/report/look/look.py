"""``look``: measure a network in every way that applies, within a time budget."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from inscape._core import NotApplicable
from inscape._core.result import Scalar
from inscape.escaping import visible_line
from inscape.loaders import OpenedModel
from inscape.piecewise.planes.slices import SlicePicture
from inscape.report.look.attribution import Attribution
from inscape.report.look.checkup import Checkup
from inscape.report.look.finding import Finding
from inscape.report.look.findings import findings, unchecked
from inscape.report.look.parts import (
    DataFacts,
    Elsewhere,
    LeftOut,
    Measured,
    ModelFacts,
    Provenance,
    Score,
    Skipped,
)
from inscape.report.words import jsonable
from inscape.training.trajectory import Trajectory


@dataclass(frozen=True, eq=False, kw_only=True)
class Look:
    """The measurements of one model on one data set.

    ``work`` repeats it with the same numbers; ``peak`` is the memory that measuring took, in bytes;
    ``elsewhere`` lists what no look takes unless it is asked for by name.
    """

    model: ModelFacts
    data: DataFacts
    scores: tuple[Score, ...]
    measurements: tuple[Measured, ...]
    left_out: tuple[LeftOut, ...]
    not_applicable: tuple[Skipped, ...]
    failed: tuple[Skipped, ...]
    provenance: Provenance
    command: str
    attribution: Attribution | None = None
    checkup: Checkup | None = None
    slice: SlicePicture | NotApplicable | None = None
    work: str = ""
    peak: int = 0
    elsewhere: tuple[Elsewhere, ...] = ()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings at the top of the page, the most worrying first."""
        return findings(self)

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """Return a sentence for every check behind the findings that could not be run."""
        return unchecked(self)

    @property
    def title(self) -> str:
        """Return which model was looked at, on which data."""
        return f"{self.model.name} on {self.data.title}"

    def rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield one row for each instrument: its number and references, or why there is none."""
        for measured in self.measurements:
            yield _row(measured)
        for late in self.left_out:
            if late.part == "instrument":
                yield {"instrument": late.name, "status": f"left out for time: {late.command}"}
        for skipped in self.not_applicable:
            yield {"instrument": skipped.name, "status": f"not applicable: {skipped.reason}"}
        for skipped in self.failed:
            yield {"instrument": skipped.name, "status": f"failed: {skipped.reason}"}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the single samples as plain values, for JSON."""
        parts = {
            "model": asdict(self.model),
            "data": asdict(self.data),
            "scores": [asdict(score) for score in self.scores],
            "measurements": [_plain(measured) for measured in self.measurements],
            "left_out": [asdict(late) for late in self.left_out],
            "not_applicable": [asdict(skipped) for skipped in self.not_applicable],
            "failed": [asdict(skipped) for skipped in self.failed],
            "elsewhere": [asdict(other) for other in self.elsewhere],
            "provenance": asdict(self.provenance),
            "command": self.command,
            "work": self.work,
            "peak_memory": self.peak,
            "attribution": None if self.attribution is None else self.attribution.to_dict(),
            "findings": [asdict(finding) for finding in self.findings],
            "unchecked": list(self.unchecked),
        }
        return {key: jsonable(value) for key, value in parts.items()}

    def save(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page, or the numbers as JSON."""
        from inscape.report.look.page import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        names = ", ".join(measured.name for measured in self.measurements) or "nothing measured"
        return visible_line(f"Look({self.model.name} on {self.data.name}: {names})")

    def _repr_html_(self) -> str:
        from inscape.report.look.page import notebook_page

        return notebook_page(self)


def look(
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
    quiet: bool | None = None,
    command: str | None = None,
) -> Look:
    """Run every instrument that applies to a model, and compare each number with its baselines.

    Every instrument gets a first slice of the time, so that it has a coarse answer with a wide
    interval: those of the network first, then the same of a linear model of the data and of the
    network at initialisation. What is left of the time goes to the widest intervals. What did not
    fit is listed with the command that runs it. Where there are test examples, those are measured.
    A longer look takes the same samples and more of them.

    Some predictions are explained as well: with the ``trajectory`` of the training by the path
    kernel, in up to half of the budget; without it, by examples with similar gradients.

    Args:
        model: A module in eval mode, or what ``inscape.loaders.open_model`` returned.
        data: A pair ``(x, y)``, or ``x`` alone (several inputs: a dictionary or tuple), a mapping
            of columns, a data set, a DataLoader, or what ``inscape.loaders.open_data`` returned.
        budget: Seconds that measuring and writing the page may take.
        seed: Seed of every draw.
        only: Names of the instruments to run; by default all that apply and are quick to read.
            ``"attribution"`` explains predictions.
        trajectory: The recorded training, ``fit(..., record=...).trajectory``, of this model on the
            training examples of these data.
        explain: Indices of measured examples whose predictions are explained; by default some that
            are right and some that are wrong, and none if ``only`` names instruments.
        memory: Bytes that measuring may take beside model and data, by default a quarter of the
            machine's; an instrument that needs more is stopped, and says so.
        threads: Threads to compute on; by default one or all, whichever is quicker now.
        take: Name or index of the output to measure where the model returns several; by default
            the only one, or the one that is called logits.
        embedding: Name of the embedding in which a model of tokens is measured; by default the
            first that tokens are looked up in.
        work: The work of an earlier look, ``Look.work``, to repeat it with the same numbers; the
            budget then does not count.
        quiet: True shows no progress, False does; None asks the environment.
        command: The command line to print as what repeats the look; Python by default.
    """
    from inscape.report.look.session import prepare

    prepared = prepare(
        model, data, budget=budget, seed=seed, only=only, trajectory=trajectory, explain=explain,
        memory=memory, threads=threads, take=take, embedding=embedding, work=work,
        command=command,
    )  # fmt: skip
    return prepared.run(quiet=quiet)


def _row(measured: Measured) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"instrument": measured.name}
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
        "work": measured.work,
    }


def settings(measured: Measured) -> dict[str, Any]:
    """Return the fields of the result that are no tensors."""
    fields = measured.result.to_dict()
    return {key: value for key, value in fields.items() if not isinstance(value, Tensor)}
