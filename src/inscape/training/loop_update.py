"""The updates of a recorded loop, made again as the loop made them."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inscape.training.function_names import OWN, is_own
from inscape.training.loop_record import Batch, LoopRecord
from inscape.training.losses import Loss
from inscape.training.optimizers import OptimizerFactory
from inscape.training.random_state import private_random_state, set_random_states
from inscape.training.trajectory import Trajectory
from inscape.training.update import scalar

#: Optimizers of PyTorch that are built again by their names; LBFGS calls a closure several times.
REBUILT = (
    "SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adagrad", "Adadelta", "Adamax", "ASGD", "RMSprop",
    "Rprop",
)  # fmt: skip
PREFIX = "torch.optim."
#: Relative difference of two norms of a gradient that is more than rounding.
CLIPPED = 1e-6


def optimizer_name(optimizer: torch.optim.Optimizer) -> str:
    """Return the name under which an optimizer is recorded."""
    kind: type = type(optimizer)
    if kind.__name__ not in REBUILT or kind is not getattr(torch.optim, kind.__name__):
        return f"{OWN}{kind.__name__}"
    if kind is torch.optim.SGD:
        return "sgd"
    if kind in (torch.optim.Adam, torch.optim.AdamW):
        decoupled = any(g.get("decoupled_weight_decay") for g in optimizer.param_groups)
        return "adamw" if decoupled else "adam"
    return f"{PREFIX}{kind.__name__}"


def total_norm(parameters: Sequence[Tensor]) -> Tensor:
    """Return the norm of all gradients together; NaN if there is none."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.tensor(math.nan)
    if len({gradient.device for gradient in gradients}) > 1:
        return torch.nn.utils.get_total_norm(gradients)
    norm: Tensor = torch.stack(torch._foreach_norm(gradients)).norm()
    return norm


