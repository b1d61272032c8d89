"""HSIC of all pairs of layers from kernels of examples, summed over blocks of pairs of examples.

No kernel of all examples is ever held: each block of rows against each later one gives its part of
the sums from which the full-data values follow.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.result import ROUNDING
from inscape.runtime.progress import progress
from inscape.similarity._layers import LayeredNetwork
from inscape.similarity.layer_matrix import empty
from inscape.similarity.linear_alignment import is_rounding, unbiased_hsic


@dataclass(frozen=True, kw_only=True)
class LayerKernel:
    """The kernel of each layer's features: linear, or with ``widths`` the radial basis function.

    Features are moved by ``origins``, near zero, against cancellation.
    """

    origins: list[Tensor]
    widths: Tensor | None

    def block(
        self, x: Float64[Tensor, "n p"], y: Float64[Tensor, "m p"], k: int
    ) -> Float64[Tensor, "n m"]:
        """Return the kernel of two blocks of features of a layer, by its number."""
        x, y = x - self.origins[k], y - self.origins[k]
        if self.widths is None:
            return x @ y.T
        width = float(self.widths[k])
        if not width:  # most examples have equal features
            return x.new_zeros(len(x), len(y))
        return (squared_distances(x / width, y / width) / -2).exp()

    def offset(self, k: int) -> float:
        """Return the part of a kernel's diagonal that moving the features has taken away."""
        return 0.0 if self.widths is not None else float(self.origins[k].square().sum())


@dataclass(frozen=True, kw_only=True)
class Alignments:
    """CKA of each pair of layers, and the mean of the biased form over permuted examples."""

    biased: Float64[Tensor, "k m"]
    debiased: Float64[Tensor, "k m"]
    permuted: Float64[Tensor, "k m"]


class KernelSums:
    """Sums over pairs of examples of the kernels of the layers of two networks.

    ``hollow[a, b]`` is the sum of products of two kernels without their diagonals, ``rows[a]`` the
    row sums of one without its diagonal, ``diagonals[a]`` its diagonal.
    """

    def __init__(self, first: int, second: int, n: int) -> None:
        layers = first + second
        self.first, self.layers, self.n = first, layers, n
        self.hollow = torch.zeros(layers, layers, dtype=torch.float64)
        self.rows = torch.zeros(layers, n, dtype=torch.float64)
        self.diagonals = torch.zeros(layers, n, dtype=torch.float64)

    def add(self, i: slice, j: slice, kernels: list[Tensor]) -> None:
        """Add the kernels of the examples ``i`` with ``j``, which are the same or later ones."""
        same = i.start == j.start
        for a, kernel in enumerate(kernels):
            if same:
                self.diagonals[a, i] = kernel.diagonal()
                kernel.fill_diagonal_(0)
            self.rows[a, i] += kernel.sum(1)
            if not same:
                self.rows[a, j] += kernel.sum(0)
        weight = 1 if same else 2
        for a, b in self._pairs():
            self.hollow[a, b] += weight * torch.vdot(kernels[a].flatten(), kernels[b].flatten())

    def _pairs(self) -> list[tuple[int, int]]:
        own = [(a, a) for a in range(self.layers)]
        return own + [(a, b) for a in range(self.first) for b in range(self.first, self.layers)]

    def alignments(self, kernel: LayerKernel) -> Alignments:
        """Return the alignment of each layer of the first network with each of the second."""
        n, full = self.n, self.rows + self.diagonals
        biased, debiased = torch.zeros_like(self.hollow), torch.zeros_like(self.hollow)
        traces = self.diagonals.sum(1) - full.sum(1) / n
        for a, b in self._pairs():
            products = self.hollow[a, b] + self.diagonals[a] @ self.diagonals[b]
            ends = full[a].sum() * full[b].sum() / n**2
            biased[a, b] = products - 2 / n * (full[a] @ full[b]) + ends
            debiased[a, b] = unbiased_hsic(
                n,
                trace=float(self.hollow[a, b]),
                ones=[float(self.rows[k].sum()) for k in (a, b)],
                between=float(self.rows[a] @ self.rows[b]),
            )
        for a in range(self.layers):
            if is_rounding(n, float(debiased[a, a]), float(biased[a, a])):
                debiased[a, a] = math.nan
        self._forget_constants(biased, kernel)
        return Alignments(
            biased=self._ratios(biased),
            debiased=self._ratios(debiased),
            permuted=self._ratios(torch.outer(traces, traces) / (n - 1), biased),
        )

    def _forget_constants(self, biased: Tensor, kernel: LayerKernel) -> None:
        """Set the size of kernels that vary by no more than rounding to NaN."""
        for a in range(self.layers):
            size = float(self.diagonals[a].sum()) + self.n * kernel.offset(a)
            if math.sqrt(max(0.0, float(biased[a, a]))) <= ROUNDING**2 * size:
                biased[a, a] = math.nan

    def _ratios(self, products: Tensor, own: Tensor | None = None) -> Tensor:
        own = products if own is None else own
        ratios = empty(self.first, self.layers - self.first)
        for a in range(self.first):
            for b in range(self.first, self.layers):
                norms = float(own[a, a]) * float(own[b, b])
                if norms > 0:
                    ratios[a, b - self.first] = float(products[a, b]) / math.sqrt(norms)
        return ratios


def alignments(
    first: LayeredNetwork, second: LayeredNetwork, rows: int, kernel: LayerKernel
) -> Alignments:
    """Return the alignments of all pairs of layers, with blocks of at most so many examples.

    Features are computed again for each pair of blocks where more than one is needed.
    """
    n = len(first.x)
    blocks = [slice(at, min(at + rows, n)) for at in range(0, n, rows)]
    sums = KernelSums(len(first.names), len(second.names), n)
    with progress(len(blocks) * (len(blocks) + 1) // 2, label="pairs of blocks") as bar:
        for place, i in enumerate(blocks):
            left = block_features(first, second, i)
            for j in blocks[place:]:
                right = left if j is i else block_features(first, second, j)
                both = zip(left, right, strict=True)
                parts = [kernel.block(x, y, k) for k, (x, y) in enumerate(both)]
                sums.add(i, j, parts)
                bar.advance(1)
    return sums.alignments(kernel)


def block_features(
    first: LayeredNetwork, second: LayeredNetwork, rows: slice
) -> list[Float64[Tensor, "n p"]]:
    """Return the features of some examples in all layers of both networks."""
    return [part for net in (first, second) for part in net.features(net.x[rows])]


def squared_distances(
    x: Float64[Tensor, "n p"], y: Float64[Tensor, "m p"]
) -> Float64[Tensor, "n m"]:
    """Return the squared distances between two sets of points near zero."""
    squares = x.square().sum(1)[:, None] + y.square().sum(1)
    return torch.addmm(squares, x, y.T, alpha=-2).clamp_min_(0)
