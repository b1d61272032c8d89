"""Gaussian process: the smooth function that data and a kernel ask for, and how sure it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import Result, Row, Summary, checks
from inscape.functional.jacobians import chunks
from inscape.kernels.gaussian_process.covariance import Rbf, Tangent, squared_distances
from inscape.kernels.gaussian_process.likelihood import (
    Evidence,
    largest,
    log_likelihood,
    of_distances,
    of_eigenvalues,
    solution,
)
from inscape.kernels.gaussian_process.start_grid import bells, likeliest, some_of
from inscape.kernels.wide_network import WideNetwork

Kernel = Rbf | WideNetwork | Tangent

#: Kernels by name, and their settings.
KERNELS: dict[str, type[Rbf] | type[WideNetwork]] = {"rbf": Rbf, "wide_network": WideNetwork}

#: Numbers of a block of the kernel between points and data at most.
BLOCK = 2**22

SETTINGS = ("amplitude", "length_scale", "noise")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GaussianProcess(Result):
    """A process that has seen data: what it expects elsewhere, and how sure it is.

    The covariance of the data is ``amplitude`` times the kernel, plus ``noise`` on the diagonal;
    ``factor`` is its Cholesky factor and ``weights`` its inverse times ``y``. ``at_bounds`` names
    fitted settings that would have gone further.
    """

    x: Float64[Tensor, "n *d"]
    y: Float64[Tensor, "n *c"]
    kernel: str
    settings: tuple[tuple[str, float | int | str], ...]
    model: nn.Module | None
    amplitude: float
    noise: float
    fitted: tuple[str, ...]
    at_bounds: tuple[str, ...]
    restarts: int
    seed: int
    factor: Float64[Tensor, "n n"]
    weights: Float64[Tensor, "n k"]
    log_likelihood: float

    @property
    def function(self) -> Kernel:
        """Return the kernel, without the amplitude."""
        if self.model is not None:
            return Tangent(self.model)
        chosen: dict[str, Any] = dict(self.settings)
        return KERNELS[self.kernel](**chosen)

    @property
    def length_scale(self) -> float | None:
        """Return the length scale, if the kernel has one."""
        found = dict(self.settings).get("length_scale")
        return None if found is None else float(found)

    def predict(
        self, x: Float[Tensor, "m *d"]
    ) -> tuple[Float64[Tensor, "m *c"], Float64[Tensor, " m"]]:
        """Return mean and variance of the function (without noise) at other points.

        The variance is the same for all outputs.
        """
        checks.points(x)
        if x.shape[1:] != self.x.shape[1:]:
            raise ValueError(
                f"x must have points of shape {tuple(self.x.shape[1:])} as the data have, found "
                f"{tuple(x.shape[1:])}: reshape x."
            )
        rows = max(1, BLOCK // len(self.x))
        parts = [self._predicted(chunk) for chunk in chunks(x, rows)]
        mean, variance = (torch.cat(part) for part in zip(*parts, strict=True))
        return mean.reshape(len(x), *self.y.shape[1:]), variance

    def _predicted(self, x: Tensor) -> tuple[Tensor, Tensor]:
        cross = self.function.between(x, self.x).mul_(self.amplitude)
        own = self.function.diagonal(x).mul_(self.amplitude)
        mean = cross @ self.weights
        known = torch.linalg.solve_triangular(self.factor, cross.T, upper=False)
        return mean, (own - known.square_().sum(0)).clamp(min=0)

    def left_out(self) -> tuple[Float64[Tensor, "n *c"], Float64[Tensor, " n"]]:
        """Return mean and variance of each label (with noise) as all others predict it."""
        variance = 1 / torch.cholesky_inverse(self.factor).diagonal()
        mean = self.y.flatten(1) if self.y.ndim > 1 else self.y[:, None]
        return (mean - self.weights * variance[:, None]).reshape(self.y.shape), variance

    def rows(self) -> Iterator[Row]:
        """Yield one row for each label: what it is, and what all other points predict."""
        mean, variance = self.left_out()
        labels, means = (part.reshape(len(self.y), -1).tolist() for part in (self.y, mean))
        for n, deviation in enumerate(variance.sqrt().tolist()):
            for c, (label, found) in enumerate(zip(labels[n], means[n], strict=True)):
                row = {"point": n, "output": c, "y": label, "left_out_mean": found}
                yield {**row, "left_out_deviation": deviation}

    def summary(self) -> Summary:
        """Return the logarithm of the marginal likelihood."""
        how = f"{self.kernel} kernel, {len(self.x)} points, amplitude {self.amplitude:.3g}"
        if self.length_scale is not None:
            how += f", length scale {self.length_scale:.3g}"
        for name in self.at_bounds:
            how += f", {name.replace('_', ' ')} at the bound of its fit"
        return Summary(value=self.log_likelihood, kind="exact", basis=how)


def gaussian_process(
    x: Float[Tensor, "n *d"],
    y: Float[Tensor, "n *c"],
    *,
    kernel: Kernel | None = None,
    amplitude: float = 1.0,
    noise: float = 1e-10,
    fitted: Sequence[str] = ("amplitude",),
    bounds: tuple[float, float] = (1e-5, 1e5),
    restarts: int = 0,
    seed: int = 0,
) -> GaussianProcess:
    r"""Condition a Gaussian process of mean zero on data.

    .. math:: m(x) = k(x)^T K^{-1} y, \quad v(x) = a \kappa(x, x) - k(x)^T K^{-1} k(x), \quad
              K = a \kappa(X, X) + \sigma^2 I

    Exact up to rounding, in float64 by one Cholesky factor of the ``n`` points. Settings named in
    ``fitted`` are set to where the marginal likelihood is largest, by its gradient (L-BFGS) from
    the given values and from ``restarts`` random ones. Where the noise is fitted, it begins at the
    likeliest of a grid that suits the data as well, and there alone if the noise given is below the
    bounds, as the default is. A setting that ends at a bound is named by the summary. Amplitude
    and noise alone cost an eigendecomposition or two however many restarts there are; a length
    scale costs a Cholesky factor and an inverse for each of a few dozen steps of each start.

    Args:
        x: Points.
        y: Labels; several outputs share the kernel.
        kernel: ``Rbf(length_scale=...)``, which is the default, ``WideNetwork(...)`` or
            ``Tangent(model)``.
        amplitude: Factor of the kernel: the variance of the process where the kernel is 1.
        noise: Variance of the noise of labels, added to the diagonal.
        fitted: Settings that are fitted: ``"amplitude"``, ``"noise"`` and, of ``Rbf``,
            ``"length_scale"``; an empty list keeps all as they are.
        bounds: Smallest and largest value of a fitted setting.
        restarts: Further starts, drawn evenly in the logarithms between the bounds.
        seed: Seed of these draws.

    >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> process = gaussian_process(x, torch.tensor([1.0, -1.0]), kernel=Rbf(length_scale=0.5))
    >>> mean, variance = process.predict(torch.tensor([[0.0], [0.5], [9.0]]))
    >>> [round(value, 3) + 0.0 for value in mean.tolist()]
    [1.0, 0.0, 0.0]
    """
    kernel = Rbf() if kernel is None else kernel
    _check(x, y, kernel, fitted, bounds)
    checks.at_least(0, noise=noise, restarts=restarts)
    if not amplitude > 0:
        raise ValueError(f"amplitude must be positive, found {amplitude}: raise amplitude.")
    points, labels = _own(x), _own(y)
    columns = labels.reshape(len(labels), -1)
    chosen = {"amplitude": float(amplitude), "noise": float(noise)}
    if isinstance(kernel, Rbf):
        chosen["length_scale"] = kernel.length_scale
    if fitted:
        names = [name for name in SETTINGS if name in fitted]
        chosen = _fitted(points, columns, kernel, chosen, names, bounds, restarts, seed)
    if isinstance(kernel, Rbf):
        kernel = Rbf(length_scale=chosen["length_scale"])
    factor = _factor(kernel.matrix(points), chosen["amplitude"], chosen["noise"])
    weights = solution(factor, columns)
    return GaussianProcess(
        x=points,
        y=labels,
        **_described(kernel),
        amplitude=chosen["amplitude"],
        noise=chosen["noise"],
        fitted=tuple(name for name in SETTINGS if name in fitted),
        at_bounds=tuple(name for name in SETTINGS if name in fitted and _at(chosen[name], bounds)),
        restarts=restarts,
        seed=seed,
        factor=factor.contiguous(),
        weights=_own(weights),
        log_likelihood=log_likelihood(factor, weights, columns),
    )


def _own(tensor: Tensor) -> Float64[Tensor, "..."]:
    """Return a copy in the layout in which a process is loaded, so that it predicts the same."""
    return tensor.detach().to(torch.float64, copy=True, memory_format=torch.contiguous_format)


def _check(
    x: Tensor, y: Tensor, kernel: Kernel, fitted: Sequence[str], bounds: tuple[float, float]
) -> None:
    checks.points(x)
    checks.labels(y, x)
    for name in fitted:
        checks.one_of(SETTINGS, fitted=name)
    if "length_scale" in fitted and not isinstance(kernel, Rbf):
        raise ValueError(
            f"a length scale is fitted for Rbf, found {type(kernel).__name__}: "
            'leave "length_scale" out of fitted.'
        )
    if not 0 < bounds[0] < bounds[1]:
        raise ValueError(f"bounds must be positive and rise, found {bounds}: swap or mend them.")


def _fitted(
    x: Tensor,
    y: Tensor,
    kernel: Kernel,
    given: dict[str, float],
    names: Sequence[str],
    bounds: tuple[float, float],
    restarts: int,
    seed: int,
) -> dict[str, float]:
    """Return the likeliest settings that any start leads to."""
    starts = _starts(x, y, kernel, given, names, bounds, seed)
    evidence = _evidence(x, y, kernel, names)
    summits = [
        largest(evidence, start, names, bounds=bounds, restarts=more, seed=seed)
        for start, more in zip(starts, (restarts, 0), strict=False)
    ]
    return max(summits, key=lambda at: evidence(at)[0])


def _starts(
    x: Tensor,
    y: Tensor,
    kernel: Kernel,
    given: Mapping[str, float],
    names: Sequence[str],
    bounds: tuple[float, float],
    seed: int,
) -> list[Mapping[str, float]]:
    """Return where fits begin: at what is given and, for noise, at the likeliest of a grid."""
    if "noise" not in names:
        return [given]
    some = some_of(len(x), seed).to(x.device)
    x, y = x[some], y[some]
    fixed = "length_scale" not in names
    kernels = [(given.get("length_scale", 1.0), kernel.matrix(x))] if fixed else bells(x)
    found = likeliest(kernels, y, None if "amplitude" in names else given["amplitude"])
    if not found:
        return [given]
    begin = {**given, **{name: min(max(found[name], bounds[0]), bounds[1]) for name in names}}
    return [begin] if given["noise"] < bounds[0] else [given, begin]


def _evidence(x: Tensor, y: Tensor, kernel: Kernel, fitted: Sequence[str]) -> Evidence:
    if "length_scale" in fitted:
        return of_distances(squared_distances(x, x), y)
    return of_eigenvalues(kernel.matrix(x), y)


def _factor(kernel: Tensor, amplitude: float, noise: float) -> Float64[Tensor, "n n"]:
    """Return the Cholesky factor, row by row in memory; the kernel is overwritten."""
    kernel.mul_(amplitude).diagonal().add_(noise)
    transposed: Tensor  # column by column in memory
    transposed, failed = torch.linalg.cholesky_ex(kernel, upper=True)
    if int(failed):
        least = 1e-14 * len(kernel) * float(kernel.diagonal().max())
        raise ValueError(
            "the covariance of the data must be positive, found it singular to rounding with "
            f"noise={noise:.3g}: raise noise, to {least:.0e} or so, or drop points that lie "
            "together."
        )
    return transposed.T


def _described(kernel: Kernel) -> dict[str, Any]:
    """Return the fields that tell which kernel it is."""
    if isinstance(kernel, Tangent):
        return {"kernel": "tangent", "settings": (), "model": kernel.model}
    name = next(name for name, kind in KERNELS.items() if isinstance(kernel, kind))
    return {"kernel": name, "settings": tuple(asdict(kernel).items()), "model": None}


def _at(value: float, bounds: tuple[float, float]) -> bool:
    return not bounds[0] * (1 + 1e-6) < value < bounds[1] * (1 - 1e-6)
