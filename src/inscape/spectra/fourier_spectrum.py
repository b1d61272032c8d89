"""Singular values of convolutions on a torus, where the Fourier transform makes them blocks."""

from typing import cast

import torch
from jaxtyping import Complex128, Float64
from torch import Tensor

from inscape.spectra.convolution import Convolution
from inscape.spectra.fourier_blocks import FourierBlocks
from inscape.spectra.spectrum import Spectrum


def fourier_spectrum(conv: Convolution) -> Spectrum:
    """Return all singular values of a convolution with circular padding.

    Those of its blocks, of which opposite frequencies have the same: one of the two is decomposed.
    Blocks are decomposed themselves, not their Gram matrices, in which small singular values would
    drown.
    """
    fourier = FourierBlocks(conv)
    values, repeats = [], []
    for chunk in fourier.chunks():
        block_values = _singular_values(fourier.blocks(chunk))
        values.append(block_values.flatten())
        repeats.append(fourier.counts[chunk, None, None].expand(block_values.shape).flatten())
    spectrum = Spectrum.of(torch.cat(values), torch.cat(repeats))
    return spectrum.with_zeros(min(conv.inputs, conv.outputs))


def _singular_values(blocks: Complex128[Tensor, "f g o i"]) -> Float64[Tensor, "f g m"]:
    """Return the singular values of each block; those of a vector are its length."""
    if min(blocks.shape[-2:]) == 1:
        lengths: Tensor = torch.linalg.vector_norm(blocks, dim=(-2, -1))
        return lengths[..., None]
    return cast("Tensor", torch.linalg.svdvals(blocks))
