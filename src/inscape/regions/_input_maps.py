"""Maps of cells in the whole input space, of which a plane shows two directions."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import BudgetError, UnsupportedModelError
from inscape._core.checks import Function
from inscape._core.progress import progress
from inscape.functional.jacobians import jacobians
from inscape.piecewise.graph.network import Piecewise, piecewise

if TYPE_CHECKING:
    from inscape.regions.plane_regions import PlaneRegions

#: Bytes that the values of one batch of rows may take, and copies of them that the work takes.
BATCH, COPIES = 2**25, 6
#: Slopes and values along the plane may differ by this share of the largest of them.
SAME = 1e-6


def input_maps(
    regions: "PlaneRegions", f: Function, some: Int64[Tensor, " k"] | None, memory: int
) -> tuple[Float64[Tensor, "k c D"], Float64[Tensor, "k c"]]:
    """Return matrix and constant of the maps of some cells, taken with their patterns."""
    cells = torch.arange(regions.cells) if some is None else some
    _refuse_missing(cells, regions.cells)
    net = piecewise(f, regions.origin[None])
    size = 8 * len(cells) * net.outputs * net.inputs
    if size > memory:
        raise BudgetError(
            f"the maps must take at most {memory} bytes, but those of {len(cells)} cells take "
            f"{size}: ask for some cells at a time."
        )
    _refuse_other_model(regions, net)
    matrices = torch.empty(len(cells), net.outputs, net.inputs, dtype=torch.float64)
    constants = torch.empty(len(cells), net.outputs, dtype=torch.float64)
    batch = min(BATCH, (memory - size) // COPIES)
    step = max(1, batch // (8 * max(1, net.inputs * net.outputs, *regions.units)))
    with progress(len(cells), label="maps in input space") as bar:
        for first in range(0, len(cells), step):
            part = cells[first : first + step]
            at = slice(first, first + len(part))
            matrices[at], constants[at] = _maps(regions, net, part)
            bar.advance(len(part))
    return matrices, constants


def _maps(
    regions: "PlaneRegions", net: Piecewise, cells: Int64[Tensor, " k"]
) -> tuple[Float64[Tensor, "k c D"], Float64[Tensor, "k c"]]:
    patterns = [regions.pattern(op)[cells] for op in range(len(regions.units))]
    x = regions.frame.at(regions.centroids[cells])
    matrix = jacobians(lambda at: net.traced(at, patterns), x)
    values = net.values(x, patterns)
    _refuse_other_maps(regions, cells, matrix, values)
    return matrix, values - (matrix @ x.flatten(1)[:, :, None])[:, :, 0]


def _refuse_missing(cells: Int64[Tensor, " k"], count: int) -> None:
    bad = cells[(cells < 0) | (cells >= count)]
    if len(bad):
        raise ValueError(
            f"some must number cells from 0 to {count - 1}, found {int(bad[0])}: choose others."
        )


def _refuse_other_model(regions: "PlaneRegions", net: Piecewise) -> None:
    """Refuse a model whose units are others than those of the patterns."""
    sizes = tuple(pattern.shape[1] for pattern in net.patterns(regions.origin[None]))
    if sizes != regions.units or net.outputs != regions.levels.shape[1]:
        raise ValueError(
            "f must be the network that the regions were found for, found one with "
            f"{sizes} units and {net.outputs} outputs for {regions.units} and "
            f"{regions.levels.shape[1]}: pass that network."
        )


def _refuse_other_maps(
    regions: "PlaneRegions", cells: Int64[Tensor, " k"], matrix: Tensor, values: Tensor
) -> None:
    """Hold the maps along the plane against those that are known: other weights have others."""
    known, level = regions.slopes[cells], regions.values(cells, regions.centroids[cells])
    off = (matrix @ regions.axes.flatten(1).T - known).abs().amax() / (1 + known.abs().amax())
    apart = (values - level).abs().amax() / (1 + level.abs().amax())
    if not float(apart) <= SAME:
        raise ValueError(
            "f must be the network that the regions were found for, found other values: has it "
            "been trained since? Find the regions anew."
        )
    if not float(off) <= SAME:
        raise UnsupportedModelError(
            "the gradient of the model must belong to its values, but it does not: take .detach() "
            "out of its forward."
        )
