"""Flushing of denormal numbers to zero inside compiled kernels."""

# mypy: disable-error-code="no-untyped-call, import-untyped"
# numba and llvmlite carry no types.

import platform
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

#: MXCSR: results too small for a normal number become zero, and are read as zero.
FLUSH = 0x8040


def intrinsic(code: Callable[..., Any]) -> Any:
    """Return a function that kernels may call, from one that writes machine instructions."""
    return _intrinsic(code)


@intrinsic
def flush_denormals(context: Any) -> Any:
    """Let results too small for a normal number be zero in this thread; return what was before.

    Units that died leave Adam's memory to fade, and numbers that fade away cost a hundred times the
    time of others. Where the machine is no x86 nothing happens.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not _is_x86():
            return ir.Constant(ir.IntType(32), 0)
        place = cgutils.alloca_once(builder, ir.IntType(32))
        _mxcsr(builder, "st", place)
        before = builder.load(place)
        builder.store(builder.or_(before, ir.Constant(ir.IntType(32), FLUSH)), place)
        _mxcsr(builder, "ld", place)
        return before

    return types.uint32(), code


@intrinsic
def restore(context: Any, before: Any) -> Any:
    """Undo :func:`flush_denormals`."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if _is_x86():
            place = cgutils.alloca_once(builder, ir.IntType(32))
            builder.store(args[0], place)
            _mxcsr(builder, "ld", place)
        return context.get_dummy_value()

    return types.void(types.uint32), code


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def _mxcsr(builder: Any, verb: str, place: Any) -> None:
    pointer = ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [pointer]), f"llvm.x86.sse.{verb}mxcsr"
    )
    builder.call(function, [builder.bitcast(place, pointer)])
