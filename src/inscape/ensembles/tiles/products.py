"""Products of small matrices, one pair per lane, in blocks (tiles) that stay in the registers.

Each function here computes a block of a product: ``rows`` x ``columns`` sums, each over ``terms``
products, in the order of the terms. Every number that is read enters as many products as a block
is long, so that the time goes into multiplications and not into reading memory. :data:`BLOCKS`
lists the block sizes; a jump leads to the code for the right one.
"""

# mypy: disable-error-code="no-untyped-call, import-untyped"
# numba and llvmlite carry no types.

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from inscape.ensembles.lanes.vectors import Lanes, _call, _constant, operation, vector
from inscape.ensembles.tiles.state import COLUMNS

#: Blocks that there is code for: up to 25 sums, which with what they need fill 32 registers.
BLOCKS = [(r, c) for r, most in COLUMNS.items() for c in range(1, most + 1)]

Rows = list[list[Any]]
Writer = Callable[..., None]


class Block:
    """The code of one block; ``rows`` and ``columns`` are known here, all else when it runs."""

    def __init__(self, builder: Any, kind: Any, rows: int, columns: int) -> None:
        self.builder, self.kind, self.rows, self.columns = builder, kind, rows, columns

    def cells(self, make: Callable[[int, int], Any]) -> Rows:
        """Return a value for each cell."""
        return [[make(r, c) for c in range(self.columns)] for r in range(self.rows)]

    def place(self, base: Any, row: Any) -> Any:
        """Return the address of a row of lanes."""
        return self.builder.gep(base, [row])

    def load(self, base: Any, row: Any) -> Any:
        """Read a row of lanes."""
        return self.builder.load(self.place(base, row), align=8)

    def store(self, base: Any, row: Any, value: Any) -> None:
        """Write a row of lanes."""
        self.builder.store(value, self.place(base, row), align=8)

    def at(self, start: Any, stride: Any, index: int) -> Any:
        """Return ``start + stride * index``."""
        return self.builder.add(start, self.builder.mul(stride, ir.Constant(stride.type, index)))

    def sums(self, terms: Any, first: Rows, a: tuple[Any, ...], b: tuple[Any, ...]) -> Rows:
        """Return ``first[r][c] + sum over k of a(r, k) * b(c, k)``.

        ``a`` and ``b`` are (base, first row, step from row to row, step from term to term).
        """
        builder, integer = self.builder, terms.type
        before = builder.block
        loop = builder.append_basic_block("terms")
        after = builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(integer)
        k.add_incoming(ir.Constant(integer, 0), before)
        totals = self.cells(lambda r, c: builder.phi(self.kind))
        left = [self._term(a, r, k) for r in range(self.rows)]
        right = [self._term(b, c, k) for c in range(self.columns)]
        new = self.cells(
            lambda r, c: _call(builder, "llvm.fmuladd", left[r], right[c], totals[r][c])
        )
        following = builder.add(k, ir.Constant(integer, 1))
        for r in range(self.rows):
            for c in range(self.columns):
                totals[r][c].add_incoming(first[r][c], before)
                totals[r][c].add_incoming(new[r][c], loop)
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, terms), loop, after)
        builder.position_at_end(after)
        return new

    def where_positive(self, z: Any, a: Any, b: Any) -> Any:
        """Return ``a`` where ``z`` is above zero or NaN, else ``b``."""
        positive = self.builder.fcmp_unordered(">", z, _constant(z.type, 0.0))
        return self.builder.select(positive, a, b)

    def _term(self, factor: tuple[Any, ...], index: int, k: Any) -> Any:
        base, start, step, along = factor
        row = self.at(start, step, index)
        return self.load(base, self.builder.add(row, self.builder.mul(k, along)))


def _bases(context: Any, builder: Any, arrays: Any, args: Any) -> list[Any]:
    """Return the addresses of arrays of lanes."""
    addresses = []
    for kind, array in zip(arrays, args, strict=True):
        data = context.make_array(kind)(context, builder, array).data
        addresses.append(builder.bitcast(data, vector(kind.dtype).as_pointer()))
    return addresses


def _choose(
    builder: Any, name: str, rows: Any, columns: Any, args: Sequence[Any], write: Writer
) -> None:
    """Jump to the code for such a block: a function of its own, written once for all callers."""
    integer = rows.type
    number = builder.add(builder.mul(rows, ir.Constant(integer, 16)), columns)
    after = builder.append_basic_block("done")
    nowhere = builder.append_basic_block("nowhere")
    jump = builder.switch(number, nowhere)
    for r, c in BLOCKS:
        case = builder.append_basic_block(f"block_{r}_{c}")
        jump.add_case(ir.Constant(integer, 16 * r + c), case)
        builder.position_at_end(case)
        builder.call(_function(builder.module, f"inscape_{name}_{r}_{c}", args, r, c, write), args)
        builder.branch(after)
    builder.position_at_end(nowhere)
    builder.unreachable()
    builder.position_at_end(after)


