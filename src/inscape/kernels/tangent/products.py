"""Kernels of sets of points: inner products of their gradients, block after block."""

import itertools
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from inscape._core.progress import progress
from inscape.kernels.tangent.blocks import Block
from inscape.kernels.tangent.factored_gradients import Factor, Written
from inscape.kernels.tangent.inputs import numbers_like
from inscape.kernels.tangent.memory_plan import Plan
from inscape.kernels.tangent.vjp import Backward, gathered


@dataclass(frozen=True, eq=False, kw_only=True)
class Filled:
    """A kernel and the squared lengths of the gradients of both sets of points.

    Its axes are ``i, n, j, m`` for all pairs of outputs, ``i, n, m`` for equal ones, else ``n, m``;
    those of the squares ``i, n``, or ``n`` alone for all outputs together.
    """

    kernel: Tensor
    squares: tuple[Float[Tensor, "*r n"], Float[Tensor, "*r m"]]
    ways: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Part:
    """Some outputs at some points."""

    outputs: slice
    points: slice


def filled(
    model: nn.Module,
    x: Tensor,
    others: Tensor | None,
    *,
    outputs: str,
    count: int,
    plan: Plan,
    vectors: Float[Tensor, "count c"] | None = None,
) -> Generator[None, None, Filled]:
    """Return the kernel of all points, by the blocks of a plan, with a step between them.

    With ``vectors``, these combinations stand in the place of the outputs.
    """
    columns = x if others is None else others
    shapes = {
        "full": (count, len(x), count, len(columns)),
        "diagonal": (count, len(x), len(columns)),
        "trace": (len(x), len(columns)),
    }
    like = numbers_like(model, x)
    pairs = list(_pairs(len(x), len(columns), count, plan, outputs, symmetric=others is None))
    kernel = like.new_empty(shapes[outputs]) if len(pairs) > 1 else like.new_empty(0)
    if outputs == "trace":
        kernel.zero_()
    squares = [like.new_zeros(count, len(x)), like.new_zeros(count, len(columns))]
    ways: dict[str, str] = {}
    left: tuple[_Part, Backward] | None = None
    with progress(len(pairs), label="multiplying gradients") as bar:
        for one, two in pairs:
            if left is None or left[0] != one:
                left = one, _backward(model, x, one, vectors)
            same = others is None and one == two
            right = left[1] if same else _backward(model, columns, two, vectors)
            lengths = None if others is None else _lengths(squares, one, two)
            product = _Product(model, left[1], right, outputs, plan, lengths)
            block = product.block(like)
            ways.update(product.ways)
            if len(pairs) == 1:
                kernel = block
                break
            _place(kernel, outputs, one, two, block, mirrored=others is None and not same)
            bar.advance(1)
            yield
    totals = [s.sum(0) if outputs == "trace" else s for s in squares]
    if others is None:
        totals = [_own(kernel, outputs)] * 2
    return Filled(kernel=kernel, squares=(totals[0], totals[1]), ways=tuple(ways.items()))


def _backward(model: nn.Module, x: Tensor, part: _Part, vectors: Tensor | None) -> Backward:
    """Call the module at the points of a part, ready to pull its outputs or combinations back."""
    points = x[part.points]
    if vectors is None:
        return Backward(model, points, rows=part.outputs)
    return Backward(model, points, vectors[part.outputs, None].expand(-1, len(points), -1))


