"""Tangent kernel: how far a step on one point moves the outputs at another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float, Real
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.kernels import _inputs
from inscape.kernels._plan import plan, sizes
from inscape.kernels._products import filled

#: Bytes that gradients may take unless the caller says otherwise.
MEMORY = 2**30

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
        return Summary(value=value, kind="exact", basis=basis)


@instrument(
    reads="parameters",
    cost="seconds",
    work=lambda n, c: 3.0 * c * min(n, 256) + min(n, 256) ** 2 * c**2 / 100,
    meaning="A small step of all parameters moves the outputs by up to {value} times its length, "
    "on average over the points.",
    cites="jacot2018neural; courtois2025path, Eq. (5)",
    by_default=False,
)
def tangent_kernel(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    *,
    others: Real[Tensor, "m *d"] | None = None,
    outputs: Outputs = "full",
    normalised: bool = False,
    memory: int = MEMORY,
) -> TangentKernel | NotApplicable:
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

    Args:
        model: A module in eval mode; its trainable parameters count.
        x: Points; whole numbers if the model takes such, as tables of words do.
        others: A second set of points; the first itself by default.
        outputs: ``"full"`` for all pairs of outputs, ``"diagonal"`` for equal ones, ``"trace"`` for
            their sum.
        normalised: Divide by the lengths of both gradients: a cosine (of the outputs together for
            the trace); 0 where a gradient vanishes.
        memory: Bytes that a call of the module and its gradients may take beside the kernel.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1).eval()
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> tangent_kernel(net, x).kernel.squeeze()
    tensor([[ 6.,  4.],
            [ 4., 10.]])
    """
    checks.one_of(("full", "diagonal", "trace"), outputs=outputs)
    count = _inputs.outputs(model, x)
    if others is not None:
        _inputs.points(others, "others")
        _alike(x, others)
    frozen = tuple(name for name, p in model.named_parameters() if not p.requires_grad)
    if not any(p.requires_grad for p in model.parameters()):
        reason = "the model has no trainable parameters"
        return NotApplicable(what="tangent_kernel", reason=reason)
    blocks = plan(sizes(model, x), outputs, len(x), count, memory, symmetric=others is None)
    made = filled(model, x, others, outputs=outputs, count=count, plan=blocks)
    reached = dict(made.ways)
    _inputs.refuse_unreached(reached)
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
        symmetric=others is None,
        layers=made.ways,
        frozen=frozen,
        unreached=tuple(
            name for name, _ in model.named_parameters() if name not in {*frozen, *reached}
        ),
    )


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
