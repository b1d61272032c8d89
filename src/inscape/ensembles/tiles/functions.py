"""Functions of lanes beyond arithmetic: exponential, root, comparisons, the queue."""

# mypy: disable-error-code="no-untyped-call, import-untyped"
# numba and llvmlite carry no types.

import math
from typing import Any

from llvmlite import ir
from numba import types

from inscape.ensembles.lanes.vectors import (
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    _call,
    _constant,
    _power_of_two,
    operation,
)

#: Arguments are clipped here, so that 2^k stays a normal number.
FARTHEST = {32: 87.0, 64: 708.0}
#: Terms of the exponential series up to |r| <= ln(2) / 2, for half a unit of the last digit.
TERMS = {32: 7, 64: 13}
#: Start of an inverse root, and the constants of a first Newton step that make the most of it.
GUESS, FACTOR, OFFSET = 0x5F1FFFF9, 0.703952253, 2.38924456
LARGEST = 3.0e38


@operation
def decay(context: Any, z: Any) -> Any:
    """Return ``exp(-|z|)``, to a unit of the last digit."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind, bits = args[0].type, z.dtype.bitwidth
        limit = _constant(kind, FARTHEST[bits])
        size = _call(builder, "llvm.fabs", args[0])
        size = builder.select(builder.fcmp_ordered(">", size, limit), limit, size)
        k = _call(builder, "llvm.rint", builder.fmul(size, _constant(kind, -LOG2_E)))
        r = _call(builder, "llvm.fmuladd", k, _constant(kind, -LN2_HIGH), builder.fneg(size))
        r = _call(builder, "llvm.fmuladd", k, _constant(kind, -LN2_LOW), r)
        series = _constant(kind, 1 / math.factorial(TERMS[bits]))
        for term in range(TERMS[bits] - 1, -1, -1):
            series = _call(
                builder, "llvm.fmuladd", series, r, _constant(kind, 1 / math.factorial(term))
            )
        return builder.fmul(series, _power_of_two(builder, k, bits))

    return z(z), code


@operation
def quick_root(context: Any, v: Any) -> Any:
    """Return the square root of a number that is not negative, to a unit of the last digit.

    In single precision by Newton's method, in a third of the time of the instruction; in double
    precision by that instruction. Infinity counts as the largest number.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        v, kind = args[0], args[0].type
        if sig.args[0].dtype.bitwidth == 64:
            return _call(builder, "llvm.sqrt", v)
        most = _constant(kind, LARGEST)
        v = builder.select(builder.fcmp_ordered("<", v, most), v, most)
        integer = ir.VectorType(ir.IntType(32), kind.count)
        half = builder.lshr(builder.bitcast(v, integer), _constant_integer(integer, 1))
        y = builder.bitcast(builder.sub(_constant_integer(integer, GUESS), half), kind)
        u = _fma(builder, builder.fneg(builder.fmul(v, y)), y, _constant(kind, OFFSET))
        y = builder.fmul(builder.fmul(y, _constant(kind, FACTOR)), u)
        s, h = builder.fmul(v, y), builder.fmul(y, _constant(kind, 0.5))
        r = _fma(builder, builder.fneg(s), h, _constant(kind, 0.5))
        s, h = _fma(builder, s, r, s), _fma(builder, h, r, h)
        return _fma(builder, _fma(builder, builder.fneg(s), s, v), h, s)

    return v(v), code


@operation
def larger(context: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where ``a > b``, else ``no``; NaN is not larger than anything."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return a(a, a, a, a), code


@operation
def any_positive(context: Any, a: Any) -> Any:
    """Return whether any lane is above zero."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _any_lane(builder, builder.fcmp_ordered(">", args[0], _constant(args[0].type, 0.0)))

    return types.boolean(a), code


@operation
def any_not_finite(context: Any, a: Any) -> Any:
    """Return whether any lane is not finite."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rest = builder.fsub(args[0], args[0])
        return _any_lane(builder, builder.fcmp_unordered("!=", rest, _constant(rest.type, 0.0)))

    return types.boolean(a), code


@operation
def next_in_queue(context: Any, queue: Any) -> Any:
    """Return the next index of a queue that threads share: its first entry, then raised by one."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = context.make_array(queue)(context, builder, args[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(queue), code


def _any_lane(builder: Any, mask: Any) -> Any:
    integer = ir.IntType(mask.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(mask, integer), ir.Constant(integer, 0))


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return _call(builder, "llvm.fmuladd", a, b, c)


def _constant_integer(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)
