"""Products of Hessian and Gauss-Newton matrices with vectors, summed over mini-batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from inscape.errors import UnsupportedModelError

#: Vectors that are multiplied at once where the whole matrix is wanted.
COLUMNS = 32


@dataclass(frozen=True)
class Term:
    """A part of a scalar function of parameters, such as the mean loss of a mini-batch.

    The function is the sum of all ``weight * value()``. For Gauss-Newton products, ``outputs`` are
    the network's, and ``output_hessian(outputs, tangents)`` the Hessian of the part with respect to
    them times a tangent.
    """

    weight: float
    value: Callable[[], Tensor]
    outputs: Callable[[], Tensor] | None = None
    output_hessian: Callable[[Tensor, Tensor], Tensor] | None = None


class HessianProducts:
    r"""Products of the Hessian of a scalar function of parameters with vectors.

    .. math:: v \mapsto \Bigl( \sum_b w_b \nabla^2 L_b + \lambda I \Bigr) v

    Exact up to rounding, by double backward passes, term by term: memory does not grow with their
    number. ``kept`` keeps the first-order graph of every term from product to product: faster, and
    only right while the parameters do not change. The decay is added once.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        parameters: Sequence[Tensor],
        *,
        decay: float = 0.0,
        kept: bool = False,
    ) -> None:
        self.terms, self.parameters = terms, list(parameters)
        self.decay, self.kept = decay, kept
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self._graphs: dict[int, list[Tensor | None]] = {}
        self.products, self._checked = 0, False

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return sum(self.sizes)

    def __call__(self, vector: Float[Tensor, " p"]) -> Float[Tensor, " p"]:
        """Return the product with one vector, which gets the dtype of the parameters."""
        self.products += 1
        vector = vector.to(self.parameters[0])
        parts = self.split(vector)
        totals = [torch.zeros_like(parameter) for parameter in self.parameters]
        for number in range(len(self.terms)):
            for total, part in zip(totals, self._product(number, parts), strict=True):
                if part is not None:
                    total += part
        flat = joined(totals)
        return flat if self.decay == 0.0 else flat + self.decay * vector

    def matrix(self) -> Float[Tensor, "p p"]:
        """Return the whole matrix, made symmetric; costs as many products as it has rows."""
        self.products += self.size
        like = self.parameters[0]
        rows = torch.zeros(self.size, self.size, dtype=like.dtype, device=like.device)
        identity = torch.eye(self.size, dtype=like.dtype, device=like.device)
        for number in range(len(self.terms)):
            gradients = self._gradients(number)
            for block in torch.split(torch.arange(self.size), COLUMNS):
                columns = self.split(identity[block])
                for at, part in self._columns(number, gradients, columns):
                    rows[block, at : at + part[0].numel()] += part.flatten(1)
        return (rows + rows.T) / 2 + self.decay * identity

    def split(self, vector: Float[Tensor, "*k p"]) -> list[Tensor]:
        """Return vectors as tensors of the shapes of the parameters."""
        parts = torch.split(vector, self.sizes, dim=-1)
        return [
            part.reshape(*vector.shape[:-1], *parameter.shape)
            for part, parameter in zip(parts, self.parameters, strict=True)
        ]

    def gradient(self) -> Float[Tensor, " p"]:
        """Return the gradient of the function, decay included."""
        totals = [torch.zeros_like(parameter) for parameter in self.parameters]
        for term in self.terms:
            value = _value(term)
            if value.requires_grad:
                for total, part in zip(totals, self._first(value, False), strict=True):
                    if part is not None:
                        total += part
        return joined(totals) + self.decay * joined([p.detach() for p in self.parameters])

    @torch.no_grad()
    def value(self) -> float:
        """Return the function's value in float64, decay included."""
        total = sum(term.weight * float(term.value()) for term in self.terms)
        squares = sum(float(p.detach().double().square().sum()) for p in self.parameters)
        return total + 0.5 * self.decay * squares

    def _gradients(self, number: int) -> list[Tensor | None]:
        """Return the gradients of a term with their graph."""
        if number in self._graphs:
            return self._graphs[number]
        value = _value(self.terms[number])
        gradients: list[Tensor | None] = [None] * len(self.sizes)
        if value.requires_grad:
            gradients = self._first(value, True)
        if not self._checked:
            _refuse_once_differentiable(gradients)
            self._checked = True
        if self.kept:
            self._graphs[number] = gradients
        return gradients

    def _first(self, value: Tensor, with_graph: bool) -> list[Tensor | None]:
        with torch.enable_grad():
            return list(
                torch.autograd.grad(
                    value, self.parameters, create_graph=with_graph, allow_unused=True
                )
            )

    def _product(self, number: int, parts: list[Tensor]) -> Sequence[Tensor | None]:
        return self._second(number, self._gradients(number), parts, batched=False)

    def _columns(
        self, number: int, gradients: list[Tensor | None], columns: list[Tensor]
    ) -> Iterator[tuple[int, Tensor]]:
        """Yield blocks of rows of the matrix, each with the column at which it begins."""
        at = 0
        products = self._second(number, gradients, columns, batched=True)
        for part, size in zip(products, self.sizes, strict=True):
            if part is not None:
                yield at, part
            at += size

    def _second(
        self,
        number: int,
        gradients: list[Tensor | None],
        parts: Sequence[Tensor],
        *,
        batched: bool,
    ) -> Sequence[Tensor | None]:
        """Return the gradients of gradients times vectors; None where they are constant."""
        pairs = [
            (gradient, part)
            for gradient, part in zip(gradients, parts, strict=True)
            if gradient is not None and gradient.requires_grad
        ]
        if not pairs:
            return [None] * len(self.sizes)
        firsts, vectors = zip(*pairs, strict=True)
        try:
            return torch.autograd.grad(
                firsts,
                self.parameters,
                vectors,
                retain_graph=self.kept or batched,
                allow_unused=True,
                is_grads_batched=batched,
            )
        except RuntimeError as error:
            if batched and not _is_underivable(error):
                return self._one_by_one(number, gradients, parts)
            raise _underivable(error) from error

    def _one_by_one(
        self, number: int, gradients: list[Tensor | None], parts: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Return the same without batching, for operations that ``vmap`` does not support."""
        kept, self.kept = self.kept, True
        try:
            rows = [
                self._second(number, gradients, [part[row] for part in parts], batched=False)
                for row in range(len(parts[0]))
            ]
        finally:
            self.kept = kept
        columns: list[Tensor | None] = []
        for entries in zip(*rows, strict=True):
            present = [entry for entry in entries if entry is not None]
            columns.append(torch.stack(present) if present else None)
        return columns


class GaussNewtonProducts(HessianProducts):
    r"""Products of the Gauss-Newton matrix with vectors.

    .. math:: v \mapsto \Bigl( \sum_b w_b J_b^T \, \nabla^2_f \ell_b \, J_b + \lambda I \Bigr) v

    The Hessian of the loss by the outputs is given by each term, in closed form.
    """

    def _gradients(self, number: int) -> list[Tensor | None]:
        """Return outputs, a vector of zeros and the VJP with it, whose derivative is the JVP."""
        if number in self._graphs:
            return self._graphs[number]
        outputs = self.terms[number].outputs
        assert outputs is not None
        with torch.enable_grad():
            y = outputs()
            zeros = torch.zeros_like(y, requires_grad=True)
            pulled = torch.autograd.grad(
                y, self.parameters, zeros, create_graph=True, allow_unused=True
            )
        graph: list[Tensor | None] = [y, zeros, *pulled]
        if self.kept:
            self._graphs[number] = graph
        return graph

    def _second(
        self,
        number: int,
        gradients: list[Tensor | None],
        parts: Sequence[Tensor],
        *,
        batched: bool,
    ) -> Sequence[Tensor | None]:
        if batched:
            return self._one_by_one(number, gradients, parts)
        y, zeros, *pulled = gradients
        assert y is not None
        assert zeros is not None
        pairs = [(g, v) for g, v in zip(pulled, parts, strict=True) if g is not None]
        if not pairs:
            return [None] * len(self.sizes)
        firsts, vectors = zip(*pairs, strict=True)
        try:
            (tangents,) = torch.autograd.grad(firsts, zeros, vectors, retain_graph=True)
        except RuntimeError as error:
            raise _underivable(error) from error
        term = self.terms[number]
        assert term.output_hessian is not None
        curved = term.weight * term.output_hessian(y.detach(), tangents)
        return torch.autograd.grad(
            y, self.parameters, curved, retain_graph=self.kept, allow_unused=True
        )


def joined(parts: Sequence[Tensor]) -> Float[Tensor, " p"]:
    """Return tensors as one flat vector."""
    return torch.cat([part.reshape(-1) for part in parts])


def _value(term: Term) -> Tensor:
    with torch.enable_grad():
        value = term.value()
        if value.numel() != 1 or not value.is_floating_point():
            raise ValueError(
                f"the loss must be one real number, found shape {tuple(value.shape)} and "
                f"{value.dtype}: take its mean."
            )
        return term.weight * value.reshape(())


def _refuse_once_differentiable(gradients: Sequence[Tensor | None]) -> None:
    """Raise if an operation can be differentiated once only: its second derivative would be zero.

    PyTorch puts a node that raises an error in its place, but no path leads through it.
    """
    queue = [g.grad_fn for g in gradients if g is not None and g.grad_fn is not None]
    seen = set(queue)
    while queue:
        node = queue.pop()
        if node.name().endswith("Error"):
            raise _underivable(RuntimeError("an operation is marked as once differentiable"))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def _is_underivable(error: RuntimeError) -> bool:
    text = str(error)
    return "not implemented" in text and "derivative" in text


def _underivable(error: RuntimeError) -> UnsupportedModelError:
    return UnsupportedModelError(
        "the loss must be twice differentiable by the parameters, but its second derivative raised "
        f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}; replace that operation."
    )
