"""Training of one hidden layer of ReLUs by hand-written gradients: two matrix products a step.

The same training as :func:`inscape.training.fit` with ``loss="mse"`` and plain SGD, up to rounding,
at a fraction of its time: no autograd graph is built, the elementwise work is compiled, the first
layer is trained in the span of the images where that is exact, and a penalty costs only the
products that it needs.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.runtime.progress import progress as progress_bar
from inscape.training.checks import check_start
from inscape.training.loop import Fit
from inscape.training.options import FitOptions, check_coefficient
from inscape.training.shallow.coordinates import Coordinates, coordinates
from inscape.training.shallow.kernels import squared_error
from inscape.training.shallow.penalties import PENALTIES, Penalty
from inscape.training.update import DivergedError, batches_per_epoch

Layers = tuple[nn.Linear, nn.Linear]


def fit_shallow(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    lr: float = 0.01,
    batch: int | None = 64,
    epochs: int = 100,
    stop_loss: float | None = None,
    penalty: str = "none",
    coefficient: float = 0.0,
    seed: int = 0,
    progress: bool | None = None,
) -> Fit:
    r"""Train a two-layer ReLU network with one output in place, as ``fit`` would, but faster.

    .. math:: \min_\theta \; \tfrac1n \sum_i (f_\theta(x_i) - y_i)^2 + \lambda P(f_\theta, x)

    The stop rule is ``fit``'s ``"running"``. Penalties are those of Volhejn's Eqs. (4.5)-(4.7)
    with 10 knots; path lengths are summed over the pairs of a batch, as in his code (V3).

    Args:
        model: ``nn.Sequential`` of Linear, ReLU, Linear (see ``models.two_layer``).
        x: Inputs, one row per sample.
        y: Targets, one column.
        lr: Learning rate.
        batch: Size of mini-batches, reshuffled every epoch; None uses all data at each step.
        epochs: Largest number of passes over the data.
        stop_loss: Stop at the end of the epoch whose mean loss is this or less.
        penalty: ``"none"``, ``"gradient_norm"``, ``"path_length"``, ``"gradient_path_length"`` or
            ``"weights_product"``.
        coefficient: Its coefficient.
        seed: Seed of shuffling, as in ``fit``.
        progress: Whether to show progress; None shows it after two seconds.
    """
    checks.one_of(("none", *PENALTIES), penalty=penalty)
    if penalty != "none":
        check_coefficient(coefficient, penalty)
    options = FitOptions(lr=lr, batch=batch, epochs=epochs, stop_loss=stop_loss, progress=progress)
    first, last = _layers(model)
    check_start(model, x, y, "mse")
    extra = PENALTIES[penalty](coefficient) if penalty != "none" else None
    loop = _Loop(_coordinates(x, first, extra), y.detach(), last, options, seed, extra)
    stopped = loop.run()
    _write_weights(first, last, loop)
    penalties = () if penalty == "none" else ((coefficient, penalty),)
    return Fit(
        model=model.eval(),
        losses=torch.tensor(loop.losses, dtype=torch.float64),
        penalties=torch.tensor(loop.penalties, dtype=torch.float64).reshape(len(loop.losses), -1),
        epochs=len(loop.losses),
        steps=len(loop.losses) * loop.per_epoch,
        stopped=stopped,
        settings=replace(options.settings(seed=seed), penalties=penalties),
        trajectory=None,
    )


def _coordinates(x: Tensor, first: nn.Linear, extra: Penalty | None) -> Coordinates:
    """Return the coordinates of the training that the penalty allows."""
    return coordinates(
        x.detach(),
        first.weight.detach(),
        first.bias.detach(),
        in_span=extra is None or extra.in_span,
        stretch=extra is not None and extra.stretches,
        by_unit=extra is not None and extra.by_unit,
    )


class _Loop:
    """The state of a training: weights, buffers, and the history of its losses."""

    def __init__(
        self,
        frame: Coordinates,
        y: Tensor,
        last: nn.Linear,
        options: FitOptions,
        seed: int,
        extra: Penalty | None,
    ) -> None:
        self.frame, self.options, self.seed, self.extra = frame, options, seed, extra
        self.y = y.flatten()
        self.a = last.weight.detach()[0].clone()
        self.offset = last.bias.detach().clone()
        size = options.batch or len(y)
        self.z = frame.x.new_empty(min(size, len(y)), len(self.a))
        self.dz = torch.empty_like(self.z)
        self.da = torch.empty_like(self.a)
        self.per_epoch = batches_per_epoch(len(y), options.batch)
        self.losses: list[float] = []
        self.penalties: list[list[float]] = []

    def run(self) -> Literal["loss", "epochs"]:
        """Run epochs until the loss is reached or there are no more."""
        shuffle = generator(self.seed)
        n, stop = len(self.y), self.options.stop_loss
        epochs, quiet = self.options.epochs, self.options.quiet
        with progress_bar(epochs, label="training", quiet=quiet) as bar:
            for _ in range(epochs):
                loss, penalty = self._epoch(shuffle)
                self.losses.append(loss / n)
                if self.extra is not None:
                    self.penalties.append([penalty / n])
                if not np.isfinite(loss + penalty):
                    raise self._diverged()
                if stop is not None and self.losses[-1] <= stop:
                    return "loss"
                bar.advance(note=f"loss {self.losses[-1]:.1e}")
        return "epochs"

    def _epoch(self, shuffle: torch.Generator) -> tuple[float, float]:
        """Make one pass over the data; return loss and penalty, summed over samples."""
        x, y, size = self.frame.x, self.y, self.options.batch
        if size is not None:
            order = torch.randperm(len(y), generator=shuffle)
            x, y = x[order], y[order]
        loss_sum = penalty_sum = 0.0
        size = size or len(y)
        for inputs, targets in zip(torch.split(x, size), torch.split(y, size), strict=True):
            loss, penalty = self._step(inputs, targets)
            loss_sum += loss
            penalty_sum += penalty * len(inputs)
        return loss_sum, penalty_sum

    def _step(self, x: Tensor, y: Tensor) -> tuple[float, float]:
        """Make one update; return the summed loss and the penalty of the batch."""
        lr, w = self.options.lr, self.frame.w
        z, dz = self.z[: len(x)], self.dz[: len(x)]
        torch.mm(x, w, out=z)
        loss, offset = squared_error(
            z.numpy(), y.numpy(), self.a.numpy(), self.offset.numpy(), dz.numpy(), self.da.numpy()
        )
        penalty = 0.0
        if self.extra is not None:  # it reads the weights as they are before the update
            penalty = self.extra.step(w, z, self.a, dz, self.da, lr)
        w.addmm_(x.T, dz, alpha=-lr)
        self.a.add_(self.da, alpha=-lr)
        self.offset.sub_(lr * offset)
        return float(loss), penalty

    def _diverged(self) -> DivergedError:
        cure = "use a smaller lr" + (" or a smaller coefficient" if self.extra else "")
        return DivergedError(
            f"a training must stay finite, found loss {self.losses[-1]:.3g} in epoch "
            f"{len(self.losses) - 1} (counted from 0): {cure}."
        )


def _layers(model: nn.Module) -> Layers:
    """Return the two layers of the network; raise an error if it is another."""
    match list(model.children()) if isinstance(model, nn.Sequential) else []:
        case [nn.Linear() as first, nn.ReLU(), nn.Linear(out_features=1) as last]:
            own = [dict(layer.named_parameters()).keys() for layer in (first, last)]
            if all(names == {"weight", "bias"} for names in own):
                return first, last
    raise ValueError(
        "fit_shallow trains an nn.Sequential of Linear, ReLU and Linear with biases and one "
        f"output, found {type(model).__name__}: use fit, which trains any module."
    )


def _write_weights(first: nn.Linear, last: nn.Linear, loop: _Loop) -> None:
    """Copy the trained weights into the layers."""
    weight, bias = loop.frame.weights()
    with torch.no_grad():
        first.weight.copy_(weight)
        first.bias.copy_(bias)
        last.weight.copy_(loop.a[None])
        last.bias.copy_(loop.offset)
