"""Singular values of convolutions on a torus, where the Fourier transform makes them blocks."""

import math
from itertools import product
from typing import cast

import torch
from jaxtyping import Complex128, Float64, Int64
from torch import Tensor

from inscape.spectra.convolution import Convolution
from inscape.spectra.spectrum import Spectrum

#: Bytes of blocks that are decomposed at once.
CHUNK = 32 * 2**20


def fourier_spectrum(conv: Convolution) -> Spectrum:
    r"""Return all singular values of a convolution with circular padding.

    A convolution of stride s is one of stride 1 from the :math:`s^d` pixels of a cell, as channels.
    The Fourier transform makes it one block of :math:`c_{out} \times s^d c_{in} / g` for each
    frequency and group. Kernels are real, so that opposite frequencies have the same singular
    values: one of the two is decomposed. Blocks are decomposed themselves, not their Gram
    matrices, in which small singular values would drown.
    """
    cells = conv.out_size
    frequencies, counts = half_of(cells)
    values, repeats = [], []
    taps = [_taps(conv, axis) for axis in range(len(cells))]
    rows = max(1, CHUNK // (16 * conv.weight.numel() * math.prod(map(len, taps))))
    for chunk, count in zip(torch.split(frequencies, rows), torch.split(counts, rows), strict=True):
        block_values = _singular_values(_blocks(conv, chunk, taps))
        values.append(block_values.flatten())
        repeats.append(count[:, None, None].expand(block_values.shape).flatten())
    spectrum = Spectrum.of(torch.cat(values), torch.cat(repeats))
    return spectrum.with_zeros(min(conv.inputs, conv.outputs))


def half_of(cells: tuple[int, ...]) -> tuple[Int64[Tensor, "f d"], Int64[Tensor, " f"]]:
    """Return one of each pair of opposite frequencies, and how many it stands for."""
    grid = torch.cartesian_prod(*[torch.arange(m) for m in cells]).reshape(-1, len(cells))
    sizes = torch.tensor(cells)
    steps = torch.tensor([math.prod(cells[k + 1 :]) for k in range(len(cells))])
    number, opposite = (grid * steps).sum(1), ((-grid % sizes) * steps).sum(1)
    first = number <= opposite
    return grid[first], torch.where(number == opposite, 1, 2)[first]


def _taps(conv: Convolution, axis: int) -> dict[int, list[tuple[int, int]]]:
    """Return by place in a cell the taps there: their cell and their place in the kernel.

    A shift of the whole kernel permutes the pixels of the torus: the padding makes no difference.
    """
    step = conv.stride[axis]
    places: dict[int, list[tuple[int, int]]] = {}
    for k in range(conv.kernel[axis]):
        cell, place = divmod(k * conv.dilation[axis], step)
        places.setdefault(place, []).append((cell, k))
    return places


def _blocks(
    conv: Convolution,
    frequencies: Int64[Tensor, "f d"],
    taps: list[dict[int, list[tuple[int, int]]]],
) -> Complex128[Tensor, "f g o i"]:
    """Return the blocks of some frequencies, for each group."""
    outputs, inputs = conv.weight.shape[:2]
    shape = (len(frequencies), conv.groups, outputs // conv.groups, inputs)
    turns = frequencies.double() / torch.tensor(conv.out_size, dtype=torch.float64)
    parts = []
    for places in product(*(axis.values() for axis in taps)):
        cells = torch.cartesian_prod(
            *[torch.tensor([cell for cell, _ in taps_of_axis]) for taps_of_axis in places]
        ).reshape(-1, len(places))
        kernel = conv.weight
        for axis, taps_of_axis in enumerate(places, start=2):
            kernel = kernel.index_select(axis, torch.tensor([k for _, k in taps_of_axis]))
        angles = -2 * math.pi * ((turns @ cells.double().T) % 1.0)
        columns = kernel.reshape(outputs * inputs, -1).T
        real, imaginary = angles.cos() @ columns, angles.sin() @ columns
        parts.append(torch.complex(real, imaginary).reshape(shape))
    return torch.cat(parts, dim=-1)


def _singular_values(blocks: Complex128[Tensor, "f g o i"]) -> Float64[Tensor, "f g m"]:
    """Return the singular values of each block; those of a vector are its length."""
    if min(blocks.shape[-2:]) == 1:
        lengths: Tensor = torch.linalg.vector_norm(blocks, dim=(-2, -1))
        return lengths[..., None]
    return cast("Tensor", torch.linalg.svdvals(blocks))
