"""Spectral norm: a bound on the Lipschitz constant by the product over layers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    instrument,
)
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.functional.jacobians import probe
from inscape.piecewise import AffineSegment, chain
from inscape.spectra import largest_singular_value
from inscape.spectra.directional_derivative import directional_derivative

#: Maps with at most so many inputs or outputs are assembled as matrices,
SMALL = 512
#: if the matrix has at most so many elements.
LARGE = 2_000_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SpectralNorm(Result):
    """Largest singular value of each affine map between two activations."""

    range: ClassVar[Range] = NONNEGATIVE

    norms: Float64[Tensor, " layers"]
    layers: tuple[str, ...]
    converged: bool
    outputs: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each affine map, from the input on."""
        for layer, norm in zip(self.layers, self.norms.tolist(), strict=True):
            yield {"layer": layer, "spectral_norm": norm}

    def summary(self) -> Summary:
        """Return the product over the layers."""
        kind: Kind = "exact" if self.converged else "lower bound"
        basis = "1 layer" if len(self.layers) == 1 else f"{len(self.layers)} layers"
        return Summary(value=float(self.norms.prod()), kind=kind, basis=basis)


@instrument(
    reads="parameters",
    better="smaller",
    larger="a weaker guarantee",
    cost="instant",
    work=lambda n, c: 300,
    setup=0.5,
    meaning="No two inputs anywhere give outputs that are more than {value} times as far apart as "
    "the inputs.",
    cites="bartlett2017spectrally",
)
@torch.no_grad()
def spectral_norm(model: nn.Module, x: Float[Tensor, "n *d"]) -> SpectralNorm | NotApplicable:
    r"""Multiply the spectral norms of the layers: a bound on the Lipschitz constant.

    .. math:: \lVert f(a) - f(b) \rVert \leq \prod_{l=1}^{L} \lVert A_l \rVert_2 \,
              \lVert a - b \rVert, \quad f = A_L \circ \sigma_{L-1} \circ \cdots \circ \sigma_1
              \circ A_1

    :math:`A_l` is everything affine between two activations, as the exported graph has it: a
    dense layer, or a convolution on the size that its input really has (padding and strides
    included) together with its batch norm in eval mode. So two dense layers with nothing between
    them count as their product. The activations must be 1-Lipschitz (ReLU, tanh, leaky ReLU,
    pooling by maximum without overlap, ...) and the layers a chain; a network that branches or
    uses another activation has the result "not applicable" with the reason.

    Exact up to rounding: small maps are assembled as matrices, for others the largest singular
    value is computed by Lanczos bidiagonalisation, to a residual of a few rounding errors.
    Independent of the data; unlike a measure of the function it changes when hidden units are
    rescaled.

    Args:
        model: A module in eval mode.
        x: Data; only the shape of one point is used.

    >>> import torch
    >>> net = torch.nn.Linear(2, 2, bias=False).eval()
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> spectral_norm(net, torch.ones(1, 2)).summary().value
    4.0
    """
    probed = probe(model, x)
    try:
        segments = chain(model, x)
    except UnsupportedModelError as error:
        reason = f"the model is not a chain of layers and 1-Lipschitz activations: {error}"
        return NotApplicable(what="spectral_norm", reason=reason)
    like = x.new_zeros(0)
    norms, converged = zip(*(_norm(segment, like) for segment in segments), strict=True)
    return SpectralNorm(
        norms=torch.tensor(norms, dtype=torch.float64),
        layers=tuple(segment.name for segment in segments),
        converged=all(converged),
        outputs=probed.outputs,
    )


def _norm(segment: AffineSegment, like: Tensor) -> tuple[float, bool]:
    """Return the spectral norm of one affine map, and whether it converged."""
    weight = segment.weight()
    if weight is not None and min(weight.shape) <= SMALL:
        return largest_singular_value.of_matrix(weight), True
    if weight is not None:
        return largest_singular_value.of_operator(
            lambda v: weight @ v, lambda u: weight.T @ u, weight[0]
        )
    zero = like.new_zeros(1, *segment.shape)
    inputs, outputs = zero.numel(), segment(zero).numel()
    if min(inputs, outputs) <= SMALL and inputs * outputs <= LARGE:
        return largest_singular_value.of_matrix(_matrix(segment, zero, inputs, outputs)), True
    return largest_singular_value.of_operator(
        lambda v: _products(segment, v[None].reshape(1, *segment.shape))[0],
        lambda u: _transposed_products(segment, zero, u[None])[0],
        zero.reshape(-1),
    )


def _matrix(
    segment: AffineSegment, zero: Tensor, inputs: int, outputs: int
) -> Float[Tensor, "a b"]:
    """Return the matrix of a linear map, by its rows or its columns, whichever are fewer."""
    if outputs <= inputs:
        basis = torch.eye(outputs).to(zero)
        return _transposed_products(segment, zero.expand(outputs, *segment.shape), basis)
    basis = torch.eye(inputs).to(zero)
    return _products(segment, basis.reshape(inputs, *segment.shape)).T


def _products(segment: AffineSegment, vectors: Tensor) -> Float[Tensor, "m outputs"]:
    """Return the products of the linear part of a map with vectors."""
    return directional_derivative(segment, [torch.zeros_like(vectors)], [vectors])[1]


def _transposed_products(
    segment: AffineSegment, zero: Tensor, cotangents: Tensor
) -> Float[Tensor, "m inputs"]:
    """Return the products of the transposed linear part of a map with cotangents."""
    with torch.enable_grad():
        inputs = zero.detach().clone().requires_grad_()
        (products,) = torch.autograd.grad(segment(inputs), inputs, cotangents)
    return products.flatten(1)
