"""Whether this machine gives a product the same bits in all slots of a stack."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from inscape._core.sampling import generator
from inscape.ensembles.aligned import aligned_product

#: Rows, inner size and columns of the products that are tried: most slots begin off a cache line.
SIZES = ((12, 33, 31), (33, 12, 7), (9, 50, 9), (7, 64, 33))
SLOTS = 8


@torch.no_grad()
def same_bits(multiply: Callable[[Tensor, Tensor], Tensor] | None = None) -> bool:
    """Tell whether a product of equal matrices has the same bits in all slots on this machine.

    Tried in both precisions and all layouts; costs a tenth of a second.

    Args:
        multiply: Product of two stacks of matrices; None takes that of stacks of networks.
    """
    draw = generator(0)
    precisions, layouts = (torch.float32, torch.float64), (False, True)
    for size, dtype, by_columns, also in product(SIZES, precisions, layouts, layouts):
        rows, inner, columns = size
        left = _equal_matrices(rows, inner, draw, dtype, by_columns=by_columns)
        right = _equal_matrices(inner, columns, draw, dtype, by_columns=also)
        found = (multiply or aligned_product)(left, right)
        if not all(torch.equal(slot, found[0]) for slot in found):
            return False
    return True


def _equal_matrices(
    rows: int, columns: int, draw: torch.Generator, dtype: torch.dtype, *, by_columns: bool
) -> Tensor:
    """Return a stack of one random matrix in every slot, stored by rows or by columns."""
    shape = (columns, rows) if by_columns else (rows, columns)
    stack = torch.stack([torch.randn(shape, generator=draw, dtype=dtype)] * SLOTS)
    return stack.mT if by_columns else stack
