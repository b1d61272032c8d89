"""Norms of Jacobians without the product with a wide first layer.

Where the input x goes into a function through one linear map z = W x + b and nowhere else, the
Jacobian is A W with A = df/dz, and |a W|^2 = a (W W^T) a^T. A Gram matrix of h x h numbers then
stands at every point for the h x d numbers of W. This is algebra of the first layer alone. What
comes after it may be anything but a function that asks autograd for gradients itself: it would see
the cut, so it is differentiated as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inscape._core.checks import Function
from inscape._core.functional import jacobians, norm, pulled_back, stacked

#: A square that is a smaller share of the squares of its terms lost digits to cancellation.
SHARE = 1 / 2

#: The linear map as modules call it, and as exported graphs do.
LINEAR = (functional.linear, torch.ops.aten.linear.default)

#: What a function calls that takes gradients on its own.
GRADIENTS = (torch.autograd.grad, torch.autograd.backward, Tensor.backward)

#: Precisions whose Gram matrices keep digits enough.
PRECISE = (torch.float32, torch.float64)

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
class Front:
    """A linear map that the whole input goes through."""

    weight: Float[Tensor, "h d"]

    def norm(self, a: Float[Tensor, "m r h"]) -> Float[Tensor, " m"]:
        """Return the Frobenius norms of ``a @ weight``.

        The product itself is taken only where the rows of ``weight`` cancel, since there the Gram
        matrix would lose digits.
        """
        rows, (left, right) = a.flatten(0, 1), self._gram
        product = torch.empty_like(rows)
        torch.mm(rows[:, : len(left)], left, out=product[:, : len(left)])
        torch.mm(rows, right, out=product[:, len(left) :])
        square = product.mul_(rows).reshape(len(a), -1).sum(1)
        terms = torch.mul(rows, rows, out=product) @ self._diagonal
        trusted = square >= SHARE * terms.reshape(a.shape[:2]).sum(1)
        norms = square.clamp_(min=0).sqrt_()
        if not bool(trusted.all()):
            norms[~trusted] = norm(a[~trusted] @ self.weight, dim=(1, 2))
        return norms

    @cached_property
    def _gram(self) -> tuple[Float[Tensor, "k k"], Float[Tensor, "h l"]]:
        """Return columns of the Gram matrix, those of its first half without their lower part.

        The matrix is symmetric, so that the upper part counts twice for the lower, which is left
        out: a quarter of all products.
        """
        half = len(self.weight) // 2
        first, second = self.weight[:half], self.weight[half:]
        right = self.weight @ second.T
        right[:half] *= 2
        return first @ first.T, right

    @cached_property
    def _diagonal(self) -> Float[Tensor, " h"]:
        left, right = self._gram
        return torch.cat([left.diagonal(), right[len(left) :].diagonal()])

    @cached_property
    def in_range(self) -> bool:
        """Tell whether no square of a weight's row has left the range of the numbers."""
        low, high = (float(end) for end in self._diagonal.aminmax())
        numbers = torch.finfo(self.weight.dtype)
        return low > numbers.tiny / numbers.eps and high < numbers.max * numbers.eps


class _TakesGradientsError(BaseException):
    """A function asks for gradients: no ``except Exception`` of its own may catch this."""


class Slopes:
    """Jacobians of one function at many batches, each as short as norms of it allow.

    ``rows`` is how many rows these Jacobians have in all: few do not pay for a Gram matrix.
    """

    def __init__(self, f: Function, *, rows: int) -> None:
        self._f, self._rows = f, rows
        self._front: Front | None = None
        self._whole = False

    def norms(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, " n"]:
        """Return the Frobenius norm of the Jacobian of every row."""
        rows, front = self.at(x)
        return norm(rows, dim=(1, 2)) if front is None else front.norm(rows)

    def at(self, x: Float[Tensor, "n *d"]) -> tuple[Float[Tensor, "n r w"], Front | None]:
        """Return the Jacobian of every row; or only its factor after a front, and that front."""
        if self._whole:
            return jacobians(self._f, x), None
        cut = _Cut(x.detach().requires_grad_(), rows=self._rows)
        with torch.enable_grad():
            try:
                with cut:
                    y = self._f(cut.x)
            except _TakesGradientsError:
                self._whole = True
                return self.at(x)
            found = pulled_back(y, get_gradient_edge(cut.x), *cut.edges)
        shape = (len(x), 1, x.numel() // len(x))
        beside = [gradients[0] for gradients in found]
        if cut.weight is None:
            self._whole = True  # watching every call of the function takes time
            return stacked(beside, shape, x), None
        after = stacked([gradients[1] for gradients in found], cut.shape, x).to(x.dtype)
        if all(gradient is None for gradient in beside) and self._front_with(cut.weight).in_range:
            return after, self._front
        through = (after @ cut.weight).reshape(len(x), -1, x[0].numel())
        return through + stacked(beside, shape, x), None

    def _front_with(self, weight: Float[Tensor, "h d"]) -> Front:
        if self._front is None or not torch.equal(weight, self._front.weight):
            self._front = Front(weight=weight)
        return self._front


class _Cut(TorchFunctionMode):
    """Watches one call of a function for the linear map that takes the input.

    There the input goes in without its gradient, and the place of the output in the graph is
    kept. Modules, their hooks and other threads notice nothing.
    """

    def __init__(self, x: Tensor, *, rows: int) -> None:
        super().__init__()
        self.x, self._rows = x, rows
        self.weight: Tensor | None = None
        self.edges: tuple[GradientEdge, ...] = ()
        self.shape = (0, 0, 0)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in LINEAR and len(args) > 1 and self._takes_the_input(*args[:2]):
            given, weight, *bias = args
            z = func(given.detach().requires_grad_(), weight, *bias, **(kwargs or {}))
            self.weight, self.edges = weight.detach(), (get_gradient_edge(z),)
            self.shape = (len(z), z[0].numel() // z.shape[-1], z.shape[-1])
            return z
        if func in GRADIENTS and self.weight is not None:
            raise _TakesGradientsError
        return func(*args, **(kwargs or {}))

    def _takes_the_input(self, given: Tensor, weight: Tensor) -> bool:
        """Tell whether this is the first map of the whole input, and the cut pays."""
        if self.weight is not None or weight.ndim != 2 or not torch.is_grad_enabled():
            return False
        if weight.dtype not in PRECISE or len(given) != len(self.x):
            return False
        h, d = weight.shape
        rows = self._rows * (given[0].numel() // d)
        return rows * (d - h) > 2 * h * d and _is_passed_on(self.x, given)


def _is_passed_on(x: Tensor, given: Tensor) -> bool:
    """Tell whether ``given`` is ``x``, or all its numbers in their order in another shape."""
    if given is x:
        return True
    step = given.grad_fn
    while step is not None and step.name() in PASSING:
        step = step.next_functions[0][0]
    return getattr(step, "variable", None) is x
