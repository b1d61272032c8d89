"""Explaining predictions: by the training that made them, else by similar examples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from torch import Tensor

from inscape.kernels import PathKernel
from inscape.loaders import OpenedData
from inscape.report.look.attribution import (
    ATTRIBUTION,
    Attribution,
    ClassPush,
    Explained,
    Others,
    Prediction,
    Push,
)
from inscape.report.look.predictions import label, predictions
from inscape.report.look.recorded_training import PredictionQuery, RecordedTraining
from inscape.report.look.similar_examples import by_neighbours, searched_rows
from inscape.report.look.subject import Subject
from inscape.report.words import command_for, one_line, seconds
from inscape.training.trajectory import Trajectory

#: Training examples that are named on either side.
COUNT = 5
#: Share of the budget that explaining by a recorded training may take.
FRACTION = 0.5
#: Fraction of it that the exact sum may take where only that to first order was foreseen to fit.
EXACT = 0.25

#: What the work of a look calls an explanation to first order, and what the page says of it.
FIRST_ORDER = "first_order"
FIRST_ORDER_WORDS = "; to first order, since there was no time for the exact sum"

NO_RECORD = "there is no record of the training"
ADVICE = (
    "To see which training examples made a prediction, and by how much, record the training: "
    '`run = inscape.training.fit(model, x, y, record=100)`, `run.trajectory.save("run.npz")`; '
    "then look with `--trajectory run.npz`, or from Python with `trajectory=run.trajectory`. A "
    "loop of your own is recorded by `with inscape.record_training(model, optimizer, ...) as run`."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class AttributionPlan:
    """Which predictions will be explained, how, and how long that will take."""

    predictions: tuple[Prediction, ...]
    left_out: tuple[int, ...]
    recorded: RecordedTraining | None
    reason: str
    seconds: float
    needed: float
    searched: int
    first_order: bool = False

    @property
    def words(self) -> str:
        """Return what is about to be done."""
        many = len(self.predictions)
        predictions = f"{many} prediction{'s' * (many != 1)}"
        took = seconds(self.seconds)
        took = took if took.startswith("under") else f"about {took}"
        if self.recorded is None:
            return f"{predictions} by {self.searched:,} neighbours ({self.reason}); {took}"
        how = ", to first order" if self.first_order else ""
        return f"{predictions} by {self.recorded.words}{how}; {took}"

    def without_time(self) -> "AttributionPlan":
        """Return what is left of the plan where there is no time for it."""
        rows = tuple(prediction.row for prediction in self.predictions) if self.recorded else ()
        return replace(
            self, recorded=None, searched=0, left_out=(*rows, *self.left_out),
            reason=self.reason or "left out for time",
        )  # fmt: skip


def plan(
    subject: Subject,
    data: OpenedData,
    trajectory: Trajectory | None,
    rows: Sequence[int] | None,
) -> AttributionPlan:
    """Choose predictions, and as many of them as half of the time budget allows.

    Refuses a trajectory of another network or of other data.

    Args:
        subject: The model on its data, and the time there is.
        data: The same data with their labels and splits.
        trajectory: The recorded training, if there is one.
        rows: Numbers of measured rows; by default some right ones and some wrong ones.
    """
    known = None if trajectory is None else RecordedTraining.of(subject.model, data, trajectory)
    explained = predictions(subject, data, rows)
    reason, needed = NO_RECORD, 0.0
    if known is not None:
        try:
            fitting, took, needed, first_order = _fitting(subject, known, explained)
            subject.counts["explained"] = fitting
            if first_order:
                subject.counts[FIRST_ORDER] = 1
            if fitting:
                late = tuple(prediction.row for prediction in explained[fitting:])
                return AttributionPlan(
                    predictions=explained[:fitting], left_out=late, recorded=known, reason="",
                    seconds=took, needed=needed, searched=0, first_order=first_order,
                )  # fmt: skip
            reason = f"left out for time: one prediction takes about {seconds(took)}"
        except Exception as error:  # this part may fail, the look may not
            reason = one_line(error).rstrip(".")
    searched, took = searched_rows(subject, data)
    late = tuple(prediction.row for prediction in explained) if needed else ()
    return AttributionPlan(
        predictions=explained, left_out=late, recorded=None, reason=reason,
        seconds=took, needed=needed, searched=searched,
    )  # fmt: skip


def _fitting(
    subject: Subject, known: RecordedTraining, explained: tuple[Prediction, ...]
) -> tuple[int, float, float, bool]:
    """Return how many predictions fit the budget, the seconds of those and of all, and the order.

    Where not even one fits exactly, it is tried whether it does to first order.
    """
    if subject.work is not None:
        first_order = bool(subject.work.get(FIRST_ORDER))
        return subject.affordable("explained", 0.0, len(explained)), 0.0, 0.0, first_order
    allowed = min(FRACTION * subject.clock.budget, subject.clock.left)
    single = known.seconds(prediction_query(subject, explained[:1]))
    if single > allowed:
        rough = known.seconds(prediction_query(subject, explained[:1], first_order=True))
        return int(rough <= allowed), rough, len(explained) * single, True
    if len(explained) == 1:
        return 1, single, single, False
    everything = known.seconds(prediction_query(subject, explained))
    if everything <= allowed:
        return len(explained), everything, everything, False
    further = max(everything - single, 1e-9) / (len(explained) - 1)
    count = min(len(explained) - 1, 1 + int((allowed - single) / further))
    return count, single + further * (count - 1), everything, False


def prediction_query(
    subject: Subject, explained: Sequence[Prediction], *, first_order: bool = False
) -> PredictionQuery:
    """Return the inputs of predictions, and the outputs that say them."""
    return PredictionQuery(
        queries=subject.x[[prediction.row for prediction in explained]].cpu(),
        outputs=tuple(sorted({prediction.output for prediction in explained})),
        mode="first-order" if first_order else "exact",
    )


def exact_if_in_time(subject: Subject, data: OpenedData, plan: AttributionPlan) -> Attribution:
    """Explain the predictions of a plan to first order exactly; interrupted if that takes long.

    The first updates of a training, from which times are foreseen, take longest.
    """
    with subject.clock.limit(EXACT * subject.clock.budget):
        attribution = explain(subject, data, replace(plan, first_order=False))
    subject.counts.pop(FIRST_ORDER, None)
    return attribution


def explain(subject: Subject, data: OpenedData, plan: AttributionPlan) -> Attribution:
    """Explain the predictions of a plan."""
    start = perf_counter()
    own = [
        *(prediction.row for prediction in plan.predictions),
        *(() if plan.recorded is None else plan.left_out),
    ]
    begun = Attribution(
        rows="test examples" if data.x_test is not None else "examples",
        training_rows=len(data.x),
        reason=plan.reason,
        advice="" if plan.recorded else ADVICE if plan.reason == NO_RECORD else "",
        left_out=plan.left_out,
        command=_command(subject, plan, own),
    )
    try:
        attribution = _exact(begun, subject, data, plan) if plan.recorded else None
    except Exception as error:
        begun, attribution = replace(begun, reason=one_line(error).rstrip(".")), None
    if attribution is None:
        searched = searched_rows(subject, data)[0] if plan.recorded else plan.searched
        attribution = by_neighbours(begun, subject, data, plan.predictions, searched)
    pictures = _pictures(attribution, subject, data)
    return replace(attribution, pictures=pictures, seconds=perf_counter() - start)


def _command(subject: Subject, plan: AttributionPlan, rows: Sequence[int]) -> str:
    """Return what to type to explain these examples alone, with time enough."""
    budget = max(10.0, 1.5 / FRACTION * plan.needed)
    return command_for(subject.command, ATTRIBUTION, budget, seed=subject.seed, rows=rows)


def _exact(
    begun: Attribution, subject: Subject, data: OpenedData, plan: AttributionPlan
) -> Attribution:
    assert plan.recorded is not None
    query = prediction_query(subject, plan.predictions, first_order=plan.first_order)
    split = plan.recorded.split(query)
    places = [query.outputs.index(prediction.output) for prediction in plan.predictions]
    splits = [split.of_outputs([place]) for place in places]
    explained = tuple(
        explained_one(splits[k], k, prediction, data)
        for k, prediction in enumerate(plan.predictions)
    )
    amounts = {
        prediction.row: splits[k].samples[k, :, 0] for k, prediction in enumerate(plan.predictions)
    }
    words = plan.recorded.words + (FIRST_ORDER_WORDS if plan.first_order else "")
    return replace(begun, explained=explained, training=words, amounts=amounts)


def explained_one(
    split: PathKernel, query: int, prediction: Prediction, data: OpenedData
) -> Explained:
    """Return the output of a query that a split has as the sum of its parts."""
    from inscape.figures.attribution import pushers

    k = 0
    added = split.samples[query, :, k]
    sides = pushers(split, query, k, count=COUNT)
    up, down = (
        tuple(
            Push(row=n, label=label(data, n, prediction.output), amount=float(added[n]))
            for n in side
        )
        for side in sides
    )
    unnamed = added.clone()
    unnamed[[*sides[0], *sides[1]]] = 0.0
    return Explained(
        prediction=prediction,
        initial=float(split.initial[query, k]),
        up=up,
        down=down,
        others=Others(
            rows=len(added) - len(up) - len(down),
            up=float(unnamed.clamp(min=0).sum()),
            down=float(unnamed.clamp(max=0).sum()),
        ),
        rest=split.non_sample_contributions(query, k),
        final=float(split.final[query, k]),
        by_class=_by_class(split, query, k, data),
    )


def _by_class(
    split: PathKernel, query: int, output: int, data: OpenedData
) -> tuple[ClassPush, ...]:
    if data.task != "classes" or data.y is None:
        return ()
    classes = data.y.cpu()
    amounts = split.by_class(classes)[query, :, output].tolist()
    counts = classes.bincount(minlength=len(amounts)).tolist()
    return tuple(
        ClassPush(label=str(k), rows=count, amount=amount)
        for k, (count, amount) in enumerate(zip(counts, amounts, strict=True))
        if count
    )


def _pictures(attribution: Attribution, subject: Subject, data: OpenedData) -> dict[str, Tensor]:
    """Return the inputs that are spoken of, by what they are called on the page."""
    shown = {}
    for explained in attribution.explained:
        shown[f"query {explained.prediction.row}"] = subject.x[explained.prediction.row]
        for push in (*explained.up, *explained.down):
            shown[f"example {push.row}"] = data.x[push.row]
    for nearest in attribution.nearest:
        shown[f"query {nearest.prediction.row}"] = subject.x[nearest.prediction.row]
        for near in (*nearest.by_kernel, *nearest.by_distance):
            shown[f"example {near.row}"] = data.x[near.row]
    return {name: x.detach().cpu().clone() for name, x in shown.items()}
