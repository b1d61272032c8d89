"""How well a model does, on each split of the data."""

from torch import nn

from inscape.intake import OpenedData, Performance, performance
from inscape.report.linear import some_rows
from inscape.report.parts import Score
from inscape.report.subject import Subject

#: Share of the budget that scoring one model on one split may take.
SHARE = 0.05
#: Rows that are scored however little time there is.
FEWEST = 1000

NETWORK = "the network"


def scores(
    subject: Subject,
    data: OpenedData,
    model: nn.Module,
    who: str,
    *,
    done: Performance | None = None,
) -> tuple[Score, ...]:
    """Return how well ``model`` does on each split, on as many rows as there is time for.

    ``done`` is what is known already for the measured rows.
    """
    if data.loss is None:
        return ()
    splits = [("training rows", data.x, data.y), ("test rows", data.x_test, data.y_test)]
    if data.x_test is None:
        splits = [("rows", data.x, data.y)]
    most = max(FEWEST, int(SHARE * subject.clock.budget / max(subject.pace, 1e-9)))
    found = []
    for rows, x, y in splits:
        if x is None or y is None:
            continue
        score = done if x is subject.x else None
        if score is None:
            kept = some_rows(len(x), most, seed=subject.seed).to(x.device)
            score = performance(model, x[kept], y[kept], data.loss)
        found.append(
            Score(
                who=who,
                rows=rows,
                n=score.n,
                loss_name=data.loss,
                loss=score.loss,
                accuracy=score.accuracy,
            )
        )
    return tuple(found)
