"""Tangent kernel: how far a step on one point moves the outputs at another."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, generator, instrument
from inscape._core.anytime import anytime, finished, meanwhile, stoppable
from inscape._core.result import NONNEGATIVE, Range, positive_summary
from inscape.kernels.tangent import inputs
from inscape.kernels.tangent.memory_plan import plan, sizes
from inscape.kernels.tangent.products import Filled, filled

#: Bytes that gradients may take unless the caller says otherwise.
MEMORY = 2**30

#: Outputs up to which a trace is exact, random vectors beyond, and those of a step.
WHOLE, PROJECTIONS, STEP = 32, 16, 2

Outputs = Literal["full", "diagonal", "trace"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TangentKernel(Result):
    """Inner products of the gradients of outputs by all parameters.

    ``kernel[n, m, i, j]`` belongs to output ``i`` at point ``n`` of the first set and output ``j``
    at point ``m`` of the second; it lies in memory with ``i, n, j, m`` from slow to fast.
    ``"diagonal"`` keeps ``i = j`` (three axes, the last for outputs), ``"trace"`` their sum (two
    axes). ``lengths`` are those of the gradients of all outputs together, at the first points.
    ``layers`` tells for every parameter how its part was computed; ``frozen`` names those that are
    not trainable, ``unreached`` trainable ones that no gradient comes to at any point: neither
    counts.

    A trace from random vectors has a row of ``squares`` for each: the squared lengths of the
    gradients of that combination of outputs at the first points. ``errors`` are then the standard
    errors of the kernel, where it is normalised over the same lengths.
    """

    range: ClassVar[Range] = NONNEGATIVE

    kernel: Float[Tensor, "n m *c"]
    lengths: Float[Tensor, " n"]
    outputs: str
    normalised: bool
    symmetric: bool
    layers: tuple[tuple[str, str], ...]
    frozen: tuple[str, ...]
    unreached: tuple[str, ...] = ()
    squares: Float[Tensor, "k n"] | None = None
    errors: Float[Tensor, "n m"] | None = None
    seed: int = 0

    @property
    def trace(self) -> Float[Tensor, "n m"]:
        """Return the kernel summed over equal outputs."""
        if self.outputs == "trace":
            return self.kernel
        if self.outputs == "diagonal":
            return self.kernel.sum(2)
        return self.kernel.diagonal(dim1=2, dim2=3).sum(2)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each pair of points."""
        for n, line in enumerate(self.trace.tolist()):
            for m, value in enumerate(line):
                yield {"point": n, "other": m, "trace": value}

    def summary(self) -> Summary:
        """Return the mean length of the gradients: of the outputs together, at a point."""
        value = float(self.lengths.double().mean())
        basis = f"{len(self.lengths)} points, {len(self.layers)} parameters"
        if self.unreached:
            basis += f"; no gradient reaches {len(self.unreached)} others"
        if self.squares is None:
            return Summary(value=value, kind="exact", basis=basis)
        basis += f" x {len(self.squares)} random projections"
        value, error = _jackknifed(self.squares)
        return positive_summary(value, error, len(self.squares), kind="estimate", basis=basis)


