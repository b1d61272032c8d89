"""Reverse pass over a recorded training: the adjoint of its optimiser.

An update is linear in the gradients of all updates so far, once its denominators are known. So the
change of an output is a linear function of them, whose coefficients follow by recursion from the
last step to the first. They are stored for each query, instead of moments for each sample.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from inscape.kernels.path.linear_chain import SampleGradients
from inscape.kernels.path.module_network import ModuleNetwork
from inscape.kernels.path.training_gradients import TrainingProblem
from inscape.kernels.path.training_mode import TrainingModeGradients
from inscape.kernels.path.update_rule import PerWeight, UpdateRule, add_scaled
from inscape.training.loop_record import Batch
from inscape.training.loop_update import autocast, recorded_outputs, set_modes
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty
from inscape.training.random_state import private_random_state
from inscape.training.replay import Stand, second_moments, stands
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory
from inscape.training.update import batches_per_epoch


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedTraining:
    """A recorded training with its data, loss and penalties."""

    problem: TrainingProblem
    trajectory: Trajectory
    loss: Loss | None
    penalties: Sequence[tuple[float, Penalty]]
    mixes_batch: bool = False

    def rule(self, step: int) -> UpdateRule:
        """Return the update rule of a step."""
        trajectory = self.trajectory
        if trajectory.loop is None:
            return UpdateRule.of(trajectory.settings, float(trajectory.rates[step]), step + 1)
        sizes = [own.stop - own.start for own in self.problem.network.slices]
        return UpdateRule.of_loop(trajectory, step, sizes)

    def gradients(self, before: Stand) -> Iterator[tuple[slice | Tensor, SampleGradients]]:
        """Yield the per-sample gradients of an update, batch by batch.

        Samples that are not in the data have the index after the last of these.
        """
        step, old, loop = before.step, before.weights.double(), self.trajectory.loop
        if loop is None:
            batch_rows = self.trajectory.rows(step)
            yield batch_rows, self.problem.gradients(batch_rows, old)
            return
        n = len(self.problem.x)
        for batch in loop.batches(step):
            x, y = loop.inputs(batch, self.problem.x, self.problem.y)
            rows = torch.where(batch.rows < 0, n, batch.rows)
            if self.mixes_batch:
                yield rows, self._training_mode_gradients(before, batch, x, y)
            else:
                yield rows, self.problem.gradients_at(x, y, old, loop.accumulate)

    def _training_mode_gradients(
        self, before: Stand, batch: Batch, x: Tensor, y: Tensor
    ) -> SampleGradients:
        """Return the contributions of samples to the gradient of a batch in training mode."""
        loop, model = self.trajectory.loop, copy.deepcopy(self.problem.model)
        assert loop is not None
        set_modes(model, loop)
        parameters = [
            model.get_parameter(name).requires_grad_() for name in self.trajectory.trainable
        ]
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(before.weights.to(parameters[0].dtype), parameters)
            for name, buffer in model.named_buffers():
                buffer.copy_((before.buffers or {}).get(name, buffer))
        # Of the attention kernels only the plain one has second derivatives.
        plain_attention = sdpa_kernel(SDPBackend.MATH)
        with private_random_state(x.device), torch.enable_grad(), plain_attention:
            outputs = recorded_outputs(model, loop, batch, x)
            loss_input = outputs.detach().requires_grad_()
            with autocast(loop, x.device):
                value = self.problem.loss(loss_input.clone(), y) / loop.accumulate
        (cotangents,) = torch.autograd.grad(value, loss_input)
        return TrainingModeGradients(outputs, cotangents, parameters, self.problem.network.slices)

    def values(self, step: int, queries: Tensor) -> Float64[Tensor, "q c"]:
        """Return the outputs at some queries at a checkpoint."""
        stand = self._stand(step)
        self.set_buffers(stand)
        return self.problem.network.values(stand.weights.double(), queries)

    def set_buffers(self, stand: Stand) -> None:
        """Load the buffers of a step, where training mode changes them."""
        network = self.problem.network
        if self.mixes_batch and stand.buffers and isinstance(network, ModuleNetwork):
            network.set_buffers(stand.buffers)

    def backwards(self) -> Iterator[tuple[Stand, Stand]]:
        """Yield the ends of all steps from the last to the first, replayed between checkpoints."""
        checkpoints = self.trajectory.checkpoints.tolist()
        for first, last in reversed(list(itertools.pairwise(checkpoints))):
            if self.trajectory.loop is not None:
                yield from reversed(list(itertools.pairwise(self._loop_stands(first, last))))
                continue
            if last == first + 1:
                yield self._stand(first), self._stand(last)
                continue
            steps = self._replayed(first, last)
            self._check_replay(steps[-1])
            yield from reversed(list(itertools.pairwise(steps)))

    def _replayed(self, first: int, last: int) -> list[Stand]:
        """Return all steps between two checkpoints, by training again."""
        problem = self.problem
        return list(
            stands(
                self.trajectory, problem.model, problem.x, problem.y, first, last, loss=self.loss,
                penalties=self.penalties,
            )
        )  # fmt: skip

    def _loop_stands(self, first: int, last: int) -> list[Stand]:
        """Return the steps of a loop between checkpoints, replayed or interpolated.

        The difference between a replay and the checkpoint at its end goes to the last update.
        """
        loop, end = self.trajectory.loop, self._stand(last)
        assert loop is not None
        if loop.known(first, last):
            steps = self._replayed(first, last)
            if not self._deviates(steps[-1]):
                steps[-1] = replace(steps[-1], weights=end.weights, buffers=end.buffers)
                return steps
        start = self._stand(first)
        return [
            interpolated(start, end, step, (step - first) / (last - first))
            for step in range(first, last + 1)
        ]

    def _deviates(self, end: Stand) -> bool:
        known = self._stand(end.step).weights
        return float((end.weights - known).abs().max()) > 1e-3 * float(known.abs().max())

    def _check_replay(self, end: Stand) -> None:
        """Raise if a replay misses the next checkpoint: the network is another one."""
        if self._deviates(end):
            raise ValueError(
                "the path kernel needs the network that was trained, found one that training "
                f"leads to other weights at step {end.step}: pass the model with the activations "
                "and layers that it was trained with."
            )

    def bytes_between(self) -> int:
        """Return the bytes of all steps between two checkpoints."""
        most = int(self.trajectory.checkpoints.diff().max()) + 1
        copies = 1 if self.trajectory.settings.optimizer == "sgd" else 2
        named = self.trajectory.states[self.trajectory.trainable[0]]
        return most * copies * self.problem.network.parameters * named.element_size()

    def weights(self, step: int) -> Float64[Tensor, " p"]:
        """Return the weights at a checkpoint."""
        return self._stand(step).weights.double()

    def _stand(self, step: int) -> Stand:
        state = self.trajectory.at(step)
        optimizer_state = self.trajectory.optimizer_state(step)
        weights = [state[name] for name in self.trajectory.trainable]
        states = [optimizer_state.get(number, {}) for number in range(len(weights))]
        return Stand(
            step=step,
            weights=torch.cat([own.flatten() for own in weights]),
            squares=second_moments(weights, states),
            buffers={
                name: state[name] for name, _ in self.problem.model.named_buffers() if name in state
            },
        )


def interpolated(start: Stand, end: Stand, step: int, fraction: float) -> Stand:
    """Return a step linearly interpolated between two checkpoints."""
    zeros = None if end.squares is None else torch.zeros_like(end.squares)
    first = zeros if start.squares is None else start.squares
    buffers = {
        name: torch.lerp(own, end.buffers[name], fraction) if own.is_floating_point() else own
        for name, own in (start.buffers or {}).items()
        if end.buffers is not None
    }
    return Stand(
        step=step,
        weights=torch.lerp(start.weights, end.weights, fraction),
        squares=None
        if first is None or end.squares is None
        else torch.lerp(first, end.squares, fraction),
        buffers=buffers,
    )


def moment_rows(settings: FitSettings, decay: str) -> int:
    """Return how many values per parameter the optimiser state needs: moments, and weights."""
    has_moment = settings.optimizer != "sgd" or settings.momentum > 0
    return has_moment + (decay == "samples" and settings.weight_decay != 0)


class Adjoint:
    """Derivatives of the outputs by past gradients and weights: one row per query and output."""

    def __init__(self, settings: FitSettings, rows: int, parameters: int, *, decay: str) -> None:
        self._settings, self._rows = settings, rows
        has_moment = settings.optimizer != "sgd" or settings.momentum > 0
        empty = torch.zeros(0, dtype=torch.float64)
        shape = (rows, parameters)
        self._moments = torch.zeros(shape, dtype=torch.float64) if has_moment else empty
        self._next_rule: UpdateRule | None = None
        tracks_weights = decay == "samples" and settings.weight_decay != 0
        self._weights = torch.zeros(shape, dtype=torch.float64) if tracks_weights else None

    def step_back(
        self,
        gradients: Float64[Tensor, "r p"],
        rule: UpdateRule,
        old: Float64[Tensor, " p"],
        scale: Float64[Tensor, "*p"],
    ) -> tuple[Float64[Tensor, "r p"], Float64[Tensor, " r"]]:
        """Return the coefficients of the gradient of one step, and the contribution of its decay.

        Args:
            gradients: Gradients of the outputs, averaged along the step; overwritten.
            rule: Hyper-parameters of the step.
            old: Weights before the step.
            scale: Step of each weight per unit of its first moment.
        """
        settings, decays = self._settings, self._settings.weight_decay != 0
        if self._weights is not None:
            gradients.add_(self._weights)
        by_decay = torch.zeros(len(gradients), dtype=torch.float64)
        if settings.optimizer == "adamw" and decays:
            by_decay = self._decay_term(gradients, -rule.rate * rule.weight_decay, old)
        if settings.optimizer == "sgd":
            coefficients = self._sgd(gradients, rule)
        else:
            self._moments.mul_(self._moment_decay(rule))
            coefficients = self._moments.addcmul_(gradients, scale * (rule.beta1 - 1))
        if settings.optimizer != "adamw" and decays:
            by_decay = self._decay_term(coefficients, rule.weight_decay, old)
        self._next_rule = rule
        return coefficients, by_decay

    def _moment_decay(self, rule: UpdateRule) -> PerWeight:
        """Return the decay of Adam's first moment at the next update, per unit of gradient."""
        later = self._next_rule
        if later is None or later.beta1 is rule.beta1 or _same(later.beta1, rule.beta1):
            return rule.beta1
        return later.beta1 * (1 - rule.beta1) / (1 - later.beta1)

    def decay_of_start(self, start: Float64[Tensor, " p"]) -> Float64[Tensor, " r"]:
        """Return the contribution of the initial weights through decay."""
        if self._weights is None:
            return torch.zeros(self._rows, dtype=torch.float64)
        return self._weights @ start

    def _decay_term(self, gradients: Tensor, factor: PerWeight, old: Tensor) -> Tensor:
        if self._weights is None:
            return gradients @ (factor * old) if isinstance(factor, Tensor) else factor * (
                gradients @ old)  # fmt: skip
        add_scaled(self._weights, gradients, factor)
        return torch.zeros(len(gradients), dtype=torch.float64)

    def _sgd(self, gradients: Tensor, rule: UpdateRule) -> Tensor:
        if not self._settings.momentum:
            return gradients.mul_(-rule.rate)
        self._moments.mul_(rule.momentum if self._next_rule is None else self._next_rule.momentum)
        if rule.nesterov:
            add_scaled(self._moments, gradients, -rule.rate * rule.momentum)
            return gradients.mul_(-rule.rate).add_(self._moments)
        return add_scaled(self._moments, gradients, -rule.rate)


def _same(first: PerWeight, second: PerWeight) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.equal(first, second)
    return isinstance(first, float) and isinstance(second, float) and first == second


def refuse_gaps(trajectory: Trajectory) -> None:
    """Raise if some steps of a training cannot be replayed, and name them."""
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
