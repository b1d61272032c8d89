"""Similar training examples by gradient and by distance, where no training was recorded."""

from collections.abc import Sequence
from dataclasses import replace

from inscape.kernels import Neighbours, neighbours
from inscape.loaders import OpenedData
from inscape.report.look.attribution import Attribution, Nearest, Prediction, SimilarExample
from inscape.report.look.linear_model import some_rows
from inscape.report.look.predictions import label
from inscape.report.look.subject import Subject
from inscape.report.words import one_line

#: Neighbours that are named.
COUNT = 5
#: Fraction of the budget that seeking them may take.
FRACTION = 0.05
#: Training examples among which they are sought, at most.
SEARCHED = 10_000


def searched_rows(subject: Subject, data: OpenedData) -> tuple[int, float]:
    """Return among how many training examples there is time to seek neighbours, and that time."""
    clock, passes = subject.clock, 3 * subject.probe.outputs
    allowed = min(FRACTION * clock.budget, clock.left)
    rows = subject.affordable("searched", allowed, min(len(data.x), SEARCHED), passes=passes)
    return rows, rows * passes * subject.pace


def by_neighbours(
    begun: Attribution,
    subject: Subject,
    data: OpenedData,
    predictions: Sequence[Prediction],
    searched: int,
) -> Attribution:
    """Return the training examples with the most similar gradients, and the nearest ones."""
    itself = data.x_test is None  # then an example is among the training examples, and no answer
    count = min(COUNT, searched - itself)
    if count < 1:
        late = "there was no time to search for neighbours"
        return replace(begun, reason=f"{begun.reason}; {late}" if begun.reason else late)
    rows = some_rows(len(data.x), searched, seed=subject.seed)
    try:
        result = neighbours(
            subject.model,
            data.x[rows.to(data.x.device)],
            queries=subject.x[[prediction.row for prediction in predictions]],
            count=count + itself,
        )
    except Exception as error:  # this part may fail, the look may not
        return replace(begun, reason=f"{begun.reason}; neighbours: {one_line(error).rstrip('.')}")
    if not isinstance(result, Neighbours):
        return replace(begun, reason=f"{begun.reason}; neighbours: {result.reason}")
    nearest = tuple(
        _nearest(result, k, prediction, rows.tolist(), data, itself=itself)
        for k, prediction in enumerate(predictions)
    )
    return replace(begun, nearest=nearest, searched=searched)


def _nearest(
    neighbours: Neighbours,
    query: int,
    prediction: Prediction,
    rows: list[int],
    data: OpenedData,
    *,
    itself: bool,
) -> Nearest:
    lists = []
    for numbers, values in (
        (neighbours.by_kernel[query], neighbours.cosines[query]),
        (neighbours.by_distance[query], neighbours.distances[query]),
    ):
        pairs = [(rows[n], v) for n, v in zip(numbers.tolist(), values.tolist(), strict=True)]
        others = [pair for pair in pairs if not (itself and pair[0] == prediction.row)]
        lists.append(others[: len(pairs) - itself])
    both = {row for row, _ in lists[0]} & {row for row, _ in lists[1]}
    by_kernel, by_distance = (
        tuple(
            SimilarExample(
                row=row,
                label=label(data, row, prediction.output),
                nearness=value,
                both=row in both,
            )
            for row, value in pairs
        )
        for pairs in lists
    )
    return Nearest(prediction=prediction, by_kernel=by_kernel, by_distance=by_distance)
