"""How large are its weights, and of what rank? Norms and singular values, layer by layer."""

from inscape.spectra.conv_spectrum import ConvSpectrum, conv_spectrum
from inscape.spectra.distance_from_init import DistanceFromInit, distance_from_init
from inscape.spectra.effective_rank import EffectiveRank, effective_rank
from inscape.spectra.fisher_rao_norm import FisherRaoNorm, fisher_rao_norm
from inscape.spectra.parameter_norm import ParameterNorm, parameter_norm
from inscape.spectra.spectral_norm import SpectralNorm, spectral_norm

__all__ = [
    "ConvSpectrum",
    "DistanceFromInit",
    "EffectiveRank",
    "FisherRaoNorm",
    "ParameterNorm",
    "SpectralNorm",
    "conv_spectrum",
    "distance_from_init",
    "effective_rank",
    "fisher_rao_norm",
    "parameter_norm",
    "spectral_norm",
]
