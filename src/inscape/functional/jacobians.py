"""A module as a function of its input: probing, chunking and batched Jacobians."""

from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

from inscape._core import checks
from inscape._core.anytime import finished, most_rows
from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import (
    TRIAL,
    refuse_hidden_mixing,
    refuse_mixing,
    refuse_pairing,
    trial_samples,
)

#: Default bytes of the working set. More is slower: allocations above 32 MiB are returned to the
#: system and page-faulted again with every chunk.
MEMORY = 32 * 2**20

#: Largest useful batch: beyond it matrix products gain no speed and caches overflow.
ROWS = 1600

#: Assumed bytes saved by autograd per byte of input and output where they cannot be counted.
UNSEEN = 64


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Properties of a function, measured with a trial batch of three samples.

    ``f`` is the function itself; where it modifies its input in place, a wrapper that passes a
    copy; where it differentiates itself, a wrapper that enables gradients. A sample uses
    ``row_bytes`` with the gradients of all its outputs, of which each uses ``gradient_bytes``.
    """

    f: Function
    outputs: int
    row_bytes: int
    has_gradient: bool = True
    gradient_bytes: int = 0

    def need_gradient(self) -> None:
        """Raise if outputs vary but no gradient reaches the input."""
        if not self.has_gradient:
            raise _no_gradient_error()

    def rows(self, memory: int, *, gradients: int | None = None) -> int:
        """Return how many samples fit into ``memory`` bytes, at least one.

        ``gradients`` is the number held per sample; by default one for each output.
        """
        fewer = 0 if gradients is None else self.outputs - gradients
        row = max(1, self.row_bytes - fewer * self.gradient_bytes)
        return max(1, min(most_rows(ROWS), memory // row))


def _no_gradient_error() -> UnsupportedModelError:
    return UnsupportedModelError(
        "the model must let gradients reach its input, but its output changes and has none: remove "
        "torch.no_grad(), .detach() and NumPy from its forward."
    )


#: Probes by function, sample shape, dtype and device.
_CACHE: ContextVar[dict[Hashable, tuple[Function, Probe]] | None] = ContextVar(
    "probes", default=None
)


@contextmanager
def cached_probes() -> Iterator[None]:
    """Probe each function only once inside this context, in which its weights must not change.

    A probe evaluates seven samples, which is slow where one takes a tenth of a second.
    """
    token = _CACHE.set({})
    try:
        yield
    finally:
        _CACHE.reset(token)


def probe(f: Function, x: Float[Tensor, "n *d"]) -> Probe:
    """Check model and data, and return the number of outputs and the memory per sample."""
    cached = _CACHE.get()
    if cached is None:
        return _probe(f, x)
    checks.points(x)
    key = id(f), x.shape[1:], x.dtype, x.device
    if key not in cached:
        cached[key] = f, _probe(f, x)  # kept alive, so that no other function gets its id
    return cached[key][1]


def _probe(f: Function, x: Float[Tensor, "n *d"]) -> Probe:
    checks.in_eval_mode(f)
    checks.points(x)
    checks.weights(f, x)
    _keep_pages()
    samples = trial_samples(x)
    saved_bytes, argument, together = _measured_call(f, samples)
    if argument._version > 0:
        f = _with_copied_input(f)
    trial = together.detach().reshape(TRIAL, -1)
    try:
        refuse_mixing(f, samples, trial)
    except UnsupportedModelError:
        f = _with_gradients(f)
        refuse_mixing(f, samples, trial)
    refuse_hidden_mixing(f, x, trial)
    outputs = trial.shape[1]
    gradient = 3 * (x.numel() // len(x)) * x.element_size()
    return Probe(
        f=f,
        outputs=outputs,
        row_bytes=2 * saved_bytes // TRIAL + outputs * gradient,
        gradient_bytes=gradient,
        has_gradient=together.requires_grad or torch.equal(trial, trial[:1].expand_as(trial)),
    )


@cache
def _keep_pages() -> None:
    """Let the C library keep freed memory for the next chunk instead of returning it.

    glibc raises its trim threshold to twice the largest block that was freed, up to 32 MiB; without
    this, loops over chunks of a few MB page-fault again each time (80,000 faults in one gradient
    path length). The block is never touched, so that it uses no memory. Called once per process: a
    second block might lie on the heap and fragment it.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)


