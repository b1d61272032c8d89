"""A recorded training gone through backwards, with what later steps make of each gradient.

An update is linear in the gradients of all updates so far, once its denominators are known. So the
change of an output is a linear function of them, and its coefficients follow from the last step to
the first: they are carried for each query instead of the moments of each sample.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.trajectory import Settings, Trajectory
from inscape.kernels._task import Task
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty
from inscape.training.replay import Stand, second_moments, stands
from inscape.training.update import batches_per_epoch

#: Adam's own constant in torch.optim.
EPSILON = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class Recorded:
    """A recorded training, ready to be gone through."""

    task: Task
    trajectory: Trajectory
    loss: Loss | None
    penalties: Sequence[tuple[float, Penalty]]

    def backwards(self) -> Iterator[tuple[Stand, Stand]]:
        """Yield the ends of all steps from the last to the first, replaying between checkpoints."""
        marks = self.trajectory.checkpoints.tolist()
        for first, last in reversed(list(itertools.pairwise(marks))):
            if last == first + 1:
                yield self._stand(first), self._stand(last)
                continue
            way = list(
                stands(
                    self.trajectory,
                    self.task.model,
                    self.task.x,
                    self.task.y,
                    first,
                    last,
                    loss=self.loss,
                    penalties=self.penalties,
                )
            )
            self._refuse_other_way(way[-1])
            yield from reversed(list(itertools.pairwise(way)))

    def _refuse_other_way(self, end: Stand) -> None:
        """Refuse a replay that ends elsewhere: another network, if its weights have one shape."""
        known = self._stand(end.step).weights
        if float((end.weights - known).abs().max()) > 1e-3 * float(known.abs().max()):
            raise ValueError(
                "the path kernel needs the network that was trained, found one that training "
                f"leads to other weights at step {end.step}: pass the model with the activations "
                "and layers that it was trained with."
            )

    def bytes_between(self) -> int:
        """Return what the steps between two checkpoints take, all held at once."""
        most = int(self.trajectory.checkpoints.diff().max()) + 1
        copies = 1 if self.trajectory.settings.optimizer == "sgd" else 2
        named = self.trajectory.states[self.trajectory.trainable[0]]
        return most * copies * self.task.network.parameters * named.element_size()

    def weights(self, step: int) -> Float64[Tensor, " p"]:
        """Return the weights at a checkpoint."""
        return self._stand(step).weights.double()

    def _stand(self, step: int) -> Stand:
        state = self.trajectory.at(step)
        memory = self.trajectory.optimizer_state(step)
        weights = [state[name] for name in self.trajectory.trainable]
        kept = [memory.get(number, {}) for number in range(len(weights))]
        return Stand(
            step=step,
            weights=torch.cat([own.flatten() for own in weights]),
            squares=second_moments(weights, kept),
        )


def carried_rows(settings: Settings, decay: str) -> int:
    """Return how many rows of numbers, one per parameter, later steps know a gradient by."""
    memory = settings.optimizer != "sgd" or settings.momentum > 0
    return memory + (decay == "samples" and settings.weight_decay != 0)


def scale_of(settings: Settings, rate: float, after: Stand) -> Float64[Tensor, "*p"]:
    """Return how far a first moment of one moves each weight: one number for all, but for Adam."""
    if settings.optimizer == "sgd":
        return torch.tensor(rate, dtype=torch.float64)
    beta1, beta2 = settings.betas
    assert after.squares is not None
    root = after.squares.double().sqrt() / math.sqrt(1 - beta2**after.step)
    return rate / (1 - beta1**after.step) / (root + EPSILON)


class Adjoint:
    """What later steps make of gradients and weights: one row for each query and output."""

    def __init__(self, settings: Settings, rows: int, parameters: int, *, decay: str) -> None:
        self._settings, self._rows = settings, rows
        carries = settings.optimizer != "sgd" or settings.momentum > 0
        empty = torch.zeros(0, dtype=torch.float64)
        shape = (rows, parameters)
        self._memory = torch.zeros(shape, dtype=torch.float64) if carries else empty
        shared = decay == "samples" and settings.weight_decay != 0
        self._weights = torch.zeros(shape, dtype=torch.float64) if shared else None

    def back(
        self,
        slopes: Float64[Tensor, "r p"],
        rate: float,
        old: Float64[Tensor, " p"],
        scale: Float64[Tensor, "*p"],
    ) -> tuple[Float64[Tensor, "r p"], Float64[Tensor, " r"]]:
        """Go back over one step; return what it and later ones make of its gradient and of decay.

        Args:
            slopes: Gradients of the outputs, averaged along the step; written over.
            rate: Learning rate of the step.
            old: Weights before it.
            scale: How far it moved each weight for a first moment of one.
        """
        settings, decay = self._settings, self._settings.weight_decay
        if self._weights is not None:
            slopes.add_(self._weights)
        moved = torch.zeros(len(slopes), dtype=torch.float64)
        if settings.optimizer == "adamw" and decay:
            moved = self._decayed(slopes, -rate * decay, old)
        if settings.optimizer == "sgd":
            gradient = self._sgd(slopes, rate)
        else:
            beta1 = settings.betas[0]
            gradient = self._memory.mul_(beta1).addcmul_(slopes, scale, value=beta1 - 1)
        if settings.optimizer != "adamw" and decay:
            moved = self._decayed(gradient, decay, old)
        return gradient, moved

    def share_of_start(self, start: Float64[Tensor, " p"]) -> Float64[Tensor, " r"]:
        """Return what the initial weights have made through decay."""
        if self._weights is None:
            return torch.zeros(self._rows, dtype=torch.float64)
        return self._weights @ start

    def _decayed(self, slopes: Tensor, factor: float, old: Tensor) -> Tensor:
        if self._weights is None:
            return factor * (slopes @ old)
        self._weights.add_(slopes, alpha=factor)
        return torch.zeros(len(slopes), dtype=torch.float64)

    def _sgd(self, slopes: Tensor, rate: float) -> Tensor:
        momentum = self._settings.momentum
        if not momentum:
            return slopes.mul_(-rate)
        if self._settings.nesterov:
            self._memory.mul_(momentum).add_(slopes, alpha=-rate * momentum)
            return slopes.mul_(-rate).add_(self._memory)
        return self._memory.mul_(momentum).add_(slopes, alpha=-rate)


def refuse_gaps(trajectory: Trajectory) -> None:
    """Refuse a training some of whose steps nobody can make again, and name them."""
    first, last = int(trajectory.checkpoints[0]), int(trajectory.checkpoints[-1])
    known = trajectory.steps
    if trajectory.order is not None:
        epochs, n = trajectory.order.shape
        known = epochs * batches_per_epoch(n, trajectory.settings.batch)
    gap = None
    if first > 0:
        gap = (0, first - 1, f"the first checkpoint is at step {first}")
    elif known < trajectory.steps:
        gap = (known, trajectory.steps - 1, f"batches are known of {known} steps")
    elif last > trajectory.steps:
        gap = (trajectory.steps, last - 1, f"learning rates are known of {trajectory.steps} steps")
    elif last < trajectory.steps:
        gap = (last, trajectory.steps - 1, f"the last checkpoint is at step {last}")
    if gap is not None:
        steps = max(last, trajectory.steps)
        raise ValueError(
            f"the path kernel needs all {steps} steps of the training, found steps "
            f"{gap[0]} to {gap[1]} missing ({gap[2]}): pass the trajectory whole, or train anew "
            "with record=...."
        )
