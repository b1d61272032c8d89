"""Symmetry: a network that does not see in which order its inputs come."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Symmetric(nn.Module):
    """The mean of a network over several orders of its inputs.

    Attributes:
        model: The network itself; it is trained through this module.
        orders: Orders of the flat inputs, one row each.
    """

    orders: Tensor

    def __init__(self, model: nn.Module, orders: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("orders", orders)
        self.train(model.training)

    def forward(self, x: Float[Tensor, "n *d"]) -> Tensor:
        """Return the mean of the outputs."""
        flat = x.flatten(1)
        if flat.shape[1] != self.orders.shape[1]:
            raise ValueError(
                f"x must have as many inputs as the permutations have numbers, "
                f"{self.orders.shape[1]}, found {flat.shape[1]} in shape {tuple(x.shape)}: pass "
                f"permutations of {flat.shape[1]} numbers to symmetric, or other points."
            )
        views = [self.model(flat[:, order].view_as(x)) for order in self.orders]
        return torch.stack(views).mean(0)


def symmetric(model: nn.Module, permutations: Sequence[Sequence[int]] = ((1, 0),)) -> Symmetric:
    r"""Return a network that gives the same for all orders of its inputs that permutations make.

    .. math:: f_{sym}(x) = \frac{1}{|G|} \sum_{g \in G} f(x_{g(1)}, \ldots, x_{g(d)})

    G is the group that the permutations generate, the identity included: for a swap of two inputs
    this is Klindt's :math:`(f(x_1, x_2) + f(x_2, x_1)) / 2` (A.2.7). Exact; costs as many
    evaluations as the group has members, at most 5040.

    >>> f = symmetric(nn.Linear(2, 1), [(1, 0)])
    >>> x = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    >>> torch.equal(*f(x))
    True

    Args:
        model: Any module; it shares its weights with the one returned.
        permutations: Orders of the inputs, each number from 0 to d - 1 once; inputs of other shapes
            than vectors are taken flat.
    """
    return Symmetric(model, torch.tensor(_group(permutations)))


#: Members of a group at most: as many as orders of 7 inputs.
LARGEST = 5040


def _group(permutations: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return all orders that a few of them make, the identity first."""
    generators = [tuple(order) for order in permutations]
    sizes = {len(order) for order in generators}
    if len(sizes) != 1 or any(sorted(order) != list(range(len(order))) for order in generators):
        raise ValueError(
            "permutations must be orders of one number of inputs, each of 0 to d - 1 once, found "
            f"{[list(order) for order in generators]}: mend them, as in [(1, 0)] for a swap."
        )
    group = {tuple(range(*sizes)): None}
    frontier = list(group)
    while frontier:
        products = {tuple(member[i] for i in by): None for member in frontier for by in generators}
        frontier = [order for order in products if order not in group]
        group |= dict.fromkeys(frontier)
        if len(group) > LARGEST:
            raise ValueError(
                f"permutations must make a group of at most {LARGEST} orders, found more: use "
                "fewer, or those of a smaller group."
            )
    return list(group)
