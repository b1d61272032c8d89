"""Covariance functions of Gaussian processes: RBF, and the tangent kernel of a network."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core.precision import converted_copy
from inscape.errors import UnsupportedModelError
from inscape.kernels.tangent_kernel import TangentKernel, tangent_kernel


@dataclass(frozen=True, kw_only=True)
class Rbf:
    r"""Radial basis function kernel, :math:`\exp(-|x - z|^2 / 2 \ell^2)`."""

    length_scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.length_scale > 0:
            raise ValueError(
                f"length_scale must be positive, found {self.length_scale}: raise length_scale."
            )

    def matrix(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n n"]:
        """Return the kernel matrix of one set of samples."""
        return _rbf(squared_distances(x, x), self.length_scale)

    def between(self, x: Float[Tensor, "n *d"], z: Float[Tensor, "m *d"]) -> Float64[Tensor, "n m"]:
        """Return the kernel matrix between two sets of samples."""
        return _rbf(squared_distances(x, z), self.length_scale)

    def diagonal(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, " n"]:
        """Return ones."""
        return torch.ones(len(x), dtype=torch.float64, device=x.device)


@dataclass(frozen=True, eq=False)
class Tangent:
    """The empirical tangent kernel of a network, its trace over the outputs.

    Evaluated on a copy of the network in float64.
    """

    model: nn.Module

    def matrix(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n n"]:
        """Return the kernel matrix of one set of samples."""
        return self._kernel(x, None).kernel

    def between(self, x: Float[Tensor, "n *d"], z: Float[Tensor, "m *d"]) -> Float64[Tensor, "n m"]:
        """Return the kernel matrix between two sets of samples."""
        return self._kernel(x, z.double()).kernel

    def diagonal(self, x: Float[Tensor, "n *d"]) -> Float64[Tensor, " n"]:
        """Return the squared gradient norms."""
        return self._kernel(x, x[:1].double()).gradient_norms.square()

    def _kernel(self, x: Tensor, z: Tensor | None) -> TangentKernel:
        body = converted_copy(self.model, torch.float64)
        result = tangent_kernel(body, x.double(), others=z, outputs="trace", projections=0)
        if not isinstance(result, TangentKernel):
            raise UnsupportedModelError(
                f"a tangent kernel needs trainable parameters, found that {result.reason}: "
                "set requires_grad, or use another kernel."
            )
        return result


def squared_distances(x: Float[Tensor, "n *d"], z: Float[Tensor, "m *d"]) -> Float64[Tensor, "n m"]:
    """Return squared distances, computed from differences: no cancellation for near points."""
    left, right = x.flatten(1).double(), z.flatten(1).double()
    distances: Tensor = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.square_()


def _rbf(squares: Float64[Tensor, "n m"], length_scale: float) -> Float64[Tensor, "n m"]:
    return squares.mul_(-0.5 / length_scale**2).exp_()