def _measured_call(f: Function, x: Tensor) -> tuple[int, Tensor, Tensor]:
    """Return the bytes that autograd saves for ``x``, the argument passed to ``f``, and f(x)."""
    saved_bytes = 0

    def count_bytes(tensor: Tensor) -> Tensor:
        nonlocal saved_bytes
        if tensor.ndim and len(tensor) == len(x):
            saved_bytes += tensor.numel() * tensor.element_size()
        return tensor.detach()  # with its graph, an output would never be freed

    hooks = torch.autograd.graph.saved_tensors_hooks(count_bytes, lambda tensor: tensor)
    with torch.enable_grad():
        argument = x.detach().requires_grad_().clone()
        try:
            with hooks:
                y = checks.call(f, argument)
        except UnsupportedModelError as error:
            if "saved tensor hooks" not in str(error):
                refuse_pairing(f, x, error)
                raise
            argument = x.detach().requires_grad_().clone()
            y = checks.call(f, argument)  # torch.func supports no hooks
            saved_bytes = UNSEEN * sum(tensor.numel() * tensor.element_size() for tensor in (x, y))
    return saved_bytes, argument, y


def _with_copied_input(f: Function) -> Function:
    """Return ``f`` applied to a copy of its input, since ``f`` modifies its input in place."""
    return lambda x: f(x.clone())


def _with_gradients(f: Function) -> Function:
    """Return ``f`` with gradients enabled, for a function that differentiates itself."""

    def call(x: Tensor) -> Tensor:
        if torch.is_grad_enabled() and x.requires_grad:
            return f(x)
        with torch.enable_grad():
            return f(x.detach().requires_grad_()).detach()

    return call


def norm(x: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """Return the Euclidean norm over ``dim``; its derivative at zero is zero."""
    result: Tensor = torch.linalg.vector_norm(x, dim=dim)
    return result


def chunks(x: Float[Tensor, "n *d"], rows: int) -> Iterator[Float[Tensor, "m *d"]]:
    """Split a batch into chunks of at most ``rows`` samples, of nearly equal size."""
    pieces = -(-len(x) // rows)
    yield from torch.tensor_split(x, pieces) if pieces > 1 else (x,)


def jacobians(f: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n c D"]:
    """Return the Jacobian at every sample by reverse mode, one backward pass for each output.

    Exact up to rounding; at a kink of ``f``, the one-sided derivative of PyTorch (0 for a ReLU at
    0). The caller splits the batch.
    """
    return _jacobians(f, x, live=False)


def differentiable_jacobians(f: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n c D"]:
    """Return the Jacobian at every sample with its graph, for penalties."""
    return _jacobians(f, x, live=True)


def _jacobians(f: Function, x: Tensor, *, live: bool) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        gradients = output_gradients(f(x), get_gradient_edge(x), live=live)
        return stacked(gradients, (len(x), 1, x.numel() // len(x)), x)


def output_gradients(
    y: Float[Tensor, "n *c"], to: GradientEdge, *, live: bool = False
) -> list[Tensor | None]:
    """Return for each output its gradient with respect to ``to``; None where it is constant."""
    return finished(vjps(y, to, live=live))


def vjps(
    y: Float[Tensor, "n *c"],
    to: GradientEdge,
    *,
    vectors: Float[Tensor, "n k c"] | None = None,
    live: bool = False,
) -> Generator[None, None, list[Tensor | None]]:
    """Return vector-Jacobian products with respect to ``to``, and yield between two of them.

    For each output alone, or for ``k`` vectors per sample; None where there is no gradient.
    """
    with torch.enable_grad():  # views of outputs need gradients, whatever the caller's mode
        y = y if y.ndim == 2 else y.reshape(len(y), -1)
        columns = torch.split(y, 1, dim=1) if y.shape[1] > 1 else (y,)
    if vectors is None:
        pairs = [(column, torch.ones_like(column)) for column in columns]
    else:
        pairs = [(y, vector) for vector in vectors.to(y).unbind(1)]
    if not y.requires_grad:  # a constant function
        return [None] * len(pairs)
    products: list[Tensor | None] = []
    for values, vector in pairs:
        if products:
            yield
        (product,) = torch.autograd.grad(
            values,
            (to,),
            vector,
            retain_graph=live or len(products) + 1 < len(pairs),
            create_graph=live,
            allow_unused=True,
        )
        if product is None and bool((values != values[0]).any()):
            raise _no_gradient_error()
        products.append(product)
    return products


def stacked(
    gradients: Sequence[Tensor | None], shape: tuple[int, int, int], like: Tensor
) -> Float[Tensor, "n r w"]:
    """Return gradients concatenated along the second axis, each in that shape; None is zero."""
    rows = [
        like.new_zeros(()).expand(shape) if gradient is None else _dense(gradient).reshape(shape)
        for gradient in gradients
    ]
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient
