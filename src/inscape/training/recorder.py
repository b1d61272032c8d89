"""The recorder of a training: checkpoints, batches and learning rates."""

import torch
from torch import Tensor, nn

from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory


class Recorder:
    """Collects the tensors of a :class:`Trajectory`, with a checkpoint every so many steps.

    Memory grows by one copy of parameters, buffers and optimizer state per checkpoint, and by one
    small integer per data point and epoch where there are mini-batches.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, every: int) -> None:
        if len(optimizer.param_groups) != 1:
            raise ValueError(
                "a trajectory has one learning rate per step, found an optimizer with "
                f"{len(optimizer.param_groups)} parameter groups: use one group, or record=None."
            )
        self._model = model
        self._optimizer = optimizer
        self._every = every
        self._options = self._group_options()
        self._states: dict[str, list[Tensor]] = {}
        self._memory: dict[str, list[Tensor]] = {}
        self._checkpoints: list[int] = []
        self._rates: list[float] = []
        self._order: list[Tensor] = []
        self._checkpoint()

    def epoch(self, order: Tensor | None) -> None:
        """Record the order of the data in the epoch that begins."""
        if order is not None:
            self._order.append(order.to(_smallest(len(order))))

    def step(self, rate: float) -> None:
        """Record the learning rate of the last update, and a checkpoint if one is due."""
        self._rates.append(rate)
        if len(self._rates) % self._every == 0:
            self._checkpoint()

    def trajectory(self, settings: FitSettings, data: str) -> Trajectory:
        """Return the trajectory; the recorder is empty afterwards."""
        if self._checkpoints[-1] != len(self._rates):
            self._checkpoint()
        return Trajectory(
            states=_stacked(self._states),
            memory=_stacked(self._memory),
            checkpoints=torch.tensor(self._checkpoints),
            rates=torch.tensor(self._rates, dtype=torch.float64),
            order=torch.stack(self._order) if self._order else None,
            trainable=tuple(n for n, p in self._model.named_parameters() if p.requires_grad),
            settings=settings,
            data=data,
        )

    def _checkpoint(self) -> None:
        self._checkpoints.append(len(self._rates))
        for name, tensor in self._model.state_dict().items():
            self._append(self._states, name, tensor)
        for number, entries in self._optimizer.state_dict()["state"].items():
            for key, value in entries.items():
                if value is not None:
                    self._append(self._memory, f"{number}.{key}", value)
        if self._group_options() != self._options:
            raise TypeError(
                "a trajectory holds the state of an optimizer, found "
                f"{type(self._optimizer).__name__} keeping more in its parameter groups: "
                "train with record=None."
            )

    @staticmethod
    def _append(lists: dict[str, list[Tensor]], name: str, value: object) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"a trajectory holds tensors only, found {name!r} to be a {type(value).__name__}: "
                "train with record=None."
            )
        lists.setdefault(name, []).append(value.detach().to("cpu", copy=True))

    def _group_options(self) -> dict[str, object]:
        group = self._optimizer.param_groups[0]
        return {key: value for key, value in group.items() if key not in ("params", "lr")}


def _smallest(n: int) -> torch.dtype:
    """Return the smallest integer type that counts to ``n``."""
    if n <= 2**8:
        return torch.uint8
    return torch.int16 if n <= 2**15 else torch.int32 if n <= 2**31 else torch.int64


def _stacked(lists: dict[str, list[Tensor]]) -> dict[str, Tensor]:
    """Return each list stacked; lists are dropped one by one, to save memory."""
    return {name: torch.stack(lists.pop(name)) for name in list(lists)}
