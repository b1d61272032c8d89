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
    trial_rows,
)

#: Bytes of the working set unless the caller says otherwise. More is slower: blocks above 32 MiB
#: are given back to the system and fetched again, page by page, with every chunk.
MEMORY = 32 * 2**20

#: Rows beyond this many gain nothing: matrix products are at full speed and caches overflow.
ROWS = 1600

#: Bytes that autograd is taken to keep for each byte of input and output where it cannot be seen.
UNSEEN = 64


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a few trial rows tell about a function.

    ``f`` is the function itself; where it writes over its input, one that hands it a copy; where
    it takes gradients itself, one that lets it do so under ``torch.no_grad``, too. A row takes
    ``row_bytes`` with the gradients of all its outputs, of which each takes ``gradient_bytes``.
    """

    f: Function
    outputs: int
    row_bytes: int
    has_gradient: bool = True
    gradient_bytes: int = 0

    def need_gradient(self) -> None:
        """Refuse a function whose values vary but whose gradients do not reach the input."""
        if not self.has_gradient:
            raise _no_gradient()

    def rows(self, memory: int, *, gradients: int | None = None) -> int:
        """Return how many rows fit into ``memory`` bytes, at least one.

        ``gradients`` is how many are held of each row; by default one for each output.
        """
        fewer = 0 if gradients is None else self.outputs - gradients
        row = max(1, self.row_bytes - fewer * self.gradient_bytes)
        return max(1, min(most_rows(ROWS), memory // row))


def _no_gradient() -> UnsupportedModelError:
    return UnsupportedModelError(
        "the model must let gradients reach its input, but its output changes and has none: take "
        "torch.no_grad(), .detach() and NumPy out of its forward."
    )


#: What functions were probed to be, by the function and the kind of its rows.
_PROBES: ContextVar[dict[Hashable, tuple[Function, Probe]] | None] = ContextVar(
    "probes", default=None
)


@contextmanager
def probes_kept() -> Iterator[None]:
    """Probe each function once while the block runs, in which nobody may change its weights.

    The trial takes seven rows, which is long where one takes a tenth of a second.
    """
    token = _PROBES.set({})
    try:
        yield
    finally:
        _PROBES.reset(token)


def probe(f: Function, x: Float[Tensor, "n *d"]) -> Probe:
    """Check model and data, and learn the number of outputs and the memory that a row takes."""
    kept = _PROBES.get()
    if kept is None:
        return _probed(f, x)
    checks.points(x)
    key = id(f), x.shape[1:], x.dtype, x.device
    if key not in kept:
        kept[key] = f, _probed(f, x)  # held, so that no other function gets its number
    return kept[key][1]


def _probed(f: Function, x: Float[Tensor, "n *d"]) -> Probe:
    checks.in_eval_mode(f)
    checks.points(x)
    checks.weights(f, x)
    _keep_pages()
    rows = trial_rows(x)
    kept, given, together = _measured_call(f, rows)
    if given._version > 0:
        f = _spared(f)
    trial = together.detach().reshape(TRIAL, -1)
    try:
        refuse_mixing(f, rows, trial)
    except UnsupportedModelError:
        f = _with_gradients(f)
        refuse_mixing(f, rows, trial)
    refuse_hidden_mixing(f, x, trial)
    outputs = trial.shape[1]
    gradient = 3 * (x.numel() // len(x)) * x.element_size()
    return Probe(
        f=f,
        outputs=outputs,
        row_bytes=2 * kept // TRIAL + outputs * gradient,
        gradient_bytes=gradient,
        has_gradient=together.requires_grad or torch.equal(trial, trial[:1].expand_as(trial)),
    )


@cache
def _keep_pages() -> None:
    """Let the C library keep freed memory for the next chunk instead of giving it back.

    glibc raises its threshold for giving back to twice the largest block that it has seen freed,
    up to 32 MiB; without this, loops over chunks of a few MB fault every page anew (80,000 faults
    in one gradient path length). The block is never touched, so that it takes no memory.
    Once for each process: a second such block might lie on the heap, and leave a hole there.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)


def _measured_call(f: Function, x: Tensor) -> tuple[int, Tensor, Tensor]:
    """Return the bytes that autograd keeps of the rows of ``x``, what ``f`` was given, and f(x)."""
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        if tensor.ndim and len(tensor) == len(x):
            kept += tensor.numel() * tensor.element_size()
        return tensor.detach()  # with its history, an output would keep itself alive for ever

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with torch.enable_grad():
        given = x.detach().requires_grad_().clone()
        try:
            with hooks:
                y = checks.call(f, given)
        except UnsupportedModelError as error:
            if "saved tensor hooks" not in str(error):
                refuse_pairing(f, x, error)
                raise
            given = x.detach().requires_grad_().clone()
            y = checks.call(f, given)  # torch.func takes no hooks
            kept = UNSEEN * sum(tensor.numel() * tensor.element_size() for tensor in (x, y))
    return kept, given, y


def _spared(f: Function) -> Function:
    """Return a function that hands ``f`` a copy, since ``f`` writes over its input."""
    return lambda x: f(x.clone())


def _with_gradients(f: Function) -> Function:
    """Return a function that lets ``f`` take gradients at its input whoever calls it."""

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
    """Cut a batch into pieces of at most ``rows`` rows, as even as can be."""
    pieces = -(-len(x) // rows)
    yield from torch.tensor_split(x, pieces) if pieces > 1 else (x,)


def jacobians(f: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n c D"]:
    """Return the Jacobian of every row by reverse mode, one backward pass for each output.

    Exact up to rounding; where ``f`` has a kink, the one-sided derivative that PyTorch takes
    (0 for a ReLU at 0). The caller chunks.
    """
    return _jacobians(f, x, live=False)


def live_jacobians(f: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n c D"]:
    """Return Jacobians that can be differentiated again, for penalties."""
    return _jacobians(f, x, live=True)


def _jacobians(f: Function, x: Tensor, *, live: bool) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        found = pulled_back(f(x), get_gradient_edge(x), live=live)
        return stacked(found, (len(x), 1, x.numel() // len(x)), x)


def pulled_back(
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
    """Return vector-Jacobian products with respect to ``to``, with a step between two of them.

    Those of each output alone, or of ``k`` vectors for each row; None where there is no gradient.
    """
    with torch.enable_grad():  # views of outputs are to have gradients, whatever the caller's mode
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
            raise _no_gradient()
        products.append(product)
    return products


def stacked(
    gradients: Sequence[Tensor | None], shape: tuple[int, int, int], like: Tensor
) -> Float[Tensor, "n r w"]:
    """Return gradients below each other, each in that shape; None stands for zero."""
    rows = [
        like.new_zeros(()).expand(shape) if gradient is None else _dense(gradient).reshape(shape)
        for gradient in gradients
    ]
    return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient
