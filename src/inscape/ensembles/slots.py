"""A trial of whether matrix products on this machine depend on the slot of a stack."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from inscape._core.sampling import generator
from inscape.ensembles.aligned_products import aligned_product

#: Rows, inner size and columns of the products: most slots do not begin on a cache line.
SIZES = ((12, 33, 31), (33, 12, 7), (9, 50, 9), (7, 64, 33))
SLOTS = 8


@torch.no_grad()
def slots_agree(multiply: Callable[[Tensor, Tensor], Tensor] | None = None) -> bool:
    """Return whether a product of equal matrices is equal bit for bit in all slots of a stack.

    Tried in both precisions and all layouts; costs a tenth of a second.

    Args:
        multiply: Product of two stacks of matrices; None tries that of stacks of networks.
    """
    draw = generator(0)
    precisions, layouts = (torch.float32, torch.float64), (False, True)
    for size, dtype, left_by_columns, right_by_columns in product(
        SIZES, precisions, layouts, layouts
    ):
        rows, inner, columns = size
        left = _equal_matrices(rows, inner, draw, dtype, by_columns=left_by_columns)
        right = _equal_matrices(inner, columns, draw, dtype, by_columns=right_by_columns)
        products = (multiply or aligned_product)(left, right)
        if not all(torch.equal(slot, products[0]) for slot in products):
            return False
    return True


def _equal_matrices(
    rows: int, columns: int, draw: torch.Generator, dtype: torch.dtype, *, by_columns: bool
) -> Tensor:
    """Return a stack of one random matrix in every slot, stored by rows or by columns."""
    shape = (columns, rows) if by_columns else (rows, columns)
    stack = torch.stack([torch.randn(shape, generator=draw, dtype=dtype)] * SLOTS)
    return stack.mT if by_columns else stack
