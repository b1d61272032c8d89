"""Train one wide hidden layer on few inputs with Adam: one compiled loop, no graph.

The same training as :func:`inscape.training.fit` with ``loss="mse"``, ``optimizer="adam"`` and all
points at each step, up to rounding, at a tenth of its time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.progress import progress as progress_bar
from inscape.training.checks import check_settings, check_start
from inscape.training.loop import Fit
from inscape.training.schedules import ScheduleFunction, description, factor
from inscape.training.trajectory import Settings
from inscape.training.update import DivergedError

#: Batch and targets of a step, counted from 0.
Fresh = Callable[[int], tuple[Tensor, Tensor]]

#: Steps between two looks at the clock.
BLOCK = 250


@dataclass(frozen=True, eq=False)
class _Net:
    """The layers of a network, and which activation is between them."""

    first: nn.Linear
    last: nn.Linear
    tanh: bool

    @property
    def parameters(self) -> list[Tensor]:
        layers = (self.first, self.last)
        return [p.detach() for layer in layers for p in (layer.weight, layer.bias)]


def fit_wide(
    model: nn.Module,
    x: Float[Tensor, "n d"],
    y: Float[Tensor, "n 1"],
    *,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    steps: int = 50_000,
    schedule: ScheduleFunction | None = None,
    sigma: float | None = None,
    bias: str = "free",
    views: Sequence[Sequence[int]] = (),
    fresh: Fresh | None = None,
    progress: bool | None = None,
) -> Fit:
    r"""Train a two-layer network with one output in place by Adam on the mean squared error.

    .. math:: \min_\theta \; \tfrac1n \sum_i (f_\theta(x_i) - y_i)^2

    With ``sigma`` both layers are held at a length scale, as ``inscape.controls.length_scale``
    does with ``scope="matrix"``; the network that comes out has plain weights. Which weights it
    starts from is only a matter of the model given. One thread; many networks take several.

    >>> from inscape.models import two_layer
    >>> x = torch.linspace(-1, 1, 9)[:, None]
    >>> fit_wide(two_layer(1, 64, activation="tanh"), x, x.square(), steps=500).loss < 1e-2
    True

    Args:
        model: ``nn.Sequential`` of Linear, ReLU or Tanh, Linear with biases and one output.
        x: Inputs.
        y: Targets.
        lr: Learning rate.
        betas: Decay rates of Adam's two moments.
        steps: Updates, each with all points.
        schedule: Factor of the learning rate at each step.
        sigma: Weights of a layer have the standard deviation sigma over the root of its inputs at
            each step; None leaves them free.
        bias: ``"free"``, or ``"normalised"`` as in Klindt's code: hidden biases have the standard
            deviation sigma, the offset of the output is multiplied by it.
        views: Orders of the inputs over which the output is averaged while training.
        fresh: Gives points and targets of each step, as many as ``x`` and ``y`` have.
        progress: Whether to show progress; None shows it after two seconds.
    """
    _check_numbers(lr, betas, steps)
    settings = _settings(lr, betas, steps, schedule)
    check_settings(settings)
    checks.one_of(("free", "normalised"), bias=bias)
    net = _net(model)
    check_start(model, x, y, "mse")
    targets = _targets(net, sigma, bias)
    loop = _Loop(net, targets, betas, _Points(x, y, _orders(views, x.shape[1]), fresh))
    quiet = None if progress is None else not progress
    rates = np.array([lr * factor(schedule, step) for step in range(steps)])
    losses = loop.run(rates, quiet=quiet)
    _put_back(net, loop)
    return Fit(
        model=model.eval(),
        losses=losses,
        penalties=losses.new_empty(steps, 0),
        epochs=steps,
        steps=steps,
        stopped="epochs",
        settings=settings,
        trajectory=None,
    )


def _check_numbers(lr: float, betas: tuple[float, float], steps: int) -> None:
    checks.whole(1, steps=steps)
    if not 0 <= lr < inf:
        raise ValueError(
            f"lr must be a finite number, 0 or more, found {lr}: use one such as 1e-3."
        )
    if not all(0 <= beta < 1 for beta in betas):
        raise ValueError(
            f"betas must be at least 0 and below 1, found {betas}: use two such as (0.9, 0.999)."
        )


class _Points:
    """The points of each step, in columns, all views of them one after the other."""

    def __init__(self, x: Tensor, y: Tensor, orders: list[list[int]], fresh: Fresh | None) -> None:
        self.x, self.y, self.orders, self.fresh = x.detach(), y.detach(), orders, fresh
        self.views = max(1, len(orders))

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Return points and targets of a step."""
        x, y = (self.x, self.y) if self.fresh is None else self.fresh(step)
        if (x.shape, y.shape) != (self.x.shape, self.y.shape) or x.dtype != self.x.dtype:
            raise ValueError(
                f"fresh must give {self.x.dtype} points of shape {tuple(self.x.shape)} and targets "
                f"of shape {tuple(self.y.shape)} as x and y have, found {x.dtype}, "
                f"{tuple(x.shape)} and {tuple(y.shape)} at step {step}: draw as many as x has."
            )
        columns = torch.cat([x[:, order] for order in self.orders] or [x]).T
        return columns.contiguous(), y.flatten().contiguous()


