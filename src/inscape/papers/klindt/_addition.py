"""Networks and processes that learn arithmetic in the plane, and what is asked of them after."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from inscape.data import Dataset, disc
from inscape.kernels import Rbf, gaussian_process
from inscape.models import two_layer
from inscape.training import decay, fit_wide

#: The paper's training: 0.9 every 500 steps, as its code has it.
LR, DECAY, EVERY = 1e-3, 0.9, 500
#: Half the side of the square around the disc.
LIMIT = 1.5
#: Points of the stored map along a side.
SHOWN = 128
#: Points at a time: the activations of wide networks then stay in the caches.
ROWS = 128
#: Numbers of the data sets; the code counts from here.
FIRST_SEED = 42

Values = npt.NDArray[np.float64]
Function = Callable[[Tensor], Tensor]


def exact_solution(
    alpha: float = 1.0,
    beta: float = -1.0,
    gamma: float = 1.0,
    delta: float = -1.0,
    *,
    units: int = 4,
) -> nn.Sequential:
    r"""Return the ReLU network of Eq. (1) that adds two numbers exactly.

    .. math:: W_1 = \begin{pmatrix} \alpha & \beta & 0 & 0 \\ 0 & 0 & \gamma & \delta
              \end{pmatrix}^T, \quad
              W_2 = (\alpha^{-1}, \beta^{-1}, \gamma^{-1}, \delta^{-1}), \quad b_1 = b_2 = 0

    with the second layer as a row (K4).

    Args:
        alpha: Weight of the unit for positive first numbers, above 0.
        beta: Of the unit for negative first numbers, below 0.
        gamma: As alpha, for the second number.
        delta: As beta, for the second number.
        units: Hidden units; those beyond four are zero.
    """
    if not (alpha > 0 > beta and gamma > 0 > delta and units >= 4):
        raise ValueError(
            "the exact solution needs alpha, gamma > 0 > beta, delta and at least 4 units, found "
            f"{alpha}, {gamma}, {beta}, {delta} and {units}: change the signs."
        )
    net = two_layer(2, units, dtype=torch.float64)
    state = {name: torch.zeros_like(value) for name, value in net.state_dict().items()}
    for unit, (weight, place) in enumerate(
        zip((alpha, beta, gamma, delta), (0, 0, 1, 1), strict=True)
    ):
        state["0.weight"][unit, place] = weight
        state["2.weight"][0, unit] = 1 / weight
    net.load_state_dict(state)
    return net


def network(width: int, activation: str, *, normal: bool, seed: int) -> nn.Sequential:
    """Return a network as it starts: PyTorch's own weights, or standard normal ones."""
    net = two_layer(2, width, activation=activation, seed=seed, dtype=torch.float32)
    if normal:
        rng = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.normal_(generator=rng)
    return net


def trained(
    data: Dataset,
    *,
    width: int,
    activation: str,
    steps: int,
    seed: int,
    inverse_sigma: float = 0.0,
    symmetric: bool = False,
    every: int = EVERY,
    fresh: Callable[[int], tuple[Tensor, Tensor]] | None = None,
) -> nn.Sequential:
    """Train a network as the paper does; 0 stands for weights without Eq. (7)."""
    net = network(width, activation, normal=inverse_sigma > 0, seed=seed)
    fit_wide(
        net,
        data.x,
        data.y,
        lr=LR,
        steps=steps,
        schedule=decay(DECAY, every),
        sigma=1 / inverse_sigma if inverse_sigma else None,
        bias="normalised",
        views=((0, 1), (1, 0)) if symmetric else (),
        fresh=fresh,
    )
    return net


