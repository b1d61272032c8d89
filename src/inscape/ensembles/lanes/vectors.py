"""SIMD vectors with one number per network: kernels read as if there were one network.

A :class:`Lanes` holds one number of each of 16 networks in single precision, of 8 in double, and
fills one AVX-512 register (machines with shorter ones get two or four). Every operation here acts
on each lane alone, so a lane does not depend on the others, bit for bit. The compiler has no
choice: products are fused with sums where :func:`fma` says so and where the processor can, and no
sum is reordered.

This file imports numba, and is itself imported when a kernel is first needed.
"""

# mypy: disable-error-code="no-untyped-call, import-untyped"
# numba and llvmlite carry no types.

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

#: Lanes of a register, by the bits of a number.
WIDTHS = {32: 16, 64: 8}

LN2_HIGH, LN2_LOW = 0.693359375, -2.121944400546905827679e-4  # the first has few bits
LOG2_E = 1.4426950408889634
#: Arguments of the exponential are clipped here, so that 2^k below stays a normal number.
LARGEST = {32: 87.0, 64: 708.0}
#: 1/2!, 1/3!, ...: with |r| <= ln(2) / 2 the first left out is below 1e-17.
FACTORIALS = (
    *(1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880),
    *(1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800),
)


class Lanes(types.Type):
    """The type of one number per lane."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


def vector(dtype: Any) -> Any:
    """Return the type of one register."""
    number = ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(number, WIDTHS[dtype.bitwidth])


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """Lanes are held as one vector."""

    def __init__(self, manager: Any, lanes: Any) -> None:
        super().__init__(manager, lanes, vector(lanes.dtype))


def operation(code: Callable[..., Any]) -> Any:
    """Return a function for kernels from one that writes LLVM instructions."""
    return intrinsic(code)


@operation
def load(context: Any, array: Any, row: Any) -> Any:
    """Return a row of an array, whose rows are as long as there are lanes."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _address(context, builder, array, args[0], args[1])
        return builder.load(place, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), code


@operation
def store(context: Any, array: Any, row: Any, value: Any) -> Any:
    """Write a row of an array."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _address(context, builder, array, args[0], args[1])
        builder.store(args[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, Lanes(array.dtype)), code


@operation
def alike(context: Any, like: Any, value: Any) -> Any:
    """Return lanes that all hold ``value``, in the precision of ``like``."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = context.cast(builder, args[1], types.float64, like.dtype)
        return _spread(builder, number, vector(like.dtype))

    return Lanes(like.dtype)(like, types.float64), code


@operation
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c``, rounded once where the machine can."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "llvm.fmuladd", *args)

    return a(a, a, a), code


@operation
def root(context: Any, a: Any) -> Any:
    """Return the square root."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "llvm.sqrt", *args)

    return a(a), code


@operation
def where_positive(context: Any, z: Any, a: Any, b: Any) -> Any:
    """Return ``a`` where ``z`` is above zero or NaN, else ``b``.

    So a ReLU passes NaN on, as in PyTorch. A sum or product that stands in the
    place of ``a`` with ``b`` as one of its terms costs no more than without the choice.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = _constant(args[0].type, 0.0)
        return builder.select(builder.fcmp_unordered(">", args[0], zero), args[1], args[2])

    return a(a, a, a), code


@operation
def expm1(context: Any, x: Any) -> Any:
    """Return ``exp(x) - 1``; at the far end a large number instead of infinity."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = args[0].type
        bits = sig.args[0].dtype.bitwidth
        x = _clipped(builder, args[0], LARGEST[bits])
        k = _call(builder, "llvm.rint", builder.fmul(x, _constant(kind, LOG2_E)))
        r = _call(builder, "llvm.fmuladd", k, _constant(kind, -LN2_HIGH), x)
        r = _call(builder, "llvm.fmuladd", k, _constant(kind, -LN2_LOW), r)
        series = _constant(kind, FACTORIALS[-1])
        for term in FACTORIALS[-2::-1]:
            series = _call(builder, "llvm.fmuladd", series, r, _constant(kind, term))
        near = _call(builder, "llvm.fmuladd", builder.fmul(r, r), series, r)
        power = _power_of_two(builder, k, bits)
        return _call(
            builder, "llvm.fmuladd", power, near, builder.fsub(power, _constant(kind, 1.0))
        )

    return x(x), code


class _Same(AbstractTemplate):
    """The type of a binary operator on lanes of one precision."""

    def generic(self, args: Any, keywords: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
            return signature(args[0], *args)
        return None


def _define(symbol: Any, instruction: str) -> None:
    infer_global(symbol)(type(f"_{instruction}", (_Same,), {}))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)

    lower_builtin(symbol, Lanes, Lanes)(code)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


def _address(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    start = builder.mul(row, ir.Constant(row.type, WIDTHS[kind.dtype.bitwidth]))
    return builder.bitcast(builder.gep(data, [start]), vector(kind.dtype).as_pointer())


def _call(builder: Any, name: str, *args: Any) -> Any:
    kind = args[0].type
    number = "f32" if isinstance(kind.element, ir.FloatType) else "f64"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(kind, [kind] * len(args)),
        f"{name}.v{kind.count}{number}",
    )
    return builder.call(function, args)


def _constant(kind: Any, value: float) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    first = builder.insert_element(
        ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
    )
    places = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), places)


def _clipped(builder: Any, x: Any, limit: float) -> Any:
    """Bound ``x`` on both sides; NaN stays."""
    compare: list[tuple[str, float]] = [("<", -limit), (">", limit)]
    for sign, bound in compare:
        edge = _constant(x.type, bound)
        x = builder.select(builder.fcmp_ordered(sign, x, edge), edge, x)
    return x


def _power_of_two(builder: Any, k: Any, bits: int) -> Any:
    """Return 2^k by writing ``k`` into the exponent."""
    mantissa, offset = (23, 127) if bits == 32 else (52, 1023)
    kind = ir.VectorType(ir.IntType(bits), k.type.count)
    exponent = builder.add(builder.fptosi(k, kind), _constant(kind, offset))
    return builder.bitcast(builder.shl(exponent, _constant(kind, mantissa)), k.type)