@instrument(
    reads="parameters",
    larger="more sensitive to its parameters",
    cost="seconds",
    work=lambda n, c: 3.0 * c * min(n, 256) + min(n, 256) ** 2 * c**2 / 100,
    meaning="A small step of all parameters moves the outputs by up to {value} times its length, "
    "on average over the points.",
    cites="jacot2018neural; courtois2025path, Eq. (5)",
    by_default=False,
    discrete=True,
)
@anytime
def tangent_kernel(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    *,
    others: Real[Tensor, "m *d"] | None = None,
    outputs: Outputs = "full",
    normalised: bool = False,
    projections: int | None = None,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[TangentKernel | NotApplicable]:
    r"""Measure the inner products of gradients by all parameters between points.

    .. math:: K_{ij}(x, x') = \sum_p \frac{\partial f_i(x)}{\partial \theta_p}
              \frac{\partial f_j(x')}{\partial \theta_p}

    Exact up to rounding, at the parameters as they are. Linear maps are products of two Gram
    matrices, of their inputs and of the gradients at their outputs; convolutions, tables and
    weights used at several places are sums of such, or per-sample gradients are written out, a
    piece of the parameters at a time: whichever takes fewer operations. So are parameters that are
    added, multiplied or expanded, and those of normalisations. All others are written out by
    ``torch.func``, also where a map mixes points with something else. How each parameter acts is
    seen from one call and from a trial on a few points, and told in the result. With one set of
    points only half of the kernel is computed. All points go through the module at once if
    ``memory`` allows, else in blocks of points and then of outputs, which are computed anew for
    each pair of blocks.

    The trace of more than 32 outputs is an estimate from ``k`` random vectors v, at the cost of
    ``k`` backward passes: :math:`\mathbb{E}_v \langle \nabla (v^T f)(x), \nabla (v^T f)(x')
    \rangle = \operatorname{tr} K(x, x')` for normal v, the same at all points. Its standard errors,
    and the interval of the mean length, come from the vectors.

    Args:
        model: A module in eval mode; its trainable parameters count.
        x: Points; whole numbers if the model takes such, as tables of words do.
        others: A second set of points; the first itself by default.
        outputs: ``"full"`` for all pairs of outputs, ``"diagonal"`` for equal ones, ``"trace"`` for
            their sum.
        normalised: Divide by the lengths of both gradients: a cosine (of the outputs together for
            the trace); 0 where a gradient vanishes.
        projections: Random vectors for the trace; 0 takes all outputs, None does so up to 32 of
            them and takes 16 vectors beyond.
        seed: Seed of the vectors.
        memory: Bytes that a call of the module and its gradients may take beside the kernel.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1).eval()
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> tangent_kernel(net, x).kernel.squeeze()
    tensor([[ 6.,  4.],
            [ 4., 10.]])
    """
    checks.one_of(("full", "diagonal", "trace"), outputs=outputs)
    count = inputs.outputs(model, x)
    vectors = _vectors(outputs, count, projections, seed)
    if others is not None:
        inputs.points(others, "others")
        _alike(x, others)
    if not any(p.requires_grad for p in model.parameters()):
        reason = "the model has no trainable parameters"
        yield NotApplicable(what="tangent_kernel", reason=reason)
        return
    bytes_of, symmetric = sizes(model, x), others is None
    if vectors is None:
        blocks = plan(bytes_of, outputs, len(x), count, memory, symmetric=symmetric)
        made = finished(filled(model, x, others, outputs=outputs, count=count, plan=blocks))
        yield _result(model, made, outputs, normalised=normalised, symmetric=symmetric)
        return
    pairs = len(x) * len(x if others is None else others)
    at_once = STEP if stoppable() else max(1, memory // (4 * vectors.element_size() * pairs))
    sums, best = _Sums(), None
    for some in torch.split(vectors.to(inputs.numbers_like(model, x)), at_once):
        blocks = plan(bytes_of, "diagonal", len(x), len(some), memory, symmetric=symmetric)
        products = filled(
            model, x, others, outputs="diagonal", count=len(some), plan=blocks, vectors=some
        )
        if best is None:
            sums.add(finished(products))
        else:
            made = yield from meanwhile(products, best)
            sums.add(made)
        if sums.count > 1:
            best = sums.result(model, normalised=normalised, symmetric=symmetric, seed=seed)
            yield best


def _vectors(
    outputs: str, count: int, projections: int | None, seed: int
) -> Float[Tensor, "k c"] | None:
    """Return the random vectors of a trace; None where all outputs are taken."""
    checks.seed(seed)
    if projections is None:
        projections = PROJECTIONS if outputs == "trace" and count > WHOLE else 0
    checks.whole(0, projections=projections)
    if projections == 0:
        return None
    if outputs != "trace" or projections == 1:
        raise ValueError(
            "random projections are for outputs='trace', at least 2 of them, found projections="
            f"{projections} and outputs={outputs!r}: pass projections=0, or 2 and more for a trace."
        )
    if projections >= count:
        return None
    return torch.randn(projections, count, generator=generator(seed), dtype=torch.float64)


class _Sums:
    """Kernels of random combinations of outputs, added up."""

    def __init__(self) -> None:
        self.count = 0
        self._squares: list[tuple[Tensor, Tensor]] = []

    def add(self, made: Filled) -> None:
        """Add kernels, whose first axis counts the combinations."""
        kernels = made.kernel.double()
        if self.count == 0:
            self._ways, self._total = made.ways, kernels.new_zeros(kernels.shape[1:])
            self._deviations = torch.zeros_like(self._total)
        for kernel in kernels:  # the sum of squared deviations from the mean so far, as it grows
            self.count += 1
            self._total += kernel
            if self.count > 1:
                apart = kernel - self._total / self.count
                self._deviations += apart.square_() * (self.count / (self.count - 1))
        self._squares.append(made.squares)

    def result(
        self, model: nn.Module, *, normalised: bool, symmetric: bool, seed: int
    ) -> TangentKernel:
        """Return the estimate from all combinations so far."""
        left, right = (torch.cat(parts) for parts in zip(*self._squares, strict=True))
        kernel = (self._total / self.count).to(left)
        errors = (self._deviations / (self.count * (self.count - 1))).sqrt_().to(left)
        means = left.double().mean(0).to(left), right.double().mean(0).to(left)
        if normalised:
            _divide(errors, *means, "trace")
        made = Filled(kernel=kernel, squares=means, ways=self._ways)
        found = _result(model, made, "trace", normalised=normalised, symmetric=symmetric)
        return replace(found, squares=left, errors=errors, seed=seed)


def _result(
    model: nn.Module, made: Filled, outputs: str, *, normalised: bool, symmetric: bool
) -> TangentKernel:
    reached = dict(made.ways)
    inputs.refuse_unreached(reached)
    frozen = tuple(name for name, p in model.named_parameters() if not p.requires_grad)
    if normalised:
        for squares in made.squares:  # a length that overflows would make every cosine zero
            checks.finite(squares.movedim(-1, 0), "points")
        _divide(made.kernel, *made.squares, outputs)
    own = made.squares[0]
    axes = {"full": (1, 3, 0, 2), "diagonal": (1, 2, 0), "trace": (0, 1)}[outputs]
    return TangentKernel(
        kernel=made.kernel.permute(axes),
        lengths=(own if outputs == "trace" else own.sum(0)).sqrt(),
        outputs=outputs,
        normalised=normalised,
        symmetric=symmetric,
        layers=made.ways,
        frozen=frozen,
        unreached=tuple(
            name for name, _ in model.named_parameters() if name not in {*frozen, *reached}
        ),
    )


def _jackknifed(squares: Float[Tensor, "k n"]) -> tuple[float, float]:
    """Return the mean length and its standard error, by leaving out vector after vector."""
    k, values = len(squares), squares.double()
    whole = float(values.mean(0).sqrt().mean())
    fewer = ((values.sum(0) - values).clamp(min=0) / (k - 1)).sqrt().mean(1)
    error = ((k - 1) / k * (fewer - fewer.mean()).square().sum()).sqrt()
    return k * whole - (k - 1) * float(fewer.mean()), float(error)


def _alike(x: Tensor, others: Tensor) -> None:
    if others.shape[1:] != x.shape[1:] or others.dtype != x.dtype:
        raise ValueError(
            f"both sets of points must have one shape and dtype, found {tuple(x.shape[1:])} in "
            f"{x.dtype} and {tuple(others.shape[1:])} in {others.dtype}: convert others."
        )


def _divide(kernel: Tensor, squares: Tensor, more: Tensor, outputs: str) -> None:
    """Divide by the lengths of both gradients, in place."""
    one, two = (s.rsqrt().where(s > 0, 0) for s in (squares, more))
    if outputs == "full":
        kernel.mul_(one[:, :, None, None]).mul_(two)
    else:
        kernel.mul_(one[..., :, None]).mul_(two[..., None, :])
