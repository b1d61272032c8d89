"""The outcome of an experiment: its records, quantities and verdicts; nothing is run.

Data are not read, so that a page can be made where there are none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inscape.lab import catalogue
from inscape.lab.experiment import SCALES, Estimate, Experiment, Figure, ScaleName
from inscape.lab.planning import recorded
from inscape.lab.records import Records, in_view
from inscape.lab.store import Record, Store
from inscape.lab.verdict import Judgement, judge


@dataclass(frozen=True, kw_only=True, eq=False)
class ExperimentOutcome:
    """The records of one experiment at a scale, what they amount to, and the verdicts.

    Attributes:
        id: The experiment, ``paper/item``, or the path of its file.
        experiment: The experiment itself.
        scale: The scale whose records are shown; None where no scale has all of its cells.
        records: Its records, in the order of the cells.
        cells: For each scale, how many cells have a record, and how many there are.
        quantities: What the analysis of the records gave.
        judgements: A verdict on each claim.
        changed: Settings that the user has changed.
        conclusions: What the records show beyond the claims.
        command: What to type to repeat it; empty where the experiment and its scale say it.
    """

    id: str
    experiment: Experiment
    scale: ScaleName | None
    records: Records = field(default_factory=Records)
    cells: Mapping[ScaleName, tuple[int, int]] = field(default_factory=dict)
    quantities: Mapping[str, Estimate] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()
    changed: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()
    command: str = ""

    @property
    def comparable(self) -> list[Judgement]:
        """Return the verdicts on claims about the settings that are shown.

        Claims about another scale cannot be judged here. Where nothing was run the claims about
        the paper's own settings count, and at ``smoke`` those of a laptop.
        """
        scale = {None: "paper", "smoke": "laptop"}.get(self.scale, self.scale)
        return [judged for judged in self.judgements if scale in judged.claim.scales]

    @property
    def label(self) -> str:
        """Return the scale in a word: ``laptop`` only where its settings are not the paper's."""
        runs = catalogue.experiment(catalogue.source(self.id))
        if self.scale == "laptop" and runs.cells(runs.laptop) == runs.cells(runs.paper):
            return "paper"
        return self.scale or ""

    @property
    def counted(self) -> list[Judgement]:
        """Return the verdicts that are counted: what only the paper's settings can tell, too."""
        comparable = {judged.claim.name for judged in self.comparable}
        return [
            judged
            for judged in self.judgements
            if judged.claim.name in comparable or "paper" in judged.claim.scales
        ]

    @property
    def at_other_scales(self) -> list[Judgement]:
        """Return the claims that are about another scale only."""
        names = {judged.claim.name for judged in self.comparable}
        return [judged for judged in self.judgements if judged.claim.name not in names]

    def figure(self) -> Figure | None:
        """Return the figure of the experiment; None where there is none.

        Neither is there of part of a grid, after ``--set``, that lacks what the figure compares.
        """
        if self.scale is None:
            return None
        drawn: Figure | None = _of_part(self.experiment.draw, self.records, self.changed, None)
        return drawn

    @property
    def seconds(self) -> float:
        """Return the time that all records took together."""
        return sum(float(record.provenance.get("seconds", 0.0)) for record in self.records)


def stored_outcome(id: str, store: Store, scale: ScaleName | None = None) -> ExperimentOutcome:
    """Return the outcome of an experiment from the records in a store.

    Args:
        id: The experiment.
        store: Where its records are.
        scale: The scale to show; by default the largest that has all of its cells, and never
            ``smoke``.
    """
    experiment = catalogue.experiment(id)
    choices: Sequence[ScaleName] = ("paper", "laptop") if scale is None else (scale,)
    records = {name: recorded(id, scale=name, store=store) for name in SCALES}
    cells = {name: (len(records[name]), _wanted(id, name)) for name in SCALES}
    for name in choices:
        available, wanted = cells[name]
        if 0 < available == wanted:
            smaller = _smaller(id, name, records, cells)
            outcome = outcome_of_records(id, experiment, name, records[name], smaller=smaller)
            return replace(outcome, cells=cells)
    return ExperimentOutcome(
        id=id,
        experiment=experiment,
        scale=None,
        cells=cells,
        judgements=tuple(_waiting(experiment, choices, cells)),
    )


