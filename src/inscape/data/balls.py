"""Two classes that balls, spheres, shells or a plane divide."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from inscape._core import checks
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset
from inscape.data.draws import sizes, streams, two_classes

Labels = Literal["regression", "classes"]
Rows = tuple[Float[Tensor, "n d"], Int[Tensor, " n"]]
MoreRows = tuple[Float[Tensor, "m d"], Int[Tensor, " m"]]


def ball_versus_sphere(
    *,
    n: int = 1024,
    n_test: int = 1024,
    dimension: int = 2,
    labels: Labels = "regression",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw the unit sphere, labelled +1, and the ball of radius one half, labelled -1.

    .. math:: \{(x, 1) : \|x\| = 1\} \cup \{(x, -1) : \|x\| \le 0.5\}

    Courtois, section 5.1. The paper leaves the law and the balance open; here both parts are
    uniform, half of the points lie on the sphere (one more if ``n`` is odd), in mixed order.

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        dimension: Dimension of the inputs.
        labels: ``"regression"`` for -1 and +1, ``"classes"`` for 0 (ball) and 1 (sphere).
        seed: Seed of the draw.
        dtype: Floating type of the inputs, and of the labels of a regression.
    """
    sizes(n, n_test)
    checks.at_least(1, dimension=dimension)

    def rows(count: int, rng: torch.Generator) -> Rows:
        y = _half(count, rng)
        outer, inner = (
            _shell(count, dimension, low, high, rng) for low, high in ((1, 1), (0, 0.5))
        )
        return torch.where(y[:, None] == 1, outer, inner), y

    settings: dict[str, Value] = {"n": n, "n_test": n_test, "dimension": dimension, "seed": seed}
    train, test = map(rows, (n, n_test), streams(seed))
    return two_classes(
        "ball-versus-sphere",
        train,
        test,
        labels=labels,
        class_names=("ball", "sphere"),
        dtype=dtype,
        settings=settings,
    )


def half_plane(
    *,
    n: int = 1024,
    n_test: int = 1024,
    dimension: int = 2,
    labels: Labels = "regression",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw points of a cube, labelled +1 or -1 by the side of a plane on which they lie.

    .. math:: y = 1 \text{ if } \langle x, a \rangle \ge 0, \text{ else } -1

    Courtois, section 5.2. The paper leaves the direction a and the law open; here a is the
    diagonal (1, ..., 1) and the points are uniform on the cube [-1, 1]^d.

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        dimension: Dimension of the inputs.
        labels: ``"regression"`` for -1 and +1, ``"classes"`` for 0 and 1.
        seed: Seed of the draw.
        dtype: Floating type of the inputs, and of the labels of a regression.
    """
    sizes(n, n_test)
    checks.at_least(1, dimension=dimension)

    def rows(count: int, rng: torch.Generator) -> Rows:
        x = 2 * torch.rand(count, dimension, generator=rng, dtype=torch.float64) - 1
        # The side is that of the point as it will be stored: rounding must not move it across.
        return x, (x.to(dtype).double().sum(1) >= 0).long()

    settings: dict[str, Value] = {"n": n, "n_test": n_test, "dimension": dimension, "seed": seed}
    train, test = map(rows, (n, n_test), streams(seed))
    return two_classes(
        "half-plane",
        train,
        test,
        labels=labels,
        class_names=("below", "above"),
        dtype=dtype,
        settings=settings,
    )


def circle_versus_annulus(
    *,
    n: int = 1000,
    n_test: int = 1000,
    dimension: int = 2,
    radius: float = 0.5,
    outer: float | None = None,
    normalise: bool = False,
    labels: Labels = "classes",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw a disc and an annulus around it with a gap between them; a ball and a shell beyond 2-D.

    .. math:: \|x\| \le r_1 \quad\text{against}\quad r_2 \le \|x\| \le r_3,\qquad
              r_2 = \sqrt{d}\, r_1,\ r_3 = \sqrt{d}\, r_2

    Sattelberg, section 4.2.1, where d = 2 and half of the points are drawn uniformly from each
    part. In d dimensions the text implies the factor sqrt(d) for r_2 and leaves r_3 open.
    The class names follow the plane: ``circle`` is 1 (+1), ``annulus`` is 0 (-1).

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        dimension: Dimension of the inputs, at least 2.
        radius: Radius of the inner ball.
        outer: r_3 / r_2, where it is not sqrt(d).
        normalise: Divide all coordinates by the standard deviation of the training inputs.
        labels: ``"classes"`` for 0 and 1, ``"regression"`` for -1 and +1.
        seed: Seed of the draw.
        dtype: Floating type of the inputs, and of the labels of a regression.
    """
    train, test = _circles(n, n_test, dimension, radius, seed, outer)
    train, test = _normalised(train, test) if normalise else (train, test)
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "dimension": dimension}
    settings |= {"radius": radius, "outer": outer, "normalise": normalise, "seed": seed}
    return two_classes(
        "circle-versus-annulus",
        train,
        test,
        labels=labels,
        class_names=("annulus", "circle"),
        dtype=dtype,
        settings=settings,
    )


