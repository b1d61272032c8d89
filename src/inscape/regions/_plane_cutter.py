"""Windows of a plane through a network, cut within budgets."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.piecewise.graph.affine_maps import AffineMap, affine_steps
from inscape.piecewise.graph.network import Piecewise
from inscape.piecewise.planes import Cells, CutBudget, Frame
from inscape.piecewise.planes.budget import Ending
from inscape.piecewise.planes.coefficients import NearbyPoints
from inscape.piecewise.planes.cutting import cutting, near_of
from inscape.piecewise.planes.graph_coefficients import radii
from inscape.regions._domain import window
from inscape.regions._growing_windows import Forecast
from inscape.runtime.progress import progress

#: Bytes that a cell takes while it is made, with its edges and vertices.
CELL_BYTES = 1500


@dataclass(eq=False)
class PlaneCutter:
    """A plane through a network, of which windows of any side are cut."""

    net: Piecewise
    frame: Frame
    asked: Float64[Tensor, "k 2"]
    regions: int
    memory: int
    threads: int | None
    steps: Sequence[AffineMap] | None = None
    near: NearbyPoints | None = None
    on_layer: Callable[[str, int], None] | None = None

    def prepare(self) -> Generator[None, None, Forecast]:
        """Build the affine maps once for all windows; return the forecast of their times."""
        center, half = window(self.asked)
        self.steps = yield from affine_steps(self.net, self.memory // 4)
        point = self.frame.at(center[None])[0]
        return Forecast((yield from radii(self.net, point, self._axes(half))))

    def cut(
        self, side: float, *, strict: bool = True, watched: bool = True
    ) -> Generator[None, None, tuple[Cells, Tensor]]:
        """Return the cells of a window, and its corners."""
        middle = window(self.asked)[0]
        corners = self.asked if side == 1.0 else middle + side * (self.asked - middle)
        center, half = window(corners)
        marks = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
        points, polygon = self.frame.at(center + half * marks), ((corners - center) / half).numpy()
        self.near = near_of(points, polygon, self.near)

        def reached(place: str, count: int) -> None:
            bar.advance(1)
            if self.on_layer is not None:
                self.on_layer(place, count)

        with progress(len(self.net.ops), label="cutting the plane") as bar:
            cells = yield from cutting(
                self.net,
                points,
                self._axes(half),
                polygon,
                budget=self._budget(strict=strict),
                threads=self.threads or torch.get_num_threads(),
                steps=self.steps,
                near=self.near,
                watched=watched,
                on_round=reached,
            )
        return cells, corners

    def _axes(self, half: Float64[Tensor, " 2"]) -> Float64[Tensor, "2 *d"]:
        """Return the steps in input space from the centre of a window to two of its sides."""
        return self.frame.axes * half.reshape(2, *[1] * (self.frame.axes.ndim - 1))

    def _budget(self, *, strict: bool) -> CutBudget:
        """Return the budget of cells that fit into the memory."""
        bytes_per_cell = CELL_BYTES + 64 * self.net.outputs + 4 * _pattern_bytes(self.net)
        most = max(1, self.memory // bytes_per_cell)
        limit: Ending = "regions" if self.regions <= most else "memory"
        number = min(self.regions, most)
        return CutBudget(regions=number, memory=self.memory, limit=limit, strict=strict)


def _pattern_bytes(net: Piecewise) -> int:
    shapes = [op.node.meta["val"].shape[1:] for op in net.ops]
    return sum(
        math.prod(map(int, shape)) // (8 if op.windows is None else 1)
        for op, shape in zip(net.ops, shapes, strict=True)
    )
