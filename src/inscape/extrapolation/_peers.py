"""What else could have been made of the same data: three models to hold a network against."""

from collections.abc import Callable, Generator

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.sampling import draw_rows
from inscape.extrapolation._products import nearest, products, shortened, squared_distances

Known = tuple[Float64[Tensor, "n d"], Float64[Tensor, "n c"]]
#: What a peer says of the queries, and a sentence where it is not to be believed.
Said = tuple[Float64[Tensor, "m c"], str]
Saying = Generator[None, None, Said]
Peer = Callable[[Known, Float64[Tensor, "m d"], int], Saying]

#: Points that the settings of a process are fitted to at most: each step takes their third power.
PROCESS = 150
#: The least noise, as a share of amplitude and points: covariances must be positive to rounding.
ROUNDING = 4e-14
#: Inputs from which on distances come from products, which are quick and lose digits of near ones.
WIDE = 64
#: The least squared pivot of a Cholesky factor, as a fraction of the largest, that keeps digits.
PIVOT = 1e-10
NOTHING = (
    "The Gaussian process finds nothing in the labels that near points have in common, and "
    "predicts their mean: it is no peer for these data."
)


def gaussian_process(known: Known, queries: Tensor, seed: int) -> Saying:
    """Predict by radial basis functions, from all points.

    Amplitude, length scale and noise are those that make the labels of some points likeliest.
    """
    from inscape.kernels.gaussian_process.fitting import explains, fitted_process

    x, y = known
    size, mean = _size(x), y.mean(0)
    deviation = float((y - mean).square().mean().sqrt()) or 1.0
    x, y = x / size, (y - mean) / deviation
    both = draw_rows(torch.cat([x, y], dim=1), PROCESS, seed=seed)
    some = shortened(both[:, : x.shape[1]]), both[:, x.shape[1] :]
    fitted = fitted_process(*some, bounds=(1e-8, 1e4), seed=seed)
    if not explains(fitted):
        level = float(y.square().max()) == 0  # of equal labels the mean is all there is to say
        return mean.expand(len(queries), -1).clone(), "" if level else NOTHING
    yield
    noise = max(fitted.noise, ROUNDING * len(x) * fitted.amplitude)
    settings = fitted.length_scale or 1.0, fitted.amplitude, noise
    conditioned = _by_products if x.shape[1] > WIDE else _conditioned
    prediction = yield from conditioned((x, y), queries / size, *settings)
    return prediction * deviation + mean, ""


def _conditioned(
    known: Known, queries: Tensor, length_scale: float, amplitude: float, noise: float
) -> Generator[None, None, Float64[Tensor, "m c"]]:
    """Return the mean of a process given all points."""
    from inscape.kernels import Rbf
    from inscape.kernels import gaussian_process as conditioned

    yield
    kernel = Rbf(length_scale=length_scale)
    process = conditioned(*known, kernel=kernel, amplitude=amplitude, noise=noise, fitted=())
    return process.predict(queries)[0]


def _by_products(
    known: Known, queries: Tensor, length_scale: float, amplitude: float, noise: float
) -> Generator[None, None, Float64[Tensor, "m c"]]:
    """Return the same for wide inputs, whose distances would take long by differences."""
    x, y = known
    middle = x.mean(0)  # products of short rows keep more digits
    x, queries = x - middle, queries - middle
    covariance = yield from squared_distances(x, x)
    covariance.fill_diagonal_(0.0).mul_(-0.5 / length_scale**2).exp_().mul_(amplitude)
    covariance.diagonal().add_(noise)
    yield
    weights = torch.cholesky_solve(y, torch.linalg.cholesky(covariance))
    yield
    across = yield from squared_distances(queries, x)
    return across.mul_(-0.5 / length_scale**2).exp_().mul_(amplitude) @ weights


def nearest_neighbour(known: Known, queries: Tensor, seed: int) -> Saying:
    """Repeat the label of the nearest point."""
    _, numbers = yield from nearest(known[0], queries)
    return known[1][numbers], ""


def linear(known: Known, queries: Tensor, seed: int) -> Saying:
    """Predict by least squares with an offset; the smallest weights where many fit equally."""
    x, y = known
    middle, mean = x.mean(0), y.mean(0)
    x, y, queries = x - middle, y - mean, queries - middle
    weights = yield from (_dual if len(x) <= x.shape[1] else _primal)(x, y)
    if weights is None:
        weights = torch.linalg.lstsq(x, y, driver="gelsd").solution
    return queries @ weights + mean, ""


def _dual(x: Tensor, y: Tensor) -> Generator[None, None, Float64[Tensor, "d c"] | None]:
    """Return the smallest weights that fit labels of mean 0, if they fit and can be told.

    Centred rows add up to nothing, so that their products leave the mean free; it is fixed at 0.
    """
    gram = yield from products(x, x)
    gram += gram.diagonal().mean() / len(gram)
    multipliers = _solved(gram, y)
    yield
    return None if multipliers is None else x.T @ multipliers


def _primal(x: Tensor, y: Tensor) -> Generator[None, None, Float64[Tensor, "d c"] | None]:
    """Return the weights of the normal equations, none for inputs that never vary."""
    varies = x.abs().amax(0) > 0
    columns = x[:, varies].T.contiguous()
    gram = yield from products(columns, columns)
    some = _solved(gram, columns @ y)
    if some is None:
        return None
    weights = x.new_zeros(x.shape[1], y.shape[1])
    weights[varies] = some
    return weights


def _solved(gram: Tensor, right: Tensor) -> Tensor | None:
    """Return the solution of symmetric equations; None where it would lose digits."""
    factor, failed = torch.linalg.cholesky_ex(gram)
    if int(failed) or not len(gram):
        return None
    pivots = factor.diagonal().square()
    if not float(pivots.min()) > PIVOT * float(pivots.max()):
        return None
    return torch.cholesky_solve(right, factor)


def _size(x: Float64[Tensor, "n d"]) -> float:
    """Return the root mean square distance of the points from their mean."""
    return float((x - x.mean(0)).square().sum(1).mean().sqrt()) or 1.0


PEERS: dict[str, Peer] = {
    "gaussian_process": gaussian_process,
    "nearest_neighbour": nearest_neighbour,
    "linear": linear,
}
