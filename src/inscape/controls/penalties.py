"""Penalties as controls: what a training pays for roughness, beside its loss."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.checks import Function
from inscape.controls._checks import not_negative
from inscape.functional.jacobians import differentiable_jacobians, norm


def weight_decay(model: nn.Module, x: Tensor) -> Float[Tensor, ""]:
    r"""Return half the squared norm of all weights, without biases.

    .. math:: P(\theta) = \tfrac12 \sum_l \lVert W_l \rVert_F^2

    Weights are the trainable tensors with at least two dimensions; ``l2_norm`` takes the others
    too. Decay of weights that a control holds does nothing to the function: they are scaled back.

    Args:
        model: Module that is being trained.
        x: Batch; this penalty does not look at it.
    """
    squares = [p.square().sum() for p in model.parameters() if p.requires_grad and p.ndim > 1]
    if not squares:
        raise ValueError(
            "weight_decay needs trainable weights of two dimensions or more, found none: pass "
            "another model."
        )
    return torch.stack(squares).sum() / 2


def jacobian_penalty(
    f: Function, x: Float[Tensor, "n *d"], *, free: float = 0.0
) -> Float[Tensor, ""]:
    r"""Return the mean square of the Jacobian's norm above a free allowance.

    .. math:: P(f) = \tfrac1n \sum_i \max(0, \lVert J(x_i) \rVert_F - \lambda)^2

    A knob for networks of any depth: slopes up to ``free`` cost nothing, steeper ones are pulled
    back. ``functools.partial(jacobian_penalty, free=2.0)`` goes into ``fit``'s ``penalties``.
    Costs a backward pass for each output that is differentiated again.

    >>> line = nn.Linear(2, 1)
    >>> _ = line.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> jacobian_penalty(line, torch.zeros(1, 2), free=3.0).item()
    4.0

    Args:
        f: Function of a batch, differentiable in its weights.
        x: Batch.
        free: Slope that costs nothing.
    """
    checks.points(x)
    free = not_negative(free, "free")
    sizes = norm(differentiable_jacobians(f, x).flatten(1), dim=1)
    return (sizes - free).clamp(min=0).square().mean()
