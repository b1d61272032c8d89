"""One stack: slots with weights, data and the memory of an optimizer."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inscape._core.progress import Bar
from inscape._core.sampling import generator
from inscape.ensembles.program import Program
from inscape.ensembles.stacked_optimizer import Optimizer


@dataclass(eq=False)
class Walk:
    """How far a member has come."""

    member: int
    rng: torch.Generator
    epochs: int = 0
    steps: int = 0
    loss: float = math.nan
    fault: list[float] | None = None  # the values of the update that was not finite

    def ended(self, epochs: int, stop_loss: float | None) -> bool:
        """Tell whether the member has reached its end, good or bad."""
        return self.fault is not None or self.epochs == epochs or self.stopped(stop_loss)

    def stopped(self, stop_loss: float | None) -> bool:
        """Tell whether the loss has fallen far enough."""
        return stop_loss is not None and self.loss <= stop_loss


class Pool:
    """The inputs, or the targets, of all slots; one tensor that all members share is kept once."""

    def __init__(self, tensors: Sequence[Tensor], width: int) -> None:
        self._tensors = tensors
        self._shared = all(tensor is tensors[0] for tensor in tensors)
        first = tensors[0]
        self._rows = (
            first if self._shared else first.new_zeros(width * len(first), *first.shape[1:])
        )
        each = 0 if self._shared else len(first)
        self._start = each * torch.arange(width, device=first.device)[:, None]

    def enter(self, slot: int, member: int) -> None:
        """Put the data of a member into a slot."""
        if not self._shared:
            given = self._tensors[member]
            self._rows[slot * len(given) : (slot + 1) * len(given)] = given

    def batch(self, rows: Tensor) -> Tensor:
        """Return the given rows of each slot."""
        chosen = self._rows.index_select(0, (self._start + rows).flatten())
        return chosen.reshape(*rows.shape, *chosen.shape[1:])


class Stack:
    """The members that are trained at the moment, in slots; idle slots repeat what they did."""

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
        self._orders = program.orders
        self.walks: list[Walk | None] = []
        self._whole: tuple[Tensor, Tensor] | None = None
        width = program.width(len(models))
        state = program.names.of(models[0])
        self._state = [[torch.stack([t] * width) for t in tensors] for tensors in state]
        self._optimizer = Optimizer(self._orders, self._state[0])
        self._furnish(width, [None] * width)

    @property
    def busy(self) -> list[Walk]:
        """Those who are under way."""
        return [walk for walk in self.walks if walk is not None]

    def seat(self, waiting: deque[int]) -> bool:
        """Let those who wait enter free slots; tell whether anybody is under way."""
        for slot, walk in enumerate(self.walks):
            if walk is None and waiting:
                self._enter(slot, waiting.popleft())
        if self.busy and not waiting:
            self._shrink()
        return bool(self.busy)

    @torch.no_grad()
    def epoch(self, bar: Bar) -> None:
        """Run one pass over the data in every slot."""
        n, values = len(self._xs[0]), []
        seen = torch.zeros(len(self.walks), dtype=torch.float64, device=self._xs[0].device)
        order = self._order(n)
        for start, size in _spans(self._program.sizes):
            batch = self._batch(order[:, start : start + size])
            update = self._program.update(len(self.walks), size)
            gradients, self._state[2], found = update(*self._state, *batch)
            self._optimizer.step(gradients, self._steps())
            seen = seen + found[:, 1].double() * size
            values.append(found)
            for walk in self.busy:
                walk.steps += 1
            bar.advance(len(self.busy))
        losses = (seen if self._orders.stop_on == "running" else self._evaluated(n)) / n
        self._judge(losses.tolist(), torch.stack(values))

    def leave(self, walk: Walk) -> nn.Module:
        """Free the slot of a member, its weights being in its model unless it has diverged."""
        slot, model = self.walks.index(walk), self._models[walk.member]
        self.walks[slot] = None
        if walk.fault is None:
            for mine, stacked in zip(self._program.names.of(model), self._state, strict=True):
                for tensor, slots in zip(mine, stacked, strict=True):
                    tensor.copy_(slots[slot])
        model.zero_grad(set_to_none=True)
        return model.eval()

    def _enter(self, slot: int, member: int) -> None:
        for stacked, mine in zip(
            self._state, self._program.names.of(self._models[member]), strict=True
        ):
            for slots, tensor in zip(stacked, mine, strict=True):
                slots[slot] = tensor
        for kept in self._optimizer.memory:
            for slots in kept:
                slots[slot] = 0
        for pool in self._pools:
            pool.enter(slot, member)
        self._whole = None
        self.walks[slot] = Walk(member, generator(self._seeds[member]))

    def _shrink(self) -> None:
        """Move to a narrower stack if those who are left fit into one."""
        width = self._program.width(len(self.busy))
        if width >= len(self.walks):
            return
        places = [slot for slot, walk in enumerate(self.walks) if walk is not None]
        walks = [*self.busy, *[None] * (width - len(places))]
        kept = torch.tensor(places + places[:1] * (width - len(places)), device=self._xs[0].device)
        self._state = [[t.index_select(0, kept) for t in tensors] for tensors in self._state]
        memory = self._optimizer.memory
        self._optimizer = Optimizer(self._orders, self._state[0])
        self._optimizer.memory = [[t.index_select(0, kept) for t in rows] for rows in memory]
        self._furnish(width, walks)

    def _furnish(self, width: int, walks: list[Walk | None]) -> None:
        """Take the slots and fetch their data; who is idle takes those of the first member."""
        self.walks = walks
        self._pools = [Pool(tensors, width) for tensors in (self._xs, self._ys)]
        self._whole = None
        for slot, walk in enumerate(walks):
            for pool in self._pools:
                pool.enter(slot, 0 if walk is None else walk.member)

    def _order(self, n: int) -> Tensor:
        """Return the order of the data in each slot, from the member's own dice."""
        rows = torch.arange(n)
        shuffled = self._orders.batch is not None
        orders = [
            torch.randperm(n, generator=walk.rng) if walk is not None and shuffled else rows
            for walk in self.walks
        ]
        return torch.stack(orders).to(self._xs[0].device)

    def _batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        if self._orders.batch is None and self._whole is not None:
            return self._whole
        x, y = (pool.batch(rows) for pool in self._pools)
        self._whole = x, y
        return self._whole

    def _steps(self) -> list[int]:
        """Return the number of each slot's update; the idle count with somebody else."""
        anyone = self.busy[0].steps
        return [anyone if walk is None else walk.steps for walk in self.walks]

    def _evaluated(self, n: int) -> Tensor:
        """Return the loss on all data as it is now, in eval mode, summed over the points."""
        width, device = len(self.walks), self._xs[0].device
        total = torch.zeros(width, dtype=torch.float64, device=device)
        order = torch.arange(n, device=device).expand(width, n)
        for start, size in _spans(self._program.parts):
            x, y = (pool.batch(order[:, start : start + size]) for pool in self._pools)
            losses = self._program.evaluation(width, size)(*self._state, x, y)[2]
            total = total + losses.double() * size
        return total

    def _judge(self, losses: list[float], values: Tensor) -> None:
        """Tell each member its loss, or at which update it ceased to be finite."""
        bad = ~values[:, :, 0].isfinite()
        per_epoch = len(values)
        for slot, walk in enumerate(self.walks):
            if walk is None:
                continue
            walk.epochs += 1
            walk.loss = losses[slot]
            if bool(bad[:, slot].any()):
                step = int(bad[:, slot].int().argmax())
                walk.steps += step - per_epoch
                walk.fault = values[step, slot, 1:].tolist()


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and the size of each batch."""
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return list(zip(starts, sizes, strict=True))
