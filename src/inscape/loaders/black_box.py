"""A function without derivatives, for what needs values only."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape.errors import UnsupportedModelError


class BlackBox(nn.Module):
    """A module that calls a function of NumPy arrays; whoever asks for a gradient is refused.

    Args:
        function: Maps rows to rows of outputs.
        what: What it is called in a refusal.
    """

    def __init__(self, function: Callable[[NDArray[Any]], NDArray[Any]], what: str) -> None:
        super().__init__()
        self._function = function
        self.what = what

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for some rows."""
        found: Tensor = _Values.apply(x, self)  # type: ignore[no-untyped-call]
        return found

    def values(self, x: Tensor) -> Tensor:
        """Return the outputs, with no graph behind them."""
        if type(x) not in (Tensor, nn.Parameter):  # somebody who wants to see its graph
            self.refuse()
        rows = x.detach().cpu().numpy().astype(np.float64)
        found = np.asarray(self._function(rows), np.float64)
        return torch.from_numpy(found.reshape(len(rows), -1)).to(x.device, x.dtype)

    def refuse(self) -> NoReturn:
        """Say that there is no derivative."""
        raise UnsupportedModelError(
            f"the model must be a network to be measured so, found a black box, {self.what}, "
            "which has values and no gradient: measure what needs values only."
        )


class _Values(torch.autograd.Function):
    """Values go through, derivatives do not."""

    @staticmethod
    def forward(x: Tensor, box: BlackBox) -> Tensor:
        return box.values(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.box = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        ctx.box.refuse()

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        ctx.box.refuse()

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, box: BlackBox) -> NoReturn:
        box.refuse()
