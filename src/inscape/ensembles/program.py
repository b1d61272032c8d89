"""A stack's operations, admitted only where a member's bits depend neither on slot nor on width.

Kernels choose their ways by the shape of the whole stack: a matrix product alone may add up in
another order than within a batch, and the last elements of a vectorised loop may pass through
another exponential than the first. So stacks have a few fixed widths, idle slots are kept busy, and
a width is used only if no such loop is left with single elements (:mod:`.even`), and if networks
drawn at random, each put into every slot at once, come out with the same bits in all slots, and
with the bits that they have at the largest width.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor, fx, nn

from inscape._core.sampling import generator
from inscape.ensembles.even_sizes import uneven
from inscape.ensembles.graphs import Graphs
from inscape.ensembles.member import Orders
from inscape.ensembles.stacked_optimizer import Optimizer
from inscape.training.loop import CHUNK

#: Widths of stacks; of networks above LARGE parameters, eight fill the caches.
WIDTHS = (32, 8, 2)
LARGE = 2**15

#: A width is tried on at least this many numbers, and on so many networks.
TRIED_NUMBERS = 2**16
TRIED_NETWORKS = (8, 32)


class Program:
    """Everything that members of one kind share, for all widths of their stacks."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, orders: Orders) -> None:
        self.orders = orders
        self.sizes = batch_sizes(len(x), orders.batch)
        self.parts = batch_sizes(len(x), CHUNK) if orders.stop_on == "evaluated" else []
        self._model, self._x, self._y = model, x, y
        self._graphs = Graphs(model, x[: self.sizes[0]], y[: self.sizes[0]], orders)
        self.names = self._graphs.names
        self.numbers = self._graphs.numbers(x[: self.sizes[0]], y[: self.sizes[0]])
        self._updates: dict[tuple[int, int], fx.GraphModule] = {}
        self._evaluations: dict[tuple[int, int], fx.GraphModule] = {}
        self._wanted: list[Tensor] = []
        self._admitted: dict[int, bool] = {}
        count = sum(p.numel() for p in model.parameters())
        least, most = TRIED_NETWORKS
        self._tries = min(max(TRIED_NUMBERS // self.numbers, least), most)
        self.widths = [width for width in WIDTHS if count <= LARGE or width < WIDTHS[0]]

    def update(self, width: int, size: int) -> fx.GraphModule:
        """Return the update of a stack with batches of ``size`` points."""
        if (width, size) not in self._updates:
            batch = self._x[:size], self._y[:size]
            self._updates[width, size] = self._graphs.update(width, *batch)
        return self._updates[width, size]

    def evaluation(self, width: int, size: int) -> fx.GraphModule:
        """Return the loss of a stack on parts of ``size`` points, in eval mode."""
        if (width, size) not in self._evaluations:
            batch = self._x[:size], self._y[:size]
            self._evaluations[width, size] = self._graphs.evaluation(width, *batch)
        return self._evaluations[width, size]

    def width(self, members: int) -> int:
        """Return the smallest admitted width for so many members, or the largest of all."""
        for width in sorted(self.widths):
            if width >= members and self.admits(width):
                return width
        return self.widths[0]

    def admits(self, width: int) -> bool:
        """Tell whether a member has the same bits in all slots, and at the largest width."""
        if width not in self._admitted:
            if width != self.widths[0] and not self.admits(self.widths[0]):
                return False
            self._admitted[width] = not self.uneven(width) and self._tried(width)
        return self._admitted[width]

    def uneven(self, width: int) -> list[str]:
        """Return the operations that may round by place in stacks of this width."""
        graphs = [self.update(width, size) for size in set(self.sizes)]
        graphs += [self.evaluation(width, size) for size in set(self.parts)]
        return sorted({name for graph in graphs for name in uneven(graph)})

    @torch.no_grad()
    def _tried(self, width: int) -> bool:
        first = width == self.widths[0]
        for number, found in enumerate(self._trials(width)):
            if not all(_same(slot, found[0]) for slot in found):
                return False
            if first:
                self._wanted.append(found[0])
            elif not _same(found[0], self._wanted[number]):
                return False
        return True

    def _trials(self, width: int) -> Iterator[Tensor]:
        """Yield the numbers of each trial, one row per slot: two updates, then an evaluation."""
        for trial, size in product(range(self._tries), sorted(set(self.sizes))):
            rng = generator(trial)
            trained, fixed, buffers = (
                [_everywhere(_shaken(tensor, rng), width) for tensor in tensors]
                for tensors in self.names.of(self._model)
            )
            optimizer, numbers = Optimizer(self.orders, trained), []
            for step in range(2):
                rows = torch.randint(len(self._x), (size,), generator=rng).to(self._x.device)
                x = _everywhere(_shaken(self._x[rows], rng), width)
                y = _everywhere(self._y[rows], width)
                gradients, buffers, values = self.update(width, size)(trained, fixed, buffers, x, y)
                optimizer.step(gradients, [step] * width)
                numbers += [values, *trained]
            numbers += self._trial_losses(width, [trained, fixed, buffers])
            yield torch.cat([tensor.reshape(width, -1) for tensor in numbers], dim=1)

    def _trial_losses(self, width: int, state: Sequence[list[Tensor]]) -> list[Tensor]:
        losses = []
        for size in sorted(set(self.parts)):
            x, y = _everywhere(self._x[:size], width), _everywhere(self._y[:size], width)
            losses.append(self.evaluation(width, size)(*state, x, y)[2])
        return losses


def batch_sizes(n: int, batch: int | None) -> list[int]:
    """Return the sizes of the batches of one pass over ``n`` points."""
    batch = n if batch is None else batch
    return [min(batch, n - start) for start in range(0, n, batch)]


def _everywhere(tensor: Tensor, width: int) -> Tensor:
    return torch.stack([tensor] * width)


def _shaken(tensor: Tensor, rng: torch.Generator) -> Tensor:
    """Return the numbers, each made smaller by up to a tenth: others, but no stranger."""
    if not tensor.is_floating_point():
        return tensor
    draw = torch.rand(tensor.shape, generator=rng, dtype=tensor.dtype).to(tensor.device)
    return tensor * (1 - draw / 10)


def _same(one: Tensor, two: Tensor) -> bool:
    """Tell whether two rows have the same bits."""
    return torch.equal(one.view(torch.uint8), two.view(torch.uint8))
