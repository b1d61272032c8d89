"""Local linear maps of trained networks, one output at a time: the matrices C_j of eq. 7.3."""

from collections.abc import Iterator
from copy import deepcopy

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

#: Images whose gradients are taken at once.
ROWS = 250


def dtype(net: str) -> torch.dtype:
    """Return in which precision a network's maps are taken: the pretrained one's in float32."""
    return torch.float32 if net == "mobilenet" else torch.float64


class Maps:
    """A network in float64 with the images that its local maps are taken at.

    Args:
        model: The trained network.
        x: Images, prepared as it takes them.
        grey: Whether the three channels hold the same image: coefficients are then summed over
            them, and there is one for each pixel.
        dtype: In which gradients are computed; they are given in float64.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Float[Tensor, "n 3 s s"],
        *,
        grey: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.model = deepcopy(model).to(dtype)
        self.grey, self.dtype = grey, dtype
        self.x = x
        with torch.no_grad():
            self.outputs = torch.cat([self.model(rows) for rows in self._batches()]).double()

    def _batches(self) -> Iterator[Tensor]:
        for rows in torch.split(self.x, ROWS):
            yield rows.to(self.dtype).contiguous()

    def inputs(self) -> Float64[Tensor, "n D"]:
        """Return the images as rows, each with a 1 for the intercept."""
        rows = (self.x[:, 0] if self.grey else self.x).flatten(1).double()
        return torch.cat([rows, rows.new_ones(len(rows), 1)], 1)

    def slopes(self, output: int) -> Float64[Tensor, "n d"]:
        """Return the gradient of one output at each image."""
        found = []
        for rows in self._batches():
            at = rows.requires_grad_()
            (slopes,) = torch.autograd.grad(self.model(at)[:, output].sum(), at)
            found.append(slopes.sum(1) if self.grey else slopes)
        return torch.cat(found).flatten(1).double()

    def of(self, output: int) -> Float64[Tensor, "n D"]:
        """Return gradient and intercept of one output at each image: C_j."""
        slopes = self.slopes(output)
        images = self.inputs()[:, :-1]
        intercepts = self.outputs[:, output] - (slopes * images).sum(1)
        return torch.cat([slopes, intercepts[:, None]], 1)
