"""A function without derivatives, for what needs values only."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape.errors import UnsupportedModelError


class BlackBox(nn.Module):
    """A module that calls a function of NumPy arrays and raises an error if gradients are needed.

    Args:
        function: Maps a batch of inputs to a batch of outputs.
        described: How the error describes the function.
    """

    def __init__(self, function: Callable[[NDArray[Any]], NDArray[Any]], described: str) -> None:
        super().__init__()
        self._function = function
        self.described = described

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs for a batch of inputs."""
        outputs: Tensor = _Values.apply(x, self)  # type: ignore[no-untyped-call]
        return outputs

    def values(self, x: Tensor) -> Tensor:
        """Return the outputs, with no graph behind them."""
        if type(x) not in (Tensor, nn.Parameter):  # somebody who wants to see its graph
            self.refuse()
        rows = x.detach().cpu().numpy().astype(np.float64)
        outputs = np.asarray(self._function(rows), np.float64)
        return torch.from_numpy(outputs.reshape(len(rows), -1)).to(x.device, x.dtype)

    def refuse(self) -> NoReturn:
        """Say that there is no derivative."""
        raise UnsupportedModelError(
            f"the model must be a network to be measured so, found a black box, {self.described}, "
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
