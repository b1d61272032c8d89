"""A block of a tangent kernel: inner products of two sets of gradients, summed over parameters.

Dense gradients are stored with outputs or with samples as the outer axis. Each layout has its own
accumulator, and their sum is the block.
"""

import itertools
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from inscape.kernels.tangent.factored_gradients import (
    BLOCK_BYTES,
    DenseGradient,
    EmbeddingGradient,
    OuterProduct,
    OuterProductSum,
    ParameterGradient,
)

#: Largest number of entries of a tile of positions.
TILE = 2**20

#: Gradients with fewer entries are concatenated before they are multiplied.
SMALL = 256

#: Number of gradients below which a symmetric product is not split further.
LEAF = 80

#: Cost of an entry of a tile, of a dense gradient, and of a pair of positions, in multiplications.
TILED, STORED, PAIRED = 22, 45, 4000


class KernelBlock:
    """Inner products of the gradients of outputs r at samples n with those of q at samples m.

    Its axes are ``r, n, q, m`` for all pairs of outputs, ``r, n, m`` for equal ones, ``n, m`` for
    the trace. Where both sets are the same (``symmetric``) only half is computed.
    """

    def __init__(
        self,
        outputs: str,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        *,
        symmetric: bool,
        like: Tensor,
    ) -> None:
        (r, n), (q, m) = left_shape, right_shape
        shape = {"full": (r, n, q, m), "diagonal": (r, n, m), "trace": (n, m)}[outputs]
        self._outputs, self._symmetric = outputs, symmetric
        self._left_shape, self._right_shape = left_shape, right_shape
        self._by_output = like.new_zeros(shape)
        self._by_sample: Tensor | None = None
        self._short: list[tuple[Tensor, Tensor]] = []
        self._buffer = like.new_empty(0)

    def add(
        self, f: ParameterGradient, h: ParameterGradient, block_bytes: int = BLOCK_BYTES
    ) -> str:
        """Add the inner products of two gradients of one type, and return the method used."""
        if isinstance(f, OuterProductSum) and isinstance(h, OuterProductSum):
            f, h = _at_active_positions(f, h)
        if isinstance(f, OuterProduct) and isinstance(h, OuterProduct):
            self._add_outer(f, h)
            return "outer product"
        if isinstance(f, EmbeddingGradient) and isinstance(h, EmbeddingGradient):
            form = self._cheapest_form(f, h)
            if form == "pairs":
                self._add_pairs(f, h)
            elif form == "tiles":
                self._add_tiles(f, h)
            if form != "dense":
                return "sum over positions"
        elif (
            isinstance(f, OuterProductSum)
            and isinstance(h, OuterProductSum)
            and self._tiles_cost_less(f, h)
        ):
            self._add_tiles(f, h)
            return "sum over positions"
        assert not isinstance(f, OuterProduct)
        assert not isinstance(h, OuterProduct)
        for left_block, right_block in _paired_blocks(f, h, block_bytes):
            if left_block.shape[2] < SMALL:
                self._short.append((left_block, right_block))
            else:
                self._add_dense(left_block, right_block)
        return "dense gradient"

    def total(self) -> Tensor:
        """Return the block."""
        if self._short:  # biases and normalisations, concatenated
            left, right = (torch.cat(parts, dim=2) for parts in zip(*self._short, strict=True))
            self._add_dense(left, left if self._symmetric else right)
        if self._symmetric and self._outputs == "full":
            for part in (self._by_output, self._by_sample):
                if part is not None:
                    _mirror(part.view(len(part) * part.shape[1], -1))
        elif self._symmetric and self._outputs == "trace":
            _mirror(self._by_output)
        if self._by_sample is not None:
            self._by_output += self._by_sample.permute(1, 0, 3, 2)
        return self._by_output

    def _add_outer(self, f: OuterProduct, h: OuterProduct) -> None:
        """Add the product of both Gram matrices, one of them a scalar for a common cotangent."""
        gram = f.gram(h)
        if self._outputs == "trace":
            left, right = (part.g.transpose(0, 1).flatten(1) for part in (f, h))
            self._by_output.addcmul_(left @ right.T, gram)
            return
        for i in range(len(f.g)):
            js = slice(i, i + 1 if self._outputs == "diagonal" else None)
            if not self._symmetric and self._outputs == "full":
                js = slice(None)
            target = (
                self._by_output[i][:, None]
                if self._outputs == "diagonal"
                else self._by_output[i, :, js]
            )
            if f.common_cotangent is None or h.common_cotangent is None:
                target.addcmul_(self._tile(f.g[i], h.g[js]), gram[:, None])
                continue
            for k, inner in enumerate((h.common_cotangent[js] @ f.common_cotangent[i]).tolist()):
                if inner:
                    target[:, k].add_(gram, alpha=inner)

    def _tile(
        self, rows: Float[Tensor, "n p"], columns: Float[Tensor, "s m p"]
    ) -> Float[Tensor, "n s m"]:
        """Return the inner products of rows and columns, in a reused buffer."""
        s, m, p = columns.shape
        self._buffer.resize_(len(rows) * s * m)
        tile = self._buffer.view(len(rows), s * m)
        return torch.mm(rows, columns.reshape(s * m, p).T, out=tile).view(len(rows), s, m)

    def _add_dense(
        self, left_gradients: Float[Tensor, "r n p"], right_gradients: Float[Tensor, "q m p"]
    ) -> None:
        samples_outside = left_gradients.stride(1) > left_gradients.stride(0)
        if self._outputs == "diagonal":
            self._by_output += torch.bmm(left_gradients, right_gradients.transpose(1, 2))
        elif self._outputs == "trace":
            left, right = (j.transpose(0, 1).flatten(1) for j in (left_gradients, right_gradients))
            self._product(self._by_output, left, right)
        elif samples_outside:
            (r, n), (q, m) = self._left_shape, self._right_shape
            if self._by_sample is None:
                self._by_sample = self._by_output.new_zeros(n, r, m, q)
            left, right = (
                j.transpose(0, 1).flatten(0, 1) for j in (left_gradients, right_gradients)
            )
            self._product(self._by_sample.view(n * r, m * q), left, right)
        else:
            left, right = (j.flatten(0, 1) for j in (left_gradients, right_gradients))
            self._product(self._by_output.view(len(left), len(right)), left, right)

    def _product(self, target: Tensor, left: Tensor, right: Tensor) -> None:
        """Add the products of all rows; for a symmetric block, on and above the diagonal."""
        if not self._symmetric or len(left) <= LEAF:
            # Not by addmm, which would round every term to the precision of the running sum.
            target.add_(self._tile(left, right[None])[:, 0])
            return
        half = len(left) // 2
        target[:half, half:].add_(self._tile(left[:half], left[None, half:])[:, 0])
        for part in (slice(None, half), slice(half, None)):
            self._product(target[part, part], left[part], left[part])

    def _add_tiles(
        self, f: OuterProductSum | EmbeddingGradient, h: OuterProductSum | EmbeddingGradient
    ) -> None:
        """Add sums over pairs of positions, a few samples at a time."""
        (_, n), (_, m) = self._left_shape, self._right_shape
        left, right = f.cotangents, h.cotangents
        if self._outputs == "trace":
            left, right = (g.transpose(0, 1).flatten(1)[None] for g in (left, right))
        t, s = left.shape[1] // n, right.shape[1] // m
        width = max(1, min(m, TILE // (t * s)))
        height = max(1, TILE // (width * t * s))
        for left_start, right_start in itertools.product(range(0, n, height), range(0, m, width)):
            left_samples, right_samples = (
                slice(left_start, left_start + height),
                slice(right_start, right_start + width),
            )
            inner = f.inner(h, left_samples, right_samples)  # type: ignore[arg-type]
            left_tile = left[:, left_start * t : (left_start + height) * t]
            right_tile = right[:, right_start * s : (right_start + width) * s]
            for i, left_output in enumerate(left_tile):
                js = self._columns(i)
                for k, right_output in zip(range(len(right_tile))[js], right_tile[js], strict=True):
                    tile = torch.mm(left_output, right_output.T).mul_(inner)
                    sums = (
                        tile.view(-1, t, len(right_output))
                        .sum(1)
                        .view(-1, len(right_output) // s, s)
                        .sum(2)
                    )
                    self._entry(i, k)[left_samples, right_samples] += sums

    def _columns(self, i: int) -> slice:
        if self._outputs == "full":
            return slice(i if self._symmetric else 0, None)
        return slice(i, i + 1)

    def _entry(self, i: int, k: int) -> Tensor:
        if self._outputs == "full":
            return self._by_output[i, :, k]
        return self._by_output if self._outputs == "trace" else self._by_output[i]

    def _add_pairs(self, f: EmbeddingGradient, h: EmbeddingGradient) -> None:
        """Add the inner products of positions with equal token ids."""
        (r, n), (q, m) = self._left_shape, self._right_shape
        left_positions, right_positions = _equal_ids(f.ids.flatten(), h.ids.flatten())
        left_cotangents, right_cotangents = (g.cotangents.transpose(0, 1) for g in (f, h))
        count = max(1, TILE // (max(r, q) * (left_cotangents.shape[2] + max(r, q))))
        t, s = f.ids.shape[1], h.ids.shape[1]
        sums = self._by_output.new_zeros(n * m, *((r, q) if self._outputs == "full" else (r,)))
        for a, b in zip(
            torch.split(left_positions, count), torch.split(right_positions, count), strict=True
        ):
            if self._outputs == "full":
                parts = torch.bmm(left_cotangents[a], right_cotangents[b].transpose(1, 2))
            else:
                parts = (left_cotangents[a] * right_cotangents[b]).sum(2)
            sums.index_add_(0, (a // t) * m + b // s, parts)
        if self._outputs == "full":
            self._by_output += sums.view(n, m, r, q).permute(2, 0, 3, 1)
        elif self._outputs == "diagonal":
            self._by_output += sums.view(n, m, r).permute(2, 0, 1)
        else:
            self._by_output += sums.view(n, m, r).sum(2)

    def _tiles_cost_less(self, f: OuterProductSum, h: OuterProductSum) -> bool:
        """Return whether Gram matrices over positions cost less than dense gradients."""
        (r, n), (q, m) = self._left_shape, self._right_shape
        i, (_, o, t), s = f.a.shape[1], f.g[0].shape, h.g[0].shape[2]
        if f.groups > 1:
            return False
        pairs = r * q if self._outputs == "full" else r
        tiled = n * t * m * s * (i + pairs * o + TILED * (1 if self._outputs == "trace" else pairs))
        return tiled / (1 + self._symmetric) < self._dense_cost(i * o, t)

    def _dense_cost(self, size: int, positions: int) -> float:
        (r, n), (q, m) = self._left_shape, self._right_shape
        pairs = r * q if self._outputs == "full" else r
        gradients = n * r if self._symmetric else n * r + m * q
        return size * (gradients * (positions + STORED) + n * m * pairs / (1 + self._symmetric))

    def _cheapest_form(self, f: EmbeddingGradient, h: EmbeddingGradient) -> str:
        """Return the cheapest form of the gradients of an embedding."""
        (r, n), (q, m) = self._left_shape, self._right_shape
        (t, o), s = f.g.shape[2:], h.g.shape[2]
        pairs = r * q if self._outputs == "full" else r
        matches = torch.bincount(f.ids.flatten(), minlength=f.rows).double()
        matches = matches @ torch.bincount(h.ids.flatten(), minlength=h.rows).double()
        costs = {
            "dense": self._dense_cost(f.rows * o, 1),
            "pairs": float(matches) * (pairs * o + PAIRED),
            "tiles": n * t * m * s * (1 + pairs * (o + TILED)) / (1 + self._symmetric),
        }
        return min(costs, key=lambda form: costs[form])


def _at_active_positions(
    f: OuterProductSum, h: OuterProductSum
) -> tuple[OuterProduct | OuterProductSum, OuterProduct | OuterProductSum]:
    """Drop the positions at which the cotangents of both vanish."""
    positions = (f.active_positions | h.active_positions).nonzero().flatten()
    if f.groups > 1 or not 0 < len(positions) < len(f.active_positions):
        return f, h
    restricted = f.at(positions)
    return restricted, restricted if f is h else h.at(positions)


def _paired_blocks(
    f: OuterProductSum | EmbeddingGradient | DenseGradient,
    h: OuterProductSum | EmbeddingGradient | DenseGradient,
    block_bytes: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield dense blocks of two gradients, which may be the same object."""
    if f is h:
        yield from ((j, j) for j in f.dense_blocks(block_bytes))
    else:
        yield from zip(f.dense_blocks(block_bytes), h.dense_blocks(block_bytes), strict=True)


def _equal_ids(left_ids: Tensor, right_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs of positions with equal ids."""
    sorted_ids, order = right_ids.sort(stable=True)
    first = torch.searchsorted(sorted_ids, left_ids)
    counts = torch.searchsorted(sorted_ids, left_ids, right=True) - first
    left_positions = torch.arange(len(left_ids), device=left_ids.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    within = torch.arange(len(left_positions), device=left_ids.device) - before.repeat_interleave(
        counts
    )
    return left_positions, order[first.repeat_interleave(counts) + within]


def _mirror(matrix: Float[Tensor, "k k"], size: int = 512) -> None:
    """Copy the upper triangle to the lower one."""
    for first in range(0, len(matrix), size):
        last = min(first + size, len(matrix))
        diagonal_block = matrix[first:last, first:last]
        diagonal_block.copy_(diagonal_block.triu() + diagonal_block.triu(1).T)
        matrix[last:, first:last] = matrix[first:last, last:].T
