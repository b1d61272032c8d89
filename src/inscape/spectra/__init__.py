"""How large are its weights? Norms of the parameters, per layer and of the whole network."""

from inscape.spectra.distance_from_init import DistanceFromInit, distance_from_init
from inscape.spectra.fisher_rao_norm import FisherRaoNorm, fisher_rao_norm
from inscape.spectra.spectral_norm import SpectralNorm, spectral_norm

__all__ = [
    "DistanceFromInit",
    "FisherRaoNorm",
    "SpectralNorm",
    "distance_from_init",
    "fisher_rao_norm",
    "spectral_norm",
]
