"""Windows of a plane through a network, cut within budgets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core.deadline import Deadline
from inscape._core.pieces.affine import Step, affine_steps
from inscape._core.pieces.piecewise import Piecewise
from inscape._core.pieces.plane import Budget, Cells, Frame, cells
from inscape._core.pieces.plane.budget import Ending
from inscape._core.progress import progress
from inscape.regions._domain import window

#: Bytes that a cell takes while it is made, with its edges and vertices.
CELL_BYTES = 1500


@dataclass(eq=False)
class Cutter:
    """A plane through a network, of which windows of any side are cut."""

    net: Piecewise
    frame: Frame
    asked: Float64[Tensor, "k 2"]
    regions: int
    memory: int
    threads: int | None
    steps: Sequence[Step] | None = None

    def prepare(self, deadline: Deadline) -> None:
        """Make the matrices between the bends once for all windows, as far as there is time."""
        self.steps = affine_steps(self.net, self.memory // 4, deadline)

    def cut(self, side: float, deadline: Deadline, *, strict: bool = True) -> tuple[Cells, Tensor]:
        """Return the cells of a window, and its corners."""
        middle = window(self.asked)[0]
        corners = self.asked if side == 1.0 else middle + side * (self.asked - middle)
        center, half = window(corners)
        marks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
        with progress(len(self.net.bends), label="cutting the plane") as bar:
            found = cells(
                self.net,
                self.frame.at(center + half * marks),
                ((corners - center) / half).numpy(),
                budget=self._budget(deadline, strict=strict),
                threads=self.threads or torch.get_num_threads(),
                steps=self.steps,
                on_round=lambda place, count: bar.advance(1),
            )
        return found, corners

    def _budget(self, deadline: Deadline, *, strict: bool) -> Budget:
        """Return where to stop; the memory of a cell is that of its arrays while it is made."""
        each = CELL_BYTES + 64 * self.net.outputs + 4 * _pattern_bytes(self.net)
        most = max(1, self.memory // each)
        limit: Ending = "regions" if self.regions <= most else "memory"
        number = min(self.regions, most)
        return Budget(
            regions=number, deadline=deadline, memory=self.memory, limit=limit, strict=strict
        )


def _pattern_bytes(net: Piecewise) -> int:
    shapes = [one.node.meta["val"].shape[1:] for one in net.bends]
    return sum(
        math.prod(map(int, shape)) // (8 if one.windows is None else 1)
        for one, shape in zip(net.bends, shapes, strict=True)
    )
