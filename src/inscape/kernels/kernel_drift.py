"""Kernel drift: how far training carries the tangent kernel away from where it began."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.progress import progress
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.substitution import copied
from inscape.kernels.tangent_kernel import MEMORY, Outputs, TangentKernel, tangent_kernel
from inscape.training.trajectory import Trajectory, chosen_steps, stand_at


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelDrift(Result):
    """The tangent kernel at some steps of a training against that of the first and last of them.

    Columns of ``correlation``, ``cosine`` and ``change`` are against the start and the end; not a
    number where the kernel does not vary, or vanishes.
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
            yield {**row, "parameter_norm": float(self.parameter_norms[i])}

    @property
    def status(self) -> str:
        """Return ``"ok"``, or that the first kernel vanishes: nothing is relative to it."""
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
    r"""Follow the tangent kernel of some points along a recorded training.

    .. math:: \mathrm{change} = \frac{|K_t - K_0|_F}{|K_0|_F}, \quad
              \cos = \frac{\langle K_t, K_0 \rangle_F}{|K_t|_F \, |K_0|_F}

    The correlation (Pearson's, over all entries) and the cosine do not see a mere rescaling; the
    change does. All against the first of the steps, and against the last. In the limit of infinite
    width with the right scaling nothing would move. Exact up to rounding at every step; costs one
    tangent kernel for each.

    Args:
        model: The network that was trained, in eval mode; a copy of it takes the recorded weights.
        x: Points between which the kernel is taken; a few dozen will do.
        trajectory: The recorded training, as ``fit(..., record=...)`` returns it.
        steps: Number of checkpoints to look at, spread evenly, or the steps themselves.
        outputs: ``"trace"`` for the kernel summed over equal outputs, ``"diagonal"`` for each equal
            pair of outputs, ``"full"`` for all pairs.
        normalised: Whether to take cosines of gradients instead of inner products.
        memory: Bytes that gradients of points may take beside the kernel itself.
    """
    checks.module(model)
    checks.in_eval_mode(model)
    checks.points(x)
    checks.one_of(("full", "diagonal", "trace"), outputs=outputs)
    if trajectory is None:
        reason = "it needs a recorded training: pass fit(..., record=...).trajectory"
        return NotApplicable(what="kernel_drift", reason=reason)
    chosen = chosen_steps(trajectory, steps)
    body, first, last = copied(model, x), chosen[0], chosen[-1]
    ends: dict[int, Tensor] = {}
    rows: dict[int, _Comparison] = {}
    lengths: dict[int, Tensor] = {}
    with progress(len(chosen), label="kernels of steps") as bar:
        for step in dict.fromkeys((first, last, *chosen)):  # the ends first: no other is kept
            stand_at(body, trajectory, step)
            found = tangent_kernel(
                body, x, outputs=outputs, normalised=normalised, projections=0, memory=memory
            )
            if not isinstance(found, TangentKernel):
                return NotApplicable(what="kernel_drift", reason=found.reason)
            kernel = found.kernel.detach().flatten()
            if step in (first, last):
                ends[step] = kernel
            else:
                rows[step] = _compared(kernel, ends[first], ends[last])
            trained = [p.detach() for p in body.parameters() if p.requires_grad]
            lengths[step] = torch.cat([p.flatten() for p in trained]).double().norm()
            bar.advance()
    rows |= {step: _compared(kernel, ends[first], ends[last]) for step, kernel in ends.items()}
    columns = zip(*(rows[step] for step in chosen), strict=True)
    norms, correlation, cosine, change = (torch.tensor(c, dtype=torch.float64) for c in columns)
    return KernelDrift(
        steps=torch.tensor(chosen),
        norms=norms,
        correlation=correlation,
        cosine=cosine,
        change=change,
        parameter_norms=torch.stack([lengths[step] for step in chosen]).cpu(),
        points=len(x),
        outputs=outputs,
        normalised=normalised,
    )


_Comparison = tuple[float, list[float], list[float], list[float]]


def _compared(kernel: Tensor, start: Tensor, end: Tensor) -> _Comparison:
    """Return the norm of a kernel, and correlation, cosine and change against both ends."""
    one = kernel.double()
    correlation, cosine, change = [], [], []
    for other in (start.double(), end.double()):
        correlation.append(_cosine(one - one.mean(), other - other.mean()))
        cosine.append(_cosine(one, other))
        change.append(_ratio(float((one - other).norm()), float(other.norm())))
    return float(one.norm()), correlation, cosine, change


def _cosine(one: Tensor, two: Tensor) -> float:
    return _ratio(float(one @ two), float(one.norm() * two.norm()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
