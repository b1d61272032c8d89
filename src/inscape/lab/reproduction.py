"""``reproduce``: run experiments of papers again and put a verdict beside each of their claims.

Nothing here is printed or drawn: a ``Reproduction`` holds records and verdicts, and
``inscape.report.paper`` makes pages from it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape._core.saving import titled_table
from inscape.lab.catalogue import name_of
from inscape.lab.executors import Executor
from inscape.lab.experiment import ScaleName, Value
from inscape.lab.experiment_outcome import ExperimentOutcome
from inscape.lab.runner import RunReport
from inscape.lab.store import Record, Store
from inscape.lab.verdict import VERDICTS, Judgement, Verdict

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reproduction:
    """Records of experiments that were run again, and the verdicts on their claims.

    Attributes:
        scale: The scale of all of them.
        outcomes: Records, quantities and verdicts of each experiment that has all its cells.
        reports: What was computed, experiment by experiment; shared cells are computed once.
        errors: A sentence about each experiment of which cells failed.
        notices: A sentence about everything that was repaired or left out.
        only: Instruments that were measured instead of the experiments' own.
        store: Where the records are.
        command: What to type to repeat it.
    """

    scale: ScaleName
    outcomes: tuple[ExperimentOutcome, ...]
    reports: tuple[RunReport, ...]
    errors: tuple[str, ...]
    notices: tuple[str, ...]
    only: tuple[str, ...]
    store: Store
    command: str

    @property
    def verdicts(self) -> list[Row]:
        """Return a row for each claim about this scale: the published number, ours, the verdict."""
        return [
            _verdict(outcome, judgement)
            for outcome in self.outcomes
            for judgement in outcome.comparable
        ]

    @property
    def counts(self) -> dict[Verdict, int]:
        """Return how often each verdict was given."""
        counter = Counter(judged.verdict for o in self.outcomes for judged in o.comparable)
        return {verdict: counter[verdict] for verdict in VERDICTS if counter[verdict]}

    @property
    def records(self) -> dict[str, tuple[Record, ...]]:
        """Return the records of each experiment, by its name."""
        return {name_of(outcome.id): outcome.records for outcome in self.outcomes}

    @property
    def computed(self) -> int:
        """Return how many cells were computed; the records of the others were there."""
        return sum(report.computed for report in self.reports)

    @property
    def seconds(self) -> float:
        """Return the time that computing took."""
        return sum(report.seconds for report in self.reports)

    def rows(self) -> Iterator[Row]:
        """Yield the verdicts; those without any claim give a row for each of their quantities."""
        yield from self.verdicts
        for outcome in self.outcomes:
            if not outcome.comparable:
                yield from _quantities(outcome)

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def __repr__(self) -> str:
        count = len(self.outcomes) + len(self.errors)
        claims = ", ".join(f"{number} {verdict}" for verdict, number in self.counts.items())
        failed = f"; {len(self.errors)} failed" if self.errors else ""
        return (
            f"Reproduction({count} experiment{'s' * (count != 1)} at scale {self.scale}; "
            f"claims: {claims or 'none'}{failed})"
        )

    def _repr_html_(self) -> str:
        return titled_table(repr(self), list(self.rows()))


def reproduce(
    ids: str | Sequence[str],
    *,
    scale: ScaleName = "laptop",
    seeds: int | None = None,
    overrides: Mapping[str, Sequence[Any]] | None = None,
    only: str | Sequence[str] | None = None,
    executor: str | Executor | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    out: str | Path = "results",
    data_dir: str | Path | None = None,
    quiet: bool | None = None,
) -> Reproduction:
    """Run experiments of papers again, computing only what is missing, and judge their claims.

    Cells that fail do not stop the others; ``errors`` of the result names them.

    Args:
        ids: Papers (``"volhejn"``), experiments (``"volhejn/table-4.1"``) or files of your own.
        scale: ``"smoke"`` (seconds, never a verdict), ``"laptop"`` or ``"paper"``.
        seeds: Number of seeds: the first of the experiment's own, and more that follow them.
        overrides: New values for a setting, by its name; there is then no verdict.
        only: Instruments or families to measure instead of the experiment's own.
        executor: Where to run: ``"serial"``, ``"joblib"``, ``"ray"``, ``"slurm"``, or an executor.
        jobs: Cells at a time; as many as there are cores by default.
        fresh: Whether to compute again what is there.
        out: Folder of the records.
        data_dir: Folder to look for data sets in before the cache.
        quiet: True shows no progress, None asks the environment.
    """
    from inscape.lab.reproduction_plan import data_from, plan_reproduction

    with data_from(data_dir):
        planned = plan_reproduction(
            ids,
            scale=scale,
            seeds=seeds,
            overrides=overrides,
            only=only,
            executor=executor,
            jobs=jobs,
            fresh=fresh,
            out=out,
        )
        return planned.run(quiet=quiet)


def _verdict(outcome: ExperimentOutcome, judgement: Judgement) -> Row:
    claim, ours = judgement.claim, judgement.ours
    return {
        "experiment": name_of(outcome.id),
        "claim": claim.name,
        "published": claim.published if isinstance(claim, Value) else None,
        "ours": None if ours is None else ours.value,
        "low": None if ours is None else ours.low,
        "high": None if ours is None else ours.high,
        "verdict": judgement.verdict,
        "same trend": judgement.same_trend,
        "reason": judgement.reason,
    }


def _quantities(outcome: ExperimentOutcome) -> Iterator[Row]:
    for name, ours in outcome.quantities.items():
        yield {
            "experiment": name_of(outcome.id),
            "quantity": name,
            "ours": ours.value,
            "low": ours.low,
            "high": ours.high,
        }
