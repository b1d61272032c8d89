"""A checkup: what a few hundred rows show of a network at once, for the findings of a page."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from inscape._core.functional import MEMORY
from inscape.report.linear import some_rows
from inscape.report.subject import Subject

#: Rows that are looked at, at most.
ROWS = 2000
#: Share of the budget that a checkup may take.
SHARE = 0.05
#: Rows with which other scalings of the inputs are tried.
TRIED = 500
#: A probability that is nearer to 0 or 1 than this is saturated.
SATURATED = 1e-6
#: Weights that a layer must have for their distribution to say something.
ENOUGH = 100
#: How far the standard deviation of weights may be from that of a fresh draw.
FRESH = 0.05

#: Other scalings of the inputs that networks are usually trained with, by the option to type.
SCALINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "--scale 255": lambda x: x / 255,
    "--scale 0.00392156862745098": lambda x: 255 * x,
    "--normalise 0.5,0.5": lambda x: (x - 0.5) / 0.5,
    "--normalise mnist": lambda x: (x - 0.1307) / 0.3081,
    "standardised columns": lambda x: (x - x.mean(0)) / x.std(0).clamp(min=1e-6),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkup:
    """What some measured rows show of a network.

    Attributes:
        outputs: Its outputs, flat.
        labels: The class of each of these rows, if the labels are classes.
        answers: The class that the network puts each row into; empty for regression.
        targets: The labels of these rows if they are real numbers.
        linear: The outputs of the linear model on the same rows, if there is one.
        scalings: Accuracy on some rows by another scaling of the inputs.
        plain: Accuracy on those rows as they are.
        silent: For each ReLU layer, which units were never on.
        fresh: Names of the layers whose weights are distributed as a fresh draw.
        weighed: How many layers were compared with a fresh draw.
        probabilities: Whether the outputs are probabilities.
    """

    outputs: Float64[Tensor, "n c"]
    labels: Int64[Tensor, " n"] | None
    answers: Int64[Tensor, " n"]
    targets: Float64[Tensor, "n c"] | None
    linear: Float64[Tensor, "n c"] | None
    scalings: dict[str, float]
    plain: float
    tried: int
    silent: dict[str, Bool[Tensor, " units"]]
    fresh: tuple[str, ...]
    weighed: int
    probabilities: bool

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return len(self.outputs)

    @cached_property
    def right(self) -> Bool[Tensor, " n"] | None:
        """Tell which rows the network puts into their class."""
        return None if self.labels is None else self.answers == self.labels

    @cached_property
    def linear_right(self) -> Bool[Tensor, " n"] | None:
        """Tell which rows the linear model puts into their class."""
        if self.labels is None or self.linear is None:
            return None
        return answers_of(self.linear, probability=self.probabilities) == self.labels

    def errors(self, outputs: Float64[Tensor, "n c"]) -> Float64[Tensor, " n"]:
        """Return the squared error of each row, a mean over outputs."""
        assert self.targets is not None
        return (outputs - self.targets).square().mean(1)

    @property
    def saturated(self) -> float:
        """Return the fraction of rows whose largest probability is 1 to six digits."""
        if self.outputs.shape[1] == 1:
            p = self.outputs[:, 0] if self.probabilities else self.outputs[:, 0].sigmoid()
            return float(((p < SATURATED) | (p > 1 - SATURATED)).double().mean())
        p = self.outputs if self.probabilities else self.outputs.softmax(1)
        return float((p.amax(1) > 1 - SATURATED).double().mean())

    @property
    def dead(self) -> float:
        """Return the fraction of ReLU units that are off on all rows."""
        units = sum(len(layer) for layer in self.silent.values())
        return sum(int(layer.sum()) for layer in self.silent.values()) / units if units else 0.0

    @property
    def linearity(self) -> float | None:
        """Return how much of the outputs' variance an affine function of the linear model explains.

        Adjusted for the number of regressors; None without a linear model.
        """
        if self.linear is None or self.n <= 2 * self.linear.shape[1] + 2:
            return None
        y = self.outputs - self.outputs.mean(0)
        z = self.linear - self.linear.mean(0)
        residual = y - z @ torch.linalg.lstsq(z, y).solution
        whole = float(y.square().sum())
        if whole == 0:
            return 1.0
        degrees = (self.n - 1) / (self.n - 1 - z.shape[1])
        return 1 - degrees * float(residual.square().sum()) / whole


def answers_of(outputs: Tensor, *, probability: bool) -> Int64[Tensor, " n"]:
    """Return the class that each row of outputs stands for."""
    if outputs.shape[1] > 1:
        return outputs.argmax(1)
    return (outputs[:, 0] > (0.5 if probability else 0.0)).long()


def checkup(subject: Subject, linear: nn.Module | None) -> Checkup | None:
    """Return what some of the measured rows show of a network and of the linear model beside it.

    As many rows, up to two thousand, as a twentieth of the budget allows; None if that is none.
    """
    passes = 2 + len(SCALINGS)
    allowed = SHARE * subject.clock.budget / (passes * max(subject.pace, 1e-9))
    rows = min(ROWS, len(subject.x), int(allowed))
    if rows < 1:
        return None
    drawn = some_rows(len(subject.x), rows, seed=subject.seed).to(subject.x.device)
    try:
        return _checkup(subject, linear, drawn)
    except Exception:  # this part may fail, the look may not
        return None


@torch.no_grad()
def _checkup(subject: Subject, linear: nn.Module | None, rows: Tensor) -> Checkup:
    x, batch = subject.x[rows], subject.probe.rows(MEMORY)
    classes = subject.task == "classes" and subject.y is not None
    labels = subject.y[rows].flatten().long().cpu() if classes and subject.y is not None else None
    silent: dict[str, Tensor] = {}
    outputs = _outputs(subject.model, x, batch, silent)
    targets = None
    if subject.task == "regression" and subject.y is not None:
        targets = subject.y[rows].reshape(len(x), -1).double().cpu()
    probability = subject.probability
    scalings: dict[str, float] = {}
    tried = x[:TRIED]
    if labels is not None:
        for name, scaled in SCALINGS.items():
            try:
                y = _outputs(subject.model, scaled(tried), batch)
            except Exception:  # a model may refuse inputs that are scaled otherwise
                continue
            right = answers_of(y, probability=probability) == labels[:TRIED]
            scalings[name] = float(right.double().mean())
    answers = answers_of(outputs, probability=probability)
    plain = float((answers == labels)[:TRIED].double().mean()) if labels is not None else math.nan
    fresh, weighed = _fresh_layers(subject.model)
    return Checkup(
        outputs=outputs,
        labels=labels,
        answers=answers if classes else answers[:0],
        targets=targets,
        linear=None if linear is None else _outputs(linear, x, batch),
        scalings=scalings,
        plain=plain,
        tried=len(tried),
        silent=silent,
        fresh=fresh,
        weighed=weighed,
        probabilities=probability,
    )


def _outputs(
    model: nn.Module, x: Tensor, batch: int, silent: dict[str, Tensor] | None = None
) -> Float64[Tensor, "n c"]:
    """Return the outputs of a model, flat; note in ``silent`` which ReLU units are never on."""
    hooks = []
    if silent is not None:
        for name, module in model.named_modules():
            if type(module) is nn.ReLU:
                hooks.append(module.register_forward_hook(_note(silent, name)))
    try:
        parts = [model(part).reshape(len(part), -1) for part in torch.split(x, batch)]
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat(parts).double().cpu()


def _note(silent: dict[str, Tensor], name: str) -> Callable[[nn.Module, object, Tensor], None]:
    """Return a hook that notes which units, or channels of images, are off on all rows."""

    def hook(module: nn.Module, given: object, output: Tensor) -> None:
        units = output.transpose(0, 1).flatten(1) if output.ndim > 1 else output[None]
        off = (units <= 0).all(1).cpu()
        silent[name] = off & silent[name] if name in silent else off

    return hook


def _fresh_layers(model: nn.Module) -> tuple[tuple[str, ...], int]:
    """Return the layers whose weights look drawn by PyTorch's default, and how many were weighed.

    That draw is even between ±1/sqrt(fan in): no weight beyond, and a standard deviation of
    that bound over the root of three.
    """
    fresh, weighed = [], 0
    for name, module in model.named_modules():
        kind = isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
        if not kind or module.weight.numel() < ENOUGH:
            continue
        weighed += 1
        weight = module.weight.detach().double()
        bound = weight[0].numel() ** -0.5
        spread = float(weight.std()) * 3**0.5 / bound
        if float(weight.abs().max()) <= bound * (1 + 1e-6) and abs(spread - 1) < FRESH:
            fresh.append(name)
    return tuple(fresh), weighed
