"""Update rule of an optimiser: its hyper-parameters, shared by all weights or per weight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.errors import UnsupportedModelError
from inscape.training.loop_record import LoopRecord
from inscape.training.loop_update import options_of
from inscape.training.replay import Stand
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory

#: Default epsilon of Adam in torch.optim.
EPSILON = 1e-8

#: One value for all weights, or one per weight.
PerWeight = float | Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class UpdateRule:
    """Hyper-parameters of an update; ``count`` is the number of updates up to it."""

    optimizer: str
    count: int
    rate: PerWeight
    momentum: PerWeight = 0.0
    nesterov: bool = False
    weight_decay: PerWeight = 0.0
    beta1: PerWeight = 0.9
    beta2: PerWeight = 0.999
    epsilon: PerWeight = EPSILON

    @classmethod
    def of(cls, settings: FitSettings, rate: float, count: int) -> "UpdateRule":
        """Return the rule of an update by ``fit``."""
        beta1, beta2 = settings.betas
        return cls(
            optimizer=settings.optimizer,
            count=count,
            rate=rate,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
            beta1=beta1,
            beta2=beta2,
        )

    @classmethod
    def of_loop(cls, trajectory: Trajectory, step: int, sizes: Sequence[int]) -> "UpdateRule":
        """Return the rule of an update of a recorded loop, with its parameter groups."""
        loop = trajectory.loop
        assert loop is not None
        groups = [options_of(loop, step, index) for index in range(len(loop.groups))]
        group_of_name = {name: k for k, names in enumerate(loop.groups) for name in names}
        group_of_tensor = torch.tensor([group_of_name[name] for name in trajectory.trainable])
        group_of_weight = group_of_tensor.repeat_interleave(torch.tensor(list(sizes)))

        def per_weight(values: Sequence[float]) -> PerWeight:
            if len(set(values)) == 1:
                return float(values[0])
            return torch.tensor(values, dtype=torch.float64)[group_of_weight]

        betas = [group.get("betas", (0.9, 0.999)) for group in groups]
        return cls(
            optimizer=trajectory.settings.optimizer,
            count=step + 1,
            rate=per_weight([float(group["lr"]) for group in groups]),
            momentum=per_weight([float(group.get("momentum", 0.0)) for group in groups]),
            nesterov=trajectory.settings.nesterov,
            weight_decay=per_weight([float(group.get("weight_decay", 0.0)) for group in groups]),
            beta1=per_weight([pair[0] for pair in betas]),
            beta2=per_weight([pair[1] for pair in betas]),
            epsilon=per_weight([float(group.get("eps", EPSILON)) for group in groups]),
        )

    def scale(self, after: Stand) -> Float64[Tensor, "*p"]:
        """Return the step of each weight per unit of its first moment."""
        if self.optimizer == "sgd":
            return torch.as_tensor(self.rate, dtype=torch.float64)
        assert after.squares is not None
        root = after.squares.double().sqrt() / _root(1 - self.beta2**self.count)
        scale: Tensor = self.rate / (1 - self.beta1**self.count) / (root + self.epsilon)
        return scale


def _root(value: PerWeight) -> PerWeight:
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)


def add_scaled(target: Tensor, values: Tensor, factor: PerWeight) -> Tensor:
    """Add values times a factor, shared or per column, in place."""
    if isinstance(factor, Tensor):
        return target.addcmul_(values, factor)
    return target.add_(values, alpha=factor)


def refuse_options(trajectory: Trajectory) -> None:
    """Raise for options of an optimizer that the path kernel does not support."""
    loop = trajectory.loop
    if loop is None or not loop.steps:
        return
    if trajectory.optimizer_state(0):
        raise UnsupportedModelError(
            "the path kernel needs a training from its beginning, found an optimizer that had made "
            "updates before the recording began: record from the first update."
        )
    for name in ("amsgrad", "maximize", "dampening"):
        if name in loop.option_names and bool((_column(loop, name) > 0).any()):
            raise UnsupportedModelError(
                f"the path kernel supports plain sgd, adam and adamw, found {name} in "
                f"{trajectory.settings.optimizer}: train without it."
            )
    if (
        "nesterov" in loop.option_names
        and _column(loop, "nesterov").min() != _column(loop, "nesterov").max()
    ):
        raise UnsupportedModelError(
            "the path kernel needs one kind of momentum, found Nesterov's in some parameter groups "
            "only: use it in all or in none."
        )


def _column(loop: LoopRecord, name: str) -> Tensor:
    return loop.options[:, :, loop.option_names.index(name)]
