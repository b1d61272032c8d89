"""Kernels of networks of infinite width: of their outputs at random, and of their gradients."""

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import checks

#: Error functions that make up tanh, and the range of their scales: to 1e-10 everywhere.
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
    ReLU and erf have closed forms. So has tanh: it is a mean of error functions over a law of
    scales, taken by a quadrature whose error is below 1e-10 at every point.

    Attributes:
        activation: Of the hidden layers.
        hidden: Number of hidden layers.
        weight: Variance of a weight times the number of inputs of its layer.
        bias: Variance of a bias.
        form: ``"nngp"``, the covariance of the outputs of random networks; or ``"ntk"``, the
            tangent kernel, in which weights and biases are drawn from the unit normal and
            multiplied by their deviations in the forward pass.
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
        """Return the values between all points of one set."""
        kernel = self._through(x, x, symmetric=True)
        kernel.diagonal().copy_(self.diagonal(x))
        return kernel

    def between(self, x: Float[Tensor, "n *d"], z: Float[Tensor, "m *d"]) -> Float64[Tensor, "n m"]:
        """Return the values between the points of two sets."""
        return self._through(x, z, symmetric=False)

    def _through(self, x: Tensor, z: Tensor, *, symmetric: bool) -> Float64[Tensor, "n m"]:
        """Carry the kernel from layer to layer."""
        one, two = x.flatten(1).double(), z.flatten(1).double()
        cross = self.bias + self.weight * (one @ two.T) / one.shape[1]
        left, right = self._first(one)[:, None], self._first(two)
        tangent = cross
        for _ in range(self.hidden):
            values, slopes = self._moments(cross, left, right, symmetric=symmetric)
            if symmetric:
                values, slopes = ((part + part.T) / 2 for part in (values, slopes))
            cross = self.bias + self.weight * values
            tangent = cross + self.weight * tangent * slopes if self.form == "ntk" else cross
            left, right = self._next(left)[0], self._next(right)[0]
        return tangent

    def diagonal(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, " n"]:
        """Return the values of each point with itself."""
        own = self._first(x.flatten(1).double())
        tangent = own
        for _ in range(self.hidden):
            own, slopes = self._next(own)
            tangent = own + self.weight * tangent * slopes if self.form == "ntk" else own
        return tangent

    def _first(self, x: Float64[Tensor, "n d"]) -> Float64[Tensor, " n"]:
        return self.bias + self.weight * x.square().mean(1)

    def _next(self, own: Float64[Tensor, "*n"]) -> tuple[Tensor, Tensor]:
        """Return the variance in the next layer, and the mean square of slopes on the way there."""
        if self.activation == "relu":
            values, slopes = own / 2, torch.full_like(own, 0.5)
        else:
            values, slopes = self._moments(own, own, own, symmetric=True)
        return self.bias + self.weight * values, slopes

    def _moments(
        self, cross: Tensor, one: Tensor, two: Tensor, *, symmetric: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the means of products of activations, and (for tangents) of their slopes.

        If both sets of points are one, only the mean of the answer and its transpose counts.
        """
        if self.activation == "relu":
            return _relu(cross, one, two)
        if self.activation == "erf":
            return _erf(cross, one, two, slopes=self.form == "ntk")
        return _tanh(cross, one, two, slopes=self.form == "ntk", symmetric=symmetric)


def _relu(cross: Tensor, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """Return the arc-cosine kernels of order one and zero."""
    size = (one * two).sqrt()
    cosine = (cross / size).where(size > 0, 0).clamp(-1, 1)
    rest = math.pi - cosine.acos()
    values = size * ((1 - cosine.square()).sqrt() + rest * cosine) / (2 * math.pi)
    return values, rest / (2 * math.pi)


def _erf(
    cross: Tensor, one: Tensor, two: Tensor, *, slopes: bool, scales: tuple[float, float] = (1, 1)
) -> tuple[Tensor, Tensor]:
    """Return the moments of erf(a u) and erf(b v) for two scales, after Williams."""
    a, b = scales
    left, right = 1 + 2 * a**2 * one, 1 + 2 * b**2 * two
    inner = (2 * a * b) * cross
    values = (inner * left.rsqrt() * right.rsqrt()).asin_().mul_(2 / math.pi)
    if not slopes:
        return values, values
    return values, (left * right - inner.square()).rsqrt_().mul_(4 * a * b / math.pi)


def _tanh(
    cross: Tensor, one: Tensor, two: Tensor, *, slopes: bool, symmetric: bool
) -> tuple[Tensor, Tensor]:
    """Return the moments of tanh: those of error functions at all pairs of scales, added up."""
    values, along = torch.zeros_like(cross), torch.zeros_like(cross)
    terms = _mixture()
    for (k, (a, share)), (m, (b, other)) in itertools.product(enumerate(terms), repeat=2):
        if symmetric and k > m:
            continue
        part = share * other * (2 if symmetric and k < m else 1)
        found = _erf(cross, one, two, slopes=slopes, scales=(a, b))
        values.add_(found[0], alpha=part)
        if slopes:
            along.add_(found[1], alpha=part)
    return values, along


@cache
def _mixture() -> tuple[tuple[float, float], ...]:
    r"""Return scales and shares of the error functions whose mean is tanh.

    A logistic variable is a normal one times twice a variable of Kolmogorov's law (Andrews and
    Mallows 1974), so that :math:`\tanh(x) = E[\mathrm{erf}(x / \sqrt{2} K)]`. The trapezoidal rule
    in the logarithm of K converges exponentially.
    """
    low, high = map(math.log, SCALES)
    k = torch.linspace(low, high, TERMS, dtype=torch.float64).exp()
    odd = (2 * torch.arange(1, 60, dtype=torch.float64) - 1)[:, None]
    power = (odd * math.pi).square() / (8 * k.square())
    shares = ((2 * power - 1) * (-power).exp()).sum(0) / k
    scales = 1 / (math.sqrt(2) * k)
    return tuple(zip(scales.tolist(), (shares / shares.sum()).tolist(), strict=True))
