"""Interpolation: the loss on the straight way from one vector of parameters to another."""

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
from inscape.functional.substitution import copied
from inscape.landscape._last_layer import resolved
from inscape.landscape.alignment import aligned, similarity
from inscape.training import Loss
from inscape.training.losses import check_targets, loss_function

#: Places on the way unless the caller names some.
PLACES = 25
#: Points by which it is seen that units may change places.
ALIGNED_BY = 32

Other = nn.Module | Mapping[str, Tensor]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Interpolation(Result):
    """The loss along the way, as it is and (where asked) with the last layer solved anew.

    ``norms`` says whether the model has batch norm, whose running statistics are interpolated like
    weights: they then belong to no network, and a barrier may be theirs alone.
    ``likeness`` is the cosine of both ends, after the alignment where there was one.
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
        """Return the barrier where the last layer is solved anew at every place."""
        return None if self.solved is None else _barrier(self.at, self.solved)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each place."""
        for k, (at, loss) in enumerate(zip(self.at.tolist(), self.losses.tolist(), strict=True)):
            solved = None if self.solved is None else float(self.solved[k])
            yield {"at": at, "loss": loss, "solved": solved}

    def summary(self) -> Summary:
        """Return the barrier; the places between those that were tried may be higher."""
        ends = f"{float(self.losses[0]):.3g} to {float(self.losses[-1]):.3g}"
        basis = f"{self.loss} from {ends}, {len(self.at)} places"
        if self.barrier_solved is not None:
            basis += f"; solved {self.barrier_solved:.2g}"
        return Summary(value=self.barrier, kind="lower bound", basis=basis)


def _barrier(at: Tensor, losses: Tensor) -> float:
    share = (at - at[0]) / (at[-1] - at[0])
    straight = torch.lerp(losses[0], losses[-1], share)
    return float((losses - straight)[1:-1].max().clamp(min=0)) if len(at) > 2 else 0.0


