"""Flips while training, inside the model, so that any training loop can have them."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Flipped(nn.Module):
    """A network of images that sees each one flipped at random while it trains.

    The output is flipped back. For a loss that is a sum over pixels this is the same as flipping
    input and target alike. In eval mode it is the network itself.

    Args:
        body: Network from images to images of the same size.
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h w"]:
        """Return what the network gives; the dice are those that the training loop has seeded."""
        if not self.training:
            out: Tensor = self.body(x)
            return out
        upside, mirrored = torch.rand(2, len(x), 1, 1, 1, device=x.device) < 0.5
        return flipped(self.body(flipped(x, upside, mirrored)), upside, mirrored)


def flipped(
    x: Float[Tensor, "n c h w"], upside: Bool[Tensor, "n 1 1 1"], mirrored: Bool[Tensor, "n 1 1 1"]
) -> Float[Tensor, "n c h w"]:
    """Flip some images top to bottom and some left to right; twice the same is none."""
    x = torch.where(upside, x.flip(-2), x)
    return torch.where(mirrored, x.flip(-1), x)
