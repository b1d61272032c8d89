"""The inputs on which two networks disagree most, and what of them each network looks at."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core.result import Scalar
from inscape.report.sweeps.cells import Opened
from inscape.similarity import Disagreement

#: Examples that are shown.
SHOWN = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """What a network answers for an input, how sure it is, and its gradient by the input."""

    text: str
    probability: float | None
    right: bool | None
    saliency: Float[Tensor, "*d"] | None = field(repr=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class DisagreedInput:
    """An input, its label, and the answers of two networks.

    ``distance`` is the total variation distance of their probabilities; of a search near the data,
    ``example`` is where it began and ``moved`` how far it went.
    """

    example: int
    label: str
    distance: float
    answers: tuple[Answer, Answer]
    x: Float[Tensor, "*d"] = field(repr=False)
    moved: float = 0.0

    @property
    def differ(self) -> bool:
        """Tell whether the networks give different classes."""
        return self.answers[0].text != self.answers[1].text

    def row(self) -> dict[str, Scalar]:
        """Return a row of a table."""
        first, second = self.answers
        return {
            "example": self.example, "label": self.label, "first": first.text,
            "second": second.text, "distance": self.distance, "moved": self.moved,
        }  # fmt: skip


def most_disagreed(
    first: Opened, second: Opened, result: Disagreement, *, count: int = SHOWN
) -> tuple[DisagreedInput, ...]:
    """Return the examples whose probabilities differ most, with both networks' gradients."""
    rows = result.most(count).tolist()
    both = [opened.subject.x[rows] for opened in (first, second)]
    return inputs_of(first, second, both[0], both[1], rows)


def inputs_of(
    first: Opened,
    second: Opened,
    x: Float[Tensor, "n *d"],
    other_x: Float[Tensor, "n *e"],
    rows: Sequence[int],
    moved: Sequence[float] | None = None,
) -> tuple[DisagreedInput, ...]:
    """Return what both networks answer for some inputs, which began as these examples."""
    sides = [_answers(first, x, rows), _answers(second, other_x, rows)]
    places = ((first, x), (second, other_x))
    with torch.no_grad():
        shares = [probabilities(side.subject.model, at) for side, at in places]
    distances = (shares[0] - shares[1]).abs().sum(1) / 2
    return tuple(
        DisagreedInput(
            example=row,
            label=_label(first, row),
            distance=float(distances[k]),
            answers=(sides[0][k], sides[1][k]),
            x=x[k].detach().cpu(),
            moved=0.0 if moved is None else moved[k],
        )
        for k, row in enumerate(rows)
    )


def _answers(opened: Opened, x: Tensor, rows: Sequence[int]) -> list[Answer]:
    with torch.no_grad():
        shares = probabilities(opened.subject.model, x)
    classes = shares.argmax(1)
    gradients = _gradients(opened.subject.model, x, classes)
    labels = _class_labels(opened)
    return [
        Answer(
            text=_named(opened, int(classes[k])),
            probability=float(shares[k, classes[k]]),
            right=None if labels is None else int(labels[row]) == int(classes[k]),
            saliency=None if gradients is None else gradients[k].detach().cpu(),
        )
        for k, row in enumerate(rows)
    ]


def _class_labels(opened: Opened) -> Tensor | None:
    y = opened.subject.y
    return None if y is None or opened.data.task != "classes" else y.flatten().cpu()


def _label(opened: Opened, row: int) -> str:
    labels = _class_labels(opened)
    return "" if labels is None else _named(opened, int(labels[row]))


def _named(opened: Opened, number: int) -> str:
    names: Sequence[object] = opened.data.names
    return str(names[number]) if number < len(names) else str(number)


def probabilities(model: nn.Module, x: Tensor) -> Float[Tensor, "n c"]:
    """Return the probabilities of classes, two of them for a single output."""
    outputs = model(x.clone()).reshape(len(x), -1).double().cpu()
    if outputs.shape[1] == 1:
        outputs = torch.cat([torch.zeros_like(outputs), outputs], 1)
    probabilities: Tensor = outputs.softmax(1)
    return probabilities


def _gradients(model: nn.Module, x: Tensor, classes: Tensor) -> Tensor | None:
    """Return the gradient of each input's own class score, or None where there is none."""
    if not x.is_floating_point():
        return None
    with torch.enable_grad():
        at = x.detach().clone().requires_grad_()
        outputs = model(at.clone()).reshape(len(x), -1)
        column = classes.to(x.device).clamp(max=outputs.shape[1] - 1)
        scores = outputs.gather(1, column[:, None]).sum()
        if not scores.requires_grad:
            return None
        gradient: Tensor | None
        (gradient,) = torch.autograd.grad(scores, at, allow_unused=True)
    return gradient
