"""Features up to rotation: centred, with no more columns than examples, and their bases."""

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.result import ROUNDING


def centred(features: Float64[Tensor, "n p"]) -> Float64[Tensor, "n p"] | None:
    """Return features without their mean, or None where they vary by no more than rounding."""
    moved = features - features.mean(0)
    if float(moved.norm()) <= ROUNDING**2 * float(features.norm()):
        return None
    return moved


def rotated(features: Float64[Tensor, "n p"]) -> Float64[Tensor, "n q"]:
    """Return the same features in a basis of at most ``n`` directions: of equal inner products."""
    n, p = features.shape
    if p <= n:
        return features
    triangle: Tensor = torch.linalg.qr(features.T, mode="r").R.T
    return triangle


def permutations(n: int, count: int, seed: int) -> list[Tensor]:
    """Return random orders of ``n`` examples."""
    from inscape._core.sampling import generator

    draws = generator(seed)
    return [torch.randperm(n, generator=draws) for _ in range(count)]