class _Product:
    """Inner products of two sets of gradients."""

    def __init__(
        self,
        model: nn.Module,
        left: Backward,
        right: Backward,
        outputs: str,
        plan: Plan,
        lengths: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._model, self._left, self._right = model, left, right
        self._outputs, self._plan, self._lengths = outputs, plan, lengths
        self.ways: dict[str, str] = {}
        for part in () if lengths is None else lengths:
            part.zero_()

    def block(self, like: Tensor) -> Tensor:
        """Return the block of the kernel."""
        left, right = self._left, self._right
        block = Block(
            self._outputs,
            (left.rows, len(left.y)),
            (right.rows, len(right.y)),
            same=left is right,
            like=like,
        )
        for f, h, way in self._factors():
            taken = block.add(f, h, self._plan.piece)
            self.ways.update(dict.fromkeys(f.names, way or taken))
            for lengths, factor in zip(self._lengths or (), (f, h), strict=False):
                lengths += factor.squares
        return block.total()

    def _factors(self) -> Iterator[tuple[Factor, Factor, str | None]]:
        """Yield factors of both sets side by side, of the same parameters and form.

        Where what a module does depends on the points, a parameter may be taken in two ways, or act
        in one set alone: then all are written out, parameter by parameter.
        """
        left, right = self._left, self._right
        if left is not right and left.forms != right.forms:
            yield from self._written()
            return
        for group in self._plan.groups:
            weights = [weight for weight in group if weight in left.layers]
            factors = left.factors(weights)
            if left is right:
                yield from ((factor, factor, None) for factor in factors)
            else:
                for f, h in zip(factors, right.factors(weights), strict=True):
                    yield f, h, None
        rest = left.rest()
        if rest is not None:
            other = rest if left is right else right.rest()
            assert other is not None
            yield rest[0], other[0], rest[1]

    def _written(self) -> Iterator[tuple[Factor, Factor, str | None]]:
        one, two = (
            gathered(side, self._model).by_parameter() for side in (self._left, self._right)
        )
        for name in one.keys() | two.keys():
            j, h = one.get(name), two.get(name)
            yield (
                Written(names=(name,), j=_zeros(self._left, h) if j is None else j),
                Written(names=(name,), j=_zeros(self._right, j) if h is None else h),
                "written out",
            )


def _zeros(side: Backward, like: Tensor | None) -> Tensor:
    """Return the gradients of a parameter that does not act at some points."""
    assert like is not None
    return like.new_zeros(side.rows, len(side.y), like.shape[2])


def _lengths(squares: list[Tensor], one: _Part, two: _Part) -> tuple[Tensor, Tensor]:
    return squares[0][one.outputs, one.points], squares[1][two.outputs, two.points]


def _own(kernel: Tensor, outputs: str) -> Tensor:
    """Return the squared lengths that stand on the diagonal of a kernel of one set of points."""
    if outputs == "full":
        return kernel.diagonal(dim1=1, dim2=3).diagonal(dim1=0, dim2=1).T.clone()
    return kernel.diagonal(dim1=-2, dim2=-1).clone()


def _pairs(
    n: int, m: int, count: int, plan: Plan, outputs: str, *, symmetric: bool
) -> Iterator[tuple[_Part, _Part]]:
    rows = _slices(count, plan.outputs)
    ones, twos = (
        [_Part(row, part) for row in rows for part in _slices(size, plan.points)] for size in (n, m)
    )
    for k, one in enumerate(ones):
        for two in twos[k:] if symmetric else twos:
            if outputs == "full" or one.outputs == two.outputs:
                yield one, two


def _slices(n: int, rows: int) -> list[slice]:
    pieces = -(-n // rows)
    cuts = [n * k // pieces for k in range(pieces + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def _place(
    kernel: Tensor, outputs: str, one: _Part, two: _Part, block: Tensor, *, mirrored: bool
) -> None:
    """Put a block to its place in the kernel, and mirrored to the other side of the diagonal."""
    if outputs == "full":
        kernel[one.outputs, one.points, two.outputs, two.points] = block
        if mirrored:
            kernel[two.outputs, two.points, one.outputs, one.points] = block.permute(2, 3, 0, 1)
    elif outputs == "diagonal":
        kernel[one.outputs, one.points, two.points] = block
        if mirrored:
            kernel[one.outputs, two.points, one.points] = block.transpose(1, 2)
    else:
        kernel[one.points, two.points] += block
        if mirrored:
            kernel[two.points, one.points] += block.T