class _Loop:
    """Weights, buffers and moments of one training."""

    def __init__(
        self, net: _Net, targets: Sequence[float], betas: tuple[float, float], points: _Points
    ) -> None:
        from inscape.training.shallow import wide_kernels

        self.points = points
        self.units = net.first.out_features
        self.weights = torch.cat([p.flatten() for p in net.parameters]).contiguous()
        n = len(points.x) * points.views
        self.hidden = self.weights.new_empty(self.units, n)
        self.out = self.weights.new_empty(n)
        self.slopes = torch.zeros_like(self.weights)
        self.moments = self.weights.new_zeros(2, len(self.weights))
        self.factors = self.weights.new_ones(4)
        self.targets = self.weights.new_tensor(targets)
        self.rules = np.array([*betas, 1e-8])
        double = self.weights.dtype == torch.float64
        tanh = wide_kernels.EXACT_TANH if double else wide_kernels.TANH
        self.kind = tanh if net.tanh else wide_kernels.RELU
        self._run: Callable[..., None] = wide_kernels.run

    def run(self, rates: npt.NDArray[Any], *, quiet: bool | None) -> Tensor:
        """Make all steps and return the loss before each."""
        size = BLOCK if self.points.fresh is None else 1
        losses = self.weights.new_empty(len(rates))
        with progress_bar(len(rates), label="training", quiet=quiet) as bar:
            for start in range(0, len(rates), size):
                some = rates[start : start + size]
                self._steps(start, some, losses[start : start + size])
                last = float(losses[start + len(some) - 1])
                if not np.isfinite(last):
                    raise _diverged(losses, start)
                bar.advance(len(some), note=f"loss {last:.1e}")
        return losses.double()

    def _steps(self, done: int, rates: object, losses: Tensor) -> None:
        x, y = self.points.at(done)
        held = (self.weights, self.slopes, self.moments, self.hidden, self.out, self.factors)
        arrays = [tensor.numpy() for tensor in (*held, self.targets)]
        ends = (self.rules, rates, done, self.kind, losses.numpy())
        self._run(x.numpy(), y.numpy(), self.units, *arrays, *ends)

    def scaled(self) -> Tensor:
        """Return the weights that the network computes with."""
        sizes = self._sizes()
        parts = []
        for part, target in zip(
            torch.split(self.weights, sizes), self.targets.tolist(), strict=True
        ):
            scale = -target if target < 0 else 1.0
            parts.append(part * (target / part.std() if target > 0 else scale))
        return torch.cat(parts)

    def _sizes(self) -> list[int]:
        return [len(self.weights) - 2 * self.units - 1, self.units, self.units, 1]


def _diverged(losses: Tensor, start: int) -> DivergedError:
    step = start + int((~losses[start:].isfinite()).int().argmax())
    return DivergedError(
        f"a training must stay finite, found loss {float(losses[step]):.3g} at step {step} "
        "(counted from 0): use a smaller lr."
    )


def _net(model: nn.Module) -> _Net:
    """Return the parts of the network, or say what it is instead."""
    match list(model.children()) if isinstance(model, nn.Sequential) else []:
        case [nn.Linear() as first, nn.ReLU() | nn.Tanh() as between, nn.Linear() as last]:
            own = [dict(layer.named_parameters()).keys() for layer in (first, last)]
            if last.out_features == 1 and all(names == {"weight", "bias"} for names in own):
                return _Net(first, last, isinstance(between, nn.Tanh))
    raise ValueError(
        "fit_wide trains an nn.Sequential of Linear, ReLU or Tanh, and Linear with plain weights, "
        f"biases and one output, found {type(model).__name__}: use fit, which trains any module."
    )


def _targets(net: _Net, sigma: float | None, bias: str) -> tuple[float, float, float, float]:
    """Return the standard deviations to hold, 0 for none, and -f for a plain factor f."""
    if sigma is None:
        return 0.0, 0.0, 0.0, 0.0
    if not 0 < sigma < float("inf"):
        raise ValueError(
            f"sigma must be a finite number above 0, found {sigma}: it is the inverse of the "
            "length scale."
        )
    for part in net.parameters[:3] if bias == "normalised" else net.parameters[:3:2]:
        if part.numel() < 2 or not float(part.std()) > 0:
            raise ValueError(
                "a layer held at a standard deviation needs weights that differ, found "
                f"{part.numel()} of one value: draw them, or leave sigma out."
            )
    d, units = net.first.in_features, net.first.out_features
    biases = (sigma, -sigma) if bias == "normalised" else (0.0, 0.0)
    return sigma / sqrt(d), biases[0], sigma / sqrt(units), biases[1]


def _orders(views: Sequence[Sequence[int]], d: int) -> list[list[int]]:
    for view in views:
        if sorted(view) != list(range(d)):
            raise ValueError(
                f"a view must be an order of the {d} inputs, found {list(view)}: name each of "
                f"0 to {d - 1} once."
            )
    return [list(view) for view in views]


@torch.no_grad()
def _put_back(net: _Net, loop: _Loop) -> None:
    given = net.parameters
    parts = torch.split(loop.scaled(), [p.numel() for p in given])
    for parameter, part in zip(given, parts, strict=True):
        parameter.copy_(part.view_as(parameter))


def _settings(
    lr: float, betas: tuple[float, float], steps: int, schedule: ScheduleFunction | None
) -> Settings:
    return Settings(
        loss="mse",
        optimizer="adam",
        lr=lr,
        momentum=0.0,
        nesterov=False,
        weight_decay=0.0,
        betas=betas,
        batch=None,
        epochs=steps,
        schedule=description(schedule),
        stop_loss=None,
        stop_on="running",
        penalties=(),
        seed=0,
        record=None,
    )
