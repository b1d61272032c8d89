"""Maps of cells in the whole input space, of which a plane shows two directions."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import BudgetError, UnsupportedModelError
from inscape._core.checks import Function
from inscape.functional.jacobians import jacobians
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.runtime.progress import progress

if TYPE_CHECKING:
    from inscape.regions.plane_regions import PlaneRegions

#: Bytes that the values of one batch may take, and the number of copies of them in memory.
BATCH, COPIES = 2**25, 6
#: Slopes and values along the plane may differ by this fraction of the largest of them.
SAME = 1e-6


def input_maps(
    regions: "PlaneRegions", f: Function, cells: Int64[Tensor, " k"] | None, memory: int
) -> tuple[Float64[Tensor, "k c D"], Float64[Tensor, "k c"]]:
    """Return matrix and constant of the affine maps of some cells, with their patterns fixed."""
    numbers = torch.arange(regions.cells) if cells is None else cells
    _refuse_missing(numbers, regions.cells)
    net = piecewise(f, regions.origin[None])
    size = 8 * len(numbers) * net.outputs * net.inputs
    if size > memory:
        raise BudgetError(
            f"the maps must take at most {memory} bytes, but those of {len(numbers)} cells take "
            f"{size}: ask for some cells at a time."
        )
    _refuse_other_model(regions, net)
    matrices = torch.empty(len(numbers), net.outputs, net.inputs, dtype=torch.float64)
    constants = torch.empty(len(numbers), net.outputs, dtype=torch.float64)
    batch = min(BATCH, (memory - size) // COPIES)
    step = max(1, batch // (8 * max(1, net.inputs * net.outputs, *regions.units)))
    with progress(len(numbers), label="maps in input space") as bar:
        for first in range(0, len(numbers), step):
            part = numbers[first : first + step]
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
            f"cells must be numbers from 0 to {count - 1}, found {int(bad[0])}: choose others."
        )


def _refuse_other_model(regions: "PlaneRegions", net: Piecewise) -> None:
    """Refuse a model whose numbers of units differ from those of the patterns."""
    sizes = tuple(pattern.shape[1] for pattern in net.patterns(regions.origin[None]))
    if sizes != regions.units or net.outputs != regions.intercepts.shape[1]:
        raise ValueError(
            "f must be the network that the regions were found for, found one with "
            f"{sizes} units and {net.outputs} outputs for {regions.units} and "
            f"{regions.intercepts.shape[1]}: pass that network."
        )


def _refuse_other_maps(
    regions: "PlaneRegions", cells: Int64[Tensor, " k"], matrix: Tensor, values: Tensor
) -> None:
    """Check the maps along the plane against the known ones: the weights must be the same."""
    known, level = regions.slopes[cells], regions.values(cells, regions.centroids[cells])
    off = (matrix @ regions.axes.flatten(1).T - known).abs().amax() / (1 + known.abs().amax())
    difference = (values - level).abs().amax() / (1 + level.abs().amax())
    if not float(difference) <= SAME:
        raise ValueError(
            "f must be the network that the regions were found for, found other values: has it "
            "been trained since? Find the regions anew."
        )
    if not float(off) <= SAME:
        raise UnsupportedModelError(
            "autograd must return the gradient of the model, but it does not: take .detach() "
            "out of its forward."
        )
