"""How good the model is on the data: its loss and, for classes, its accuracy."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn
from torch.nn import functional

from inscape._core import checks
from inscape.functional.jacobians import MEMORY, probe
from inscape.runtime.progress import progress


@dataclass(frozen=True, kw_only=True)
class Performance:
    """Mean loss, and fraction of examples that are classified correctly (None for regression)."""

    loss: float
    accuracy: float | None
    n: int


@torch.no_grad()
def performance(model: nn.Module, x: Float[Tensor, "n *d"], y: Tensor, loss: str) -> Performance:
    """Return loss and accuracy over all examples; both are exact up to rounding.

    Args:
        model: A module in eval mode.
        x: Inputs.
        y: Classes (int64, one per example) or vectors of real numbers.
        loss: ``mse`` (mean over examples and outputs; classes count as one-hot vectors),
            ``cross_entropy`` of logits, or ``bce_logits`` of one logit and classes 0 and 1.
    """
    total, right = 0.0, 0
    for losses, correct in _batches(model, x, y, loss):
        total += float(losses.double().sum())
        right += int(correct.sum())
    return Performance(
        loss=total / len(x),
        accuracy=None if y.is_floating_point() else right / len(x),
        n=len(x),
    )


@torch.no_grad()
def per_sample(
    model: nn.Module, x: Float[Tensor, "n *d"], y: Tensor, loss: str
) -> tuple[Float64[Tensor, " n"], Bool[Tensor, " n"]]:
    """Return the loss of each sample, and whether it is classified correctly.

    Arguments are those of :func:`performance`, which is the mean of both.
    """
    losses, correct = zip(*_batches(model, x, y, loss), strict=True)
    return torch.cat(losses).double().cpu(), torch.cat(correct).cpu()


def _batches(model: nn.Module, x: Tensor, y: Tensor, loss: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the losses of a batch and whether its samples are classified correctly."""
    checks.one_of(("mse", "cross_entropy", "bce_logits"), loss=loss)
    checks.labels(y, x)
    rows = probe(model, x).rows(MEMORY)
    with progress(len(x), label="measuring loss") as bar:
        for start in range(0, len(x), rows):
            inputs, labels = x[start : start + rows], y[start : start + rows]
            output = checks.call(model, inputs)
            yield row_losses(output, labels, loss), _right(output, labels, loss)
            bar.advance(len(inputs))


def row_losses(output: Tensor, y: Tensor, loss: str) -> Float[Tensor, " n"]:
    """Return the loss of each example."""
    if loss == "cross_entropy":
        return functional.cross_entropy(output, y, reduction="none")
    targets = y if y.is_floating_point() else _targets(output, y)
    targets = targets.to(output.dtype).reshape(output.shape)
    if loss == "bce_logits":
        losses = functional.binary_cross_entropy_with_logits(output, targets, reduction="none")
    else:
        losses = functional.mse_loss(output, targets, reduction="none")
    return losses.reshape(len(losses), -1).mean(1)


def _targets(output: Tensor, y: Tensor) -> Tensor:
    return y if _single(output) else functional.one_hot(y, output.shape[1])


def _right(output: Tensor, y: Tensor, loss: str) -> Tensor:
    """Tell which examples are classified correctly; a single output decides halfway."""
    if y.is_floating_point():
        return torch.zeros(len(y), dtype=torch.bool)
    if _single(output):
        return (output.flatten() > (0.5 if loss == "mse" else 0)) == (y > 0)
    return output.argmax(1) == y


def _single(output: Tensor) -> bool:
    return output[0].numel() == 1
