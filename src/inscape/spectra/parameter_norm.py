"""Parameter norm: the length of the parameters of each layer, and the path norm beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Range
from inscape.errors import UnsupportedModelError
from inscape.functional.jacobians import probe
from inscape.functional.substitution import checked_copy
from inscape.spectra.path_sums import path_sum
from inscape.training.trajectory import Trajectory, chosen_steps, stand_at


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ParameterNorm(Result):
    """Norm of the parameters of each layer and of all, at one or more steps of a training.

    ``path_norms``, one for each step, do not change when units are rescaled or permuted. There are
    none, but a ``reason``, for networks whose activations do not scale with their input. ``steps``
    is 0 for a model alone.
    """

    range: ClassVar[Range] = NONNEGATIVE

    layers: tuple[str, ...]
    steps: Int64[Tensor, " steps"]
    norms: Float64[Tensor, "steps layers"]
    path_norms: Float64[Tensor, " known"]
    order: int
    parameters: int
    reason: str

    @property
    def totals(self) -> Float64[Tensor, " steps"]:
        """Return the norm of all parameters together at each step."""
        totals: Tensor = torch.linalg.vector_norm(self.norms, dim=1)
        return totals

    def rows(self) -> Iterator[Row]:
        """Yield one row for each step and layer."""
        for i, step in enumerate(self.steps.tolist()):
            for k, layer in enumerate(self.layers):
                yield {
                    "step": step,
                    "layer": layer,
                    "norm": float(self.norms[i, k]),
                    "all": float(self.totals[i]),
                    "path_norm": None if self.reason else float(self.path_norms[i]),
                }

    def summary(self) -> Summary:
        """Return the norm of all parameters at the last step."""
        basis = f"{self.parameters:,} parameters"
        basis += "" if self.reason else f", path norm {float(self.path_norms[-1]):.4g}"
        return Summary(value=float(self.totals[-1]), kind="exact", basis=basis)


@instrument(
    reads="parameters",
    larger="longer weights",
    cost="instant",
    work=lambda n, c: 20,
    meaning="All its parameters together have the length {value}.",
    cites="goldblum2020truth, section 3; neyshabur2015norm",
)
@torch.no_grad()
def parameter_norm(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    trajectory: Trajectory | None = None,
    steps: int | Sequence[int] = 12,
    order: int = 2,
) -> ParameterNorm | NotApplicable:
    r"""Measure the norm of the parameters, per layer, and the path norm of the network.

    .. math:: \lVert \theta \rVert_2, \qquad \left( \sum_{\pi}
              \prod_{w \in \pi} |w|^p \right)^{1/p}

    Exact, in double precision. The norm changes when units are rescaled, which leaves the function
    as it is; the path norm (Neyshabur et al. 2015), of ReLU networks, does not. Paths lead from
    every input and bias to every output; batch norm is folded in, a maximum counts as a sum.

    Args:
        model: A module in eval mode.
        x: Data; only the shape of one point is used.
        trajectory: A recorded training of the model, for the norms over training.
        steps: Number of evenly spaced checkpoints of it, or the steps themselves.
        order: The exponent p of the path norm, 1 or 2.

    >>> net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1, bias=False))
    >>> for layer, weight in ((net[0], 3.0), (net[2], 4.0)):
    ...     _ = nn.init.constant_(layer.weight, weight)
    >>> result = parameter_norm(net.eval(), torch.ones(1, 1))
    >>> result.summary().value, result.path_norms.tolist()
    (5.0, [12.0])
    """
    checks.whole(1, order=order)
    checks.one_of(("1", "2"), order=str(order))
    checks.module(model)
    probe(model, x)
    names = _layer_names(model)
    if not names:
        return NotApplicable(what="parameter_norm", reason="the model has no parameters")
    chosen = [0] if trajectory is None else chosen_steps(trajectory, steps)
    body = checked_copy(model, x)
    norms, path_norms, reason = list[list[float]](), list[float](), ""
    for step in chosen:
        if trajectory is not None:
            stand_at(body, trajectory, step)
        norms.append(_norms(body, names))
        try:
            path_norms.append(path_sum(body, x, order=order) ** (1 / order))
        except UnsupportedModelError as error:
            reason = str(error)
    return ParameterNorm(
        layers=tuple(names),
        steps=torch.tensor(chosen),
        norms=torch.tensor(norms, dtype=torch.float64),
        path_norms=torch.tensor([] if reason else path_norms, dtype=torch.float64),
        order=order,
        parameters=sum(p.numel() for p in model.parameters()),
        reason=reason,
    )


def _layer_names(model: nn.Module) -> list[str]:
    """Return the names of the modules that have parameters, in their order."""
    names = (name.rpartition(".")[0] for name, _ in model.named_parameters())
    return list(dict.fromkeys(name or "the model" for name in names))


def _norms(model: nn.Module, names: Sequence[str]) -> list[float]:
    squares = dict.fromkeys(names, 0.0)
    for name, parameter in model.named_parameters():
        layer = name.rpartition(".")[0] or "the model"
        squares[layer] += float(parameter.detach().double().square().sum())
    return [square**0.5 for square in squares.values()]
