"""Interpolation: the loss on the straight line between two parameter vectors."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape._core.sampling import generator
from inscape.functional.jacobians import MEMORY, probe
from inscape.functional.substitution import checked_copy
from inscape.landscape._last_layer import with_solved_last_layer
from inscape.landscape.alignment import aligned, similarity
from inscape.training import Loss
from inscape.training.losses import check_targets, loss_function

#: Default number of positions on the line.
POSITIONS = 25
#: Points by which permutation invariance is tested.
ALIGNMENT_POINTS = 32

#: Reason where there is one network only.
NO_OTHER = "it needs a second network: pass other=, a module or its state_dict"

Other = nn.Module | Mapping[str, Tensor]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Interpolation(Result):
    """The loss along the line, as it is and (on request) with the last layer solved again.

    ``norms`` tells whether the model has batch norm, whose running statistics are interpolated like
    weights: they then belong to no network and may cause a barrier by themselves.
    Other floating-point buffers are interpolated too. Of controlled networks the trained tensors
    are interpolated, under the control all along. ``similarity`` is the cosine of both ends, after
    the alignment if there was one.
    """

    range: ClassVar[Range] = NONNEGATIVE

    at: Float64[Tensor, " k"]
    losses: Float64[Tensor, " k"]
    solved: Float64[Tensor, " k"] | None
    loss: str
    bias: str
    aligned: bool
    similarity: float
    norms: bool

    @property
    def barrier(self) -> float:
        """Return how far the loss rises above the straight line between both ends, at most."""
        return _barrier(self.at, self.losses)

    @property
    def barrier_solved(self) -> float | None:
        """Return the barrier where the last layer is solved again at every position."""
        return None if self.solved is None else _barrier(self.at, self.solved)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each position."""
        for k, (at, loss) in enumerate(zip(self.at.tolist(), self.losses.tolist(), strict=True)):
            solved = None if self.solved is None else float(self.solved[k])
            yield {"at": at, "loss": loss, "solved": solved}

    def summary(self) -> Summary:
        """Return the barrier, a lower bound: the loss may be higher between positions."""
        ends = f"{float(self.losses[0]):.3g} to {float(self.losses[-1]):.3g}"
        basis = f"{self.loss} from {ends}, {len(self.at)} places"
        if self.barrier_solved is not None:
            basis += f"; solved {self.barrier_solved:.2g}"
        return Summary(value=self.barrier, kind="lower bound", basis=basis)


def _barrier(at: Tensor, losses: Tensor) -> float:
    fractions = (at - at[0]) / (at[-1] - at[0])
    straight = torch.lerp(losses[0], losses[-1], fractions)
    return float((losses - straight)[1:-1].max().clamp(min=0)) if len(at) > 2 else 0.0


