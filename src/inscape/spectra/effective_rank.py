"""Effective rank: over how many directions the singular values of each layer are spread."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import PROPORTION, Range
from inscape.functional.jacobians import probe
from inscape.spectra.conv_spectrum import NO_LAYERS, circular_spectrum
from inscape.spectra.exact_spectrum import exact_spectrum
from inscape.spectra.layer_maps import LayerMap, Sizes, layer_maps, left_out
from inscape.spectra.spectrum import Spectrum


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EffectiveRank(Result):
    r"""Effective rank, stable rank and participation ratio of each layer's linear map.

    With n singular values the effective rank is at most :math:`\sqrt n`, the others at most n; all
    are largest where the singular values are equal, and 1 where only one is not zero (0 for a map
    that is zero). ``methods`` is as in :class:`ConvSpectrum`; ``"circular"`` is circular padding.
    ``left_out`` names layers with weights of other kinds, and convolutions whose stride does not
    divide a map whose matrix is too large.
    """

    range: ClassVar[Range] = PROPORTION

    layers: tuple[str, ...]
    maps: tuple[str, ...]
    methods: tuple[str, ...]
    ranks: Float64[Tensor, " layers"]
    stable_ranks: Float64[Tensor, " layers"]
    participation_ratios: Float64[Tensor, " layers"]
    singular_values: Int64[Tensor, " layers"]
    left_out: tuple[str, ...]

    @property
    def fractions(self) -> Float64[Tensor, " layers"]:
        """Return the effective rank of each layer relative to the largest that it could have."""
        return (self.ranks / self.singular_values.double().sqrt()).clamp(max=1.0)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each layer."""
        for k, layer in enumerate(self.layers):
            yield {
                "layer": layer,
                "map": self.maps[k],
                "method": self.methods[k],
                "singular_values": int(self.singular_values[k]),
                "effective_rank": float(self.ranks[k]),
                "of_the_most": float(self.fractions[k]),
                "stable_rank": float(self.stable_ranks[k]),
                "participation_ratio": float(self.participation_ratios[k]),
            }

    def summary(self) -> Summary:
        """Return the mean over the layers, relative to the largest effective rank of each."""
        basis = "1 layer" if len(self.layers) == 1 else f"{len(self.layers)} layers"
        circular = self.methods.count("circular")
        basis += f", {circular} with circular padding" if circular else ""
        basis += f", {len(self.left_out)} left out" if self.left_out else ""
        return Summary(value=float(self.fractions.mean()), kind="exact", basis=basis)


@instrument(
    reads="parameters",
    larger="singular values that are more alike",
    cost="seconds",
    work=lambda n, c: 1000,
    setup=1.0,
    meaning="Singular values of its layers are spread out: their effective rank is {value} times "
    "the largest one possible (1: all are equal).",
    cites="goldblum2020truth, section 5; langenberg2019effect",
)
@torch.no_grad()
def effective_rank(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    padding: Literal["circular", "own"] = "circular",
    layers: Sequence[str] | None = None,
    sizes: Sizes | None = None,
) -> EffectiveRank | NotApplicable:
    r"""Measure the effective rank of every layer: nuclear norm over Frobenius norm.

    .. math:: r(A) = \frac{\sum_i \sigma_i}{(\sum_i \sigma_i^2)^{1/2}}, \quad
              \frac{\lVert A \rVert_F^2}{\sigma_1^2}, \quad
              \frac{(\sum_i \sigma_i^2)^2}{\sum_i \sigma_i^4}

    Goldblum's section 5 (with erratum G3), stable rank and participation ratio, from all singular
    values of the layer as an operator on its feature maps; see :func:`conv_spectrum`. Exact up to
    rounding for the padding that is asked for. None of them changes when a layer is scaled.

    Args:
        model: A module in eval mode.
        x: Data; the first sample tells the sizes of the feature maps.
        padding: ``"circular"`` for all convolutions, as Sedghi et al. and Goldblum et al. have it;
            ``"own"`` for each layer's own padding where the map is small enough, else circular.
        layers: Names of the layers; all Linear, Conv1d, Conv2d and Conv3d by default.
        sizes: By the name of a layer, the size of its feature map, where it shall be another.

    >>> net = nn.Linear(4, 4, bias=False).eval()
    >>> _ = torch.nn.init.eye_(net.weight)
    >>> effective_rank(net, torch.ones(1, 4)).ranks.tolist()
    [2.0]
    """
    checks.one_of(("circular", "own"), padding=padding)
    checks.module(model)
    probe(model, x)
    known, unknown = {}, []
    maps = layer_maps(model, x, layers=layers, sizes=sizes)
    for layer in maps:
        if (entry := layer_spectrum(layer, padding)) is not None:
            known[layer] = entry
        else:
            unknown.append(layer.name)
    if not known:
        return NotApplicable(what="effective_rank", reason=NO_LAYERS)
    spectra = [spectrum for _, spectrum in known.values()]
    return EffectiveRank(
        layers=tuple(layer.name for layer in known),
        maps=tuple(layer.text for layer in known),
        methods=tuple(method for method, _ in known.values()),
        ranks=_column(spectrum.effective_rank() for spectrum in spectra),
        stable_ranks=_column(spectrum.stable_rank() for spectrum in spectra),
        participation_ratios=_column(spectrum.participation_ratio() for spectrum in spectra),
        singular_values=torch.tensor([len(spectrum) for spectrum in spectra]),
        left_out=(*unknown, *left_out(model, maps, layers)),
    )


def layer_spectrum(layer: LayerMap, padding: str) -> tuple[str, Spectrum] | None:
    """Return how the singular values of a layer were found, and them; None where they were not."""
    conv = layer.convolution
    if conv is None:
        assert layer.matrix is not None
        return "matrix", Spectrum.of(torch.linalg.svdvals(layer.matrix))
    own = exact_spectrum(conv) if padding == "own" else exact_spectrum(conv, small=0)
    if own is not None:  # its own structure, if any, needs no other padding
        return own
    circular = circular_spectrum(conv)
    return None if circular is None else ("circular", circular)


def _column(numbers: Iterator[float]) -> Float64[Tensor, " layers"]:
    return torch.tensor(list(numbers), dtype=torch.float64)
