"""A block of a kernel: inner products of two sets of gradients, added up over the parameters.

Rows of gradients lie output after output, or point after point, as their factors make them; both
have a matrix of their own, and their sum is the block.
"""

import itertools
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from inscape.kernels.tangent.factored_gradients import PIECE, Factor, Outer, Places, Table, Written

#: Numbers of a tile of places at most.
TILE = 2**20

#: Numbers of a gradient below which it waits for others.
SHORT = 256

#: Rows below which a symmetric product is taken whole.
LEAF = 80

#: Cost of a number of a tile, of one of a gradient, and of a pair of places, in multiplications.
TILED, STORED, PAIRED = 22, 45, 4000


class Block:
    """Inner products of the gradients of some rows r at points n, and q at m.

    Its axes are ``r, n, q, m`` for all pairs of outputs, ``r, n, m`` for equal ones (rows are the
    same then), else ``n, m``. Where both sets are the ``same`` only half is computed.
    """

    def __init__(
        self,
        outputs: str,
        left: tuple[int, int],
        right: tuple[int, int],
        *,
        same: bool,
        like: Tensor,
    ) -> None:
        (r, n), (q, m) = left, right
        shape = {"full": (r, n, q, m), "diagonal": (r, n, m), "trace": (n, m)}[outputs]
        self._outputs, self._same = outputs, same
        self._left, self._right = left, right
        self._rows = like.new_zeros(shape)
        self._points: Tensor | None = None
        self._short: list[tuple[Tensor, Tensor]] = []
        self._buffer = like.new_empty(0)

    def add(self, f: Factor, h: Factor, piece: int = PIECE) -> str:
        """Add the inner products of two factors of one type, and return how they were taken."""
        if isinstance(f, Places) and isinstance(h, Places):
            f, h = _at_living_places(f, h)
        if isinstance(f, Outer) and isinstance(h, Outer):
            self._add_outer(f, h)
            return "outer product"
        if isinstance(f, Table) and isinstance(h, Table):
            form = self._table_form(f, h)
            if form == "pairs":
                self._add_pairs(f, h)
            elif form == "tiles":
                self._add_tiles(f, h)
            if form != "pieces":
                return "sum over places"
        elif isinstance(f, Places) and isinstance(h, Places) and self._tiles_cost_less(f, h):
            self._add_tiles(f, h)
            return "sum over places"
        assert not isinstance(f, Outer)
        assert not isinstance(h, Outer)
        for one, two in _side_by_side(f, h, piece):
            if one.shape[2] < SHORT:
                self._short.append((one, two))
            else:
                self._add_written(one, two)
        return "written out"

    def total(self) -> Tensor:
        """Return the block."""
        if self._short:  # those of biases and normalisations, all together
            one, two = (torch.cat(parts, dim=2) for parts in zip(*self._short, strict=True))
            self._add_written(one, one if self._same else two)
        if self._same and self._outputs == "full":
            for part in (self._rows, self._points):
                if part is not None:
                    _mirror(part.view(len(part) * part.shape[1], -1))
        elif self._same and self._outputs == "trace":
            _mirror(self._rows)
        if self._points is not None:
            self._rows += self._points.permute(1, 0, 3, 2)
        return self._rows

    def _add_outer(self, f: Outer, h: Outer) -> None:
        """Add the product of both Gram matrices; one of them is a number where all are alike."""
        gram = f.gram(h)
        if self._outputs == "trace":
            left, right = (part.g.transpose(0, 1).flatten(1) for part in (f, h))
            self._rows.addcmul_(left @ right.T, gram)
            return
        for i in range(len(f.g)):
            js = slice(i, i + 1 if self._outputs == "diagonal" else None)
            if not self._same and self._outputs == "full":
                js = slice(None)
            into = self._rows[i][:, None] if self._outputs == "diagonal" else self._rows[i, :, js]
            if f.alike is None or h.alike is None:
                into.addcmul_(self._tile(f.g[i], h.g[js]), gram[:, None])
                continue
            for k, inner in enumerate((h.alike[js] @ f.alike[i]).tolist()):
                if inner:
                    into[:, k].add_(gram, alpha=inner)

    def _tile(
        self, rows: Float[Tensor, "n p"], columns: Float[Tensor, "s m p"]
    ) -> Float[Tensor, "n s m"]:
        """Return the inner products of rows and columns, in memory that is used again."""
        s, m, p = columns.shape
        self._buffer.resize_(len(rows) * s * m)
        tile = self._buffer.view(len(rows), s * m)
        return torch.mm(rows, columns.reshape(s * m, p).T, out=tile).view(len(rows), s, m)

    def _add_written(self, one: Float[Tensor, "r n p"], two: Float[Tensor, "q m p"]) -> None:
        points_outside = one.stride(1) > one.stride(0)
        if self._outputs == "diagonal":
            self._rows += torch.bmm(one, two.transpose(1, 2))
        elif self._outputs == "trace":
            left, right = (j.transpose(0, 1).flatten(1) for j in (one, two))
            self._product(self._rows, left, right)
        elif points_outside:
            (r, n), (q, m) = self._left, self._right
            if self._points is None:
                self._points = self._rows.new_zeros(n, r, m, q)
            left, right = (j.transpose(0, 1).flatten(0, 1) for j in (one, two))
            self._product(self._points.view(n * r, m * q), left, right)
        else:
            left, right = (j.flatten(0, 1) for j in (one, two))
            self._product(self._rows.view(len(left), len(right)), left, right)

    def _product(self, into: Tensor, left: Tensor, right: Tensor) -> None:
        """Add the products of all rows; where both are the same, on and above the diagonal."""
        if not self._same or len(left) <= LEAF:
            # Not by addmm: it would round each part of a long sum to the digits of the whole.
            into.add_(self._tile(left, right[None])[:, 0])
            return
        half = len(left) // 2
        into[:half, half:].add_(self._tile(left[:half], left[None, half:])[:, 0])
        for part in (slice(None, half), slice(half, None)):
            self._product(into[part, part], left[part], left[part])

    def _add_tiles(self, f: Places | Table, h: Places | Table) -> None:
        """Add sums over pairs of places, a few points at a time."""
        (_, n), (_, m) = self._left, self._right
        left, right = f.back, h.back
        if self._outputs == "trace":
            left, right = (g.transpose(0, 1).flatten(1)[None] for g in (left, right))
        t, s = left.shape[1] // n, right.shape[1] // m
        wide = max(1, min(m, TILE // (t * s)))
        rows = max(1, TILE // (wide * t * s))
        for start, first in itertools.product(range(0, n, rows), range(0, m, wide)):
            some, others = slice(start, start + rows), slice(first, first + wide)
            inner = f.inner(h, some, others)  # type: ignore[arg-type]
            one = left[:, start * t : (start + rows) * t]
            two = right[:, first * s : (first + wide) * s]
            for i, row in enumerate(one):
                js = self._columns(i)
                for k, column in zip(range(len(two))[js], two[js], strict=True):
                    tile = torch.mm(row, column.T).mul_(inner)
                    sums = tile.view(-1, t, len(column)).sum(1).view(-1, len(column) // s, s).sum(2)
                    self._entry(i, k)[some, others] += sums

    def _columns(self, i: int) -> slice:
        if self._outputs == "full":
            return slice(i if self._same else 0, None)
        return slice(i, i + 1)

    def _entry(self, i: int, k: int) -> Tensor:
        if self._outputs == "full":
            return self._rows[i, :, k]
        return self._rows if self._outputs == "trace" else self._rows[i]

    def _add_pairs(self, f: Table, h: Table) -> None:
        """Add the inner products of those places that take the same row of a table."""
        (r, n), (q, m) = self._left, self._right
        one, two = _meetings(f.ids.flatten(), h.ids.flatten())
        left, right = (g.back.transpose(0, 1) for g in (f, h))
        count = max(1, TILE // (max(r, q) * (left.shape[2] + max(r, q))))
        t, s = f.ids.shape[1], h.ids.shape[1]
        sums = self._rows.new_zeros(n * m, *((r, q) if self._outputs == "full" else (r,)))
        for a, b in zip(torch.split(one, count), torch.split(two, count), strict=True):
            if self._outputs == "full":
                parts = torch.bmm(left[a], right[b].transpose(1, 2))
            else:
                parts = (left[a] * right[b]).sum(2)
            sums.index_add_(0, (a // t) * m + b // s, parts)
        if self._outputs == "full":
            self._rows += sums.view(n, m, r, q).permute(2, 0, 3, 1)
        elif self._outputs == "diagonal":
            self._rows += sums.view(n, m, r).permute(2, 0, 1)
        else:
            self._rows += sums.view(n, m, r).sum(2)

    def _tiles_cost_less(self, f: Places, h: Places) -> bool:
        """Tell whether Gram matrices of places cost less than gradients written out."""
        (r, n), (q, m) = self._left, self._right
        i, (_, o, t), s = f.a.shape[1], f.g[0].shape, h.g[0].shape[2]
        if f.groups > 1:
            return False
        pairs = r * q if self._outputs == "full" else r
        tiled = n * t * m * s * (i + pairs * o + TILED * (1 if self._outputs == "trace" else pairs))
        return tiled / (1 + self._same) < self._written_cost(i * o, t)

    def _written_cost(self, size: int, places: int) -> float:
        (r, n), (q, m) = self._left, self._right
        pairs = r * q if self._outputs == "full" else r
        rows = n * r if self._same else n * r + m * q
        return size * (rows * (places + STORED) + n * m * pairs / (1 + self._same))

    def _table_form(self, f: Table, h: Table) -> str:
        """Return which form of a table's gradients costs least."""
        (r, n), (q, m) = self._left, self._right
        (t, o), s = f.g.shape[2:], h.g.shape[2]
        pairs = r * q if self._outputs == "full" else r
        met = torch.bincount(f.ids.flatten(), minlength=f.rows).double()
        met = met @ torch.bincount(h.ids.flatten(), minlength=h.rows).double()
        costs = {
            "pieces": self._written_cost(f.rows * o, 1),
            "pairs": float(met) * (pairs * o + PAIRED),
            "tiles": n * t * m * s * (1 + pairs * (o + TILED)) / (1 + self._same),
        }
        return min(costs, key=lambda form: costs[form])


def _at_living_places(f: Places, h: Places) -> tuple[Outer | Places, Outer | Places]:
    """Leave out the places at which nothing comes back in either."""
    places = (f.alive | h.alive).nonzero().flatten()
    if f.groups > 1 or not 0 < len(places) < len(f.alive):
        return f, h
    one = f.at(places)
    return one, one if f is h else h.at(places)


def _side_by_side(
    f: Places | Table | Written, h: Places | Table | Written, piece: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the pieces of two factors, which may be one and the same."""
    if f is h:
        yield from ((j, j) for j in f.pieces(piece))
    else:
        yield from zip(f.pieces(piece), h.pieces(piece), strict=True)


def _meetings(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs of places at which two rows of numbers are equal."""
    ordered, places = two.sort(stable=True)
    first = torch.searchsorted(ordered, one)
    counts = torch.searchsorted(ordered, one, right=True) - first
    left = torch.arange(len(one), device=one.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    within = torch.arange(len(left), device=one.device) - before.repeat_interleave(counts)
    return left, places[first.repeat_interleave(counts) + within]


def _mirror(matrix: Float[Tensor, "k k"], size: int = 512) -> None:
    """Copy what is above the diagonal to below it."""
    for first in range(0, len(matrix), size):
        last = min(first + size, len(matrix))
        own = matrix[first:last, first:last]
        own.copy_(own.triu() + own.triu(1).T)
        matrix[last:, first:last] = matrix[first:last, last:].T