def ring(n: int, seed: int, inner: float = 0.5) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Return what draws new points of the annulus, and their sums, at every step."""
    rng = torch.Generator().manual_seed(FIRST_SEED + seed)

    def fresh(step: int) -> tuple[Tensor, Tensor]:
        u, turn = torch.rand(2, n, generator=rng, dtype=torch.float64)
        radius, angle = (inner**2 + (1 - inner**2) * u).sqrt(), 2 * torch.pi * turn
        points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1).float()
        return points, points.sum(1, keepdim=True)

    return fresh


def double(net: nn.Module, *, symmetric: bool = False) -> Function:
    """Return the function of a network in double precision, so that maps show no rounding."""
    net = net.double()

    def f(x: Tensor) -> Tensor:
        with torch.no_grad():
            y = torch.cat([net(part) for part in torch.split(x, ROWS)])
            parts = torch.split(x.flip(1), ROWS)
            other = torch.cat([net(part) for part in parts]) if symmetric else y
        return (y + other)[:, 0] / 2

    return f


def process(data: Dataset, length_scale: float | None) -> tuple[Function, float]:
    """Return the mean of a Gaussian process, its amplitude fitted; None fits the length scale."""
    fitted = ("amplitude",) if length_scale else ("amplitude", "length_scale")
    found = gaussian_process(
        data.x.double(),
        data.y[:, 0].double(),
        kernel=Rbf(length_scale=length_scale or 1.0),
        fitted=fitted,
        restarts=100 if length_scale else 5,
    )

    def f(x: Tensor) -> Tensor:
        parts = [
            found.function.between(some, found.x) @ found.weights for some in torch.split(x, 8192)
        ]
        return torch.cat(parts)[:, 0] * found.amplitude

    return f, float(found.length_scale or 0.0)


def plane(limit: float, size: int) -> Tensor:
    """Return a grid of points, row after row, in double precision."""
    line = torch.linspace(-limit, limit, size, dtype=torch.float64)
    return torch.cartesian_prod(line, line)


def truth(x: Tensor, target: str) -> Tensor:
    """Return the right answers."""
    x = x.double()
    return x.sum(1) if target == "addition" else x.prod(1)


def error(f: Function, x: Tensor, target: str = "addition") -> Tensor:
    """Return how far off the answers are, with their signs."""
    return f(x.double()) - truth(x, target)


def errors(f: Function, data: Dataset, *, grid: int, target: str = "addition") -> dict[str, Any]:
    """Return mean squared errors on the training and test points and beside the disc.

    ``crossings`` counts ridges: how often the error changes its sign on a straight way of length 1
    within the disc. ``antidiagonal`` is the error on x1 + x2 = 0 at distances from 1.2 to 2.1.
    """
    at = plane(LIMIT, grid)
    wrong = error(f, at, target)
    beside = at.norm(dim=1) > 1
    away = torch.linspace(1.2, LIMIT * 2**0.5, 100, dtype=torch.float64) / 2**0.5
    away = torch.cat([away, -away])
    assert data.x_test is not None  # the disc comes with test points
    return {
        "mse_train": _square(error(f, data.x, target)),
        "mse_test": _square(error(f, data.x_test, target)),
        "mse_ood": _square(wrong[beside]),
        "antidiagonal": _square(error(f, torch.stack([away, -away], 1), target)),
        "crossings": crossings(wrong.reshape(grid, grid).numpy(), LIMIT),
    }


def _square(wrong: Tensor) -> float:
    return float(wrong.square().mean())


def crossings(wrong: Values, limit: float, radius: float = 1.0) -> float:
    """Return changes of sign for each unit of length along rows and columns within a radius."""
    line = np.linspace(-limit, limit, len(wrong))
    inside = line[:, None] ** 2 + line[None, :] ** 2 <= radius**2
    changes = steps = 0
    for signs, within in ((wrong > 0, inside), ((wrong > 0).T, inside.T)):
        both = within[:, 1:] & within[:, :-1]
        changes += int(((signs[:, 1:] != signs[:, :-1]) & both).sum())
        steps += int(both.sum())
    return changes / (steps * (line[1] - line[0])) if steps else 0.0


def shown_map(f: Function, limit: float, target: str = "addition") -> npt.NDArray[np.float16]:
    """Return log10 of the squared error on a grid, x2 by x1, for a picture."""
    square = error(f, plane(limit, SHOWN), target).square().reshape(SHOWN, SHOWN).T.numpy()
    least = square[square > 0].min(initial=1e-300)
    return np.asarray(np.log10(np.maximum(square, least)), np.float16)


def regions_in_square(net: nn.Sequential, limit: float) -> int:
    """Count the linear regions of a two-layer ReLU network in a square around the origin.

    Lines in general position cut a convex body into 1 + those that hit it + the crossings inside.
    """
    weight, bias = (p.detach().double().numpy() for p in net[0].parameters())
    reach = limit * np.abs(weight).sum(1)
    weight, bias = weight[np.abs(bias) < reach], bias[np.abs(bias) < reach]
    one, two = np.triu_indices(len(bias), 1)
    (a, b), (c, d) = weight[one].T, weight[two].T
    det = a * d - b * c
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (b * bias[two] - d * bias[one]) / det
        y = (c * bias[one] - a * bias[two]) / det
    return 1 + len(bias) + int(((np.abs(x) < limit) & (np.abs(y) < limit)).sum())


def disc_data(n: int, seed: int, target: str = "addition") -> Dataset:
    """Return the points of a repeat, in single precision as the paper has them."""
    return disc(n=n, n_test=1280, target=target, seed=FIRST_SEED + seed)  # type: ignore[arg-type]
