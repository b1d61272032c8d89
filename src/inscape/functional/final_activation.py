"""How a function ends: whether its last step makes probabilities."""

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core.checks import Function

#: Last steps that make probabilities, as autograd names them.
PROBABILITIES = ("SigmoidBackward", "SoftmaxBackward", "HardsigmoidBackward")
#: Steps that only move or copy numbers.
MOVES = (
    "View", "ReshapeAlias", "UnsafeView", "Squeeze", "Unsqueeze", "Select", "Slice", "T", "Index",
    "Transpose", "Permute", "Alias", "Expand", "Clone", "ToCopy", "Cat", "Stack", "Split", "Unbind",
)  # fmt: skip


def ends_in_probability(f: Function, x: Float[Tensor, "n *d"]) -> bool:
    """Tell whether the last step of ``f`` is seen to be a sigmoid or a softmax.

    False says nothing where autograd does not see the steps, or where a probability is written in
    another way. Only one point is passed through.
    """
    try:
        with torch.enable_grad():
            y = f(x[:1].detach().clone().requires_grad_())
    except RuntimeError:  # weights from inference mode, or a program without gradients
        return False
    step = y.grad_fn
    while step is not None:
        name = type(step).__name__.rstrip("0123456789")
        if name.startswith(PROBABILITIES):
            return True
        if name.removesuffix("Backward") not in MOVES or not step.next_functions:
            return False
        step = step.next_functions[0][0]
    return False


def lie_between_0_and_1(outputs: Float[Tensor, "n *c"], y: Tensor) -> bool:
    """Tell whether outputs look like probabilities of class 1 though both classes are there."""
    within = bool(((outputs >= 0) & (outputs <= 1)).all())
    return within and bool((y == 0).any()) and bool((y == 1).any())