def _perturbed(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a second network for the contract: a copy with noise on its weights."""
    other, rng = copy.deepcopy(model), generator(1)
    with torch.no_grad():
        for p in other.parameters():
            noise = torch.randn(p.shape, generator=rng, dtype=torch.float64).to(p)
            p.add_(noise * p.detach().square().mean().sqrt())
    return {"other": other}


@instrument(
    reads="pair",
    better="smaller",
    larger="a higher barrier between both networks",
    cost="instant",
    work=lambda n, c: POSITIONS * n,
    meaning="On the straight line between both networks the loss rises to {value} above the "
    "interpolation between its values at the ends.",
    cites="klindt2023controlling, A.2.2, Eq. (9) (K5); frankle2020linear; ainsworth2023git",
    example=_perturbed,
    by_default=False,
)
@torch.no_grad()
def interpolation(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor,
    *,
    other: Other | None = None,
    start: Mapping[str, Tensor] | None = None,
    at: Float[Tensor, " k"] | None = None,
    loss: str | Loss | None = None,
    solve: bool = False,
    solve_on: tuple[Tensor, Tensor] | None = None,
    bias: Literal["free", "zero", "kept"] = "free",
    align: bool = False,
    memory: int = MEMORY,
) -> Interpolation | NotApplicable:
    r"""Measure the loss on the straight line between two parameter vectors.

    .. math:: L(\alpha) = \mathrm{loss}(f_{(1 - \alpha) \theta_a + \alpha \theta_b}(x), y),
              \quad B = \max_\alpha L(\alpha) - (1 - \alpha) L(0) - \alpha L(1)

    Exact at each position; the barrier is a lower bound. Costs a pass over the data for each
    position.

    Args:
        model: The architecture, and by default the first end; not modified.
        x: Points at which the loss is computed.
        y: Their labels.
        other: The second end: a module of the same architecture, or its ``state_dict``.
        start: The first end, as a ``state_dict``; by default the model's own.
        at: Increasing positions, the first and last of which are the ends; by default 25, 0 to 1.
        loss: As in ``fit``; by default ``"mse"``, ``"cross_entropy"`` for integer labels.
        solve: Whether to solve the last layer by least squares as well; needs ``"mse"``.
        solve_on: Points and labels for that, such as the training set; by default ``x``, ``y``.
        bias: Bias of the solved layer: ``"free"`` (solved as well), ``"zero"`` (as in the paper),
            or ``"kept"`` as interpolated.
        align: Whether to permute the hidden units of the second end first; see :func:`aligned`.
        memory: Bytes that the working set may take.
    """
    checks.one_of(("free", "zero", "kept"), bias=bias)
    checks.module(model)
    probed = probe(model, x)
    checks.labels(y, x)
    if other is None:
        return NotApplicable(what="interpolation", reason=NO_OTHER)
    name = _checked_loss(model, x, y, loss, solve=solve)
    positions, ends = _positions(at), _ends(model, start, other)
    if align:
        ends[1], _ = aligned(model, *ends, x=x[:ALIGNMENT_POINTS])
    line = _LossAlongLine(model, x, y, loss_function(name), probed.rows(memory))
    losses, solved = line.losses(ends, positions, (solve_on or (x, y)) if solve else None, bias)
    return Interpolation(
        at=positions,
        losses=losses,
        solved=solved,
        loss=name if isinstance(name, str) else getattr(name, "__name__", "loss"),
        bias=bias,
        aligned=align,
        similarity=similarity(*ends),
        norms=any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()),
    )


def _checked_loss(
    model: nn.Module, x: Tensor, y: Tensor, loss: str | Loss | None, *, solve: bool
) -> str | Loss:
    """Return the loss, by default that of the kind of labels, or raise what does not match."""
    name = loss if loss is not None else ("mse" if y.is_floating_point() else "cross_entropy")
    if solve and name != "mse":
        raise ValueError(
            f"solving the last layer by least squares needs the loss 'mse', found {name!r}: use "
            "solve=False, or real labels."
        )
    check_targets(name, y, checks.call(model, x[:2].clone()))
    return name


class _LossAlongLine:
    r"""The loss of a network with parameters on a line, and with its last layer solved.

    The last layer is :math:`\beta = (H^T H)^+ H^T Y`, least squares of the labels on the features
    H, one row for each point (Klindt's Eq. (9) as corrected, K5). On the same data and with a free
    or kept bias this never has a higher mean squared error.
    """

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, measure: Loss, rows: int) -> None:
        self._network, self._x, self._y = checked_copy(model, x), x, y
        self._measure, self._rows = measure, rows

    def losses(
        self,
        ends: list[dict[str, Tensor]],
        positions: Float64[Tensor, " k"],
        solve_on: tuple[Tensor, Tensor] | None,
        bias: str,
    ) -> tuple[Float64[Tensor, " k"], Float64[Tensor, " k"] | None]:
        """Return the losses at all positions, and those with the last layer solved."""
        self._network.load_state_dict(ends[1])
        probe(self._network, self._x)  # independent samples, finite outputs: at both ends
        losses, solved = [], []
        for position in positions.tolist():
            self._network.load_state_dict(_interpolated(ends[0], ends[1], position))
            losses.append(self._loss(self._network))
            if solve_on is not None:
                replaced = with_solved_last_layer(
                    self._network, *solve_on, bias=bias, rows=self._rows
                )
                solved.append(self._loss(replaced))
        return (
            torch.tensor(losses, dtype=torch.float64),
            None if solve_on is None else torch.tensor(solved, dtype=torch.float64),
        )

    def _loss(self, model: nn.Module) -> float:
        return _loss(model, self._x, self._y, self._measure, self._rows)


def _positions(at: Tensor | None) -> Float64[Tensor, " k"]:
    if at is None:
        return torch.linspace(0, 1, POSITIONS, dtype=torch.float64)
    positions = at.detach().double().cpu()
    if len(positions) < 2 or not bool((positions.diff() > 0).all()):
        raise ValueError(
            f"at must have at least two increasing positions, found {at.tolist()}: sort them, and "
            "remove duplicates."
        )
    return positions


def _ends(
    model: nn.Module, start: Mapping[str, Tensor] | None, other: Other
) -> list[dict[str, Tensor]]:
    """Return both ends as state dicts of the model, or raise what does not match."""
    own = model.state_dict()
    states = [own if start is None else start]
    states += [other.state_dict() if isinstance(other, nn.Module) else other]
    for name, state in zip(("start", "other"), states, strict=True):
        if state.keys() != own.keys():
            odd = sorted(state.keys() ^ own.keys())[0]
            raise ValueError(
                f"{name} must have the parameters of the model, found that {odd!r} is in one of "
                "them alone: pass a network of the same architecture."
            )
        for key, value in state.items():
            if value.shape != own[key].shape:
                raise ValueError(
                    f"{name} must have the shapes of the model, found {tuple(value.shape)} for "
                    f"{key!r} where the model has {tuple(own[key].shape)}: pass a network of the "
                    "same widths."
                )
            if value.is_floating_point() and not bool(value.isfinite().all()):
                raise ValueError(
                    f"{name} must be finite, found NaN or Inf in {key!r}: load an earlier "
                    "checkpoint."
                )
        _check_same_controls(model, state, name)
    return [{key: value.detach() for key, value in state.items()} for state in states]


def _check_same_controls(model: nn.Module, state: Mapping[str, Tensor], name: str) -> None:
    """Raise if a state dict was made under other controls than those of the model."""
    try:
        copy.deepcopy(model).load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            f"{name} must be held at what holds the model (one sigma, one scope, one bias, one "
            "scale of activations), found something else: build both alike, or release both first "
            "if it is weights that are held."
        ) from error


def _interpolated(
    start: dict[str, Tensor], stop: dict[str, Tensor], fraction: float
) -> dict[str, Tensor]:
    """Return the state at a fraction of the line; exactly the ends at 0 and 1."""
    return {
        name: torch.lerp(value, stop[name].to(value), fraction)
        if value.is_floating_point()
        else value
        for name, value in start.items()
    }


def _loss(model: nn.Module, x: Tensor, y: Tensor, measure: Loss, rows: int) -> float:
    """Return the loss over all points, predicted in batches."""
    outputs = torch.cat([checks.call(model, part.clone()) for part in torch.split(x, rows)])
    if outputs.is_floating_point() and y.is_floating_point():
        y = y.to(outputs.dtype).reshape(outputs.shape) if y.numel() == outputs.numel() else y
    return float(measure(outputs, y))
