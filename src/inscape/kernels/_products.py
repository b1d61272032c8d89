"""Inner products of two sets of gradients, added up over the parameters, block after block.

Rows of gradients are kept output after output, so that a block of the kernel is a matrix product
times a Gram matrix of the points that is the same for all outputs.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core.progress import progress
from inscape.kernels._factors import Outer, Spread, Tangents, Written, paired, tangents
from inscape.kernels._inputs import numbers_like

#: Points of a block at most: larger tiles gain nothing.
MOST = 512

#: Numbers of a tile of places at most.
TILE = 2**23


@dataclass(frozen=True, eq=False, kw_only=True)
class Filled:
    """A kernel and the squared lengths of the gradients of both sets of points.

    Its axes are ``i, n, j, m`` for all pairs of outputs, ``i, n, m`` for equal ones, else ``n, m``;
    those of the squares ``i, n``, or ``n`` alone for all outputs together.
    """

    kernel: Tensor
    squares: tuple[Float[Tensor, "*r n"], Float[Tensor, "*r m"]]
    ways: tuple[tuple[str, str], ...]


def filled(
    model: nn.Module, x: Tensor, others: Tensor | None, *, outputs: str, count: int, rows: int
) -> Filled:
    """Return the kernel of all points; ``rows`` of them have their gradients in memory at once."""
    columns = x if others is None else others
    shapes = {
        "full": (count, len(x), count, len(columns)),
        "diagonal": (count, len(x), len(columns)),
        "trace": (len(x), len(columns)),
    }
    like = numbers_like(model, x)
    kernel = like.new_empty(shapes[outputs])
    squares = [like.new_zeros(count, len(x)), like.new_zeros(count, len(columns))]
    pairs = list(_pairs(len(x), len(columns), rows, symmetric=others is None))
    here: tuple[slice, Tangents] | None = None
    ways: dict[str, str] = {}
    with progress(len(pairs), label="multiplying gradients") as bar:
        for one, two in pairs:
            if here is None or here[0] != one:
                here = one, tangents(model, x[one])
            same = others is None and one == two
            there = here[1] if same else tangents(model, columns[two])
            ways.update(here[1].ways + there.ways)
            block = _block(kernel, outputs, one, two)
            fill(block, here[1], there, outputs=outputs, same=same)
            if others is None and not same:
                _block(kernel, outputs, two, one).copy_(_turned(block, outputs))
            elif others is not None:
                squares[0][:, one], squares[1][:, two] = here[1].squares, there.squares
            bar.advance(1)
    lengths = [s.sum(0) if outputs == "trace" else s for s in squares]
    if others is None:
        lengths = [_own(kernel, outputs)] * 2
    return Filled(kernel=kernel, squares=(lengths[0], lengths[1]), ways=tuple(ways.items()))


def _own(kernel: Tensor, outputs: str) -> Tensor:
    """Return the squared lengths that stand on the diagonal of a kernel of one set of points."""
    if outputs == "full":
        return kernel.diagonal(dim1=1, dim2=3).diagonal(dim1=0, dim2=1).T.clone()
    return kernel.diagonal(dim1=-2, dim2=-1).clone()


def _pairs(n: int, m: int, rows: int, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    ones, twos = _slices(n, rows), _slices(m, rows)
    for k, one in enumerate(ones):
        for two in twos[k:] if symmetric else twos:
            yield one, two


def _slices(n: int, rows: int) -> list[slice]:
    pieces = -(-n // min(rows, MOST))
    cuts = [n * k // pieces for k in range(pieces + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def _block(kernel: Tensor, outputs: str, one: slice, two: slice) -> Tensor:
    if outputs == "full":
        return kernel[:, one, :, two]
    return kernel[:, one, two] if outputs == "diagonal" else kernel[one, two]


def _turned(block: Tensor, outputs: str) -> Tensor:
    return block.permute(2, 3, 0, 1) if outputs == "full" else block.transpose(-1, -2)


def fill(
    out: Tensor, one: Tangents, two: Tangents, *, outputs: str = "full", same: bool = False
) -> None:
    """Write the inner products of two sets of gradients to a block of a kernel.

    Args:
        out: Block of the kernel, as in :class:`Filled`.
        one: Gradients of the rows.
        two: Gradients of the columns.
        outputs: Which pairs of outputs.
        same: Whether both are one set: then only half of the pairs of outputs is computed.
    """
    buffer = out.new_empty(0)
    pairs = paired(one, two)
    grams = [f.gram(h) if isinstance(f, Outer) and isinstance(h, Outer) else None for f, h in pairs]
    for i in range(one.rows):
        if outputs == "full":
            js = slice(i if same else 0, None)
            into = out[i, :, js]
        else:
            js = slice(i, i + 1)
            into = (out if outputs == "trace" else out[i])[:, None]
        if outputs != "trace" or i == 0:
            into.zero_()
        for (f, h), gram in zip(pairs, grams, strict=True):
            if isinstance(f, Outer) and isinstance(h, Outer) and gram is not None:
                _add_outer(into, f, h, gram, i, js, buffer)
            elif isinstance(f, Written) and isinstance(h, Written):
                into.add_(_tile(f.j[i], h.j[js], buffer))
            elif isinstance(f, Spread) and isinstance(h, Spread):
                _add_places(into, f, h, i, js)
    if outputs == "full" and same:
        for i in range(len(out)):
            for j in range(i + 1, len(out)):
                out[j, :, i] = out[i, :, j].T


def _add_outer(
    into: Tensor, f: Outer, h: Outer, gram: Tensor, i: int, js: slice, buffer: Tensor
) -> None:
    """Add the product of both Gram matrices; one of them is a number where all points are alike."""
    if f.alike is None or h.alike is None:
        into.addcmul_(_tile(f.g[i], h.g[js], buffer), gram[:, None])
        return
    for k, inner in enumerate((h.alike[js] @ f.alike[i]).tolist()):
        if inner:
            into[:, k].add_(gram, alpha=inner)


def _tile(
    rows: Float[Tensor, "n p"], columns: Float[Tensor, "s m p"], buffer: Tensor
) -> Float[Tensor, "n s m"]:
    """Return the inner products of rows and columns, in memory that is used again and again."""
    s, m, p = columns.shape
    buffer.resize_(len(rows) * s * m)
    tile = buffer.view(len(rows), s * m)
    return torch.mm(rows, columns.reshape(s * m, p).T, out=tile).view(len(rows), s, m)


def _add_places(into: Tensor, f: Spread, h: Spread, i: int, js: slice) -> None:
    """Add sums over pairs of places, a few points at a time."""
    columns = h.g[js]
    s, m, t, o = columns.shape
    pair = max(1, t * f.g.shape[2])
    wide = max(1, min(m, TILE // pair))
    rows = max(1, TILE // (wide * pair))
    for start, first in itertools.product(range(0, len(into), rows), range(0, m, wide)):
        some, others = slice(start, start + rows), slice(first, first + wide)
        inner = f.places(h, some, others)
        left = f.g[i, some].flatten(0, 1)
        for k in range(s):
            tile = left @ columns[k, others].reshape(-1, o).T
            tile.mul_(inner)
            into[some, k, others] += tile.view(-1, f.g.shape[2], inner.shape[1] // t, t).sum((1, 3))
