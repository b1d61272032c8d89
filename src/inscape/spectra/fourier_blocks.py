"""The blocks into which the Fourier transform splits a convolution on a torus, and back."""

import math
from collections.abc import Iterator
from itertools import product

import torch
from jaxtyping import Complex128, Float64, Int64
from torch import Tensor

from inscape.spectra.convolution import Convolution

#: Bytes of blocks that are decomposed at once.
CHUNK = 32 * 2**20


class FourierBlocks:
    r"""One block of :math:`c_{out} \times s^d c_{in} / g` for each frequency and group.

    A convolution of stride s is one of stride 1 from the :math:`s^d` pixels of a cell, as channels;
    pixels that no tap meets are left out. Kernels are real, so that opposite frequencies have
    conjugate blocks: one of the two is computed, and ``counts`` says for how many it stands.
    """

    def __init__(self, conv: Convolution) -> None:
        self.conv = conv
        self.frequencies, self.counts = half_of(conv.out_size)
        axes = [_taps(conv, axis) for axis in range(len(conv.size))]
        #: For each pixel of a cell: places in the kernel of the taps that meet it, and their cells.
        self.pixels = [_pixel(choice) for choice in product(*axes)]

    def chunks(self) -> Iterator[slice]:
        """Yield slices of the frequencies whose blocks fit into memory together."""
        rows = max(1, CHUNK // (16 * self.conv.weight[..., 0].numel() * len(self.pixels)))
        yield from (slice(at, at + rows) for at in range(0, len(self.frequencies), rows))

    def blocks(self, chunk: slice) -> Complex128[Tensor, "f g rows columns"]:
        """Return the blocks of some frequencies, for each group."""
        outputs, inputs = self.conv.weight.shape[:2]
        groups = self.conv.groups
        parts = []
        for places, cells in self.pixels:
            taps = self.conv.weight[(slice(None), slice(None), *places.T)].reshape(-1, len(places))
            angles = self._angles(chunk, cells)
            real, imaginary = angles.cos() @ taps.T, angles.sin() @ taps.T
            shape = (len(angles), groups, outputs // groups, inputs)
            parts.append(torch.complex(real, imaginary).reshape(shape))
        return torch.cat(parts, dim=-1)

    def add_taps(
        self,
        taps: Float64[Tensor, "o i *k"],
        chunk: slice,
        blocks: Complex128[Tensor, "f g rows columns"],
    ) -> None:
        """Add what some blocks contribute to the taps of the kernel whose transform they are."""
        outputs, inputs = self.conv.weight.shape[:2]
        weights = self.counts[chunk, None] / math.prod(self.conv.out_size)
        for part, (places, cells) in zip(torch.split(blocks, inputs, -1), self.pixels, strict=True):
            flat = part.reshape(len(part), -1)
            angles = self._angles(chunk, cells)
            real = (weights * angles.cos()).T @ flat.real + (weights * angles.sin()).T @ flat.imag
            taps[(slice(None), slice(None), *places.T)] += real.T.reshape(outputs, inputs, -1)

    def _angles(self, chunk: slice, cells: Int64[Tensor, "t d"]) -> Float64[Tensor, "f t"]:
        sizes = torch.tensor(self.conv.out_size, dtype=torch.float64)
        turns = (self.frequencies[chunk].double() / sizes) @ cells.double().T
        return -2 * math.pi * (turns % 1.0)

    def overlaps(self) -> Float64[Tensor, " *k"]:
        """Return for each tap how many taps meet its pixel: more than one beyond the map."""
        counts = torch.ones(self.conv.kernel, dtype=torch.float64)
        sizes = torch.tensor(self.conv.out_size)
        for places, cells in self.pixels:
            around = cells % sizes
            equal = (around[:, None] == around[None]).all(-1).sum(1)
            counts[tuple(places.T)] = equal.double()
        return counts


def half_of(cells: tuple[int, ...]) -> tuple[Int64[Tensor, "f d"], Int64[Tensor, " f"]]:
    """Return one of each pair of opposite frequencies, and how many it stands for."""
    grid = torch.cartesian_prod(*[torch.arange(m) for m in cells]).reshape(-1, len(cells))
    sizes = torch.tensor(cells)
    steps = torch.tensor([math.prod(cells[k + 1 :]) for k in range(len(cells))])
    number, opposite = (grid * steps).sum(1), ((-grid % sizes) * steps).sum(1)
    first = number <= opposite
    return grid[first], torch.where(number == opposite, 1, 2)[first]


def _taps(conv: Convolution, axis: int) -> list[list[tuple[int, int]]]:
    """Return by pixel of a cell the taps there: their place in the kernel and their cell.

    A shift of the whole kernel permutes the pixels of the torus: the padding makes no difference.
    """
    pixels: dict[int, list[tuple[int, int]]] = {}
    for k in range(conv.kernel[axis]):
        cell, pixel = divmod(k * conv.dilation[axis], conv.stride[axis])
        pixels.setdefault(pixel, []).append((k, cell))
    return list(pixels.values())


def _pixel(
    axes: tuple[list[tuple[int, int]], ...],
) -> tuple[Int64[Tensor, "t d"], Int64[Tensor, "t d"]]:
    """Return the places in the kernel and the cells of all taps that meet one pixel of a cell."""
    pairs = list(product(*axes))
    places = torch.tensor([[k for k, _ in pair] for pair in pairs])
    return places, torch.tensor([[cell for _, cell in pair] for pair in pairs])
