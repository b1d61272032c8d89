"""Spectrum of every layer: all singular values of the linear operator that a convolution is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.functional.jacobians import probe
from inscape.runtime.progress import progress
from inscape.spectra.convolution import Convolution
from inscape.spectra.exact_spectrum import SMALL, exact_spectrum
from inscape.spectra.extreme_singular_values import SingularValueEnds, extreme_singular_values
from inscape.spectra.layer_maps import LayerMap, Sizes, layer_maps, left_out
from inscape.spectra.spectrum import Spectrum

#: Why a network has no spectrum.
NO_LAYERS = "the model has no Linear layer and no convolution: its weights are used otherwise"
#: Bytes for the vectors of the iteration.
VECTORS = 256 * 2**20


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConvSpectrum(Result):
    """Singular values of each layer's linear map, the largest first, with their multiplicities.

    Layer ``k`` has ``values[offsets[k]:offsets[k + 1]]``, each ``counts`` times. ``methods`` tells
    what they are: ``"Fourier"``, ``"blocks"`` or ``"matrix"`` are all singular values of the layer
    itself; ``"circular"`` those of the same kernel with circular padding, since the map is too
    large, and ``"ends"`` only its two ends. ``largest`` and ``smallest`` are of the layer itself:
    a singular value lies within the residual of each. NaN where the stride does not divide a map
    that is too large to be assembled.
    """

    range: ClassVar[Range] = NONNEGATIVE
    nonfinite: ClassVar[Mapping[str, str]] = {
        "circular_largest": "NaN where the stride does not divide a large map",
        "circular_smallest": "NaN where the stride does not divide a large map",
    }

    layers: tuple[str, ...]
    maps: tuple[str, ...]
    methods: tuple[str, ...]
    values: Float64[Tensor, " k"]
    counts: Int64[Tensor, " k"]
    offsets: Int64[Tensor, " ends"]
    largest: Float64[Tensor, " layers"]
    largest_residual: Float64[Tensor, " layers"]
    smallest: Float64[Tensor, " layers"]
    smallest_residual: Float64[Tensor, " layers"]
    circular_largest: Float64[Tensor, " layers"]
    circular_smallest: Float64[Tensor, " layers"]
    left_out: tuple[str, ...]

    def singular_values(self, layer: str | int) -> Float64[Tensor, " n"]:
        """Return the values of a layer, by its name or number, each as often as it occurs."""
        at = layer if isinstance(layer, int) else self.layers.index(layer)
        part = slice(int(self.offsets[at]), int(self.offsets[at + 1]))
        return self.values[part].repeat_interleave(self.counts[part])

    def rows(self) -> Iterator[Row]:
        """Yield one row for each layer."""
        columns = ("largest", "largest_residual", "smallest", "smallest_residual",
                   "circular_largest", "circular_smallest")  # fmt: skip
        for k, layer in enumerate(self.layers):
            part = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
            row: dict[str, str | int | float] = {"layer": layer, "map": self.maps[k]}
            row |= {"method": self.methods[k], "singular_values": int(self.counts[part].sum())}
            yield row | {name: float(getattr(self, name)[k]) for name in columns}

    def summary(self) -> Summary:
        """Return the largest singular value of any layer; a lower bound if it was iterated."""
        at = int(self.largest.argmax())
        exact = not bool(self.largest_residual.any())
        layers = "1 layer" if len(self.layers) == 1 else f"{len(self.layers)} layers"
        basis = f"{layers}; most in {self.layers[at]!r}"
        kind: Kind = "exact" if exact else "lower bound"
        return Summary(value=float(self.largest[at]), kind=kind, basis=basis)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Entry:
    """What is known of one layer."""

    method: str
    spectrum: Spectrum
    ends: SingularValueEnds
    circular: tuple[float, float]


@instrument(
    reads="parameters",
    larger="some input is stretched more",
    cost="seconds",
    work=lambda n, c: 3000,
    setup=1.0,
    meaning="One layer stretches some input by a factor of {value}, and none by more.",
    cites="sedghi2019singular; goldblum2020truth, section 5",
    by_default=False,
)
@torch.no_grad()
def conv_spectrum(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    *,
    layers: Sequence[str] | None = None,
    sizes: Sizes | None = None,
    steps: int = 60,
    memory: int = VECTORS,
    seed: int = 0,
) -> ConvSpectrum | NotApplicable:
    r"""Return the singular values of every layer as the linear operator that it is.

    .. math:: \sigma_1 \geq \sigma_2 \geq \cdots \geq \sigma_{\min(n, m)}, \quad
              A x = W * x \in \mathbb{R}^m, \; x \in \mathbb{R}^n

    A convolution acts on whole feature maps, whose sizes are read from a forward pass: with stride,
    dilation, groups and its own padding. Exact up to rounding, in float64: by the Fourier transform
    (circular padding), by blocks (groups, patches that do not overlap), from the matrix for up to
    1,024 inputs or outputs per group. Of larger maps both ends are computed by Golub-Kahan
    bidiagonalisation, with residuals; all other values are those of circular padding, of which
    Sedghi et al. (2019) have the Fourier transform. Both are given for every layer, so that their
    difference is seen.

    Args:
        model: A module in eval mode.
        x: Data; the first sample tells the sizes of the feature maps.
        layers: Names of the layers; all Linear, Conv1d, Conv2d and Conv3d by default.
        sizes: By the name of a layer, the size of its feature map, where it shall be another.
        steps: Steps of the iteration for each end of a large map.
        memory: Bytes for its vectors.
        seed: Seed of its start.

    >>> conv = nn.Conv2d(1, 1, 1, bias=False).eval()  # every pixel times two
    >>> _ = torch.nn.init.constant_(conv.weight, 2.0)
    >>> conv_spectrum(conv, torch.ones(1, 1, 2, 2)).singular_values(0).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    checks.whole(1, steps=steps, memory=memory)
    checks.seed(seed)
    checks.module(model)
    probe(model, x)
    maps = layer_maps(model, x, layers=layers, sizes=sizes)
    if not maps:
        return NotApplicable(what="conv_spectrum", reason=NO_LAYERS)
    entries = []
    with progress(len(maps), label="spectra of layers") as bar:
        for layer in maps:
            entries.append(_entry(layer, steps=steps, memory=memory, seed=seed))
            bar.advance()
    return _result(maps, entries, left_out(model, maps, layers))


