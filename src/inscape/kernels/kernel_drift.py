"""Kernel drift: the change of the tangent kernel during training."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.substitution import checked_copy
from inscape.kernels.tangent_kernel import MEMORY, Outputs, TangentKernel, tangent_kernel
from inscape.runtime.progress import progress
from inscape.training.trajectory import Trajectory, chosen_steps, stand_at


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelDrift(Result):
    """The tangent kernel at some steps of a training, compared with the first and the last of them.

    Columns of ``correlation``, ``cosine`` and ``change`` are against the start and the end; NaN
    where the kernel is constant over its entries, or vanishes.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "correlation": "NaN where a kernel does not vary",
        "cosine": "NaN where a kernel vanishes",
        "change": "NaN where the kernel that it is measured by vanishes",
    }

    steps: Int64[Tensor, " steps"]
    norms: Float64[Tensor, " steps"]
    correlation: Float64[Tensor, "steps 2"]
    cosine: Float64[Tensor, "steps 2"]
    change: Float64[Tensor, "steps 2"]
    parameter_norms: Float64[Tensor, " steps"]
    points: int
    outputs: str
    normalised: bool

    def rows(self) -> Iterator[Row]:
        """Yield one row for each step."""
        for i, step in enumerate(self.steps.tolist()):
            row: dict[str, Any] = {"step": step, "norm": float(self.norms[i])}
            for k, end in enumerate(("start", "end")):
                row[f"correlation with {end}"] = float(self.correlation[i, k])
                row[f"cosine with {end}"] = float(self.cosine[i, k])
                row[f"change from {end}"] = float(self.change[i, k])
                row[f"norm change from {end}"] = float(self.norm_change[i, k])
                row[f"rescaled fraction from {end}"] = float(self.rescaled[i, k])
            yield {**row, "parameter_norm": float(self.parameter_norms[i])}

    @property
    def norm_change(self) -> Float64[Tensor, "steps 2"]:
        """Return by how much the norm of each kernel differs from both ends, relative to theirs."""
        return (self._norm_ratios - 1).abs()

    @property
    def factors(self) -> Float64[Tensor, "steps 2"]:
        """Return the factor by which the kernel of an end comes nearest to each kernel."""
        return self.cosine * self._norm_ratios

    @property
    def rescaled(self) -> Float64[Tensor, "steps 2"]:
        r"""Return the fraction of each squared change that is a rescaling; NaN where none changed.

        .. math:: |K_t - K_0|^2 = (a - 1)^2 |K_0|^2 + |K_t - a K_0|^2, \quad
                  a = \langle K_t, K_0 \rangle / |K_0|^2
        """
        return ((self.factors - 1).square() / self.change.square()).clamp(max=1.0)

    @property
    def _norm_ratios(self) -> Float64[Tensor, "steps 2"]:
        return self.norms[:, None] / self.norms[None, [0, -1]]

    @property
    def status(self) -> str:
        """Return ``"ok"``, or that the first kernel vanishes and no change is relative to it."""
        return "ok" if float(self.norms[0]) > 0 else "the first kernel vanishes"

    def summary(self) -> Summary | None:
        """Return how far the last kernel is from the first, relative to the first."""
        if self.status != "ok":
            return None
        first, last = int(self.steps[0]), int(self.steps[-1])
        basis = f"steps {first} to {last}, {self.points} points"
        basis += f", cosine {float(self.cosine[-1, 0]):.3g}"
        return Summary(value=float(self.change[-1, 0]), kind="exact", basis=basis)


