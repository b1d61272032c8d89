"""Norms of Jacobians without the product with a wide first layer.

Where the input x goes into a function through one linear map z = W x + b and nowhere else, the
Jacobian is A W with A = df/dz, and |a W|^2 = a (W W^T) a^T. A Gram matrix of h x h numbers then
stands at every point for the h x d numbers of W. This is algebra of the first layer alone, read
off the graph that autograd has drawn of the call: what comes after the map may be anything.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from inscape._core.anytime import finished
from inscape._core.checks import Function
from inscape.functional.jacobians import norm, stacked, vjps

#: A square that is a smaller share of the squares of its terms lost digits to cancellation.
SHARE = 1 / 2

#: Precisions whose Gram matrices keep digits enough.
PRECISE = (torch.float32, torch.float64)

#: Steps of autograd that multiply with a matrix on the right, and which of their inputs that takes.
MAPS = {"AddmmBackward0": 1, "MmBackward0": 0}

#: Where a tensor of nobody's making goes in.
LEAF = "torch::autograd::AccumulateGrad"

#: Steps of autograd that hand on all numbers in their order.
PASSING = (
    "AliasBackward0",
    "CloneBackward0",
    "SqueezeBackward1",
    "UnsafeViewBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FirstLayer:
    """A linear map that the whole input goes through."""

    weight: Float[Tensor, "h d"]

    def norm(self, a: Float[Tensor, "m r h"]) -> Float[Tensor, " m"]:
        """Return the Frobenius norms of ``a @ weight``.

        The product itself is taken only where the rows of ``weight`` cancel, since there the Gram
        matrix would lose digits, or where squares of theirs leave the range of the numbers.
        """
        rows, gram, half = a.flatten(0, 1), self._gram, len(self.weight) // 2
        product = torch.empty_like(rows)
        torch.mm(rows[:, :half], gram[:half, :half], out=product[:, :half])
        torch.mm(rows, gram[:, half:], out=product[:, half:])
        flat = (len(a), a.shape[1] * a.shape[2])  # -1 is not known of no matrices
        squares = product.mul_(rows).reshape(flat).sum(1)
        norms = squares.sqrt()
        if bool((norms > norm(a, dim=(1, 2)).clamp_(min=self._least).mul_(self._share)).all()):
            return norms
        terms = torch.mul(rows, rows, out=product) @ gram.diagonal()
        trusted = squares >= SHARE * terms.reshape(a.shape[:2]).sum(1)
        size = torch.abs(rows, out=product).reshape(flat).sum(1)  # which is nought for none
        least = self._least * math.sqrt(a[0].numel())
        trusted &= (norms > least) & (size > least) & math.isfinite(self._share)
        doubtful = ~trusted & ((size > 0) | norms.isnan())
        norms[doubtful] = norm(a[doubtful] @ self.weight, dim=(1, 2))
        return norms

    @cached_property
    def _gram(self) -> Float[Tensor, "h h"]:
        """Return the Gram matrix, its upper right quarter twice and its lower left one not at all.

        The matrix is symmetric, so that the one stands for the other: a quarter of all products.
        """
        h = len(self.weight)
        first, second = self.weight[: h // 2], self.weight[h // 2 :]
        gram = self.weight.new_empty(h, h)
        torch.mm(first, first.T, out=gram[: h // 2, : h // 2])
        torch.mm(self.weight, second.T, out=gram[:, h // 2 :])
        gram[: h // 2, h // 2 :].mul_(2)
        return gram

    @cached_property
    def _share(self) -> float:
        """Return which share of the norm of ``a`` a norm must have to be trusted at a glance.

        The terms of a square are at most that of ``a`` times the largest square of a row. It is
        infinite where squares of rows leave the range of the numbers.
        """
        low, high = map(float, self._gram.diagonal().aminmax())
        numbers = torch.finfo(self.weight.dtype)
        if low > numbers.tiny / numbers.eps and high < numbers.max * numbers.eps:
            return math.sqrt(SHARE * high)
        return torch.inf

    @cached_property
    def _least(self) -> float:
        """Return the least norm, of ``a`` and of the product, whose square keeps its digits."""
        numbers = torch.finfo(self.weight.dtype)
        return math.sqrt(numbers.tiny) / numbers.eps * max(1.0, 1 / self._share)


class Slopes:
    """Jacobians of one function at many batches, each as short as norms of it allow.

    ``rows`` is how many rows these Jacobians have in all: few do not pay for a Gram matrix.
    """

    def __init__(self, f: Function, *, rows: int) -> None:
        self._f, self._rows = f, rows
        self._front: FirstLayer | None = None
        self._version, self._whole = 0, False

    def norms(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, " n"]:
        """Return the Frobenius norm of the Jacobian of every row."""
        rows, first_layer = self.at(x)
        return norm(rows, dim=(1, 2)) if first_layer is None else first_layer.norm(rows)

    def at(self, x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "n r w"], FirstLayer | None]:
        """Return the Jacobian of every row; or only its factor after a front, and that front."""
        return finished(self.steps(x))

    def steps(
        self, x: Float[Tensor, "n *d"], vectors: Float[Tensor, "n k c"] | None = None
    ) -> Generator[None, None, tuple[Float[Tensor, "n r w"], FirstLayer | None]]:
        """Return what ``at`` does, with a step between backward passes.

        With ``vectors``, their products with the Jacobian stand in the place of its rows.
        """
        width = x.numel() // len(x)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = self._f(x)
            step = None if self._whole else _first_map(y.grad_fn, x)
            self._whole = step is None  # looking again, batch by batch, takes time
            first_layer = None if step is None else self._front_of(step, width)
            if step is None or first_layer is None:
                start, shape = get_gradient_edge(x), (len(x), 1, width)
            else:
                h, d = first_layer.weight.shape
                start, shape = GradientEdge(step, 0), (len(x), width // d, h)
        products = yield from vjps(y, start, vectors=vectors)
        return stacked(products, shape, x), first_layer

    def _front_of(self, step: Node, width: int) -> FirstLayer | None:
        """Return the linear map of that step of autograd, if there is one and its matrix pays."""
        matrix: Tensor = step._saved_mat2.detach()  # type: ignore[attr-defined]
        if matrix.dtype not in PRECISE or matrix.layout != torch.strided:
            return None
        d, h = matrix.shape
        if width % d or self._rows * (width // d) * (d - h) <= 2 * h * d:
            return None
        weight, version = matrix.T, matrix._version  # which tells of writing over it
        first_layer = self._front
        if (
            first_layer is None
            or version != self._version
            or not torch.equal(weight, first_layer.weight)
        ):
            first_layer = self._front = FirstLayer(weight=weight)
            self._version = version
        return first_layer


def _first_map(last: Node | None, x: Tensor) -> Node | None:
    """Return the step that multiplies all the input with a matrix, if all ways lead through it.

    Args:
        last: The last step of the call, None for a function without gradients.
        x: The input, a leaf.
    """
    users = _users(last)
    leaves = (step for step in users if step.name() == LEAF)
    step = next((leaf for leaf in leaves if leaf.variable is x), None)  # type: ignore[attr-defined]
    while step is not None and len(users[step]) == 1:
        ((step, place),) = users[step]
        if step.name() not in PASSING:
            takes_it = MAPS.get(step.name()) == place and getattr(step, "_saved_alpha", 1) == 1
            return step if takes_it else None
    return None


def _users(last: Node | None) -> dict[Node, list[tuple[Node, int]]]:
    """Return for each step of a call which steps take its result, and in which place."""
    users: dict[Node, list[tuple[Node, int]]] = {} if last is None else {last: []}
    waiting = list(users)
    while waiting:
        step = waiting.pop()
        for place, (before, _) in enumerate(step.next_functions):
            if before is None:
                continue
            if before not in users:
                users[before] = []
                waiting.append(before)
            users[before].append((step, place))
    return users
