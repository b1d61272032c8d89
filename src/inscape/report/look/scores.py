"""How well a model does, on each split of the data."""

from torch import nn

from inscape.loaders import OpenedData, performance
from inscape.report.look.linear_model import some_rows
from inscape.report.look.parts import Score
from inscape.report.look.subject import Subject

#: Fraction of the budget that scoring the network on one split may take.
FRACTION = 0.05
#: Examples that are scored however little time there is.
FEWEST = 2

NETWORK = "the network"


def scores(subject: Subject, data: OpenedData, model: nn.Module, who: str) -> tuple[Score, ...]:
    """Return how well ``model`` does on each split, on as many examples as there is time for.

    Another model is scored on the same examples as the network.
    """
    if data.loss is None:
        return ()
    splits = [("training examples", data.x, data.y), ("test examples", data.x_test, data.y_test)]
    if data.x_test is None:
        splits = [("examples", data.x, data.y)]
    longest = max(len(x) for _, x, _ in splits if x is not None)
    most = subject.affordable("scores", FRACTION * subject.clock.budget, longest)
    results = []
    for rows, x, y in splits:
        if x is None or y is None:
            continue
        drawn = some_rows(len(x), max(FEWEST, most), seed=subject.seed).to(x.device)
        score = performance(model, x[drawn], y[drawn], data.loss)
        results.append(
            Score(
                who=who,
                rows=rows,
                n=score.n,
                loss_name=data.loss,
                loss=score.loss,
                accuracy=score.accuracy,
            )
        )
    return tuple(results)
