"""Penalties: what a training pays for beside its loss.

A penalty is any function of the model and the batch that returns a scalar which can be
differentiated. Smoothness penalties stand beside their measures; here is the simplest of all.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Penalty = Callable[[nn.Module, Tensor], Tensor]


def l2_norm(model: nn.Module, x: Tensor) -> Float[Tensor, ""]:
    r"""Return half the squared norm of all trainable parameters.

    .. math:: P(\theta) = \tfrac{1}{2} \lVert \theta \rVert^2

    Its gradient is :math:`\theta`, so a coefficient here does what an equal ``weight_decay`` does
    in SGD and Adam; AdamW's decay is another, since it bypasses the scaling of the gradient.

    Args:
        model: Module that is being trained.
        x: Batch; this penalty does not look at it.
    """
    squares = [p.square().sum() for p in model.parameters() if p.requires_grad]
    return torch.stack(squares).sum() / 2
