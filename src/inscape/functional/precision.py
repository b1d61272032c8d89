"""A copy of a module in another precision: regions are distinguished by small differences."""

from collections.abc import Iterator
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.checks import Function
from inscape._core.precision import converted_copy, to_precision

DTYPES = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


def in_precision(
    f: Function, x: Float[Tensor, "n *d"], dtype: str, *, weights: str | None = None
) -> tuple[Function, Float[Tensor, "n *d"], str | None]:
    """Return model and points in that precision, and the one that the model had if another.

    A plain function is left as it is: it takes its precision from the points. With ``weights``
    the numbers of the module are first rounded to that precision.
    """
    checks.in_eval_mode(f)
    checks.points(x)
    checks.one_of(tuple(DTYPES), dtype=dtype, **({"weights": weights} if weights else {}))
    wanted = DTYPES[dtype]
    before = dict.fromkeys(tensor.dtype for tensor in _floating(f)) or {x.dtype: None}
    others = sorted(str(dtype).removeprefix("torch.") for dtype in before if dtype != wanted)
    if isinstance(f, nn.Module) and (others or weights):
        checks.weights(f, torch.empty(0, dtype=next(iter(before))))
        f = converted_copy(f, DTYPES[weights] if weights else wanted)
        f = to_precision(f, wanted)
    return f, x.to(wanted), others[0] if others else None


def name_of(dtype: torch.dtype | None) -> str | None:
    """Return the name of a precision without that of its library."""
    return None if dtype is None else str(dtype).removeprefix("torch.")


def _floating(f: Function) -> Iterator[Tensor]:
    if isinstance(f, nn.Module):
        yield from (t for t in chain(f.parameters(), f.buffers()) if t.is_floating_point())
