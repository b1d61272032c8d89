"""Weights held at a norm: the largest singular value, or the length of each row."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from inscape.controls.layers import Held, Layer, M, held_everywhere


class SpectralScale(Held):
    """Weights whose largest singular value is always the same."""

    def __init__(self, target: float) -> None:
        super().__init__()
        self.target = target

    def extra_repr(self) -> str:
        """Return the norm."""
        return f"target={self.target:.4g}"

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weights, scaled; exact, with an exact gradient."""
        matrix = weight.flatten(1)
        with torch.no_grad():
            left, right = _leading(matrix)
        return weight * (self.target / torch.dot(left, matrix @ right))


class RowScale(Held):
    """Weights whose rows, one for each output, all have the same length."""

    def __init__(self, target: float) -> None:
        super().__init__()
        self.target = target

    def extra_repr(self) -> str:
        """Return the length."""
        return f"target={self.target:.4g}"

    def forward(self, weight: Tensor) -> Tensor:
        """Return the weights, scaled."""
        return (self.target * normalize(weight.flatten(1), dim=1)).view_as(weight)


def spectral_scale(module: M, norm: float | Sequence[float]) -> M:
    r"""Hold the largest singular value of each layer's weights.

    .. math:: \tilde W = W \, \frac{\rho}{\lVert W \rVert_2}

    Then the network's Lipschitz constant is at most the product of the norms (with 1-Lipschitz
    activations and dense layers). For convolutions W is the matrix of one row per output channel,
    whose norm bounds that of the convolution up to the root of the kernel's size. Exact at every
    step, by a decomposition of the smaller Gram matrix; :func:`release` makes plain layers of it.

    >>> net = spectral_scale(torch.nn.Linear(3, 5), 2.0)
    >>> round(torch.linalg.matrix_norm(net.weight.detach(), 2).item(), 5)
    2.0

    Args:
        module: A Linear or Conv layer, or a model; changed in place, and returned.
        norm: Largest singular value, for all layers or for each.
    """

    def made(layer: Layer, one: float, place: str) -> dict[str, Held]:
        _refuse_zero(layer.weight, f"weights of {place}", rows=False)
        return {"weight": SpectralScale(one)}

    return held_everywhere(module, norm, "norm", made)


def row_scale(module: M, norm: float | Sequence[float]) -> M:
    r"""Hold the length of the weights of each output of each layer.

    .. math:: \tilde w_i = w_i \, \frac{\rho}{\lVert w_i \rVert}

    Every unit then has the same steepness. :func:`release` makes plain layers of it.

    >>> net = row_scale(torch.nn.Linear(3, 5), 2.0)
    >>> [round(length, 5) for length in net.weight.norm(dim=1).tolist()]
    [2.0, 2.0, 2.0, 2.0, 2.0]

    Args:
        module: A Linear or Conv layer, or a model; changed in place, and returned.
        norm: Length of a row, for all layers or for each.
    """

    def made(layer: Layer, one: float, place: str) -> dict[str, Held]:
        _refuse_zero(layer.weight, f"weights of {place}", rows=True)
        return {"weight": RowScale(one)}

    return held_everywhere(module, norm, "norm", made)


def _leading(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the singular vectors of the largest singular value."""
    tall = matrix.shape[0] > matrix.shape[1]
    wide = matrix.T if tall else matrix
    _, vectors = torch.linalg.eigh((wide @ wide.T).double())
    left = vectors[:, -1].to(matrix.dtype)
    right = normalize(wide.T @ left, dim=0)
    left = normalize(wide @ right, dim=0)
    return (right, left) if tall else (left, right)


@torch.no_grad()
def _refuse_zero(weight: Tensor, what: str, *, rows: bool) -> None:
    sizes = weight.flatten(1).norm(dim=1)
    if not bool(sizes.isfinite().all()):
        raise ValueError(
            f"the {what} must be finite, found NaN or Inf: load an earlier checkpoint."
        )
    if not bool((sizes > 0).all() if rows else (sizes > 0).any()):
        raise ValueError(
            f"the {what} must not be zero, found {'a row' if rows else 'nothing else'}: draw them "
            "at random first."
        )
