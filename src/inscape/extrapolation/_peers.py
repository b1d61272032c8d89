"""What else could have been made of the same data: three models to hold a network against."""

from collections.abc import Callable

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import draw_rows

Known = tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]
#: What a peer says of the queries, and a sentence where it is not to be believed.
Said = tuple[Float64[Tensor, "m c"], str]
Peer = Callable[[Known, Float64[Tensor, "m d"], int], Said]

#: Points that the settings of a process are fitted to at most: each step takes their third power.
PROCESS = 150
#: The least noise, as a share of amplitude and points: covariances must be positive to rounding.
ROUNDING = 4e-14
NOTHING = (
    "The Gaussian process finds nothing in the labels that near points have in common, and "
    "predicts their mean: it is no peer for these data."
)


def gaussian_process(known: Known, queries: Tensor, seed: int) -> Said:
    """Predict by radial basis functions, from all points.

    Amplitude, length scale and noise are those that make the labels of some points likeliest.
    """
    from inscape.kernels import Rbf
    from inscape.kernels import gaussian_process as conditioned
    from inscape.kernels._starts import explains, fitted_process

    x, y = known
    size, mean = _size(x), y.mean(0)
    deviation = float((y - mean).square().mean().sqrt()) or 1.0
    x, y = x / size, (y - mean) / deviation
    both = draw_rows(torch.cat([x, y], dim=1), PROCESS, seed=seed)
    some = both[:, : x.shape[1]], both[:, x.shape[1] :]
    fitted = fitted_process(*some, bounds=(1e-8, 1e4), seed=seed)
    if not explains(fitted):
        level = float(y.square().max()) == 0  # of equal labels the mean is all there is to say
        return mean.expand(len(queries), -1).clone(), "" if level else NOTHING
    process = conditioned(
        x,
        y,
        kernel=Rbf(length_scale=fitted.length_scale or 1.0),
        amplitude=fitted.amplitude,
        noise=max(fitted.noise, ROUNDING * len(x) * fitted.amplitude),
        fitted=(),
    )
    return process.predict(queries / size)[0] * deviation + mean, ""


def nearest_neighbour(known: Known, queries: Tensor, seed: int) -> Said:
    """Repeat the label of the nearest point."""
    return known[1][nearest(known[0], queries)[1]], ""


def linear(known: Known, queries: Tensor, seed: int) -> Said:
    """Predict by least squares with an offset; the smallest weights where many fit equally."""
    x, y = known
    middle, mean = x.mean(0), y.mean(0)
    weights: Tensor = torch.linalg.lstsq(x - middle, y - mean, driver="gelsd").solution
    return (queries - middle) @ weights + mean, ""


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
