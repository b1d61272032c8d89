"""Connected, branched shapes of graded difficulty, their boundaries, and the rule that fills them.

The paper takes its shapes from an online demo. Here a shape is a thick tree: branches are walks
that bend, leave older branches sideways, and keep clear of all others, so that a shape has narrow
bays between its arms. Holes that arms close all the same are filled: up to 8% of the area of a
harder shape, and up to 13% of a much harder one. More and thinner arms make it harder.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.papers.courtois import _walks

Array = npt.NDArray[Any]

#: A picture is drawn so many times finer than the network sees it: two halvings.
FINER = 4
#: Lobes of the Lanczos filter.
LOBES = 3
#: Shapes that are drawn together, and uniform numbers that each may use.
TOGETHER, NUMBERS = 64, 4096


@dataclass(frozen=True)
class Kind:
    """How shapes are drawn; lengths are in widths of the picture.

    Attributes:
        branches: Fewest and most branches.
        half: Smallest and largest half of the width of an arm.
        gap: Clear width between two arms.
        longest: Largest length of a branch.
        curl: Largest turn of a branch, in radians for each half width.
    """

    branches: tuple[int, int]
    half: tuple[float, float]
    gap: float
    longest: float
    curl: float


#: Grades: what a network is trained on, what is somewhat harder, and what is much harder.
KINDS = {
    "training": Kind((2, 5), (0.045, 0.1), 0.05, 0.6, 0.25),
    "harder": Kind((6, 9), (0.04, 0.055), 0.045, 0.7, 0.35),
    "much harder": Kind((24, 40), (0.028, 0.034), 0.032, 1.5, 0.45),
}


def shapes(
    count: int, side: int, kind: str = "training", *, seed: int = 0
) -> tuple[Float[Tensor, "n 1 side side"], Float[Tensor, "n 1 side side"]]:
    """Draw shapes; return their boundaries and the shapes themselves, in [0, 1].

    They are drawn and their boundaries taken at four times the size; both are then filtered and
    halved twice, which leaves them a little smooth.

    Args:
        count: How many; the first shapes of a seed are the same for any number.
        side: Height and width of the pictures.
        kind: One of ``KINDS``.
        seed: Seed of the draw.
    """
    checks.at_least(16, side=side)
    parts = []
    for raw in _drawn(count, FINER * side, kind, seed):
        both = np.stack([boundary(raw), raw]).astype(np.float32)
        parts.append(halved(halved(torch.from_numpy(both))))
    x, y = torch.cat(parts, 1)[:, :, None]
    return x.contiguous(), y.contiguous()


def raw_shapes(count: int, side: int, kind: str = "training", *, seed: int = 0) -> Array:
    """Draw shapes as they are before any filter: True inside."""
    return np.concatenate(list(_drawn(count, side, kind, seed)))


def boundary(shape: Array) -> Array:
    """Return the pixels of a shape that have one of their eight neighbours outside of it."""
    padded = np.pad(shape, [(0, 0)] * (shape.ndim - 2) + [(1, 1)] * 2)
    height, width = shape.shape[-2:]
    inner = np.ones_like(shape)
    for i in range(3):
        for j in range(3):
            inner &= padded[..., i : i + height, j : j + width]
    return shape & ~inner


def filled(edge: Array) -> Array:
    """Return the shape within a boundary: all that a flood from outside does not reach.

    The flood also passes between pixels that touch at a corner. It stops at a boundary of
    :func:`boundary`, as no pixel outside touches one inside that is not in it.
    """
    from scipy.ndimage import label

    outside, _ = label(np.pad(~edge, 1, constant_values=True), np.ones((3, 3)))
    return np.asarray(outside != outside[0, 0])[1:-1, 1:-1]


def parity(edge: Array) -> Array:
    """Return eq. (10): the parity of the boundary pixels seen from the left, each included.

    It fills a shape only where every row crosses the boundary one pixel at a time.
    """
    return np.asarray(np.cumsum(edge, axis=-1) % 2 == 1)


def halved(pictures: Float[Tensor, "*n h w"]) -> Float[Tensor, "*n h2 w2"]:
    """Return pictures of half the size by a Lanczos filter, cut to [0, 1]."""
    down, across = (_lanczos(size).to(pictures.dtype) for size in pictures.shape[-2:])
    return (down @ pictures @ across.T).clamp(0, 1)


def overlap(
    prediction: Float[Tensor, "n 1 h w"], target: Float[Tensor, "n 1 h w"]
) -> Float[Tensor, " n"]:
    """Return intersection over union of each picture, with both cut at one half."""
    ours, theirs = prediction > 0.5, target > 0.5
    both = (ours & theirs).sum((1, 2, 3))
    return both / (ours | theirs).sum((1, 2, 3)).clamp_min(1)


def _drawn(count: int, side: int, kind: str, seed: int) -> Iterator[Array]:
    """Yield raw shapes in parts that fit into memory."""
    checks.at_least(1, count=count)
    checks.one_of(tuple(KINDS), kind=kind)
    rng = generator(seed)
    for start in range(0, count, TOGETHER):
        part = min(TOGETHER, count - start)
        # All numbers of a part are drawn, so that later shapes do not depend on the count.
        numbers = torch.rand(TOGETHER, NUMBERS, generator=rng, dtype=torch.float64).numpy()
        yield np.stack([_shape(one, side, KINDS[kind]) for one in numbers[:part]])


def _shape(numbers: Array, side: int, kind: Kind) -> Array:
    (fewest, most), (thin, thick) = kind.branches, kind.half
    branches = fewest + int(numbers[0] * (most - fewest + 1))
    half = thin + numbers[1] * (thick - thin)
    points = np.empty((4000, 3))
    found = _walks.tree(
        numbers[2:], points, branches, half, 2 * half + kind.gap, kind.longest, kind.curl
    )
    picture = np.zeros((side, side), dtype=np.bool_)
    _walks.stamp(picture, points[:found, :2] * side, half * side)
    return filled(boundary(picture))


@cache
def _lanczos(size: int) -> Tensor:
    """Return the matrix that filters a line of pixels and keeps every second."""
    if size % 2:
        raise ValueError(f"a picture is halved from an even size, found {size}: pad it.")
    centres = 2 * torch.arange(size // 2, dtype=torch.float64)[:, None] + 0.5
    off = (torch.arange(size, dtype=torch.float64) - centres) / 2
    weights = torch.sinc(off) * torch.sinc(off / LOBES) * (off.abs() < LOBES)
    return weights / weights.sum(1, keepdim=True)
