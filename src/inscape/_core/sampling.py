"""Every random draw: a seed is data, a generator is private, the global state stays untouched."""

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks


def generator(seed: int) -> torch.Generator:
    """Return a private generator; the same seed gives the same draws on every device."""
    checks.seed(seed)
    return torch.Generator(device="cpu").manual_seed(int(seed))


def draw_pairs(
    x: Float[Tensor, "n *d"], pairs: int, *, seed: int
) -> tuple[Float[Tensor, "pairs *d"], Float[Tensor, "pairs *d"]]:
    """Draw both ends of ``pairs`` chords from the rows of ``x``, independently, with replacement.

    A point may be paired with itself, as in the double sum of Volhejn's eq. (3.5).
    """
    ends = torch.randint(len(x), (2, pairs), generator=generator(seed)).to(x.device)
    return x[ends[0]], x[ends[1]]


def draw_rows(x: Float[Tensor, "n *d"], rows: int, *, seed: int) -> Float[Tensor, "m *d"]:
    """Draw ``rows`` distinct rows of ``x``, or all of them in their order if there are no more."""
    checks.seed(seed)
    if rows >= len(x):
        return x
    return x[torch.randperm(len(x), generator=generator(seed))[:rows].to(x.device)]
