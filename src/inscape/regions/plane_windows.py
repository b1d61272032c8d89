"""Windows of planes through one network, cut one after the other in steps that can be left."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.piecewise import Frame
from inscape.piecewise.graph.affine_maps import AffineMap, affine_steps
from inscape.piecewise.graph.network import Piecewise
from inscape.regions._plane_cutter import PlaneCutter
from inscape.regions.plane_regions import MEMORY, PlaneRegions, regions_of


def _nothing(place: str, cells: int) -> None:
    """Report nothing."""


@dataclass(eq=False)
class PlaneWindows:
    """A network of which windows of many planes are cut; its affine maps are built only once."""

    net: Piecewise
    _steps: Sequence[AffineMap] | None = field(default=None, init=False)
    _is_known: bool = field(default=False, init=False)

    def cut(
        self,
        frame: Frame,
        domain: Float64[Tensor, "k 2"],
        *,
        regions: int = 1_000_000,
        memory: int = MEMORY,
        threads: int | None = None,
        on_layer: Callable[[str, int], None] = _nothing,
    ) -> Generator[None, None, PlaneRegions]:
        """Return the regions of a convex polygon, as ``plane_regions`` does, in small steps.

        Between two steps the caller may stop. With the origin of the plane in the middle of the
        window, coordinates are precise relative to the window, however small it is.

        Args:
            frame: The plane.
            domain: Corners of the polygon, counter-clockwise, in the plane's coordinates.
            regions: Stop at this many cells.
            memory: Stop before taking more than about this many bytes.
            threads: Threads; by default those of torch.
            on_layer: Called with its name and the number of cells once an operation has cut.
        """
        if not self._is_known:
            self._steps = yield from affine_steps(self.net, memory // 4)
            self._is_known = True
        count = torch.get_num_threads() if threads is None else threads
        cutter = PlaneCutter(self.net, frame, domain, regions, memory, count, self._steps)
        cutter.on_layer = on_layer
        return regions_of(cutter, (yield from cutter.cut(1.0, strict=False)))
