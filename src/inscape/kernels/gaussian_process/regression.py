"""Gaussian process regression: posterior mean and variance, exact by a Cholesky factor."""

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
    cholesky_solution,
    evidence_by_distances,
    evidence_by_eigenvalues,
    log_likelihood,
    maximise_evidence,
)
from inscape.kernels.gaussian_process.start_grid import grid_subset, likeliest_on_grid, rbf_grid
from inscape.kernels.wide_network import WideNetwork

Kernel = Rbf | WideNetwork | Tangent

#: Covariance functions by name.
KERNELS: dict[str, type[Rbf] | type[WideNetwork]] = {"rbf": Rbf, "wide_network": WideNetwork}

#: Most entries of a block of the kernel between test points and data.
BLOCK = 2**22

SETTINGS = ("amplitude", "length_scale", "noise")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GaussianProcess(Result):
    """A Gaussian process conditioned on data.

    The covariance of the data is ``amplitude`` times the kernel, plus ``noise`` on the diagonal;
    ``factor`` is its Cholesky factor and ``weights`` its inverse times ``y``. ``at_bounds`` names
    fitted hyper-parameters that ended at a bound.
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
        settings: dict[str, Any] = dict(self.settings)
        return KERNELS[self.kernel](**settings)

    @property
    def length_scale(self) -> float | None:
        """Return the length scale, if the kernel has one."""
        value = dict(self.settings).get("length_scale")
        return None if value is None else float(value)

    def predict(
        self, x: Float[Tensor, "m *d"]
    ) -> tuple[Float64[Tensor, "m *c"], Float64[Tensor, " m"]]:
        """Return posterior mean and variance of the function (without noise) at test points.

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

    def leave_one_out(self) -> tuple[Float64[Tensor, "n *c"], Float64[Tensor, " n"]]:
        """Return leave-one-out mean and variance of each label (with noise)."""
        variance = 1 / torch.cholesky_inverse(self.factor).diagonal()
        mean = self.y.flatten(1) if self.y.ndim > 1 else self.y[:, None]
        return (mean - self.weights * variance[:, None]).reshape(self.y.shape), variance

    def rows(self) -> Iterator[Row]:
        """Yield one row for each label, with its leave-one-out prediction."""
        mean, variance = self.leave_one_out()
        labels, means = (part.reshape(len(self.y), -1).tolist() for part in (self.y, mean))
        for n, deviation in enumerate(variance.sqrt().tolist()):
            for c, (label, prediction) in enumerate(zip(labels[n], means[n], strict=True)):
                row = {"point": n, "output": c, "y": label, "leave_one_out_mean": prediction}
                yield {**row, "leave_one_out_std": deviation}

    def summary(self) -> Summary:
        """Return the log marginal likelihood."""
        basis = f"{self.kernel} kernel, {len(self.x)} points, amplitude {self.amplitude:.3g}"
        if self.length_scale is not None:
            basis += f", length scale {self.length_scale:.3g}"
        for name in self.at_bounds:
            basis += f", {name.replace('_', ' ')} at the bound of its fit"
        return Summary(value=self.log_likelihood, kind="exact", basis=basis)


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
    r"""Return a Gaussian process of mean zero conditioned on data.

    .. math:: m(x) = k(x)^T K^{-1} y, \quad v(x) = a \kappa(x, x) - k(x)^T K^{-1} k(x), \quad
              K = a \kappa(X, X) + \sigma^2 I

    Exact up to rounding, in float64, by one Cholesky factor of the ``n`` points. Hyper-parameters
    in ``fitted`` maximise the marginal likelihood, by L-BFGS from the given values and ``restarts``
    random ones. A fit of the noise also begins at the best point of a grid, and only there if the
    given noise is below the bounds, as by default. Amplitude and noise cost one or two
    eigendecompositions; a length scale costs some dozens of Cholesky factors per start.

    Args:
        x: Inputs.
        y: Labels; several outputs share the kernel.
        kernel: ``Rbf(length_scale=...)`` by default, ``WideNetwork(...)`` or ``Tangent(model)``.
        amplitude: Factor of the kernel: the prior variance where the kernel is 1.
        noise: Variance of the label noise, added to the diagonal.
        fitted: Hyper-parameters that are fitted: ``"amplitude"``, ``"noise"`` and, of ``Rbf``,
            ``"length_scale"``; none if empty.
        bounds: Smallest and largest value of a fitted hyper-parameter.
        restarts: Further starts, log-uniform between the bounds.
        seed: Seed of these starts.

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
    names = tuple(name for name in SETTINGS if name in fitted)
    points, labels = _contiguous(x), _contiguous(y)
    values = {"amplitude": float(amplitude), "noise": float(noise)}
    if isinstance(kernel, Rbf):
        values["length_scale"] = kernel.length_scale
    if names:
        columns = labels.reshape(len(labels), -1)
        values = _fitted(points, columns, kernel, values, names, bounds, restarts, seed)
    at_bounds = tuple(name for name in names if _is_at_bound(values[name], bounds))
    search: dict[str, Any] = {"fitted": names, "at_bounds": at_bounds}
    return _conditioned(points, labels, kernel, values, **search, restarts=restarts, seed=seed)


def _conditioned(
    x: Tensor, y: Tensor, kernel: Kernel, values: Mapping[str, float], **search: Any
) -> GaussianProcess:
    """Return the process with the given hyper-parameters, conditioned on data."""
    columns = y.reshape(len(y), -1)
    if isinstance(kernel, Rbf):
        kernel = Rbf(length_scale=values["length_scale"])
    factor = _cholesky(kernel.matrix(x), values["amplitude"], values["noise"])
    weights = cholesky_solution(factor, columns)
    return GaussianProcess(
        x=x,
        y=y,
        **_described(kernel),
        **search,
        amplitude=values["amplitude"],
        noise=values["noise"],
        factor=factor.contiguous(),
        weights=_contiguous(weights),
        log_likelihood=log_likelihood(factor, weights, columns),
    )


def _contiguous(tensor: Tensor) -> Float64[Tensor, "..."]:
    """Return a contiguous float64 copy: the layout of a loaded process, for equal predictions."""
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
        raise ValueError(f"bounds must be positive and rise, found {bounds}: swap or correct them.")


def _fitted(
    x: Tensor,
    y: Tensor,
    kernel: Kernel,
    values: dict[str, float],
    names: Sequence[str],
    bounds: tuple[float, float],
    restarts: int,
    seed: int,
) -> dict[str, float]:
    """Return the likeliest hyper-parameters over all starts."""
    starts = _starts(x, y, kernel, values, names, bounds, seed)
    evidence = _evidence(x, y, kernel, names)
    optima = [
        maximise_evidence(evidence, start, names, bounds=bounds, restarts=extra, seed=seed)
        for start, extra in zip(starts, (restarts, 0), strict=False)
    ]
    return max(optima, key=lambda optimum: evidence(optimum)[0])


def _starts(
    x: Tensor,
    y: Tensor,
    kernel: Kernel,
    values: Mapping[str, float],
    names: Sequence[str],
    bounds: tuple[float, float],
    seed: int,
) -> list[Mapping[str, float]]:
    """Return the starts of the fit: the given values and, for noise, the best of a grid."""
    if "noise" not in names:
        return [values]
    subset = grid_subset(len(x), seed).to(x.device)
    x, y = x[subset], y[subset]
    kernel_is_fixed = "length_scale" not in names
    kernels = (
        [(values.get("length_scale", 1.0), kernel.matrix(x))] if kernel_is_fixed else rbf_grid(x)
    )
    best = likeliest_on_grid(kernels, y, None if "amplitude" in names else values["amplitude"])
    if not best:
        return [values]
    initial = {**values, **{name: min(max(best[name], bounds[0]), bounds[1]) for name in names}}
    return [initial] if values["noise"] < bounds[0] else [values, initial]


def _evidence(x: Tensor, y: Tensor, kernel: Kernel, fitted: Sequence[str]) -> Evidence:
    if "length_scale" in fitted:
        return evidence_by_distances(squared_distances(x, x), y)
    return evidence_by_eigenvalues(kernel.matrix(x), y)


def _cholesky(kernel: Tensor, amplitude: float, noise: float) -> Float64[Tensor, "n n"]:
    """Return the lower Cholesky factor in row-major order; the kernel is overwritten."""
    kernel.mul_(amplitude).diagonal().add_(noise)
    transposed: Tensor  # column by column in memory
    transposed, info = torch.linalg.cholesky_ex(kernel, upper=True)
    if int(info):
        suggested = 1e-14 * len(kernel) * float(kernel.diagonal().max())
        raise ValueError(
            "the covariance of the data must be positive, found it singular to rounding with "
            f"noise={noise:.3g}: raise noise, to {suggested:.0e} or so, or drop points that lie "
            "together."
        )
    return transposed.T


def _described(kernel: Kernel) -> dict[str, Any]:
    """Return the fields that identify the kernel."""
    if isinstance(kernel, Tangent):
        return {"kernel": "tangent", "settings": (), "model": kernel.model}
    name = next(name for name, kind in KERNELS.items() if isinstance(kernel, kind))
    return {"kernel": name, "settings": tuple(asdict(kernel).items()), "model": None}


def _is_at_bound(value: float, bounds: tuple[float, float]) -> bool:
    return not bounds[0] * (1 + 1e-6) < value < bounds[1] * (1 - 1e-6)
