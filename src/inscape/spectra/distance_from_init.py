"""Distance from initialisation: how far training has moved the parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import probe
from inscape.training.trajectory import Trajectory

Start = nn.Module | Mapping[str, Tensor] | Trajectory


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistanceFromInit(Result):
    """Distance of each parameter tensor from initialisation, and its norm before and after."""

    range: ClassVar[Range] = NONNEGATIVE

    distances: Float64[Tensor, " tensors"]
    before: Float64[Tensor, " tensors"]
    after: Float64[Tensor, " tensors"]
    names: tuple[str, ...]
    parameters: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each parameter tensor."""
        for k, name in enumerate(self.names):
            yield {
                "parameter": name,
                "distance": float(self.distances[k]),
                "norm_before": float(self.before[k]),
                "norm_after": float(self.after[k]),
            }

    def summary(self) -> Summary:
        """Return the distance of the whole parameter vector."""
        total = float(torch.linalg.vector_norm(self.distances))
        basis = f"{self.parameters:,} parameters in {len(self.names)} tensors"
        return Summary(value=total, kind="exact", basis=basis)


@instrument(
    reads="parameters",
    larger="farther from where training began",
    cost="instant",
    work=lambda n, c: 10,
    meaning="Training has moved the parameters by {value} in total from where they started.",
    cites="nagarajan2019generalization",
    discrete=True,
)
@torch.no_grad()
def distance_from_init(
    model: nn.Module, x: Float[Tensor, "n *d"], *, start: Start | None = None
) -> DistanceFromInit | NotApplicable:
    r"""Measure how far the parameters are from where training began.

    .. math:: \lVert \theta - \theta_0 \rVert_2 = \sqrt{\sum_l \lVert \theta^{(l)} -
              \theta_0^{(l)} \rVert^2}

    Exact, in double precision; buffers such as running statistics are no parameters. It depends on
    the parametrisation: the same function with its hidden units permuted is at another distance.
    Without ``start`` the result is "not applicable": a trained model does not contain its start.

    Args:
        model: A module in eval mode.
        x: Data, only used to check that the model runs.
        start: The network before training: a copy of the module, its state dict, or the recorded
            ``Trajectory`` of the training.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1).eval()
    >>> start = {"weight": net.weight - 3, "bias": net.bias + 4}
    >>> round(distance_from_init(net, torch.ones(1, 2), start=start).summary().value ** 2, 4)
    34.0
    """
    checks.module(model)
    probe(model, x)
    if start is None:
        reason = "where training began is not known: pass start, the network or its weights then"
        return NotApplicable(what="distance_from_init", reason=reason)
    now = dict(model.named_parameters())
    then = _start_parameters(start, now)
    distances = [_norm(p.double() - then[name]) for name, p in now.items()]
    return DistanceFromInit(
        distances=torch.tensor(distances, dtype=torch.float64),
        before=torch.tensor([_norm(then[name]) for name in now], dtype=torch.float64),
        after=torch.tensor([_norm(p) for p in now.values()], dtype=torch.float64),
        names=tuple(now),
        parameters=sum(p.numel() for p in now.values()),
    )


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.detach().double()))


def _start_parameters(start: Start, now: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the initial parameters, checked against the current ones."""
    if isinstance(start, Trajectory):
        start = start.at(0)
    state = dict(start.named_parameters()) if isinstance(start, nn.Module) else start
    if not isinstance(state, Mapping):
        raise TypeError(
            "start must be a module, a state dict or a Trajectory, found "
            f"{type(start).__name__}: pass e.g. copy.deepcopy(model.state_dict()) of before."
        )
    return {name: _matched(name, tensor, state.get(name)) for name, tensor in now.items()}


def _matched(name: str, tensor: Tensor, then: Tensor | None) -> Tensor:
    if not isinstance(then, Tensor):
        raise ValueError(
            f"start must hold every parameter of the model, found no {name!r}: "
            "pass the network of the same shape as it was before training."
        )
    if then.shape != tensor.shape:
        raise ValueError(
            f"start must have the shapes of the model, found {tuple(then.shape)} for {name!r} "
            f"instead of {tuple(tensor.shape)}: pass the same network as it was before training."
        )
    if not bool(then.isfinite().all()):
        raise ValueError(
            f"start must be finite, found NaN or Inf in {name!r}: load another checkpoint."
        )
    return then.detach().to(tensor.device, torch.float64)
