"""Kernels of networks of infinite width: NNGP covariance and neural tangent kernel."""

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import checks

#: Number of error functions in the expansion of tanh, and their range of scales: error below 1e-10.
TERMS, SCALES = 20, (0.16, 4.6)

Activation = Literal["relu", "erf", "tanh"]
Form = Literal["nngp", "ntk"]


@dataclass(frozen=True, kw_only=True)
class WideNetwork:
    r"""The kernel of a dense network whose hidden layers are infinitely wide.

    .. math:: \Sigma_1 = b + w \, x \cdot z / d, \quad
              \Sigma_{l+1} = b + w \, E[\phi(u) \phi(v)], \quad
              \Theta_{l+1} = \Sigma_{l+1} + w \, \Theta_l \, E[\phi'(u) \phi'(v)]

    with :math:`(u, v)` Gaussian of the covariance :math:`\Sigma_l` and :math:`\Theta_1 = \Sigma_1`.
    ReLU and erf have closed forms. So has tanh: it is a mean of error functions over a distribution
    of scales, computed by a quadrature whose error is below 1e-10 everywhere.

    Attributes:
        activation: Of the hidden layers.
        hidden: Number of hidden layers.
        weight: Variance of a weight times the number of inputs of its layer.
        bias: Variance of a bias.
        form: ``"nngp"``, the covariance of the outputs of random networks; or ``"ntk"``, the
            tangent kernel in NTK parametrisation: standard normal weights and biases, multiplied by
            their standard deviations in the forward pass.
    """

    activation: Activation = "relu"
    hidden: int = 1
    weight: float = 2.0
    bias: float = 0.0
    form: Form = "nngp"

    def __post_init__(self) -> None:
        checks.one_of(("relu", "erf", "tanh"), activation=self.activation)
        checks.one_of(("nngp", "ntk"), form=self.form)
        checks.at_least(0, hidden=self.hidden, bias=self.bias)
        if not self.weight > 0:
            raise ValueError(f"weight must be positive, found {self.weight}: raise weight.")

    def matrix(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n n"]:
        """Return the kernel matrix of one set of samples."""
        kernel = self._through(x, x, symmetric=True)
        kernel.diagonal().copy_(self.diagonal(x))
        return kernel

    def between(self, x: Float[Tensor, "n *d"], z: Float[Tensor, "m *d"]) -> Float64[Tensor, "n m"]:
        """Return the kernel matrix between two sets of samples."""
        return self._through(x, z, symmetric=False)

    def _through(self, x: Tensor, z: Tensor, *, symmetric: bool) -> Float64[Tensor, "n m"]:
        """Return the kernel after all layers, by recursion."""
        left_x, right_x = x.flatten(1).double(), z.flatten(1).double()
        covariance = self.bias + self.weight * (left_x @ right_x.T) / left_x.shape[1]
        left_variance, right_variance = self._first(left_x)[:, None], self._first(right_x)
        tangent = covariance
        for _ in range(self.hidden):
            values, derivatives = self._moments(
                covariance, left_variance, right_variance, symmetric=symmetric
            )
            if symmetric:
                values, derivatives = ((moment + moment.T) / 2 for moment in (values, derivatives))
            covariance = self.bias + self.weight * values
            tangent = (
                covariance + self.weight * tangent * derivatives
                if self.form == "ntk"
                else covariance
            )
            left_variance, right_variance = (
                self._next(left_variance)[0],
                self._next(right_variance)[0],
            )
        return tangent

    def diagonal(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, " n"]:
        """Return the diagonal of the kernel matrix."""
        variance = self._first(x.flatten(1).double())
        tangent = variance
        for _ in range(self.hidden):
            variance, derivatives = self._next(variance)
            tangent = (
                variance + self.weight * tangent * derivatives if self.form == "ntk" else variance
            )
        return tangent

    def _first(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, " n"]:
        return self.bias + self.weight * x.square().mean(1)

    def _next(self, variance: Float64[Tensor, "*n"]) -> tuple[Tensor, Tensor]:
        """Return the variance in the next layer, and the mean square of the derivatives."""
        if self.activation == "relu":
            values, derivatives = variance / 2, torch.full_like(variance, 0.5)
        else:
            values, derivatives = self._moments(variance, variance, variance, symmetric=True)
        return self.bias + self.weight * values, derivatives

    def _moments(
        self, covariance: Tensor, left: Tensor, right: Tensor, *, symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the means of products of activations, and (for the NTK) of their derivatives.

        If ``symmetric``, only the mean of the result and its transpose is meaningful.
        """
        if self.activation == "relu":
            return _relu(covariance, left, right)
        if self.activation == "erf":
            return _erf(covariance, left, right, derivatives=self.form == "ntk")
        return _tanh(covariance, left, right, derivatives=self.form == "ntk", symmetric=symmetric)


def _relu(covariance: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return the arc-cosine kernels of order one and zero."""
    scale = (left * right).sqrt()
    cosine = (covariance / scale).where(scale > 0, 0).clamp(-1, 1)
    angle = math.pi - cosine.acos()
    values = scale * ((1 - cosine.square()).sqrt() + angle * cosine) / (2 * math.pi)
    return values, angle / (2 * math.pi)


def _erf(
    covariance: Tensor,
    left_variance: Tensor,
    right_variance: Tensor,
    *,
    derivatives: bool,
    scales: tuple[float, float] = (1, 1),
) -> tuple[Tensor, Tensor]:
    """Return the moments of erf(a u) and erf(b v) for two scales (Williams 1997)."""
    a, b = scales
    left, right = 1 + 2 * a**2 * left_variance, 1 + 2 * b**2 * right_variance
    inner = (2 * a * b) * covariance
    values = (inner * left.rsqrt() * right.rsqrt()).asin_().mul_(2 / math.pi)
    if not derivatives:
        return values, values
    return values, (left * right - inner.square()).rsqrt_().mul_(4 * a * b / math.pi)


def _tanh(
    covariance: Tensor, left: Tensor, right: Tensor, *, derivatives: bool, symmetric: bool
) -> tuple[Tensor, Tensor]:
    """Return the moments of tanh: a weighted sum over pairs of error functions."""
    values, derivative_values = torch.zeros_like(covariance), torch.zeros_like(covariance)
    terms = _mixture()
    for (k, (a, weight)), (m, (b, other_weight)) in itertools.product(enumerate(terms), repeat=2):
        if symmetric and k > m:
            continue
        factor = weight * other_weight * (2 if symmetric and k < m else 1)
        moments = _erf(covariance, left, right, derivatives=derivatives, scales=(a, b))
        values.add_(moments[0], alpha=factor)
        if derivatives:
            derivative_values.add_(moments[1], alpha=factor)
    return values, derivative_values


@cache
def _mixture() -> tuple[tuple[float, float], ...]:
    r"""Return scales and weights of the error functions whose mean is tanh.

    A logistic variable is a normal one times twice a Kolmogorov variable (Andrews and
    Mallows 1974), so that :math:`\tanh(x) = E[\mathrm{erf}(x / \sqrt{2} K)]`. The trapezoidal rule
    in the logarithm of K converges exponentially.
    """
    low, high = map(math.log, SCALES)
    k = torch.linspace(low, high, TERMS, dtype=torch.float64).exp()
    odd = (2 * torch.arange(1, 60, dtype=torch.float64) - 1)[:, None]
    power = (odd * math.pi).square() / (8 * k.square())
    weights = ((2 * power - 1) * (-power).exp()).sum(0) / k
    scales = 1 / (math.sqrt(2) * k)
    return tuple(zip(scales.tolist(), (weights / weights.sum()).tolist(), strict=True))