class LoopUpdate:
    """Stands at a step of a recorded loop and makes the next updates.

    ``clip`` is what the last update multiplied gradients by: None if by nothing, else a number or
    one for every weight, in one row.
    """

    def __init__(
        self,
        trajectory: Trajectory,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: Loss,
        optimizer: OptimizerFactory | None = None,
    ) -> None:
        assert trajectory.loop is not None
        self._trajectory, self._loop = trajectory, trajectory.loop
        self.model, self._x, self._y, self._loss = model, x, y, loss
        self.parameters = [model.get_parameter(name) for name in trajectory.trainable]
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in trajectory.trainable)
        set_modes(model, self._loop)
        self.optimizer = self._built(optimizer)
        self.clip: float | Tensor | None = None

    def __call__(self, step: int) -> None:
        """Make the update that leads from a step to the next."""
        self._set_options(step)
        scale = float(self._loop.scales[step])
        with private_random_state(self.parameters[0].device), torch.enable_grad():
            self.optimizer.zero_grad()
            for batch in self._loop.batches(step):
                loss = self.loss(batch) / self._loop.accumulate
                torch.autograd.backward(loss if math.isnan(scale) else loss * scale)
            if not math.isnan(scale):
                for p in self.parameters:
                    if p.grad is not None:
                        p.grad.mul_(1 / scale)
            self.clip = self._clip(float(self._loop.norms[step]))
            self._step()

    def _step(self) -> None:
        """Let the optimizer move; its options and state may come from a file."""
        try:
            self.optimizer.step()
        except Exception as error:
            if is_own(self._trajectory.settings.optimizer):
                raise
            raise ValueError(
                f"a replay needs options and state of {self._trajectory.settings.optimizer}, found "
                f"others, with which it raises {type(error).__name__}: train and record again."
            ) from error

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss of a batch, with the random draws that the training made."""
        device = self.parameters[0].device
        x, y = (part.to(device) for part in self._loop.inputs(batch, self._x, self._y))
        with autocast(self._loop, device):
            outputs = recorded_outputs(self.model, self._loop, batch, x)
            return scalar(self._loss(outputs, y), "a loss")

    def restore(self, step: int) -> None:
        """Put the optimiser state of a checkpoint into the optimizer."""
        for number, entries in self._trajectory.optimizer_state(step).items():
            parameter = self.parameters[number]
            self.optimizer.state[parameter] = {
                key: value if key == "step" else value.to(parameter.device)
                for key, value in entries.items()
            }

    def _clip(self, recorded: float) -> float | Tensor | None:
        """Scale or clamp the gradients to what the training used, and return the factor."""
        norm = float(total_norm(self.parameters))
        if math.isnan(recorded) or not norm > recorded * (1 + CLIPPED):
            return None
        if self._loop.largest is not None:
            return self._clamp(self._loop.largest)
        limit = float(f"{recorded:.4g}")
        if abs(recorded - limit) <= 2 * CLIPPED * (1 + limit):
            torch.nn.utils.clip_grad_norm_(self.parameters, limit)
        else:
            for p in self.parameters:
                if p.grad is not None:
                    p.grad.mul_(recorded / norm)
        return recorded / norm

    def _clamp(self, largest: float) -> Tensor:
        parts = []
        for p in self.parameters:
            if p.grad is None:
                parts.append(torch.ones(p.numel(), dtype=torch.float64))
                continue
            raw = p.grad.double().flatten().clone()
            p.grad.clamp_(-largest, largest)
            used = p.grad.double().flatten()
            parts.append(torch.where(raw == 0, torch.ones_like(raw), used / raw).cpu())
        return torch.cat(parts)

    def _built(self, factory: OptimizerFactory | None) -> torch.optim.Optimizer:
        name = self._trajectory.settings.optimizer
        groups: list[dict[str, Any]] = [
            {"params": [self.model.get_parameter(name) for name in names]}
            for names in self._loop.groups
        ]
        if is_own(name):
            if factory is None:
                raise ValueError(
                    f"a replay needs the optimizer of the training, {name!r}, found none: pass "
                    "optimizer=... that returns it."
                )
            return factory(groups)  # type: ignore[arg-type]
        kinds: dict[str, str] = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
        kind = kinds.get(name, name.removeprefix(PREFIX))
        if kind not in REBUILT:
            raise ValueError(f"a replay knows the optimizers {', '.join(REBUILT)}, found {name!r}.")
        optimizer: torch.optim.Optimizer = getattr(torch.optim, kind)(groups, lr=0.1)
        return optimizer

    def _set_options(self, step: int) -> None:
        for number, group in enumerate(self.optimizer.param_groups):
            group.update(options_of(self._loop, step, number))


def options_of(loop: LoopRecord, step: int, group: int) -> dict[str, Any]:
    """Return the hyper-parameters of a parameter group at an update, as the optimizer has them."""
    options: dict[str, Any] = {}
    values = loop.options[step, group].tolist()
    for name, kind, value in zip(loop.option_names, loop.option_kinds, values, strict=True):
        option = None if math.isnan(value) else bool(value) if kind == "bool" else value
        key, dot, _ = name.partition(".")
        options[key] = (*options.get(key, ()), option) if dot else option
    return options


def set_modes(model: nn.Module, loop: LoopRecord) -> None:
    """Put a model into the mode in which it was trained, some of its modules in eval mode."""
    model.train()
    for name in loop.evaluated:
        model.get_submodule(name).training = False


def recorded_outputs(model: nn.Module, loop: LoopRecord, batch: Batch, x: Tensor) -> Tensor:
    """Return the outputs at the inputs of a batch, with the draws and number type of the training.

    Call it where the global random state may be written over.
    """
    if batch.random is not None:
        set_random_states(batch.random, x.device)
    with autocast(loop, x.device):
        outputs: Tensor = model(x.clone())
    return outputs


@contextlib.contextmanager
def autocast(loop: LoopRecord, device: torch.device) -> Iterator[None]:
    """Compute in the number type of the training, where it was another than that of the weights."""
    if loop.autocast is None:
        yield
        return
    with torch.autocast(device.type, dtype=getattr(torch, loop.autocast)):
        yield
