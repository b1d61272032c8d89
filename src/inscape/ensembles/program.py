"""The graphs of a stack, used only if a member is reproducible bit for bit in any slot and width.

Kernels choose their algorithms by the shape of the whole stack: a matrix product alone may add up
in another order than within a batch, and the last elements of a vectorised loop may pass through
another exponential than the first. So stacks have a few fixed widths, idle slots compute too, and a
width is used only if no such loop has elements left over (:mod:`inscape.ensembles.even_sizes`), and
if random networks, each put into all slots at once, come out equal in all of them, and equal to
their results at the largest width, bit for bit.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor, fx, nn

from inscape._core.sampling import generator
from inscape.ensembles.even_sizes import uneven
from inscape.ensembles.graphs import Graphs
from inscape.ensembles.stacked_optimizer import StackedOptimizer
from inscape.training.loop import CHUNK
from inscape.training.options import FitOptions

#: Widths of stacks; of networks above LARGE parameters, eight fill the caches.
WIDTHS = (32, 8, 2)
LARGE = 2**15

#: A width is tried on at least this many elements, and on so many networks.
TRIED_ELEMENTS = 2**16
TRIED_NETWORKS = (8, 32)


class Program:
    """The graphs of members of one architecture, for all widths of their stacks."""

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, options: FitOptions) -> None:
        self.options = options
        self.sizes = batch_sizes(len(x), options.batch)
        self.parts = batch_sizes(len(x), CHUNK) if options.stop_on == "evaluated" else []
        self._model, self._x, self._y = model, x, y
        self._graphs = Graphs(model, x[: self.sizes[0]], y[: self.sizes[0]], options)
        self.names = self._graphs.names
        self.elements = self._graphs.elements(x[: self.sizes[0]], y[: self.sizes[0]])
        self._updates: dict[tuple[int, int], fx.GraphModule] = {}
        self._evaluations: dict[tuple[int, int], fx.GraphModule] = {}
        self._expected: list[Tensor] = []
        self._admitted: dict[int, bool] = {}
        count = sum(p.numel() for p in model.parameters())
        least, most = TRIED_NETWORKS
        self._tries = min(max(TRIED_ELEMENTS // self.elements, least), most)
        self.widths = [width for width in WIDTHS if count <= LARGE or width < WIDTHS[0]]

    def update(self, width: int, size: int) -> fx.GraphModule:
        """Return the update of a stack with batches of ``size`` samples."""
        if (width, size) not in self._updates:
            batch = self._x[:size], self._y[:size]
            self._updates[width, size] = self._graphs.update(width, *batch)
        return self._updates[width, size]

    def evaluation(self, width: int, size: int) -> fx.GraphModule:
        """Return the loss of a stack on parts of ``size`` samples, in eval mode."""
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
        """Return whether a member is equal bit for bit in all slots, and at the largest width."""
        if width not in self._admitted:
            if width != self.widths[0] and not self.admits(self.widths[0]):
                return False
            self._admitted[width] = not self.uneven(width) and self._tried(width)
        return self._admitted[width]

    def uneven(self, width: int) -> list[str]:
        """Return the operations whose rounding may depend on the slot in stacks of this width."""
        graphs = [self.update(width, size) for size in set(self.sizes)]
        graphs += [self.evaluation(width, size) for size in set(self.parts)]
        return sorted({name for graph in graphs for name in uneven(graph)})

    @torch.no_grad()
    def _tried(self, width: int) -> bool:
        first = width == self.widths[0]
        for number, slots in enumerate(self._trials(width)):
            if not all(_equal_bits(slot, slots[0]) for slot in slots):
                return False
            if first:
                self._expected.append(slots[0])
            elif not _equal_bits(slots[0], self._expected[number]):
                return False
        return True

    def _trials(self, width: int) -> Iterator[Tensor]:
        """Yield the results of each trial, one row per slot: two updates, then an evaluation."""
        for trial, size in product(range(self._tries), sorted(set(self.sizes))):
            rng = generator(trial)
            trained, fixed, buffers = (
                [_repeated(_perturbed(tensor, rng), width) for tensor in tensors]
                for tensors in self.names.of(self._model)
            )
            optimizer, results = StackedOptimizer(self.options, trained), []
            for step in range(2):
                indices = torch.randint(len(self._x), (size,), generator=rng).to(self._x.device)
                x = _repeated(_perturbed(self._x[indices], rng), width)
                y = _repeated(self._y[indices], width)
                gradients, buffers, values = self.update(width, size)(trained, fixed, buffers, x, y)
                optimizer.step(gradients, [step] * width)
                results += [values, *trained]
            results += self._trial_losses(width, [trained, fixed, buffers])
            yield torch.cat([tensor.reshape(width, -1) for tensor in results], dim=1)

    def _trial_losses(self, width: int, state: Sequence[list[Tensor]]) -> list[Tensor]:
        losses = []
        for size in sorted(set(self.parts)):
            x, y = _repeated(self._x[:size], width), _repeated(self._y[:size], width)
            losses.append(self.evaluation(width, size)(*state, x, y)[2])
        return losses


def batch_sizes(n: int, batch: int | None) -> list[int]:
    """Return the sizes of the batches of one pass over ``n`` samples."""
    batch = n if batch is None else batch
    return [min(batch, n - start) for start in range(0, n, batch)]


def _repeated(tensor: Tensor, width: int) -> Tensor:
    return torch.stack([tensor] * width)


def _perturbed(tensor: Tensor, rng: torch.Generator) -> Tensor:
    """Return the tensor with each element made smaller by up to a tenth."""
    if not tensor.is_floating_point():
        return tensor
    draw = torch.rand(tensor.shape, generator=rng, dtype=tensor.dtype).to(tensor.device)
    return tensor * (1 - draw / 10)


def _equal_bits(left: Tensor, right: Tensor) -> bool:
    """Return whether two tensors are equal bit for bit, NaN included."""
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))
