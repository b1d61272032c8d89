"""A recorded training on the page: loss, smoothness and tangent kernel at its recorded steps."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from inscape._core import NotApplicable
from inscape.errors import UnsupportedModelError
from inscape.explorer.subject import ExploredSubject
from inscape.explorer.wire import Array
from inscape.functional.substitution import checked_copy
from inscape.kernels import kernel_drift
from inscape.smoothness import gradient_norm
from inscape.training.losses import loss_function
from inscape.training.trajectory import stand_at

#: Examples of which the loss is taken, at most.
ROWS = 1000
#: Points at which gradients and kernels are taken, at most.
POINTS = 32
#: Seconds that one kernel of a step, or all gradients of one, should take at most.
SECONDS = 0.4

Facts = dict[str, Any]
Arrays = dict[str, Array]


def points_for(subject: ExploredSubject) -> int:
    """Return at how many points kernels and gradients of a step are affordable, at least two."""
    own = subject.subject
    passes = 3 * own.probe.outputs * max(own.pace, 1e-9)
    return max(2, min(POINTS, len(subject.x), int(SECONDS / passes)))


def about_training(subject: ExploredSubject) -> Facts:
    """Return the recorded steps, and of how many examples the curves are."""
    if subject.trajectory is None:
        return {"steps": []}
    rows = _rows(subject)
    return {
        "steps": subject.steps,
        "points": points_for(subject),
        "rows": min(rows, len(subject.x)),
        "trainRows": min(rows, len(subject.subject.x_train)),
        "loss": subject.data.loss,
        "split": subject.data.split,
        "optimizer": subject.trajectory.settings.optimizer,
    }


def _rows(subject: ExploredSubject) -> int:
    return max(8, min(ROWS, int(SECONDS / max(subject.subject.pace, 1e-9))))


def training_curves(
    subject: ExploredSubject, steps: Sequence[int]
) -> Generator[None, None, tuple[Facts, Arrays]]:
    """Return loss, accuracy, gradient norm and how near the tangent kernel is to both ends.

    Losses are means over examples; the gradient norm is ``gradient_norm`` and the cosines are those
    of ``kernel_drift``, both at the first few examples. What a network does not have is NaN.
    """
    trajectory = subject.trajectory
    if trajectory is None:
        raise ValueError(
            "the training must be recorded, found none: run inscape explore --trajectory FILE."
        )
    unknown = [step for step in steps if step not in subject.steps]
    if unknown:
        raise ValueError(
            f"step must be one of the {len(subject.steps)} recorded steps, found {unknown[0]}: "
            "choose one that is recorded."
        )
    body = checked_copy(subject.subject.model, subject.x)
    names = ("loss", "trainLoss", "accuracy", "gradientNorm", "fromStart", "fromEnd")
    table = np.full((len(names), len(steps)), np.nan)
    for k, step in enumerate(steps):
        stand_at(body, trajectory, step)
        table[:4, k] = _measured(subject, body)
        yield
    few = subject.x[: points_for(subject)]
    ends = [subject.steps[0], *steps, subject.steps[-1]]
    try:
        drift = kernel_drift(subject.subject.model, few, trajectory=trajectory, steps=ends)
        if not isinstance(drift, NotApplicable):
            known = {step: k for k, step in enumerate(drift.steps.tolist())}
            table[4:] = drift.cosine[[known[step] for step in steps]].T.numpy()
    except (UnsupportedModelError, ValueError, RuntimeError) as error:  # no gradients
        return {"steps": list(steps), "kernelReason": str(error)}, _named(names, table)
    return {"steps": list(steps)}, _named(names, table)


def _named(names: Sequence[str], table: Array) -> Arrays:
    return dict(zip(names, table, strict=True))


@torch.no_grad()
def _measured(subject: ExploredSubject, body: nn.Module) -> list[float]:
    """Return loss, training loss, accuracy and gradient norm of one network."""
    own, rows = subject.subject, _rows(subject)
    loss, accuracy = _loss(subject, body, subject.x[:rows], subject.y)
    train_loss, _ = _loss(subject, body, own.x_train[:rows], own.y_train)
    try:
        norms = gradient_norm(body, subject.x[: points_for(subject)])
        steepness = float(norms.norms.double().mean())
    except (UnsupportedModelError, ValueError):
        steepness = float("nan")
    return [loss, train_loss, accuracy, steepness]


def _loss(
    subject: ExploredSubject, body: nn.Module, x: Tensor, y: Tensor | None
) -> tuple[float, float]:
    """Return the mean loss on some examples, and the fraction of right answers."""
    if y is None or subject.data.loss is None or not len(x):
        return float("nan"), float("nan")
    y = y[: len(x)]
    outputs = torch.cat([body(part) for part in torch.split(x, 256)]).reshape(len(x), -1)
    target = _target(subject.data.loss, y, outputs)
    loss = float(loss_function(subject.data.loss)(outputs, target))
    if subject.task != "classes":
        return loss, float("nan")
    answers = subject.scores(outputs.double().cpu()).argmax(1)
    return loss, float((answers == y.flatten().cpu()).double().mean())


def _target(loss: str, y: Tensor, outputs: Tensor) -> Tensor:
    """Return labels in the form that a loss takes."""
    if loss == "cross_entropy":
        return y
    if not y.is_floating_point() and outputs.shape[1] > 1:
        y = one_hot(y.flatten(), outputs.shape[1])
    return y.to(outputs).reshape(outputs.shape)