def _trained(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a short training of the model, for contract and report."""
    from inscape.training import fit

    body = copy.deepcopy(model)
    run = fit(body, x, y.to(x.dtype), lr=0.01, epochs=3, record=1, progress=False)
    return {"trajectory": run.trajectory}


@instrument(
    reads="trajectory",
    larger="farther from the kernel at the start",
    cost="minutes",
    work=lambda n, c: 12 * (3.0 * c * min(n, 256) + min(n, 256) ** 2 * c / 100),
    meaning="Training has changed the tangent kernel by {value} times its norm at the start.",
    cites="goldblum2020truth, section 4; jacot2018neural",
    example=_trained,
    by_default=False,
)
def kernel_drift(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    trajectory: Trajectory | None = None,
    steps: int | Sequence[int] = 12,
    outputs: Outputs = "trace",
    normalised: bool = False,
    memory: int = MEMORY,
) -> KernelDrift | NotApplicable:
    r"""Return how the tangent kernel changes along a recorded training.

    .. math:: \mathrm{change} = \frac{|K_t - K_0|_F}{|K_0|_F}, \quad
              \cos = \frac{\langle K_t, K_0 \rangle_F}{|K_t|_F \, |K_0|_F}

    Pearson's correlation (over all entries) and the cosine are invariant to rescaling; the change
    is not, and ``rescaled`` is the fraction of its square that is a rescaling. All are relative to
    the first of the steps, and to the last. In the limit of infinite width in NTK parametrisation
    the kernel is constant. Exact up to rounding; costs one tangent kernel per step.

    Args:
        model: The network that was trained, in eval mode; the recorded weights go into a copy.
        x: Samples at which the kernel is evaluated; a few dozen suffice.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        steps: Number of evenly spaced checkpoints, or the steps themselves.
        outputs: ``"trace"`` for the kernel summed over equal outputs, ``"diagonal"`` for each equal
            pair of outputs, ``"full"`` for all pairs.
        normalised: Whether to use cosines of gradients instead of inner products.
        memory: Bytes for gradients beside the kernel itself.
    """
    checks.module(model)
    checks.in_eval_mode(model)
    checks.points(x)
    checks.one_of(("full", "diagonal", "trace"), outputs=outputs)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="kernel_drift", reason=reason)
    chosen = chosen_steps(trajectory, steps)
    options = {"outputs": outputs, "normalised": normalised, "memory": memory}
    comparisons = _comparisons(model, x, trajectory, chosen, options)
    if isinstance(comparisons, NotApplicable):
        return comparisons
    columns = zip(*(comparisons[step] for step in chosen), strict=True)
    values = [torch.tensor(column, dtype=torch.float64) for column in columns]
    names = ("norms", "correlation", "cosine", "change", "parameter_norms")
    return KernelDrift(
        steps=torch.tensor(chosen),
        **dict(zip(names, values, strict=True)),
        points=len(x),
        outputs=outputs,
        normalised=normalised,
    )


#: Norm of a kernel; correlation, cosine and change against both ends; norm of the parameters.
_Comparison = tuple[float, list[float], list[float], list[float], float]


def _comparisons(
    model: nn.Module,
    x: Tensor,
    trajectory: Trajectory,
    chosen: Sequence[int],
    options: Mapping[str, Any],
) -> dict[int, _Comparison] | NotApplicable:
    """Return the comparison of the kernel at each chosen step with those at both ends."""
    body, first, last = checked_copy(model, x), chosen[0], chosen[-1]
    ends: dict[int, tuple[Tensor, float]] = {}
    comparisons: dict[int, _Comparison] = {}
    with progress(len(chosen), label="kernels of steps") as bar:
        for step in dict.fromkeys((first, last, *chosen)):  # only the kernels of both ends are kept
            stand_at(body, trajectory, step)
            result = tangent_kernel(body, x, projections=0, **options)
            if not isinstance(result, TangentKernel):
                return NotApplicable(what="kernel_drift", reason=result.reason)
            trained = [p.detach().flatten() for p in body.parameters() if p.requires_grad]
            parameter_norm = float(torch.cat(trained).double().norm())
            kernel = result.kernel.detach().flatten()
            if step in (first, last):
                ends[step] = kernel, parameter_norm
            else:
                comparisons[step] = _compared(kernel, ends[first][0], ends[last][0], parameter_norm)
            bar.advance()
    for step, (kernel, parameter_norm) in ends.items():
        comparisons[step] = _compared(kernel, ends[first][0], ends[last][0], parameter_norm)
    return comparisons


def _compared(kernel: Tensor, start: Tensor, end: Tensor, parameter_norm: float) -> _Comparison:
    """Return norm, correlation, cosine and change of a kernel against both ends."""
    values = kernel.double()
    correlation, cosine, change = [], [], []
    for other in (start.double(), end.double()):
        correlation.append(_cosine(values - values.mean(), other - other.mean()))
        cosine.append(_cosine(values, other))
        change.append(_ratio(float((values - other).norm()), float(other.norm())))
    return float(values.norm()), correlation, cosine, change, parameter_norm


def _cosine(left: Tensor, right: Tensor) -> float:
    return _ratio(float(left @ right), float(left.norm() * right.norm()))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else float("nan")
