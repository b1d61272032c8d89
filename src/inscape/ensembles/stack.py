"""A stack: slots with the weights, data and optimiser state of the members in training."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.ensembles.program import Program
from inscape.ensembles.stacked_optimizer import StackedOptimizer
from inscape.runtime.progress import Bar


@dataclass(eq=False)
class Progress:
    """Progress of a member in its training."""

    member: int
    rng: torch.Generator
    epochs: int = 0
    steps: int = 0
    loss: float = math.nan
    diverged_values: list[float] | None = None  # the values of the update that was not finite

    def ended(self, epochs: int, stop_loss: float | None) -> bool:
        """Return whether the training of the member is over, diverged or not."""
        return self.diverged_values is not None or self.epochs == epochs or self.stopped(stop_loss)

    def stopped(self, stop_loss: float | None) -> bool:
        """Return whether the loss has fallen to ``stop_loss``."""
        return stop_loss is not None and self.loss <= stop_loss


class SlotData:
    """The inputs, or the targets, of all slots; a tensor that all members share is stored once."""

    def __init__(self, tensors: Sequence[Tensor], width: int) -> None:
        self._tensors = tensors
        self._shared = all(tensor is tensors[0] for tensor in tensors)
        first = tensors[0]
        self._samples = (
            first if self._shared else first.new_zeros(width * len(first), *first.shape[1:])
        )
        stride = 0 if self._shared else len(first)
        self._start = stride * torch.arange(width, device=first.device)[:, None]

    def enter(self, slot: int, member: int) -> None:
        """Put the data of a member into a slot."""
        if not self._shared:
            own = self._tensors[member]
            self._samples[slot * len(own) : (slot + 1) * len(own)] = own

    def batch(self, indices: Tensor) -> Tensor:
        """Return the samples of these indices in each slot."""
        samples = self._samples.index_select(0, (self._start + indices).flatten())
        return samples.reshape(*indices.shape, *samples.shape[1:])


class Stack:
    """The members that are trained at the moment, in slots; idle slots compute too."""

    def __init__(
        self,
        program: Program,
        models: Sequence[nn.Module],
        xs: Sequence[Tensor],
        ys: Sequence[Tensor],
        seeds: Sequence[int],
    ) -> None:
        self._program = program
        self._models, self._xs, self._ys, self._seeds = models, xs, ys, seeds
        self._options = program.options
        self.members: list[Progress | None] = []
        self._full_batch: tuple[Tensor, Tensor] | None = None
        width = program.width(len(models))
        state = program.names.of(models[0])
        self._state = [[torch.stack([t] * width) for t in tensors] for tensors in state]
        self._optimizer = StackedOptimizer(self._options, self._state[0])
        self._set_up(width, [None] * width)

    @property
    def active(self) -> list[Progress]:
        """Progress of the members in training."""
        return [progress for progress in self.members if progress is not None]

    def fill(self, waiting: deque[int]) -> bool:
        """Put waiting members into free slots; return whether any member is in training."""
        for slot, progress in enumerate(self.members):
            if progress is None and waiting:
                self._enter(slot, waiting.popleft())
        if self.active and not waiting:
            self._shrink()
        return bool(self.active)

    @torch.no_grad()
    def epoch(self, bar: Bar) -> None:
        """Run one pass over the data in every slot."""
        n, values = len(self._xs[0]), []
        loss_sum = torch.zeros(len(self.members), dtype=torch.float64, device=self._xs[0].device)
        order = self._order(n)
        for start, size in _spans(self._program.sizes):
            batch = self._batch(order[:, start : start + size])
            update = self._program.update(len(self.members), size)
            gradients, self._state[2], terms = update(*self._state, *batch)
            self._optimizer.step(gradients, self._steps())
            loss_sum = loss_sum + terms[:, 1].double() * size
            values.append(terms)
            for progress in self.active:
                progress.steps += 1
            bar.advance(len(self.active))
        losses = (loss_sum if self._options.stop_on == "running" else self._evaluated(n)) / n
        self._note_losses(losses.tolist(), torch.stack(values))

    def leave(self, progress: Progress) -> nn.Module:
        """Free the slot of a member and write its weights to its model, unless it has diverged."""
        slot, model = self.members.index(progress), self._models[progress.member]
        self.members[slot] = None
        if progress.diverged_values is None:
            for own, stacked in zip(self._program.names.of(model), self._state, strict=True):
                for tensor, slots in zip(own, stacked, strict=True):
                    tensor.copy_(slots[slot])
        model.zero_grad(set_to_none=True)
        return model.eval()

    def _enter(self, slot: int, member: int) -> None:
        for stacked, own in zip(
            self._state, self._program.names.of(self._models[member]), strict=True
        ):
            for slots, tensor in zip(stacked, own, strict=True):
                slots[slot] = tensor
        for moments in self._optimizer.moments:
            for slots in moments:
                slots[slot] = 0
        for data in self._data:
            data.enter(slot, member)
        self._full_batch = None
        self.members[slot] = Progress(member, generator(self._seeds[member]))

    def _shrink(self) -> None:
        """Move to a narrower stack if the remaining members fit into one."""
        width = self._program.width(len(self.active))
        if width >= len(self.members):
            return
        places = [slot for slot, progress in enumerate(self.members) if progress is not None]
        members = [*self.active, *[None] * (width - len(places))]
        slots = torch.tensor(places + places[:1] * (width - len(places)), device=self._xs[0].device)
        self._state = [[t.index_select(0, slots) for t in tensors] for tensors in self._state]
        moments = self._optimizer.moments
        self._optimizer = StackedOptimizer(self._options, self._state[0])
        self._optimizer.moments = [[t.index_select(0, slots) for t in m] for m in moments]
        self._set_up(width, members)

    def _set_up(self, width: int, members: list[Progress | None]) -> None:
        """Set up the slots with their data; an idle slot has that of the first member."""
        self.members = members
        self._data = [SlotData(tensors, width) for tensors in (self._xs, self._ys)]
        self._full_batch = None
        for slot, progress in enumerate(members):
            for data in self._data:
                data.enter(slot, 0 if progress is None else progress.member)

    def _order(self, n: int) -> Tensor:
        """Return the order of the data in each slot, drawn with the generator of its member."""
        unshuffled = torch.arange(n)
        shuffled = self._options.batch is not None
        permutations = [
            torch.randperm(n, generator=progress.rng)
            if progress is not None and shuffled
            else unshuffled
            for progress in self.members
        ]
        return torch.stack(permutations).to(self._xs[0].device)

    def _batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        if self._options.batch is None and self._full_batch is not None:
            return self._full_batch
        x, y = (data.batch(indices) for data in self._data)
        self._full_batch = x, y
        return self._full_batch

    def _steps(self) -> list[int]:
        """Return the step of each slot; an idle slot counts with another."""
        first = self.active[0].steps
        return [first if progress is None else progress.steps for progress in self.members]

    def _evaluated(self, n: int) -> Tensor:
        """Return the loss on all data in eval mode, summed over samples."""
        width, device = len(self.members), self._xs[0].device
        total = torch.zeros(width, dtype=torch.float64, device=device)
        order = torch.arange(n, device=device).expand(width, n)
        for start, size in _spans(self._program.parts):
            x, y = (data.batch(order[:, start : start + size]) for data in self._data)
            losses = self._program.evaluation(width, size)(*self._state, x, y)[2]
            total = total + losses.double() * size
        return total

    def _note_losses(self, losses: list[float], values: Tensor) -> None:
        """Note the loss of each member, or the update at which it was not finite."""
        diverged = ~values[:, :, 0].isfinite()
        per_epoch = len(values)
        for slot, progress in enumerate(self.members):
            if progress is None:
                continue
            progress.epochs += 1
            progress.loss = losses[slot]
            if bool(diverged[:, slot].any()):
                step = int(diverged[:, slot].int().argmax())
                progress.steps += step - per_epoch
                progress.diverged_values = values[step, slot, 1:].tolist()


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and the size of each batch."""
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return list(zip(starts, sizes, strict=True))