def xor_circles(
    *,
    n: int = 1000,
    n_test: int = 1000,
    radius: float = 0.5,
    normalise: bool = False,
    labels: Labels = "classes",
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Dataset:
    r"""Draw circle versus annulus in the plane with the classes swapped where x_1 x_2 < 0.

    .. math:: y = [\,\|x\| \le r_1\,] \oplus [\,x_1 x_2 < 0\,]

    Sattelberg, section 6.1, says only that figure 6.1 combines circle versus annulus with XOR;
    swapping the classes in two opposite quadrants is our reading. Radii and sizes are those of
    :func:`circle_versus_annulus`.

    Args:
        n: Training points.
        n_test: Test points, drawn apart from the training points; 0 for none.
        radius: Radius of the inner disc.
        normalise: Divide all coordinates by the standard deviation of the training inputs.
        labels: ``"classes"`` for 0 and 1, ``"regression"`` for -1 and +1.
        seed: Seed of the draw.
        dtype: Floating type of the inputs, and of the labels of a regression.
    """
    train, test = ((x, y ^ (x.prod(1) < 0).long()) for x, y in _circles(n, n_test, 2, radius, seed))
    train, test = _normalised(train, test) if normalise else (train, test)
    settings: dict[str, Value] = {"n": n, "n_test": n_test, "radius": radius}
    settings |= {"normalise": normalise, "seed": seed}
    return two_classes(
        "xor-circles",
        train,
        test,
        labels=labels,
        class_names=("first", "second"),
        dtype=dtype,
        settings=settings,
    )


def _circles(
    n: int, n_test: int, dimension: int, radius: float, seed: int, outer: float | None = None
) -> tuple[Rows, MoreRows]:
    sizes(n, n_test)
    checks.at_least(2, dimension=dimension)
    if not radius > 0:
        raise ValueError(f"radius must be positive, found {radius}: raise radius.")
    if outer is not None and not outer >= 1:
        raise ValueError(f"outer must be at least 1, found {outer}: raise outer.")
    second = math.sqrt(dimension) * radius
    third = dimension * radius if outer is None else outer * second

    def rows(count: int, rng: torch.Generator) -> Rows:
        y = _half(count, rng)
        circle = _shell(count, dimension, 0, radius, rng)
        annulus = _shell(count, dimension, second, third, rng)
        return torch.where(y[:, None] == 1, circle, annulus), y

    train, test = map(rows, (n, n_test), streams(seed))
    return train, test


def _half(n: int, rng: torch.Generator) -> Int[Tensor, " n"]:
    """Return zeros and ones in mixed order, as many of each, or one 1 more."""
    return (torch.randperm(n, generator=rng) % 2 == 0).long()


def _shell(
    n: int, dimension: int, low: float, high: float, rng: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw ``n`` points between two radii, uniform in volume; on the sphere if they are equal."""
    normal = torch.randn(n, dimension, generator=rng, dtype=torch.float64)
    u = torch.rand(n, 1, generator=rng, dtype=torch.float64)
    hole = (low / high) ** dimension
    radius = high * (hole + (1 - hole) * u) ** (1 / dimension)
    return radius * torch.nn.functional.normalize(normal, dim=1)


def _normalised(train: Rows, test: MoreRows) -> tuple[Rows, MoreRows]:
    scale = train[0].std(correction=0)
    return (train[0] / scale, train[1]), (test[0] / scale, test[1])