def outcome_of_records(
    id: str,
    experiment: Experiment,
    scale: ScaleName,
    records: Sequence[Record],
    changed: Sequence[str] = (),
    smaller: Sequence[Record] = (),
) -> ExperimentOutcome:
    """Analyse records of an experiment and judge each of its claims.

    Args:
        id: The experiment.
        experiment: The experiment itself.
        scale: The scale of the records.
        records: The records.
        changed: Settings that the user has changed; with any there is no verdict.
        smaller: Records of the next smaller scale: where a sign differs there is no verdict.
    """
    records = in_view(records)
    quantities = _of_part(experiment.analyse, records, changed, {})
    before = experiment.analyse(in_view(smaller)) if experiment.analyse and smaller else None
    return ExperimentOutcome(
        id=id,
        experiment=experiment,
        scale=scale,
        records=records,
        quantities=quantities,
        judgements=tuple(judge(experiment, quantities, scale, changed=changed, smaller=before)),
        changed=tuple(changed),
        conclusions=tuple(_of_part(experiment.conclude, records, changed, ())),
    )


def _smaller(
    id: str,
    scale: ScaleName,
    records: Mapping[ScaleName, Sequence[Record]],
    cells: Mapping[ScaleName, tuple[int, int]],
) -> Sequence[Record]:
    """Return the records of the laptop scale, where all are there and others than the paper's."""
    runs = catalogue.experiment(catalogue.source(id))
    if scale != "paper" or cells["laptop"][0] != cells["laptop"][1]:
        return ()
    return () if runs.cells(runs.laptop) == runs.cells(runs.paper) else records["laptop"]


def _of_part(
    function: Callable[[Records], Any] | None,
    records: Records,
    changed: Sequence[str],
    otherwise: Any,
) -> Any:
    """Return what a function makes of records; of part of a grid it may make nothing.

    Settings changed by hand may leave out what is compared. The records are kept all the same.
    """
    if function is None or not records:
        return otherwise
    try:
        return function(records)
    except Exception:
        if not changed:
            raise
        return otherwise


def changed_claims(id: str, records: Sequence[Record]) -> dict[str, int]:
    """Return, for each claim, how many records were made under another wording of it.

    A claim that a record does not know, or knows and the experiment has no longer, counts.

    Args:
        id: The experiment whose records they are.
        records: Records of it.
    """
    now = catalogue.claim_hashes(catalogue.source(id))
    later = catalogue.later_claims(catalogue.source(id))
    counts: dict[str, int] = {}
    for record in records:
        for name in sorted({*now, *record.claims}):
            if name in later and name not in record.claims:  # as the claim says itself
                continue
            if record.claims.get(name) != now.get(name):
                counts[name] = counts.get(name, 0) + 1
    return counts


def _wanted(id: str, scale: ScaleName) -> int:
    """Return how many cells a scale has; none where the experiment has only other scales."""
    runs = catalogue.experiment(catalogue.source(id))
    axes = runs.axes(scale)
    if not axes and any(runs.axes(other) for other in SCALES):
        return 0
    return len(runs.cells(axes))


def _waiting(
    experiment: Experiment,
    choices: Sequence[ScaleName],
    cells: Mapping[ScaleName, tuple[int, int]],
) -> list[Judgement]:
    """Return a judgement of not run for each claim, with the cells that each scale has."""
    state = " and ".join("{} of {} cells at {}".format(*cells[name], name) for name in choices)
    reason = f"no verdict before all cells are there; there are {state}."
    return [
        Judgement(claim=claim, verdict="not run", ours=None, reason=reason)
        for claim in experiment.claims
    ]
