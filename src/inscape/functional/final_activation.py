"""Final activation: whether the last operation of a function returns probabilities."""

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core.checks import Function

#: Final operations that return probabilities, as autograd names them.
PROBABILITIES = ("SigmoidBackward", "SoftmaxBackward", "HardsigmoidBackward")
#: Operations that only move or copy values.
MOVES = (
    "View", "ReshapeAlias", "UnsafeView", "Squeeze", "Unsqueeze", "Select", "Slice", "T", "Index",
    "Transpose", "Permute", "Alias", "Expand", "Clone", "ToCopy", "Cat", "Stack", "Split", "Unbind",
)  # fmt: skip


def ends_in_probability(f: Function, x: Float[Tensor, "n *d"]) -> bool:
    """Return whether the last operation of ``f`` is recognised as a sigmoid or a softmax.

    False is inconclusive where autograd does not record the operations, or where a probability is
    computed otherwise. Evaluates ``f`` at one sample.
    """
    try:
        with torch.enable_grad():
            y = f(x[:1].detach().clone().requires_grad_())
    except RuntimeError:  # weights from inference mode, or a program without gradients
        return False
    node = y.grad_fn
    while node is not None:
        name = type(node).__name__.rstrip("0123456789")
        if name.startswith(PROBABILITIES):
            return True
        if name.removesuffix("Backward") not in MOVES or not node.next_functions:
            return False
        node = node.next_functions[0][0]
    return False


def lie_between_0_and_1(outputs: Float[Tensor, "n *c"], y: Tensor) -> bool:
    """Return whether outputs lie in [0, 1] while ``y`` contains both classes 0 and 1."""
    within = bool(((outputs >= 0) & (outputs <= 1)).all())
    return within and bool((y == 0).any()) and bool((y == 1).any())
