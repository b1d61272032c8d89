"""All singular values of a convolution, by the structure that it has, or from its matrix."""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from inscape.spectra.convolution import Convolution
from inscape.spectra.fourier_spectrum import fourier_spectrum
from inscape.spectra.spectrum import Spectrum

#: Matrices with at most so many rows or columns are decomposed (half a second for the largest),
SMALL = 1024
#: if they have at most so many elements.
LARGE = 4_000_000


def exact_spectrum(conv: Convolution, *, small: int = SMALL) -> tuple[str, Spectrum] | None:
    """Return all singular values and how they were found; None where the map is too large.

    Groups are blocks. On a torus the blocks are those of the Fourier transform. Where patches do
    not overlap (1 x 1 kernels, patches of a transformer) the map is a block for each place along
    that dimension. Of what is left the matrix is assembled.
    """
    reduced, copies = _without_separate_patches(conv)
    total = min(conv.inputs, conv.outputs)
    top = float(conv.weight.abs().max()) or 1.0  # squares of the kernel itself may underflow
    reduced = replace(reduced, weight=reduced.weight / top)
    if all(size == 1 for size in reduced.kernel + reduced.size):
        blocks = reduced.weight.flatten(1).chunk(reduced.groups)
        spectrum = Spectrum.of(torch.cat([_singular_values(block) for block in blocks]))
        return "blocks", spectrum.times(copies, top).with_zeros(total)
    if reduced.wraps:
        return "Fourier", fourier_spectrum(reduced).times(copies, top).with_zeros(total)
    rows, columns = reduced.outputs // reduced.groups, reduced.inputs // reduced.groups
    if min(rows, columns) > small or rows * columns > LARGE:
        return None
    groups = [reduced.group(index) for index in range(reduced.groups)]
    spectrum = Spectrum.of(torch.cat([_singular_values(group.matrix()) for group in groups]))
    return "matrix", spectrum.times(copies, top).with_zeros(total)


def _without_separate_patches(conv: Convolution) -> tuple[Convolution, int]:
    """Return a smaller map of which the convolution is so many copies, and pixels that it skips.

    Along a dimension without padding whose patches do not overlap, every output has pixels of its
    own: the taps become channels, and the dimension is gone (of size 1).
    """
    copies = 1
    for axis in range(len(conv.size)):
        separate = conv.extent[axis] <= conv.stride[axis] or conv.out_size[axis] == 1
        if not separate or any(conv.padding[axis]):
            continue
        copies *= conv.out_size[axis]
        weight = conv.weight.movedim(axis + 2, 2).flatten(1, 2).unsqueeze(axis + 2)
        conv = replace(
            conv,
            weight=weight,
            size=_with(conv.size, axis, 1),
            stride=_with(conv.stride, axis, 1),
            dilation=_with(conv.dilation, axis, 1),
        )
    return conv, copies


def _with(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def _singular_values(matrix: Tensor) -> Tensor:
    """Return the singular values of a matrix; that of a row or a column is its length."""
    if min(matrix.shape) == 1:
        length: Tensor = torch.linalg.vector_norm(matrix)
        return length.reshape(1)
    return cast("Tensor", torch.linalg.svdvals(matrix))
