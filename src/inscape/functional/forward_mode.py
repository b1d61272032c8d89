"""Directional derivatives (JVPs) in forward mode: at the cost of two to three evaluations."""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad


def forward_derivative(
    f: Callable[..., Tensor], primals: Sequence[Tensor], tangents: Sequence[Tensor]
) -> tuple[Tensor, Tensor] | None:
    """Return ``f(*primals)`` and its derivative along ``tangents``, or None if unsupported.

    Not every operation has a rule for forward mode, and some lose the tangent: callers compare the
    result with a gradient. A double backward pass needs no such rules, but the second derivatives
    of some operations, such as convolutions in groups, take a dozen times as long.

    >>> x, along = torch.tensor([3.0]), torch.tensor([2.0])
    >>> forward_derivative(torch.square, [x], [along])
    (tensor([9.]), tensor([12.]))
    """
    with torch.no_grad(), forward_ad.dual_level(), warnings.catch_warnings():
        # Rules are scripted functions of torch itself, loaded when first used.
        warnings.filterwarnings("ignore", ".*torch.jit.script.* is deprecated", DeprecationWarning)
        duals = [
            forward_ad.make_dual(  # type: ignore[no-untyped-call]
                primal.detach(), tangent.detach().to(primal)
            )
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        try:
            output = forward_ad.unpack_dual(f(*duals))  # type: ignore[no-untyped-call]
        except (RuntimeError, TypeError, ValueError):
            return None
        if output.tangent is None:
            return None
        return output.primal.detach(), output.tangent.detach()
