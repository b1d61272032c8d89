"""A recorded training gone through backwards, with what later steps make of each gradient.

An update is linear in the gradients of all updates so far, once its denominators are known. So the
change of an output is a linear function of them, and its coefficients follow from the last step to
the first: they are carried for each query instead of the moments of each sample.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.kernels.path.gradients_between import General
from inscape.kernels.path.training_gradients import Task
from inscape.kernels.path.training_mode import TrainingModeParts
from inscape.kernels.path.update_rule import PerWeight, UpdateRule, add_scaled
from inscape.kernels.tangent.linear_chain import Parts
from inscape.training.loop_record import Batch
from inscape.training.loop_update import autocast, recorded_outputs, set_modes
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty
from inscape.training.random_state import private_dice
from inscape.training.replay import Stand, second_moments, stands
from inscape.training.trajectory import Settings, Trajectory
from inscape.training.update import batches_per_epoch


@dataclass(frozen=True, eq=False, kw_only=True)
class Recorded:
    """A recorded training, ready to be gone through."""

    task: Task
    trajectory: Trajectory
    loss: Loss | None
    penalties: Sequence[tuple[float, Penalty]]
    together: bool = False

    def rule(self, step: int) -> UpdateRule:
        """Return the hyper-parameters of an update."""
        trajectory = self.trajectory
        if trajectory.loop is None:
            return UpdateRule.of(trajectory.settings, float(trajectory.rates[step]), step + 1)
        sizes = [own.stop - own.start for own in self.task.network.slices]
        return UpdateRule.of_loop(trajectory, step, sizes)

    def gradients(self, before: Stand) -> Iterator[tuple[slice | Tensor, Parts]]:
        """Yield the parts of samples in the gradient of an update, batch by batch.

        Rows that are not in the data have the number that follows the last of these.
        """
        step, old, loop = before.step, before.weights.double(), self.trajectory.loop
        if loop is None:
            which = self.trajectory.rows(step)
            yield which, self.task.gradients(which, old)
            return
        n = len(self.task.x)
        for batch in loop.batches(step):
            x, y = loop.inputs(batch, self.task.x, self.task.y)
            rows = torch.where(batch.rows < 0, n, batch.rows)
            if self.together:
                yield rows, self._batch_parts(before, batch, x, y)
            else:
                yield rows, self.task.gradients_at(x, y, old, loop.accumulate)

    def _batch_parts(self, before: Stand, batch: Batch, x: Tensor, y: Tensor) -> Parts:
        """Return the parts of samples of a batch that acts together, as the training took it."""
        loop, body = self.trajectory.loop, copy.deepcopy(self.task.model)
        assert loop is not None
        set_modes(body, loop)
        parameters = [
            body.get_parameter(name).requires_grad_() for name in self.trajectory.trainable
        ]
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(before.weights.to(parameters[0].dtype), parameters)
            for name, buffer in body.named_buffers():
                buffer.copy_((before.buffers or {}).get(name, buffer))
        with private_dice(x.device), torch.enable_grad():
            outputs = recorded_outputs(body, loop, batch, x)
            given = outputs.detach().requires_grad_()
            with autocast(loop, x.device):
                value = self.task.loss(given.clone(), y) / loop.accumulate
        (cotangents,) = torch.autograd.grad(value, given)
        return TrainingModeParts(outputs, cotangents, parameters, self.task.network.slices)

    def values(self, step: int, queries: Tensor) -> Float64[Tensor, "q c"]:
        """Return the outputs at some queries at a checkpoint."""
        stand = self._stand(step)
        self.set_buffers(stand)
        return self.task.network.values(stand.weights.double(), queries)

    def set_buffers(self, stand: Stand) -> None:
        """Give the network the buffers of a step, where a training in batches moves them."""
        network = self.task.network
        if self.together and stand.buffers and isinstance(network, General):
            network.set_buffers(stand.buffers)

    def backwards(self) -> Iterator[tuple[Stand, Stand]]:
        """Yield the ends of all steps from the last to the first, replaying between checkpoints."""
        marks = self.trajectory.checkpoints.tolist()
        for first, last in reversed(list(itertools.pairwise(marks))):
            if self.trajectory.loop is not None:
                yield from reversed(list(itertools.pairwise(self._loop_stands(first, last))))
                continue
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

    def _loop_stands(self, first: int, last: int) -> list[Stand]:
        """Return the steps of a loop between checkpoints: replayed, or on the straight line.

        What a replay misses of the checkpoint at its end goes to the last update.
        """
        loop, end = self.trajectory.loop, self._stand(last)
        assert loop is not None
        if loop.known(first, last):
            task = self.task
            steps = list(
                stands(
                    self.trajectory, task.model, task.x, task.y, first, last, loss=self.loss,
                    penalties=self.penalties,
                )
            )  # fmt: skip
            if not self._elsewhere(steps[-1]):
                steps[-1] = replace(steps[-1], weights=end.weights, buffers=end.buffers)
                return steps
        start = self._stand(first)
        return [
            between(start, end, step, (step - first) / (last - first))
            for step in range(first, last + 1)
        ]

    def _elsewhere(self, end: Stand) -> bool:
        known = self._stand(end.step).weights
        return float((end.weights - known).abs().max()) > 1e-3 * float(known.abs().max())

    def _refuse_other_way(self, end: Stand) -> None:
        """Refuse a replay that ends elsewhere: another network, if its weights have one shape."""
        if self._elsewhere(end):
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
            buffers={
                name: state[name] for name, _ in self.task.model.named_buffers() if name in state
            },
        )


def between(start: Stand, end: Stand, step: int, share: float) -> Stand:
    """Return a step on the straight line between two checkpoints, for want of a replay."""
    zeros = None if end.squares is None else torch.zeros_like(end.squares)
    first = zeros if start.squares is None else start.squares
    buffers = {
        name: torch.lerp(own, end.buffers[name], share) if own.is_floating_point() else own
        for name, own in (start.buffers or {}).items()
        if end.buffers is not None
    }
    return Stand(
        step=step,
        weights=torch.lerp(start.weights, end.weights, share),
        squares=None
        if first is None or end.squares is None
        else torch.lerp(first, end.squares, share),
        buffers=buffers,
    )


def carried_rows(settings: Settings, decay: str) -> int:
    """Return how many rows of numbers, one per parameter, later steps know a gradient by."""
    memory = settings.optimizer != "sgd" or settings.momentum > 0
    return memory + (decay == "samples" and settings.weight_decay != 0)


class Adjoint:
    """What later steps make of gradients and weights: one row for each query and output."""

    def __init__(self, settings: Settings, rows: int, parameters: int, *, decay: str) -> None:
        self._settings, self._rows = settings, rows
        carries = settings.optimizer != "sgd" or settings.momentum > 0
        empty = torch.zeros(0, dtype=torch.float64)
        shape = (rows, parameters)
        self._memory = torch.zeros(shape, dtype=torch.float64) if carries else empty
        self._later: UpdateRule | None = None
        shared = decay == "samples" and settings.weight_decay != 0
        self._weights = torch.zeros(shape, dtype=torch.float64) if shared else None

    def back(
        self,
        slopes: Float64[Tensor, "r p"],
        rule: UpdateRule,
        old: Float64[Tensor, " p"],
        scale: Float64[Tensor, "*p"],
    ) -> tuple[Float64[Tensor, "r p"], Float64[Tensor, " r"]]:
        """Go back over one step; return what it and later ones make of its gradient and of decay.

        Args:
            slopes: Gradients of the outputs, averaged along the step; written over.
            rule: Hyper-parameters of the step.
            old: Weights before it.
            scale: How far it moved each weight for a first moment of one.
        """
        settings, decays = self._settings, self._settings.weight_decay != 0
        if self._weights is not None:
            slopes.add_(self._weights)
        moved = torch.zeros(len(slopes), dtype=torch.float64)
        if settings.optimizer == "adamw" and decays:
            moved = self._decayed(slopes, -rule.rate * rule.weight_decay, old)
        if settings.optimizer == "sgd":
            gradient = self._sgd(slopes, rule)
        else:
            self._memory.mul_(self._kept(rule))
            gradient = self._memory.addcmul_(slopes, scale * (rule.beta1 - 1))
        if settings.optimizer != "adamw" and decays:
            moved = self._decayed(gradient, rule.weight_decay, old)
        self._later = rule
        return gradient, moved

    def _kept(self, rule: UpdateRule) -> PerWeight:
        """Return how much of Adam's first moment the next update keeps, per unit of gradient."""
        later = self._later
        if later is None or later.beta1 is rule.beta1 or _same(later.beta1, rule.beta1):
            return rule.beta1
        return later.beta1 * (1 - rule.beta1) / (1 - later.beta1)

    def share_of_start(self, start: Float64[Tensor, " p"]) -> Float64[Tensor, " r"]:
        """Return what the initial weights have made through decay."""
        if self._weights is None:
            return torch.zeros(self._rows, dtype=torch.float64)
        return self._weights @ start

    def _decayed(self, slopes: Tensor, factor: PerWeight, old: Tensor) -> Tensor:
        if self._weights is None:
            return slopes @ (factor * old) if isinstance(factor, Tensor) else factor * (
                slopes @ old)  # fmt: skip
        add_scaled(self._weights, slopes, factor)
        return torch.zeros(len(slopes), dtype=torch.float64)

    def _sgd(self, slopes: Tensor, rule: UpdateRule) -> Tensor:
        if not self._settings.momentum:
            return slopes.mul_(-rule.rate)
        self._memory.mul_(rule.momentum if self._later is None else self._later.momentum)
        if rule.nesterov:
            add_scaled(self._memory, slopes, -rule.rate * rule.momentum)
            return slopes.mul_(-rule.rate).add_(self._memory)
        return add_scaled(self._memory, slopes, -rule.rate)


def _same(one: PerWeight, two: PerWeight) -> bool:
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return torch.equal(one, two)
    return isinstance(one, float) and isinstance(two, float) and one == two


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
