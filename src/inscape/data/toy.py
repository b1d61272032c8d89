"""Regression in one and two dimensions: sums on a disc or an annulus, and a noisy sine."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset
from inscape.data.draws import regression, sizes, streams

Target = Literal["addition", "multiplication"]


def disc(
    *,
    n: int = 128,
    n_test: int = 1280,
    target: Target = "addition",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw points uniformly on the unit disc, labelled by the sum of their coordinates.

    .. math:: x = \sqrt{u}\,(\cos\theta, \sin\theta),\quad
              u \sim U(0, 1),\ \theta \sim U(0, 2\pi),\quad y = x_1 + x_2

    Klindt, eqs (2)-(3) and A.1; the sizes are those of table 1. Points are drawn in float64 and
    rounded once, so that a seed names the same points in every precision.

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        target: ``"addition"``, or ``"multiplication"`` for the product (A.2.8).
        seed: Seed of the draw.
        dtype: Floating type of inputs and labels.
    """
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "target": target, "seed": seed}
    return _arithmetic("disc", 0.0, target, (n, n_test), seed, dtype, settings)


def annulus(
    *,
    n: int = 256,
    n_test: int = 1280,
    inner: float = 0.5,
    target: Target = "addition",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw points uniformly on an annulus, labelled by the sum of their coordinates.

    As the disc, with :math:`u \sim U(r^2, 1)` for an inner radius r: Klindt, eq (5), A.1.

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        inner: Inner radius.
        target: ``"addition"`` or ``"multiplication"``.
        seed: Seed of the draw.
        dtype: Floating type of inputs and labels.
    """
    if not 0 <= inner < 1:
        raise ValueError(f"inner must lie in [0, 1), found {inner}: choose a radius below 1.")
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "inner": inner}
    settings |= {"target": target, "seed": seed}
    return _arithmetic("annulus", inner, target, (n, n_test), seed, dtype, settings)


def noisy_sine(
    *,
    n: int = 128,
    n_test: int = 300,
    noise: float = 0.25,
    noise_is: Literal["variance", "deviation"] = "variance",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw noisy values of the sine on [-2 pi, 2 pi], to be extrapolated to [-3 pi, 3 pi].

    .. math:: y = \sin x + \epsilon,\quad x \sim U(-2\pi, 2\pi),\ \epsilon \sim N(0, 0.25)

    Klindt, section 3.3. The text does not say whether 0.25 is a variance (our convention, erratum
    K9) or a standard deviation, nor how many points there are. Our test points are equispaced and
    carry the sine itself, without noise; those with ``|x| <= 2 pi`` lie in the training domain.

    Args:
        n: Training points.
        n_test: Test points; 0 for none.
        noise: Size of the noise; 0 for none.
        noise_is: What ``noise`` is: a ``"variance"`` or a standard ``"deviation"``.
        seed: Seed of the draw.
        dtype: Floating type of inputs and labels.
    """
    sizes(n, n_test)
    checks.at_least(0, noise=noise)
    checks.one_of(("variance", "deviation"), noise_is=noise_is)
    rng, _ = streams(seed)
    scale = math.sqrt(noise) if noise_is == "variance" else noise
    x = (4 * torch.rand(n, 1, generator=rng, dtype=torch.float64) - 2) * math.pi
    y = x.sin() + scale * torch.randn(n, 1, generator=rng, dtype=torch.float64)
    grid = torch.linspace(-3 * math.pi, 3 * math.pi, n_test, dtype=torch.float64)[:, None]
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "noise": noise}
    settings |= {"noise_is": noise_is, "seed": seed}
    return regression("noisy-sine", (x, y), (grid, grid.sin()), dtype=dtype, settings=settings)


def _arithmetic(
    name: str,
    inner: float,
    target: str,
    rows: tuple[int, int],
    seed: int,
    dtype: torch.dtype,
    settings: dict[str, Value],
) -> Dataset:
    sizes(*rows)
    checks.one_of(("addition", "multiplication"), target=target)
    answer = torch.sum if target == "addition" else torch.prod
    drawn = (_ring(n, inner, rng) for n, rng in zip(rows, streams(seed), strict=True))
    train, test = (x.to(dtype).double() for x in drawn)  # labels are those of the stored points
    return regression(
        name,
        (train, answer(train, dim=1, keepdim=True)),
        (test, answer(test, dim=1, keepdim=True)),
        dtype=dtype,
        settings=settings,
    )


def _ring(n: int, inner: float, rng: torch.Generator) -> Float[Tensor, "n 2"]:
    """Draw ``n`` points between the radii ``inner`` and 1, uniform in area."""
    u, turn = torch.rand(2, n, generator=rng, dtype=torch.float64)
    radius = (inner**2 + (1 - inner**2) * u).sqrt()
    angle = 2 * math.pi * turn
    return torch.stack((radius * angle.cos(), radius * angle.sin()), dim=1)