def _result(maps: list[LayerMap], entries: list[_Entry], omitted: tuple[str, ...]) -> ConvSpectrum:
    lengths = torch.tensor([0, *(len(entry.spectrum.values) for entry in entries)])
    ends = ("largest", "largest_residual", "smallest", "smallest_residual")
    return ConvSpectrum(
        layers=tuple(layer.name for layer in maps),
        maps=tuple(layer.text for layer in maps),
        methods=tuple(entry.method for entry in entries),
        values=torch.cat([entry.spectrum.values for entry in entries]),
        counts=torch.cat([entry.spectrum.counts for entry in entries]),
        offsets=lengths.cumsum(0),
        **{name: _column(getattr(entry.ends, name) for entry in entries) for name in ends},
        circular_largest=_column(entry.circular[0] for entry in entries),
        circular_smallest=_column(entry.circular[1] for entry in entries),
        left_out=omitted,
    )


def _column(numbers: Iterator[float]) -> Float64[Tensor, " layers"]:
    return torch.tensor(list(numbers), dtype=torch.float64)


def _entry(layer: LayerMap, *, steps: int, memory: int, seed: int) -> _Entry:
    """Return the spectrum of a layer itself where it can be computed, else its ends."""
    conv = layer.convolution
    if conv is None:
        assert layer.matrix is not None
        spectrum = Spectrum.of(torch.linalg.svdvals(layer.matrix))
        pair = spectrum.largest, spectrum.smallest
        return _Entry(method="matrix", spectrum=spectrum, ends=_exact(spectrum), circular=pair)
    circular = circular_spectrum(conv)
    pair = (circular.largest, circular.smallest) if circular else (float("nan"),) * 2
    exact = exact_spectrum(conv)
    if exact is not None:
        return _Entry(method=exact[0], spectrum=exact[1], ends=_exact(exact[1]), circular=pair)
    ends = extreme_singular_values(
        conv.product,
        conv.transposed_product,
        (conv.outputs, conv.inputs),
        steps=steps,
        memory=memory,
        seed=seed,
    )
    if circular is not None:
        return _Entry(method="circular", spectrum=circular, ends=ends, circular=pair)
    two = torch.tensor([ends.largest, ends.smallest], dtype=torch.float64)
    return _Entry(method="ends", spectrum=Spectrum.of(two), ends=ends, circular=pair)


def circular_spectrum(conv: Convolution, *, small: int = SMALL) -> Spectrum | None:
    """Return all singular values with circular padding; None where the stride does not divide."""
    exact = exact_spectrum(conv.on_torus(), small=small)
    return None if exact is None else exact[1]


def _exact(spectrum: Spectrum) -> SingularValueEnds:
    return SingularValueEnds(
        largest=spectrum.largest,
        largest_residual=0.0,
        smallest=spectrum.smallest,
        smallest_residual=0.0,
        steps=0,
    )
