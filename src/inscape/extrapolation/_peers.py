"""What else could have been made of the same data: three models to hold a network against."""

from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import draw_rows

Known = tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]
Peer = Callable[[Known, Float64[Tensor, "m d"], int], Float64[Tensor, "m c"]]

#: Points that a process is fitted to at most: its cost grows with their third power.
PROCESS = 150


def gaussian_process(known: Known, queries: Tensor, seed: int) -> Float64[Tensor, "m c"]:
    """Predict by radial basis functions with amplitude, length scale and noise as fit the data."""
    from inscape.kernels import Rbf
    from inscape.kernels import gaussian_process as conditioned

    x, y = known
    both = draw_rows(torch.cat([x, y], dim=1), PROCESS, seed=seed)
    x, y = both[:, : x.shape[1]], both[:, x.shape[1] :]
    size = _size(x)
    mean, deviation = y.mean(0), float((y - y.mean(0)).square().mean().sqrt()) or 1.0
    process = conditioned(
        x / size,
        (y - mean) / deviation,
        kernel=Rbf(length_scale=1.0),
        noise=1e-3,
        fitted=("amplitude", "length_scale", "noise"),
        bounds=(1e-8, 1e4),
        seed=seed,
    )
    return process.predict(queries / size)[0] * deviation + mean


def nearest_neighbour(known: Known, queries: Tensor, seed: int) -> Float64[Tensor, "m c"]:
    """Repeat the label of the nearest point."""
    return known[1][nearest(known[0], queries)[1]]


def linear(known: Known, queries: Tensor, seed: int) -> Float64[Tensor, "m c"]:
    """Predict by least squares with an offset; the smallest weights where many fit equally."""
    x, y = known
    middle, mean = x.mean(0), y.mean(0)
    weights: Tensor = torch.linalg.lstsq(x - middle, y - mean, driver="gelsd").solution
    return (queries - middle) @ weights + mean


def nearest(
    x: Float64[Tensor, "n d"], queries: Float64[Tensor, "m d"]
) -> tuple[Float64[Tensor, " m"], Tensor]:
    """Return the distance from each query to the nearest point, and which that is.

    Candidates come from products, distances from differences: near points lose no digits.
    """
    found = torch.cdist(queries, x).argmin(1)
    return (queries - x[found]).norm(dim=1), found


def reach(x: Float64[Tensor, "n d"], share: float) -> float:
    """Return within what distance a share of the points has another one; 0 for one point."""
    if len(x) < 2:
        return 0.0
    between = torch.cdist(x, x)
    between.fill_diagonal_(torch.inf)
    distances = (x - x[between.argmin(1)]).norm(dim=1)
    return float(torch.quantile(distances, share))


def _size(x: Float64[Tensor, "n d"]) -> float:
    """Return the root mean square distance of the points from their mean."""
    return float((x - x.mean(0)).square().sum(1).mean().sqrt()) or 1.0


PEERS: dict[str, Peer] = {
    "gaussian_process": gaussian_process,
    "nearest_neighbour": nearest_neighbour,
    "linear": linear,
}
