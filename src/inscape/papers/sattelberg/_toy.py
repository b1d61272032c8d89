"""The two-dimensional problems of section 6.1, and small networks trained on them.

The text says rectangular networks, stochastic gradient descent and binary cross entropy. Learning
rate, batches and epochs are not said; those here were chosen so that networks solve the problems,
before anything else was looked at.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from inscape.lab.experiment import Panel

if TYPE_CHECKING:
    from inscape.regions.plane_regions import PlaneRegions
    from inscape.training import Fit

Array = npt.NDArray[Any]

PROBLEMS = {"circle": "circle-versus-annulus", "xor": "xor-circles"}
RATE, BATCH = 0.1, 32
#: Share of the training points that a network must get right to have solved its problem.
SOLVED = 0.99
#: The square [-1, 1]^2: the unit disc, in which all points lie, just fits.
SQUARE = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))
#: Points on each side of the uniform grid of section 7.3.1.
GRID = 101
SETTINGS_NOTE = (
    "Learning rate, batch size and epochs are not in the text: here 0.1, 32, and as many epochs as "
    "the settings say, without momentum or weight decay. The points are those of section 4.2.1 "
    "(radii 0.5, 0.71 and 1), and the plane is cut on [-1, 1]², the square around them."
)


def points(problem: str, n: int, seed: int) -> tuple[Float[Tensor, "n 2"], Float[Tensor, "n 1"]]:
    """Draw the points of a problem, and their classes 0 and 1 as numbers."""
    from inscape.data import load

    drawn = load(f"{PROBLEMS[problem]}:n={n},seed={seed}")
    return drawn.x, drawn.y[:, None].float()


def trained(
    problem: str, hidden: Sequence[int], *, n: int, epochs: int, seed: int, checkpoints: int = 1
) -> "Fit":
    """Train a network on a problem, with about so many checkpoints at equal distances."""
    from inscape.models import mlp
    from inscape.training import fit

    x, y = points(problem, n, seed)
    steps = epochs * -(-n // BATCH)
    return fit(
        mlp(2, *hidden, 1, seed=seed),
        x,
        y,
        loss="bce_logits",
        optimizer="sgd",
        lr=RATE,
        batch=BATCH,
        epochs=epochs,
        seed=seed,
        progress=False,
        record=max(1, steps // checkpoints),
    )


def states(run: "Fit", shares: Sequence[float]) -> dict[int, dict[str, Tensor]]:
    """Return the weights at the checkpoints nearest to shares of the training, by step."""
    way = run.trajectory
    assert way is not None  # trained always records
    places = way.checkpoints.double()
    nearest = [int((places - share * way.steps).abs().argmin()) for share in shares]
    steps = sorted({int(way.checkpoints[k]) for k in nearest})
    return {step: way.at(step) for step in steps}


def loaded(state: Mapping[str, Tensor]) -> nn.Sequential:
    """Return the network that weights belong to."""
    from inscape.models import mlp

    layers = [rows for name, rows in state.items() if name.endswith("weight")]
    model = mlp(layers[0].shape[1], *(len(rows) for rows in layers))
    model.load_state_dict(dict(state))
    return model


def cut(model: nn.Module) -> "PlaneRegions":
    """Return all linear pieces of a network on the square."""
    from inscape.regions.plane_regions import PlaneRegions, plane_regions

    square = torch.tensor(SQUARE)
    found = plane_regions(model, square, domain=square)
    assert isinstance(found, PlaneRegions)  # two inputs and ReLU always apply
    return found


@torch.no_grad()
def accuracy(model: nn.Module, x: Float[Tensor, "n 2"], y: Float[Tensor, "n 1"]) -> float:
    """Return the share of points on whose side the output is."""
    return float(((model(x) > 0) == (y > 0.5)).double().mean())


def grid(side: int = GRID) -> Float[Tensor, "n 2"]:
    """Return the points of a uniform grid on the square."""
    ticks = torch.linspace(-1, 1, side)
    return torch.cartesian_prod(ticks, ticks)


@torch.no_grad()
def patterns(state: Mapping[str, Tensor], x: Float[Tensor, "n 2"]) -> list[Bool[Tensor, "n units"]]:
    """Return which units of each hidden layer are on at some points."""
    found, values = [], x
    for module in list(loaded(state))[:-1]:
        values = module(values)
        if isinstance(module, nn.ReLU):
            found.append(values > 0)
    return found


def grid_maps(
    state: Mapping[str, Tensor], side: int = GRID
) -> tuple[Float[Tensor, "k 3"], Int[Tensor, " n"]]:
    """Return the maps (two slopes, a constant) of all patterns on a grid, and which is where."""
    x = grid(side).double().requires_grad_()
    model = loaded(state).double()
    values = model(x)
    (slopes,) = torch.autograd.grad(values.sum(), x)
    constants = values - (slopes * x).sum(1, keepdim=True)
    on = torch.cat(patterns(state, grid(side)), 1)
    kinds, places = torch.unique(on, dim=0, return_inverse=True)
    first = torch.full((len(kinds),), len(x)).scatter_reduce_(
        0, places, torch.arange(len(x)), "amin"
    )
    return torch.cat([slopes, constants], 1).detach()[first].float(), places


def scatter(ax: Panel, x: Array, y: Array, size: float = 5) -> None:
    """Draw points in the colours of their classes."""
    from inscape.figures.style import BLUE, VERMILION

    one = np.asarray(y).reshape(-1) > 0.5
    for chosen, colour, mark in ((one, BLUE, "o"), (~one, VERMILION, "s")):
        across, up = np.asarray(x)[chosen].T
        ax.scatter(across, up, s=size, c=colour, marker=mark, linewidths=0)
    ax.set_aspect("equal")
