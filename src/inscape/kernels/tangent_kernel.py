"""Tangent kernel: inner products of parameter gradients between samples.

For linear layers the kernel is a product of two Gram matrices, of their inputs and of their
cotangents; for convolutions, embeddings and weights used at several positions a sum of such
products, or a product of dense per-sample gradients, computed for a block of parameters at a time:
whichever costs fewer operations. Parameters that are added, multiplied or expanded, and those of
normalisations, have dense gradients. All others are differentiated by ``torch.func``. How each
parameter acts is determined by one recorded call and a trial on a few samples. All samples pass
through the module at once if ``memory`` allows, else in blocks of samples, then of outputs, which
are recomputed for each pair of blocks.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, generator, instrument
from inscape._core.anytime import anytime, finished, meanwhile, stoppable
from inscape._core.result import NONNEGATIVE, Range, positive_summary
from inscape.kernels.tangent import inputs
from inscape.kernels.tangent.assembly import AssembledKernel, assembled_kernel
from inscape.kernels.tangent.memory_plan import GradientBytes, gradient_bytes, memory_plan

#: Default bytes for gradients.
MEMORY = 2**30

#: Outputs up to which a trace is exact, random cotangents beyond, and those of a step.
EXACT_OUTPUTS, PROJECTIONS, STEP = 32, 16, 2

Outputs = Literal["full", "diagonal", "trace"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TangentKernel(Result):
    """Inner products of the gradients of outputs by all parameters.

    ``kernel[n, m, i, j]`` belongs to output ``i`` at sample ``n`` of the first set and output ``j``
    at sample ``m`` of the second; in memory, ``i, n, j, m`` are ordered from slow to fast.
    ``"diagonal"`` has ``i = j`` (three axes, the last for outputs), ``"trace"`` their sum (two
    axes). ``gradient_norms`` are those of all outputs together, at the first set. ``layers`` tells
    for every parameter how its part was computed; ``frozen`` names parameters that are not
    trainable, ``unreached`` trainable ones without a gradient at any sample: neither counts.

    A trace from random cotangents has a row of ``squared_norms`` for each: the squared gradient
    norms of that combination of outputs at the first set. ``standard_errors`` are then those of the
    kernel; of a normalised one, divided by the same norms.
    """

    range: ClassVar[Range] = NONNEGATIVE

    kernel: Float[Tensor, "n m *c"]
    gradient_norms: Float[Tensor, " n"]
    outputs: str
    normalised: bool
    symmetric: bool
    layers: tuple[tuple[str, str], ...]
    frozen: tuple[str, ...]
    unreached: tuple[str, ...] = ()
    squared_norms: Float[Tensor, "k n"] | None = None
    standard_errors: Float[Tensor, "n m"] | None = None
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
        """Yield one row for each pair of samples."""
        for n, line in enumerate(self.trace.tolist()):
            for m, value in enumerate(line):
                yield {"point": n, "other": m, "trace": value}

    def summary(self) -> Summary:
        """Return the mean over samples of the gradient norm of all outputs together."""
        value = float(self.gradient_norms.double().mean())
        basis = f"{len(self.gradient_norms)} points, {len(self.layers)} parameters"
        if self.unreached:
            basis += f"; no gradient reaches {len(self.unreached)} others"
        if self.squared_norms is None:
            return Summary(value=value, kind="exact", basis=basis)
        basis += f" x {len(self.squared_norms)} random projections"
        value, error = _jackknifed(self.squared_norms)
        return positive_summary(value, error, len(self.squared_norms), kind="estimate", basis=basis)


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
    r"""Return the empirical neural tangent kernel of a module at given inputs.

    .. math:: K_{ij}(x, x') = \sum_p \frac{\partial f_i(x)}{\partial \theta_p}
              \frac{\partial f_j(x')}{\partial \theta_p}

    Exact up to rounding, at the current parameters; only half of a symmetric kernel is computed.
    ``layers`` of the result tells how each parameter was treated (see the top of this module). The
    trace over more than 32 outputs is an estimate by ``k`` backward passes with random cotangents
    v: :math:`\mathbb{E}_v \langle \nabla (v^T f)(x), \nabla (v^T f)(x') \rangle =
    \operatorname{tr} K(x, x')` for standard normal v, shared by all samples.

    Args:
        model: A module in eval mode; its trainable parameters count.
        x: Samples; integers such as token ids if the model supports them.
        others: A second set of samples; ``x`` itself by default.
        outputs: ``"full"`` for all pairs of outputs, ``"diagonal"`` for equal ones, ``"trace"`` for
            their sum.
        normalised: Divide by both gradient norms: a cosine (of all outputs together for the trace),
            0 where a gradient vanishes.
        projections: Random cotangents for the trace; 0 for all outputs, None for all up to 32 of
            them and 16 random ones beyond.
        seed: Seed of the cotangents.
        memory: Bytes for a call of the module and its gradients, beside the kernel.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1).eval()
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> tangent_kernel(net, x).kernel.squeeze()
    tensor([[ 6.,  4.],
            [ 4., 10.]])
    """
    checks.one_of(("full", "diagonal", "trace"), outputs=outputs)
    count = inputs.output_count(model, x)
    vectors = _random_cotangents(outputs, count, projections, seed)
    if others is not None:
        _check_others(x, others)
    if not any(p.requires_grad for p in model.parameters()):
        reason = "the model has no trainable parameters"
        yield NotApplicable(what="tangent_kernel", reason=reason)
        return
    request = _Request(model, x, others, outputs, normalised, memory)
    if vectors is None:
        yield request.exact(count)
    else:
        yield from request.estimates(vectors.to(inputs.floating_like(model, x)), seed)


def _random_cotangents(
    outputs: str, count: int, projections: int | None, seed: int
) -> Float[Tensor, "k c"] | None:
    """Return the random cotangents of a trace; None where all outputs are computed."""
    checks.seed(seed)
    if projections is None:
        projections = PROJECTIONS if outputs == "trace" and count > EXACT_OUTPUTS else 0
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


@dataclass(frozen=True, eq=False)
class _Request:
    """The arguments of a tangent kernel, after their checks."""

    model: nn.Module
    x: Tensor
    others: Tensor | None
    outputs: str
    normalised: bool
    memory: int

    def exact(self, count: int) -> TangentKernel:
        """Return the kernel of all outputs."""
        sizes = gradient_bytes(self.model, self.x)
        return self.result(finished(self._assembled(self.outputs, count, sizes)))

    def estimates(self, vectors: Float[Tensor, "k c"], seed: int) -> Iterator[TangentKernel]:
        """Yield ever better estimates of the trace, from more and more cotangents."""
        sizes = gradient_bytes(self.model, self.x)
        pairs = len(self.x) * len(self.x if self.others is None else self.others)
        at_once = max(1, self.memory // (4 * vectors.element_size() * pairs))
        moments, best = _Moments(), None
        for batch in torch.split(vectors, STEP if stoppable() else at_once):
            kernels = self._assembled("diagonal", len(batch), sizes, batch)
            if best is None:
                moments.add(finished(kernels))
            else:
                moments.add((yield from meanwhile(kernels, best)))
            if moments.count > 1:
                best = moments.result(self, seed)
                yield best

    def _assembled(
        self, outputs: str, count: int, sizes: GradientBytes, vectors: Tensor | None = None
    ) -> Generator[None, None, AssembledKernel]:
        n, symmetric = len(self.x), self.others is None
        blocks = memory_plan(sizes, outputs, n, count, self.memory, symmetric=symmetric)
        return assembled_kernel(
            self.model,
            self.x,
            self.others,
            outputs=outputs,
            count=count,
            plan=blocks,
            vectors=vectors,
        )

    def result(self, assembled: AssembledKernel) -> TangentKernel:
        """Return the result, normalised if asked for, with the axes in the order of its fields."""
        reached = dict(assembled.methods)
        inputs.refuse_unreached(reached)
        frozen = tuple(name for name, p in self.model.named_parameters() if not p.requires_grad)
        if self.normalised:
            for squared_norms in assembled.squared_norms:  # infinite norms would hide cosines
                checks.finite(squared_norms.movedim(-1, 0), "points")
            _normalise(assembled.kernel, *assembled.squared_norms, self.outputs)
        own = assembled.squared_norms[0]
        axes = {"full": (1, 3, 0, 2), "diagonal": (1, 2, 0), "trace": (0, 1)}[self.outputs]
        return TangentKernel(
            kernel=assembled.kernel.permute(axes),
            gradient_norms=(own if self.outputs == "trace" else own.sum(0)).sqrt(),
            outputs=self.outputs,
            normalised=self.normalised,
            symmetric=self.others is None,
            layers=assembled.methods,
            frozen=frozen,
            unreached=tuple(
                name for name, _ in self.model.named_parameters() if name not in {*frozen, *reached}
            ),
        )


class _Moments:
    """Running mean and variance of the kernels of random combinations of outputs."""

    def __init__(self) -> None:
        self.count = 0
        self._squared_norms: list[tuple[Tensor, Tensor]] = []

    def add(self, assembled: AssembledKernel) -> None:
        """Add kernels, whose first axis counts the combinations."""
        kernels = assembled.kernel.double()
        if self.count == 0:
            self._methods, self._total = assembled.methods, kernels.new_zeros(kernels.shape[1:])
            self._squares = torch.zeros_like(self._total)
        for kernel in kernels:  # the sum of squared deviations from the running mean (Welford)
            self.count += 1
            self._total += kernel
            if self.count > 1:
                deviation = kernel - self._total / self.count
                self._squares += deviation.square_() * (self.count / (self.count - 1))
        self._squared_norms.append(assembled.squared_norms)

    def result(self, request: _Request, seed: int) -> TangentKernel:
        """Return the estimate from all combinations so far."""
        left, right = (torch.cat(parts) for parts in zip(*self._squared_norms, strict=True))
        kernel = (self._total / self.count).to(left)
        errors = (self._squares / (self.count * (self.count - 1))).sqrt_().to(left)
        means = left.double().mean(0).to(left), right.double().mean(0).to(left)
        if request.normalised:
            _normalise(errors, *means, "trace")
        mean = AssembledKernel(kernel=kernel, squared_norms=means, methods=self._methods)
        return replace(request.result(mean), squared_norms=left, standard_errors=errors, seed=seed)


def _jackknifed(squared_norms: Float[Tensor, "k n"]) -> tuple[float, float]:
    """Return the mean gradient norm and its standard error, by the jackknife over cotangents."""
    k, values = len(squared_norms), squared_norms.double()
    estimate = float(values.mean(0).sqrt().mean())
    leave_one_out = ((values.sum(0) - values).clamp(min=0) / (k - 1)).sqrt().mean(1)
    error = ((k - 1) / k * (leave_one_out - leave_one_out.mean()).square().sum()).sqrt()
    return k * estimate - (k - 1) * float(leave_one_out.mean()), float(error)


def _check_others(x: Tensor, others: Tensor) -> None:
    inputs.check_points(others, "others")
    if others.shape[1:] != x.shape[1:] or others.dtype != x.dtype:
        raise ValueError(
            f"both sets of points must have one shape and dtype, found {tuple(x.shape[1:])} in "
            f"{x.dtype} and {tuple(others.shape[1:])} in {others.dtype}: convert others."
        )


def _normalise(kernel: Tensor, left: Tensor, right: Tensor, outputs: str) -> None:
    """Divide by both gradient norms, given their squares, in place."""
    inverse_left, inverse_right = (s.rsqrt().where(s > 0, 0) for s in (left, right))
    if outputs == "full":
        kernel.mul_(inverse_left[:, :, None, None]).mul_(inverse_right)
    else:
        kernel.mul_(inverse_left[..., :, None]).mul_(inverse_right[..., None, :])
