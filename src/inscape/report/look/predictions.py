"""Predictions worth explaining: some that are right and some that are wrong."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import softmax

from inscape._core.anytime import most_rows
from inscape.loaders import OpenedData
from inscape.report.look.attribution import Prediction
from inscape.report.look.linear_model import some_rows
from inscape.report.look.subject import Subject, evaluated
from inscape.report.words import number

#: Predictions that are explained unless the user names some.
SHOWN = 4
#: Examples among which they are chosen, at most.
AMONG = 2000
#: Fraction of the budget that choosing them may take.
FRACTION = 0.02


def predictions(
    subject: Subject, data: OpenedData, rows: Sequence[int] | None
) -> tuple[Prediction, ...]:
    """Return the predictions on the given examples, else on some chosen ones."""
    if rows is not None:
        _refuse_missing(rows, len(subject.x))
        chosen = dict.fromkeys(rows, "asked for")
        numbers = torch.tensor(list(chosen))
        outputs = _outputs(subject, numbers)
        by_row = dict(zip(chosen, outputs, strict=True))
    else:
        seconds = FRACTION * subject.clock.budget
        rows_among = max(2 * SHOWN, subject.affordable("predictions", seconds, AMONG))
        numbers = some_rows(len(subject.x), rows_among, seed=subject.seed)
        outputs = _outputs(subject, numbers)
        labels = None if subject.y is None else subject.y[numbers.to(subject.y.device)].cpu()
        chosen = {int(numbers[k]): why for k, why in _chosen(outputs, labels, data).items()}
        by_row = dict(zip(numbers.tolist(), outputs, strict=True))
    return tuple(_prediction(row, why, by_row[row], subject, data) for row, why in chosen.items())


def label(data: OpenedData, row: int, output: int) -> str | None:
    """Return the label of a training example, for an output."""
    return None if data.y is None else _shown(data.y, row, output)


def _shown(y: Tensor, row: int, output: int) -> str:
    if not y.is_floating_point():
        return str(int(y[row]))
    return number(float(y[row].flatten()[output]), 3)


def _refuse_missing(rows: Sequence[int], most: int) -> None:
    for row in rows:
        if not 0 <= row < most:
            raise ValueError(
                f"explain must name measured examples, 0 to {most - 1}, found {row}: choose others."
            )


@torch.no_grad()
def _outputs(subject: Subject, rows: Tensor) -> Tensor:
    x = subject.x
    parts = [
        evaluated(subject.model, x[batch.to(x.device)].clone(), batch).reshape(len(batch), -1)
        for batch in torch.split(rows, most_rows(256))
    ]
    return torch.cat(parts).double().cpu()


def _chosen(outputs: Tensor, y: Tensor | None, data: OpenedData) -> dict[int, str]:
    """Return numbers of predictions, and why each was taken."""
    if y is None:
        return dict.fromkeys(range(min(SHOWN, len(outputs))), "one of the first examples")
    if data.task != "classes":
        errors = (outputs - y.double().reshape(outputs.shape)).norm(dim=1)
        order = errors.argsort(descending=True, stable=True).tolist()
        if len(order) == 1:
            return {order[0]: "the only example"}
        usual = {order[len(order) // 2]: "an error of usual size"} if len(order) > 2 else {}
        return {order[0]: "the largest error", **usual, order[-1]: "the smallest error"}
    says, sure = _classes(outputs, data)
    order = sure.argsort(descending=True, stable=True).tolist()
    wrong = [k for k in order if says[k] != y[k]]
    right = [k for k in order if says[k] == y[k]]
    if len(wrong) == 1:
        reasons = {wrong[0]: "the only wrong one"}
    else:
        reasons = {
            k: f"wrong, and {_place(j)}surest of {len(wrong)}"
            for j, k in enumerate(wrong[: SHOWN // 2])
        }
    if len(right) == 1:
        return {**reasons, right[0]: "the only right one"}
    reasons |= {k: f"right, and the least sure of {len(right)}" for k in right[-1:]}
    return reasons | {k: f"right, and the surest of {len(right)}" for k in right[:1]}


def _place(place: int) -> str:
    return ("the ", "the second ")[place]


def _classes(outputs: Tensor, data: OpenedData) -> tuple[Tensor, Tensor]:
    """Return the class that each row of outputs says, and by how much it is ahead."""
    if outputs.shape[1] == 1:
        ahead = outputs[:, 0] - (0.5 if data.loss == "mse" else 0.0)
        return (ahead > 0).long(), ahead.abs()
    best = outputs.topk(2, dim=1)
    return best.indices[:, 0], best.values[:, 0] - best.values[:, 1]


def _prediction(
    row: int, why: str, outputs: Tensor, subject: Subject, data: OpenedData
) -> Prediction:
    y = subject.y
    if data.task != "classes":
        k = int(outputs.abs().argmax())
        truth = None if y is None else _shown(y, row, k)
        return Prediction(
            row=row, why=why, says=number(float(outputs[k]), 3), truth=truth, right=None,
            probability=None, output=k, value=float(outputs[k]),
        )  # fmt: skip
    says = int(_classes(outputs[None], data)[0])
    truth = None if y is None else _shown(y, row, 0)
    output = says if len(outputs) > 1 else 0
    return Prediction(
        row=row,
        why=why,
        says=str(says),
        truth=truth,
        right=None if truth is None else truth == str(says),
        probability=_probability(outputs, says, data.loss),
        output=output,
        value=float(outputs[output]),
    )


def _probability(outputs: Tensor, says: int, loss: str | None) -> float | None:
    if loss == "cross_entropy":
        return float(softmax(outputs, dim=0)[says])
    if loss == "bce_logits":
        probability = float(outputs[0].sigmoid())
        return probability if says else 1 - probability
    return None