def _nearby(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Return a second network for the contract: this one, with noise on its weights."""
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
    work=lambda n, c: PLACES * n,
    meaning="On the straight line between both networks the loss rises to {value} above the "
    "interpolation between its values at the ends.",
    cites="klindt2023controlling, A.2.2, Eq. (9) (K5); frankle2020linear; ainsworth2023git",
    example=_nearby,
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
    r"""Measure the loss on the straight way between two vectors of parameters.

    .. math:: L(\alpha) = \mathrm{loss}(f_{(1 - \alpha) \theta_a + \alpha \theta_b}(x), y),
              \quad B = \max_\alpha L(\alpha) - (1 - \alpha) L(0) - \alpha L(1)

    With ``solve`` the last linear layer is replaced, at every place, by least squares of the labels
    on what goes into it, :math:`\beta = (H^T H)^+ H^T Y` with H of one row for each point (Klindt's
    Eq. (9) as corrected, K5). On the same data and with a free or kept bias this never has a higher
    mean squared error. Exact at each place; the barrier is a lower bound since it may be higher in
    between. Costs a pass over the data for each place.

    Buffers are interpolated too where they hold floating-point numbers (batch norm's statistics).
    Of networks that a control holds, what is trained is interpolated, and held all the way; a last
    layer that is solved is a plain one.

    Args:
        model: The architecture, and by default the first end; it is not changed.
        x: Points at which the loss is taken.
        y: Their labels.
        other: The second end: a module of the same architecture, or its ``state_dict``.
        start: The first end, as a ``state_dict``; by default the model's own.
        at: Places, rising, of which the first and the last count as ends; by default 25, 0 to 1.
        loss: As in ``fit``; by default ``"mse"``, and ``"cross_entropy"`` for labels that are
            integers.
        solve: Whether to solve the last layer as well; needs ``"mse"``.
        solve_on: Points and labels by which it is solved, such as those of the training; by default
            ``x`` and ``y``.
        bias: What the bias of the last layer is then: ``"free"`` (solved as well), ``"zero"`` (as
            in the paper), or ``"kept"`` as it is on the way.
        align: Whether the hidden units of the second end are first put into the order in which
            they are most like those of the first, for linear layers that are called one after the
            other; see :func:`aligned`.
        memory: Bytes that the working set may take.
    """
    checks.one_of(("free", "zero", "kept"), bias=bias)
    checks.module(model)
    found = probe(model, x)
    checks.labels(y, x)
    if other is None:
        reason = "it needs a second network: pass other=, a module or its state_dict"
        return NotApplicable(what="interpolation", reason=reason)
    name = loss if loss is not None else ("mse" if y.is_floating_point() else "cross_entropy")
    if solve and name != "mse":
        raise ValueError(
            f"solving the last layer by least squares needs the loss 'mse', found {name!r}: use "
            "solve=False, or real labels."
        )
    check_targets(name, y, checks.call(model, x[:2].clone()))
    places = _places(at)
    ends = _ends(model, start, other)
    if align:
        ends[1], _ = aligned(model, *ends, x=x[:ALIGNED_BY])
    walker = copied(model, x)
    walker.load_state_dict(ends[1])
    probe(walker, x)  # what holds at one end (rows apart, finite outputs) need not at the other
    measure, rows = loss_function(name), found.rows(memory)
    losses, solved = [], []
    for share in places.tolist():
        walker.load_state_dict(_between(ends[0], ends[1], share))
        losses.append(_loss(walker, x, y, measure, rows))
        if solve:
            replaced = resolved(walker, *(solve_on or (x, y)), bias=bias, rows=rows)
            solved.append(_loss(replaced, x, y, measure, rows))
    return Interpolation(
        at=places,
        losses=torch.tensor(losses, dtype=torch.float64),
        solved=torch.tensor(solved, dtype=torch.float64) if solve else None,
        loss=name if isinstance(name, str) else getattr(name, "__name__", "loss"),
        bias=bias,
        aligned=align,
        similarity=similarity(*ends),
        norms=any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()),
    )


def _places(at: Tensor | None) -> Float64[Tensor, " k"]:
    if at is None:
        return torch.linspace(0, 1, PLACES, dtype=torch.float64)
    places = at.detach().double().cpu()
    if len(places) < 2 or not bool((places.diff() > 0).all()):
        raise ValueError(
            f"at must hold at least two places that rise, found {at.tolist()}: sort them, and "
            "leave out those that come twice."
        )
    return places


def _ends(
    model: nn.Module, start: Mapping[str, Tensor] | None, other: Other
) -> list[dict[str, Tensor]]:
    """Return both ends as states that fit the model, or say what does not."""
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
        _refuse_held_otherwise(model, state, name)
    return [{key: value.detach() for key, value in state.items()} for state in states]


def _refuse_held_otherwise(model: nn.Module, state: Mapping[str, Tensor], name: str) -> None:
    """Refuse a network that makes something else of the same parameters, if its state says so."""
    try:
        copy.deepcopy(model).load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            f"{name} must be held at what holds the model (one sigma, one scope, one bias, one "
            "scale of activations), found something else: build both alike, or release both first "
            "if it is weights that are held."
        ) from error


def _between(start: dict[str, Tensor], stop: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """Return the state at a share of the way; at the ends, exactly those."""
    return {
        name: torch.lerp(value, stop[name].to(value), share) if value.is_floating_point() else value
        for name, value in start.items()
    }


def _loss(model: nn.Module, x: Tensor, y: Tensor, measure: Loss, rows: int) -> float:
    """Return the loss over all points; predictions are made in chunks and kept."""
    outputs = torch.cat([checks.call(model, part.clone()) for part in torch.split(x, rows)])
    if outputs.is_floating_point() and y.is_floating_point():
        y = y.to(outputs.dtype).reshape(outputs.shape) if y.numel() == outputs.numel() else y
    return float(measure(outputs, y))
