"""Penalties: terms that are added to the loss of a training.

A penalty is any function of the model and the batch that returns a differentiable scalar.
Smoothness penalties are in the modules of their instruments; here is the L2 norm.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Penalty = Callable[[nn.Module, Tensor], Tensor]


def l2_norm(model: nn.Module, x: Tensor) -> Float[Tensor, ""]:
    r"""Return half the squared norm of all trainable parameters.

    .. math:: P(\theta) = \tfrac{1}{2} \lVert \theta \rVert^2

    Its gradient is :math:`\theta`, so a coefficient here equals a ``weight_decay`` of that size
    in SGD and Adam; AdamW's is decoupled from the scaling of the gradient.

    Args:
        model: Module that is being trained.
        x: Batch; not used by this penalty.
    """
    squares = [p.square().sum() for p in model.parameters() if p.requires_grad]
    return torch.stack(squares).sum() / 2