def _function(
    module: Any, name: str, args: Sequence[Any], rows: int, columns: int, write: Writer
) -> Any:
    """Return the function of a block, written if it is not there yet."""
    kinds = [arg.type for arg in args]
    lanes = kinds[0].pointee
    name += f"_{lanes.element}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    write(Block(builder, lanes, rows, columns), *function.args)
    builder.ret_void()
    return function


@operation
def layer_forward(
    context: Any, weights: Any, source: Any, target: Any, places: Any, sizes: Any, slope: Any
) -> Any:
    """Write the activations of a layer at points.

    ``places`` are the first rows of weights, biases, source and target; ``sizes`` are units,
    points, inputs, and the stride from a source to the next. Pre-activations below zero are
    multiplied by ``slope``.
    """
    arrays = (weights, source, target)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bases = _bases(context, builder, arrays, args[:3])
        rows, columns, *rest = cgutils.unpack_tuple(builder, args[4])
        operands = (*bases, *cgutils.unpack_tuple(builder, args[3]), *rest, args[5])
        _choose(builder, "layer_forward", rows, columns, operands, _layer_forward)
        return context.get_dummy_value()

    return types.void(*arrays, places, sizes, Lanes(weights.dtype)), code


def _layer_forward(
    block: Block, w: Any, x: Any, h: Any, at: Any, bias: Any, start: Any, to: Any, inputs: Any,
    stride: Any, slope: Any,
) -> None:  # fmt: skip
    unit_stride = ir.Constant(inputs.type, 1)
    offsets = [block.load(w, block.at(bias, unit_stride, r)) for r in range(block.rows)]
    first = block.cells(lambda r, c: offsets[r])
    sums = block.sums(inputs, first, (w, at, inputs, unit_stride), (x, start, unit_stride, stride))
    for r in range(block.rows):
        for c in range(block.columns):
            z = sums[r][c]
            z = block.where_positive(z, z, block.builder.fmul(z, slope))
            block.store(h, block.at(block.at(to, stride, r), unit_stride, c), z)


@operation
def layer_backward(
    context: Any, weights: Any, errors: Any, hidden: Any, target: Any, places: Any, sizes: Any,
    slope: Any,
) -> Any:  # fmt: skip
    """Write the gradients of the layer below, times ``slope`` where its units are off.

    ``places`` are the first rows of weights, errors, hidden and target; ``sizes`` are units below,
    points, units above, units below in all, and the stride from a unit to the next.
    """
    arrays = (weights, errors, hidden, target)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bases = _bases(context, builder, arrays, args[:4])
        rows, columns, *rest = cgutils.unpack_tuple(builder, args[5])
        operands = (*bases, *cgutils.unpack_tuple(builder, args[4]), *rest, args[6])
        _choose(builder, "layer_backward", rows, columns, operands, _layer_backward)
        return context.get_dummy_value()

    return types.void(*arrays, places, sizes, Lanes(weights.dtype)), code


def _layer_backward(
    block: Block, w: Any, e: Any, h: Any, target: Any, at: Any, start: Any, gave: Any, to: Any,
    above: Any, below: Any, stride: Any, slope: Any,
) -> None:  # fmt: skip
    unit_stride = ir.Constant(above.type, 1)
    zero = block.cells(lambda r, c: _constant(block.kind, 0.0))
    sums = block.sums(above, zero, (w, at, unit_stride, below), (e, start, unit_stride, stride))
    for r in range(block.rows):
        for c in range(block.columns):
            value = block.load(h, block.at(block.at(gave, stride, r), unit_stride, c))
            error = sums[r][c]
            error = block.where_positive(value, error, block.builder.fmul(error, slope))
            block.store(target, block.at(block.at(to, stride, r), unit_stride, c), error)


@operation
def weight_gradients(
    context: Any, errors: Any, source: Any, target: Any, places: Any, sizes: Any, onto: Any
) -> Any:
    """Write, or with ``onto`` add, the gradient of the weights: errors times inputs.

    ``places`` are the first rows of errors, source and target; ``sizes`` are units, inputs, points
    and inputs in all.
    """
    arrays = (errors, source, target)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bases = _bases(context, builder, arrays, args[:3])
        rows, columns, *rest = cgutils.unpack_tuple(builder, args[4])
        operands = (*bases, *cgutils.unpack_tuple(builder, args[3]), *rest, args[5])
        _choose(builder, "weight_gradients", rows, columns, operands, _weight_gradients)
        return context.get_dummy_value()

    return types.void(*arrays, places, sizes, types.boolean), code


def _weight_gradients(
    block: Block, e: Any, x: Any, g: Any, at: Any, start: Any, to: Any, points: Any, inputs: Any,
    onto: Any,
) -> None:  # fmt: skip
    unit_stride = ir.Constant(points.type, 1)
    zero = _constant(block.kind, 0.0)
    places = block.cells(lambda r, c: block.at(block.at(to, inputs, r), unit_stride, c))
    first = block.cells(
        lambda r, c: block.builder.select(onto, block.load(g, places[r][c]), zero)
    )  # fmt: skip
    sums = block.sums(points, first, (e, at, points, unit_stride), (x, start, points, unit_stride))
    for r in range(block.rows):
        for c in range(block.columns):
            block.store(g, places[r][c], sums[r][c])
