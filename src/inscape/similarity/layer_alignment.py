"""Layer alignment: centred kernel alignment (CKA) of any layers of two networks."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import CORRELATION, ROUNDING, Range
from inscape.functional.jacobians import MEMORY
from inscape.similarity._kernel_blocks import LayerKernel, alignments, block_features
from inscape.similarity._layers import LayeredNetwork, Layers, layered
from inscape.similarity._pair import NO_OTHER, Other, perturbed
from inscape.similarity.layer_matrix import UNDEFINED, LayerMatrix
from inscape.similarity.linear_alignment import FEWEST

CONSTANT = "the features of a layer are equal for all examples, so that the alignment is 0 / 0"
#: Examples between whose features the median distance is taken.
MEDIAN = 1000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LayerAlignment(LayerMatrix):
    """CKA of each pair of layers, debiased (``values``) and ``biased``; ``baseline`` is of that.

    The debiased form is 0 on average where examples are permuted. ``bandwidths`` are those of the
    RBF kernel, of the layers of both networks; none for the linear kernel.
    """

    range: ClassVar[Range] = CORRELATION
    nonfinite: ClassVar = dict.fromkeys(("values", "baseline", "biased"), UNDEFINED)

    biased: Float64[Tensor, "k m"]
    kernel: str
    bandwidths: Float64[Tensor, " l"]

    def by_chance(self) -> float:
        """Return the debiased alignment of permuted examples, which is 0 on average."""
        return 0.0

    @property
    def basis(self) -> str:
        """Return which layers, on how many examples, and what the biased form is."""
        i, j = self.headline
        biased, permuted = float(self.biased[i, j]), float(self.baseline[i, j])
        return (
            f"{self.examples} examples, {self.layers[i]} and {self.other_layers[j]}, {self.kernel} "
            f"kernel; biased: {biased:.3g}, and {permuted:.3g} for permuted examples"
        )


@instrument(
    reads="pair",
    larger="more alike representations",
    cost="seconds",
    work=lambda n, c: 2 * n * (1 + n / 200),
    meaning="The last hidden layers of both networks represent the examples with an alignment "
    "(CKA) of {value}.",
    cites="kornblith2019similarity; song2012feature; klabunde2025similarity",
    example=perturbed,
    by_default=False,
    least_rows=FEWEST,
)
def layer_alignment(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    layers: Layers = None,
    other_layers: Layers = None,
    kernel: Literal["linear", "rbf"] = "linear",
    bandwidth: float = 1.0,
    memory: int = MEMORY,
) -> LayerAlignment | NotApplicable:
    r"""Measure the centred kernel alignment of the layers of two networks.

    .. math:: \frac{\mathrm{HSIC}(K, L)}{\sqrt{\mathrm{HSIC}(K, K) \, \mathrm{HSIC}(L, L)}}, \qquad
              K_{ij} = x_i \cdot x_j \;\; \mathrm{or} \;\;
              e^{-\lVert x_i - x_j \rVert^2 / 2 \sigma^2}

    where :math:`x_i` are the features of example ``i`` in a layer of one network and ``L`` is the
    kernel of a layer of the other. Exact for these examples, in float64, and summed over blocks of
    pairs of examples, so that no kernel of all examples is held. ``values`` takes the unbiased
    estimate of HSIC, ``biased`` the formula as printed, which grows with the number of features:
    ``baseline`` is its exact mean over all permutations of the examples of one network. Invariant
    to orthogonal transforms, shifts and the scale of either side's features.

    Args:
        f: The first network; of a function that is no module, only the output is compared.
        x: Examples, at least four.
        other: The second network; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        layers: Names of modules of the first network; ``"output"`` is its output. By default its
            activations (or else its layers with parameters), at most seven, and the output.
        other_layers: Names of modules of the second network.
        kernel: Linear, or the radial basis function.
        bandwidth: Its :math:`\sigma` as a multiple of the median distance between the features of
            the first thousand examples, in each layer.
        memory: Bytes that the working set of a pair of blocks may take.

    >>> import torch
    >>> f = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> points = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> result = layer_alignment(f.eval(), points, other=f)
    >>> result.layers, round(result.summary().value, 12)
    (('1', 'output'), 1.0)
    """
    checks.one_of(("linear", "rbf"), kernel=kernel)
    checks.number(bandwidth=bandwidth)
    checks.whole(1, memory=memory)
    checks.points(x)
    if not bandwidth > 0:
        raise ValueError(f"bandwidth must be above 0, found {bandwidth}: 1 is the median distance.")
    if other is None:
        return NotApplicable(what="layer_alignment", reason=NO_OTHER)
    if len(x) < FEWEST:
        reason = f"the debiased alignment needs at least {FEWEST} examples, found {len(x)}"
        return NotApplicable(what="layer_alignment", reason=reason)
    first, second = layered(f, x, other, other_x, layers, other_layers)
    return _alignment(first, second, _kernel(first, second, kernel, bandwidth, memory), memory)


def _alignment(
    first: LayeredNetwork, second: LayeredNetwork, kernel: LayerKernel, memory: int
) -> LayerAlignment | NotApplicable:
    aligned = alignments(first, second, _block(first, second, memory), kernel)
    if not bool(aligned.debiased.isfinite().any()):
        return NotApplicable(what="layer_alignment", reason=CONSTANT)
    return LayerAlignment(
        layers=first.names,
        other_layers=second.names,
        values=aligned.debiased.clamp(-1, 1),
        biased=aligned.biased,
        baseline=aligned.permuted,
        examples=len(first.x),
        kernel="linear" if kernel.widths is None else "rbf",
        bandwidths=torch.empty(0).double() if kernel.widths is None else kernel.widths,
    )


def _block(first: LayeredNetwork, second: LayeredNetwork, memory: int) -> int:
    """Return how many examples a block may have: both blocks' features, and their kernels."""
    layers = len(first.names) + len(second.names)
    numbers = memory / 8 / 2
    features = int(numbers / (2 * (sum(first.sizes) + sum(second.sizes))))
    return max(1, min(features, int((numbers / (layers + 2)) ** 0.5)))


def _kernel(
    first: LayeredNetwork,
    second: LayeredNetwork,
    name: str,
    bandwidth: float,
    memory: int,
) -> LayerKernel:
    """Return the kernel of features that are moved near zero, with the bandwidth of each layer."""
    most = _block(first, second, memory) if name == "linear" else MEDIAN
    features = block_features(first, second, slice(0, min(most, MEDIAN)))
    origins = [layer.mean(0) for layer in features]
    if name == "linear":
        return LayerKernel(origins=origins, widths=None)
    medians = [
        torch.pdist(layer - origin).median()
        for layer, origin in zip(features, origins, strict=True)
    ]
    sizes = torch.stack([origin.norm() for origin in origins])
    widths = bandwidth * torch.stack(medians)
    return LayerKernel(origins=origins, widths=widths.where(widths > ROUNDING**2 * sizes, 0.0))
