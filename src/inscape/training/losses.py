"""Losses by name; each raises an error for targets that it would have to broadcast."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from inscape._core import checks

Loss = Callable[[Tensor, Tensor], Tensor]


def mse(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """Return the squared error, averaged over all elements."""
    _same_kind("mse", prediction, target)
    return functional.mse_loss(prediction, target)


def cross_entropy(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """Return minus the mean log-probability of the targets under the softmax of the prediction.

    The target holds class numbers (int64, one per point) or probabilities, shaped as the
    prediction.
    """
    if target.is_floating_point():
        _same_kind("cross_entropy", prediction, target)
        return functional.cross_entropy(prediction, target)
    if target.dtype != torch.int64:
        raise TypeError(
            f"the loss 'cross_entropy' requires class numbers as int64, found {target.dtype}: "
            "use y.long()."
        )
    expected = prediction.shape[:1] + prediction.shape[2:]
    if prediction.ndim < 2 or target.shape != expected:
        raise ValueError(
            "the loss 'cross_entropy' requires predictions (n, classes) and one class number per "
            f"point (n,), found {shape(prediction)} and {shape(target)}: reshape y or the output."
        )
    return functional.cross_entropy(prediction, target)


def bce_logits(prediction: Tensor, target: Tensor) -> Float[Tensor, ""]:
    """Return the binary cross-entropy of logits against targets in [0, 1], over all elements."""
    _same_kind("bce_logits", prediction, target)
    return functional.binary_cross_entropy_with_logits(prediction, target)


LOSSES: dict[str, Loss] = {"mse": mse, "cross_entropy": cross_entropy, "bce_logits": bce_logits}


def loss_function(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the function itself."""
    if callable(loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss must be a name or a function, found {loss!r}: pass e.g. 'mse'.")
    checks.one_of(tuple(LOSSES), loss=loss)
    return LOSSES[loss]


def check_targets(loss: str | Loss, y: Tensor, prediction: Tensor) -> None:
    """Raise an error if the loss does not support the values of the targets."""
    if loss == "cross_entropy" and not y.is_floating_point():
        classes = prediction.shape[1] if prediction.ndim > 1 else 1
        low, high = int(y.min()), int(y.max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"class numbers must lie between 0 and {classes - 1}, found {low} to {high}: "
                "renumber y or give the model more outputs."
            )
    if loss == "bce_logits" and not 0 <= float(y.min()) <= float(y.max()) <= 1:
        raise ValueError(
            f"targets of the loss 'bce_logits' must lie between 0 and 1, found {float(y.min())} to "
            f"{float(y.max())}: for labels -1 and 1 use (y + 1) / 2."
        )


def shape(tensor: Tensor) -> str:
    """Return the shape as text, with ``n`` for the number of points."""
    return f"({', '.join(['n', *map(str, tensor.shape[1:])])}{',' if tensor.ndim == 1 else ''})"


def _same_kind(loss: str, prediction: Tensor, target: Tensor) -> None:
    if prediction.shape != target.shape:
        raise ValueError(
            f"the loss {loss!r} requires targets shaped as the predictions, found predictions "
            f"{shape(prediction)} and targets {shape(target)}: reshape y to {shape(prediction)}."
        )
    if prediction.dtype != target.dtype:
        raise TypeError(
            f"the loss {loss!r} requires targets of the type of the predictions, found "
            f"{prediction.dtype} and {target.dtype}: use y.to({prediction.dtype})."
        )
