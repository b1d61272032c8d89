"""Norms of Jacobians without the product with a wide first layer.

Where the input x enters a function through one linear layer z = W x + b and nowhere else, the
Jacobian is A W with A = df/dz, and |a W|^2 = a (W W^T) a^T. The h x h Gram matrix then replaces
the h x d matrix W at every sample. The first linear layer is found in the autograd graph of a call;
what follows it may be anything.
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

#: A squared norm below this fraction of the sum of its squared terms has cancelled.
CANCELLATION = 1 / 2

#: Dtypes whose Gram matrices are accurate enough.
PRECISE = (torch.float32, torch.float64)

#: Autograd nodes that multiply by a matrix on the right, and the index of the multiplied argument.
MATRIX_PRODUCTS = {"AddmmBackward0": 1, "MmBackward0": 0}

#: Autograd node of a leaf tensor.
LEAF = "torch::autograd::AccumulateGrad"

#: Autograd nodes that keep all values in their order.
RESHAPES = (
    "AliasBackward0",
    "CloneBackward0",
    "SqueezeBackward1",
    "UnsafeViewBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FirstLayer:
    """The first linear layer, which the whole input passes through."""

    weight: Float[Tensor, "h d"]

    def norm(self, a: Float[Tensor, "m r h"]) -> Float[Tensor, " m"]:
        """Return the Frobenius norms of ``a @ weight``.

        The product itself is computed only where the rows of ``weight`` cancel, since the Gram
        matrix loses accuracy there, or where their squares overflow or underflow.
        """
        vectors, gram, half = a.flatten(0, 1), self._gram, len(self.weight) // 2
        product = torch.empty_like(vectors)
        torch.mm(vectors[:, :half], gram[:half, :half], out=product[:, :half])
        torch.mm(vectors, gram[:, half:], out=product[:, half:])
        flat = (len(a), a.shape[1] * a.shape[2])  # reshape cannot infer -1 for an empty batch
        squares = product.mul_(vectors).reshape(flat).sum(1)
        norms = squares.sqrt()
        if bool(
            (
                norms
                > norm(a, dim=(1, 2)).clamp_(min=self._smallest_norm).mul_(self._trusted_ratio)
            ).all()
        ):
            return norms
        terms = torch.mul(vectors, vectors, out=product) @ gram.diagonal()
        trusted = squares >= CANCELLATION * terms.reshape(a.shape[:2]).sum(1)
        absolute_sums = torch.abs(vectors, out=product).reshape(flat).sum(1)
        smallest = self._smallest_norm * math.sqrt(a[0].numel())
        trusted &= (
            (norms > smallest) & (absolute_sums > smallest) & math.isfinite(self._trusted_ratio)
        )
        untrusted = ~trusted & ((absolute_sums > 0) | norms.isnan())
        norms[untrusted] = norm(a[untrusted] @ self.weight, dim=(1, 2))
        return norms

    @cached_property
    def _gram(self) -> Float[Tensor, "h h"]:
        """Return the Gram matrix with its upper right block doubled and its lower left block unset.

        The matrix is symmetric, so that the doubled block replaces the other: a quarter fewer
        products.
        """
        h = len(self.weight)
        first, second = self.weight[: h // 2], self.weight[h // 2 :]
        gram = self.weight.new_empty(h, h)
        torch.mm(first, first.T, out=gram[: h // 2, : h // 2])
        torch.mm(self.weight, second.T, out=gram[:, h // 2 :])
        gram[: h // 2, h // 2 :].mul_(2)
        return gram

    @cached_property
    def _trusted_ratio(self) -> float:
        """Return the ratio to the norm of ``a`` above which a norm needs no further check.

        The terms of a squared norm sum to at most that of ``a`` times the largest squared row norm.
        Infinite where squared row norms overflow or underflow.
        """
        low, high = map(float, self._gram.diagonal().aminmax())
        limits = torch.finfo(self.weight.dtype)
        if low > limits.tiny / limits.eps and high < limits.max * limits.eps:
            return math.sqrt(CANCELLATION * high)
        return torch.inf

    @cached_property
    def _smallest_norm(self) -> float:
        """Return the smallest norm, of ``a`` and of the product, whose square is accurate."""
        limits = torch.finfo(self.weight.dtype)
        return math.sqrt(limits.tiny) / limits.eps * max(1.0, 1 / self._trusted_ratio)


class JacobianFactors:
    """Jacobians of one function at many batches, or their factors after the first linear layer.

    ``rows`` is the total number of rows of these Jacobians: a few do not pay for a Gram matrix.
    """

    def __init__(self, f: Function, *, rows: int) -> None:
        self._f, self._rows = f, rows
        self._layer: FirstLayer | None = None
        self._version, self._unfactored = 0, False

    def norms(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, " n"]:
        """Return the Frobenius norm of the Jacobian at every sample."""
        factors, first_layer = self.at(x)
        return norm(factors, dim=(1, 2)) if first_layer is None else first_layer.norm(factors)

    def at(self, x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "n r w"], FirstLayer | None]:
        """Return the Jacobians, or their factors after the first layer and that layer."""
        return finished(self.steps(x))

    def steps(
        self, x: Float[Tensor, "n *d"], vectors: Float[Tensor, "n k c"] | None = None
    ) -> Generator[None, None, tuple[Float[Tensor, "n r w"], FirstLayer | None]]:
        """Return what ``at`` does, and yield between backward passes.

        With ``vectors``, their VJPs replace the rows of the Jacobian.
        """
        width = x.numel() // len(x)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = self._f(x)
            node = None if self._unfactored else _first_product(y.grad_fn, x)
            self._unfactored = node is None  # searching again for every batch takes time
            first_layer = None if node is None else self._first_layer_at(node, width)
            if node is None or first_layer is None:
                start, shape = get_gradient_edge(x), (len(x), 1, width)
            else:
                h, d = first_layer.weight.shape
                start, shape = GradientEdge(node, 0), (len(x), width // d, h)
        products = yield from vjps(y, start, vectors=vectors)
        return stacked(products, shape, x), first_layer

    def _first_layer_at(self, node: Node, width: int) -> FirstLayer | None:
        """Return the linear layer of an autograd node, if its Gram matrix saves operations."""
        matrix: Tensor = node._saved_mat2.detach()  # type: ignore[attr-defined]
        if matrix.dtype not in PRECISE or matrix.layout != torch.strided:
            return None
        d, h = matrix.shape
        if width % d or self._rows * (width // d) * (d - h) <= 2 * h * d:
            return None
        weight, version = matrix.T, matrix._version  # the version counts in-place changes
        first_layer = self._layer
        if (
            first_layer is None
            or version != self._version
            or not torch.equal(weight, first_layer.weight)
        ):
            first_layer = self._layer = FirstLayer(weight=weight)
            self._version = version
        return first_layer


def _first_product(last: Node | None, x: Tensor) -> Node | None:
    """Return the node that multiplies the input by a matrix, if all paths pass through it.

    Args:
        last: The last node of the graph, None for a function without gradients.
        x: The input, a leaf.
    """
    users = _users(last)
    leaves = (node for node in users if node.name() == LEAF)
    node = next((leaf for leaf in leaves if leaf.variable is x), None)  # type: ignore[attr-defined]
    while node is not None and len(users[node]) == 1:
        ((node, argument),) = users[node]
        if node.name() not in RESHAPES:
            multiplies_input = (
                MATRIX_PRODUCTS.get(node.name()) == argument
                and getattr(node, "_saved_alpha", 1) == 1
            )
            return node if multiplies_input else None
    return None


def _users(last: Node | None) -> dict[Node, list[tuple[Node, int]]]:
    """Return for each node of a graph the nodes that use its result, and as which argument."""
    users: dict[Node, list[tuple[Node, int]]] = {} if last is None else {last: []}
    queue = list(users)
    while queue:
        node = queue.pop()
        for argument, (before, _) in enumerate(node.next_functions):
            if before is None:
                continue
            if before not in users:
                users[before] = []
                queue.append(before)
            users[before].append((node, argument))
    return users
