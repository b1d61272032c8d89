"""Training of one wide hidden layer on few inputs by Adam in a compiled loop.

The same training as :func:`inscape.training.fit` with ``loss="mse"``, ``optimizer="adam"`` and all
points at each step, up to rounding, at a tenth of its time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.runtime.progress import progress as progress_bar
from inscape.training.checks import check_start
from inscape.training.loop import Fit
from inscape.training.options import FitOptions
from inscape.training.schedules import ScheduleFunction, factor
from inscape.training.update import DivergedError

#: Batch and targets of a step, counted from 0.
Fresh = Callable[[int], tuple[Tensor, Tensor]]

#: Steps of a call of the kernel, after which the progress bar moves.
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
    does with ``scope="matrix"``; the trained network has ordinary weights. Training starts from
    the weights of ``model``, in one thread; train several networks in several threads.

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
        views: Permutations of the inputs over which the output is averaged while training.
        fresh: Function from the step to its points and targets, as many as ``x`` and ``y`` have.
        progress: Whether to show progress; None shows it after two seconds.
    """
    checks.whole(1, steps=steps)
    checks.one_of(("free", "normalised"), bias=bias)
    options = FitOptions(
        optimizer="adam", lr=lr, betas=betas, epochs=steps, schedule=schedule, progress=progress
    )
    net = _net(model)
    check_start(model, x, y, "mse")
    points = _Points(x, y, _permutations(views, x.shape[1]), fresh)
    losses = _Loop(net, _deviations(net, sigma, bias), points, options).run()
    return _finished(model, losses, options)


def _finished(model: nn.Module, losses: Tensor, options: FitOptions) -> Fit:
    return Fit(
        model=model.eval(),
        losses=losses,
        penalties=losses.new_empty(len(losses), 0),
        epochs=len(losses),
        steps=len(losses),
        stopped="epochs",
        settings=options.settings(),
        trajectory=None,
    )


class _Points:
    """The batch of each step, one column per point, all views of it one after the other."""

    def __init__(self, x: Tensor, y: Tensor, views: list[list[int]], fresh: Fresh | None) -> None:
        self.x, self.y, self.views, self.fresh = x.detach(), y.detach(), views, fresh
        self.copies = max(1, len(views))

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """Return the points and the targets of a step."""
        x, y = (self.x, self.y) if self.fresh is None else self.fresh(step)
        if (x.shape, y.shape) != (self.x.shape, self.y.shape) or x.dtype != self.x.dtype:
            raise ValueError(
                f"fresh must give {self.x.dtype} points of shape {tuple(self.x.shape)} and targets "
                f"of shape {tuple(self.y.shape)} as x and y have, found {x.dtype}, "
                f"{tuple(x.shape)} and {tuple(y.shape)} at step {step}: draw as many as x has."
            )
        columns = torch.cat([x[:, view] for view in self.views] or [x]).T
        return columns.contiguous(), y.flatten().contiguous()


class _Loop:
    """Weights, buffers and moments of one training."""

    def __init__(
        self, net: _Net, deviations: Sequence[float], points: _Points, options: FitOptions
    ) -> None:
        from inscape.training.shallow import wide_kernels

        self.net, self.points, self.options = net, points, options
        self.units = net.first.out_features
        self.weights = torch.cat([p.flatten() for p in net.parameters]).contiguous()
        n = len(points.x) * points.copies
        self.hidden = self.weights.new_empty(self.units, n)
        self.out = self.weights.new_empty(n)
        self.gradients = torch.zeros_like(self.weights)
        self.moments = self.weights.new_zeros(2, len(self.weights))
        self.factors = self.weights.new_ones(4)
        self.deviations = self.weights.new_tensor(deviations)
        self.adam = np.array([*options.betas, 1e-8])
        double = self.weights.dtype == torch.float64
        tanh = wide_kernels.EXACT_TANH if double else wide_kernels.TANH
        self.kind = tanh if net.tanh else wide_kernels.RELU
        self._run: Callable[..., None] = wide_kernels.run

    def run(self) -> Tensor:
        """Make all steps, write the weights into the network, and return the loss before each."""
        options, steps = self.options, self.options.epochs
        rates = np.array([options.lr * factor(options.schedule, step) for step in range(steps)])
        size = BLOCK if self.points.fresh is None else 1
        losses = self.weights.new_empty(steps)
        with progress_bar(steps, label="training", quiet=options.quiet) as bar:
            for start in range(0, steps, size):
                block = rates[start : start + size]
                self._steps(start, block, losses[start : start + size])
                last = float(losses[start + len(block) - 1])
                if not np.isfinite(last):
                    raise _diverged(losses, start)
                bar.advance(len(block), note=f"loss {last:.1e}")
        self._write_weights()
        return losses.double()

    def _steps(self, done: int, rates: object, losses: Tensor) -> None:
        x, y = self.points.at(done)
        state = (self.weights, self.gradients, self.moments, self.hidden, self.out, self.factors)
        arrays = [tensor.numpy() for tensor in (*state, self.deviations)]
        schedule = (self.adam, rates, done, self.kind, losses.numpy())
        self._run(x.numpy(), y.numpy(), self.units, *arrays, *schedule)

    @torch.no_grad()
    def _write_weights(self) -> None:
        """Copy the weights that the network computes with into its layers."""
        parameters = self.net.parameters
        parts = torch.split(self.weights, [p.numel() for p in parameters])
        for parameter, part, deviation in zip(
            parameters, parts, self.deviations.tolist(), strict=True
        ):
            scale = deviation / part.std() if deviation > 0 else -deviation if deviation else 1.0
            parameter.copy_((part * scale).view_as(parameter))


def _diverged(losses: Tensor, start: int) -> DivergedError:
    step = start + int((~losses[start:].isfinite()).int().argmax())
    return DivergedError(
        f"a training must stay finite, found loss {float(losses[step]):.3g} at step {step} "
        "(counted from 0): use a smaller lr."
    )


def _net(model: nn.Module) -> _Net:
    """Return the layers of the network; raise an error if it is another."""
    match list(model.children()) if isinstance(model, nn.Sequential) else []:
        case [nn.Linear() as first, nn.ReLU() | nn.Tanh() as between, nn.Linear() as last]:
            own = [dict(layer.named_parameters()).keys() for layer in (first, last)]
            if last.out_features == 1 and all(names == {"weight", "bias"} for names in own):
                return _Net(first, last, isinstance(between, nn.Tanh))
    raise ValueError(
        "fit_wide trains an nn.Sequential of Linear, ReLU or Tanh, and Linear with plain weights, "
        f"biases and one output, found {type(model).__name__}: use fit, which trains any module."
    )


def _deviations(net: _Net, sigma: float | None, bias: str) -> tuple[float, float, float, float]:
    """Return the standard deviation to hold of each parameter; 0: none, -f: a constant factor f."""
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


def _permutations(views: Sequence[Sequence[int]], d: int) -> list[list[int]]:
    """Return the views as lists; raise an error if one is no permutation of the inputs."""
    for view in views:
        if sorted(view) != list(range(d)):
            raise ValueError(
                f"a view must be an order of the {d} inputs, found {list(view)}: name each of "
                f"0 to {d - 1} once."
            )
    return [list(view) for view in views]
