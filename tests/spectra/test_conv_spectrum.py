"""Spectra of convolutions beside the matrix written out by unit vectors, and closed forms."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError, NotApplicable
from inscape.spectra import conv_spectrum, effective_rank
from inscape.spectra.convolution import Convolution
from inscape.spectra.exact_spectrum import exact_spectrum
from inscape.spectra.extreme_singular_values import extreme_singular_values
from inscape.spectra.fourier_blocks import half_of


def operator(conv, *size):
    """Return the matrix of a module's linear part, a unit vector at a time."""
    zero = torch.zeros(1, conv.in_channels, *size, dtype=torch.float64)
    basis = torch.eye(zero.numel(), dtype=torch.float64).reshape(-1, *zero.shape[1:])
    with torch.no_grad():
        return (conv(basis) - conv(zero)).flatten(1).T


def conv(dimension, *args, seed=0, **options):
    kind = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dimension]
    layer = kind(*args, **options).double()
    draw = torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        parameter.data = torch.randn(parameter.shape, generator=draw, dtype=torch.float64)
    return layer.eval()


RING = {"padding_mode": "circular"}
CASES = {
    "zero padding": ("matrix", conv(2, 3, 5, 3, padding=1), (6, 6)),
    "no padding": ("matrix", conv(2, 2, 3, 3), (6, 5)),
    "circular": ("Fourier", conv(2, 3, 5, 3, padding=1, **RING), (6, 5)),
    "circular, stride 2": ("Fourier", conv(2, 2, 3, 3, padding=1, stride=2, **RING), (6, 4)),
    "circular, stride 3 of 1d": ("Fourier", conv(1, 3, 4, 5, padding=2, stride=3, **RING), (9,)),
    "circular, groups": ("Fourier", conv(2, 4, 6, 3, padding=1, groups=2, **RING), (4, 4)),
    "circular, dilation": ("Fourier", conv(2, 3, 4, 3, padding=2, dilation=2, **RING), (6, 5)),
    "circular, even kernel": ("Fourier", conv(2, 2, 3, (2, 4), padding="same", **RING), (5, 6)),
    "circular, kernel beyond the map": ("Fourier", conv(2, 2, 3, 5, padding=2, **RING), (3, 4)),
    "circular, 3d": ("Fourier", conv(3, 2, 2, 3, padding=1, **RING), (3, 2, 3)),
    "stride does not divide": ("matrix", conv(2, 3, 4, 3, padding=1, stride=2, **RING), (5, 5)),
    "even kernel": ("matrix", conv(2, 2, 3, 4, padding="same"), (5, 4)),
    "stride and dilation": ("matrix", conv(2, 2, 3, 3, stride=2, dilation=2, padding=1), (7, 6)),
    "depthwise": ("matrix", conv(2, 3, 3, 3, padding=1, groups=3), (5, 5)),
    "reflect": ("matrix", conv(2, 2, 3, 3, padding=1, padding_mode="reflect"), (5, 4)),
    "replicate": ("matrix", conv(2, 2, 3, 3, padding=1, padding_mode="replicate"), (4, 5)),
    "1 x 1": ("blocks", conv(2, 3, 5, 1), (4, 5)),
    "1 x 1, stride 2": ("blocks", conv(2, 3, 8, 1, stride=2), (5, 5)),
    "1 x 1, groups": ("blocks", conv(2, 4, 4, 1, groups=2), (3, 2)),
    "patches": ("blocks", conv(2, 3, 5, 2, stride=2), (6, 7)),
    "wide kernel of one row": ("matrix", conv(2, 3, 5, (1, 3), padding=(0, 1)), (4, 6)),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("name", CASES)
def test_all_singular_values_are_those_of_the_matrix_written_out(name):
    method, layer, size = CASES[name]
    matrix = operator(layer, *size)
    expected = torch.linalg.svdvals(matrix)
    operator_of = Convolution.of(layer, size)
    found_by, spectrum = exact_spectrum(operator_of)
    assert found_by == method
    assert_close(operator_of.matrix(), matrix)
    assert len(spectrum) == min(matrix.shape)
    # absolute: zeros of a rank that is not full are rounding of the largest value
    assert_close(spectrum.expanded(), expected, atol=1e-13 * float(expected[0]), rtol=1e-9)
    assert operator_of.squared_norm() == pytest.approx(float(expected.square().sum()))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("name", CASES)
def test_ends_by_iteration_and_their_residuals(name):
    _, layer, size = CASES[name]
    expected = torch.linalg.svdvals(operator(layer, *size))
    found = Convolution.of(layer, size)
    shape = found.outputs, found.inputs
    options = {"steps": 500, "memory": 2**24}
    ends = extreme_singular_values(found.product, found.transposed_product, shape, **options)
    assert ends.largest == pytest.approx(float(expected[0]), rel=1e-12)
    assert ends.smallest == pytest.approx(float(expected[-1]), abs=1e-9 * float(expected[0]))
    early = extreme_singular_values(
        found.product, found.transposed_product, shape, steps=4, memory=2**24
    )
    slack = 1e-12 * float(expected[0])
    for value, residual in (
        (early.largest, early.largest_residual),
        (early.smallest, early.smallest_residual),
    ):
        assert float((expected - value).abs().min()) <= residual + slack
    assert early.largest <= float(expected[0]) + slack
    assert early.smallest >= float(expected[-1]) - slack


def test_a_frequency_and_its_opposite_are_counted_together():
    for cells in ((4, 6), (5, 3), (7,), (1, 1), (2, 3, 4)):
        frequencies, counts = half_of(cells)
        assert int(counts.sum()) == math.prod(cells)
        seen = {tuple(f) for f in frequencies.tolist()}
        opposite = {tuple((-g) % m for g, m in zip(f, cells, strict=True)) for f in seen}
        assert len(seen | opposite) == math.prod(cells)


def test_small_singular_values_keep_their_digits():
    layer = conv(2, 2, 2, 1, bias=False, **RING)
    turn = torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=torch.float64)
    kernel = torch.zeros(2, 2, 3, 3, dtype=torch.float64)
    kernel[:, :, 1, 1] = turn @ torch.diag(torch.tensor([1.0, 1e-12])).double() @ turn
    layer = conv(2, 2, 2, 3, padding=1, bias=False, **RING)
    layer.weight.data = kernel
    values = conv_spectrum(layer, points(1, 2, 4, 4)).singular_values(0)
    assert_close(values[16:], torch.full((16,), 1e-12).double(), rtol=1e-3, atol=0)  # not 1e-8


def test_identity_haar_and_shift_have_known_spectra():
    identity = conv(2, 2, 2, 3, padding=1, bias=False)
    nn.init.dirac_(identity.weight)
    assert_close(conv_spectrum(identity, points(1, 2, 5, 5)).values, torch.ones(50).double())
    haar = conv(1, 1, 2, 2, stride=2, bias=False)
    haar.weight.data = torch.tensor([[[1.0, 1.0]], [[1.0, -1.0]]]).double() / 2**0.5
    result = conv_spectrum(haar, points(1, 1, 8))
    assert_close(result.singular_values(0), torch.ones(8).double())
    shift = conv(1, 1, 1, 3, bias=False, padding=1)
    shift.weight.data = torch.tensor([[[1.0, 0.0, 0.0]]]).double()
    # on a torus nothing is lost, with zeros the last pixel falls off the map
    result = conv_spectrum(shift, points(1, 1, 6))
    assert_close(result.singular_values(0), torch.tensor([1.0, 1, 1, 1, 1, 0]).double())
    assert float(result.circular_smallest[0]) == pytest.approx(1.0)
    assert float(result.smallest[0]) == 0.0


def test_box_filter_has_the_closed_form_of_its_cosines():
    box = conv(1, 1, 1, 3, padding=1, bias=False)
    box.weight.data.fill_(1.0)
    n = 9
    k = torch.arange(1, n + 1, dtype=torch.float64)
    with_zeros = (1 + 2 * (math.pi * k / (n + 1)).cos()).abs().sort(descending=True).values
    result = conv_spectrum(box, points(1, 1, n))
    assert_close(result.singular_values(0), with_zeros)
    assert float(result.circular_largest[0]) == pytest.approx(3.0)


class Net(nn.Module):
    """Convolutions with strides, groups and a shortcut, a linear layer, one that is not called."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 6, 3, padding=1, stride=2, groups=2)
        self.shortcut = nn.Conv2d(4, 6, 1, stride=2)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.head(torch.relu(self.second(x) + self.shortcut(x)).mean((2, 3)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().double().eval()


def test_sizes_come_from_a_forward_pass_and_every_layer_is_there(net):
    result = conv_spectrum(net, points(2, 1, 8, 8))
    assert result.layers == ("first", "second", "shortcut", "head")
    assert result.maps[1] == "4 to 6, 3x3, stride 2, 2 groups, on 8x8"
    assert result.methods == ("matrix", "matrix", "blocks", "matrix")
    for name, size in (("first", (8, 8)), ("second", (8, 8)), ("shortcut", (8, 8))):
        expected = torch.linalg.svdvals(operator(getattr(net, name), *size))
        assert_close(result.singular_values(name), expected)
    assert_close(result.singular_values("head"), torch.linalg.svdvals(net.head.weight.detach()))
    assert result.summary().kind == "exact"
    assert result.summary().value == float(result.largest.max())
    assert [row["singular_values"] for row in result.rows()] == [64, 96, 96, 3]


def test_large_maps_have_ends_with_residuals_and_circular_values(net, monkeypatch):
    x = points(2, 1, 8, 8)
    exact = conv_spectrum(net, x, layers=["first"])
    monkeypatch.setattr("inscape.spectra.exact_spectrum.LARGE", 10)
    iterated = conv_spectrum(net, x, layers=["first"], steps=64)
    assert iterated.methods == ("circular",)
    assert_close(iterated.largest, exact.largest)
    assert_close(iterated.smallest, exact.smallest, atol=1e-8, rtol=0)
    assert float(iterated.circular_largest[0]) == float(iterated.values[0])
    assert float(iterated.circular_largest[0]) > float(iterated.largest[0])
    assert iterated.summary().kind == "lower bound"
    odd = conv_spectrum(net, x, layers=["second"], sizes={"second": (7, 7)})
    assert odd.methods == ("ends",)
    assert math.isnan(float(odd.circular_largest[0]))


def test_each_sum_of_squares_belongs_to_its_method(net):
    x = points(2, 1, 8, 8)
    own = effective_rank(net, x, padding="own")
    spectrum = conv_spectrum(net, x)
    for k, layer in enumerate(own.layers):
        values = spectrum.singular_values(layer)
        assert float(own.ranks[k]) == pytest.approx(float(values.sum() / values.norm()))
        squares = values.square()
        assert float(own.stable_ranks[k]) == pytest.approx(float(squares.sum() / squares[0]))
        ratio = squares.sum() ** 2 / squares.square().sum()
        assert float(own.participation_ratios[k]) == pytest.approx(float(ratio))
    assert own.methods == spectrum.methods
    circular = effective_rank(net, x)
    assert circular.methods == ("circular", "circular", "blocks", "matrix")
    assert circular.summary().basis == "4 layers, 2 with circular padding"
    ring = copy.deepcopy(net.first)
    ring.padding_mode = "circular"
    values = torch.linalg.svdvals(operator(ring, 8, 8))
    assert float(circular.ranks[0]) == pytest.approx(float(values.sum() / values.norm()))


def test_rank_of_orthogonal_of_one_and_of_no_direction():
    square = dense(5, 5).eval()
    nn.init.orthogonal_(square[0].weight)
    result = effective_rank(square, points(1, 5))
    assert float(result.ranks[0]) == pytest.approx(5**0.5)
    assert result.summary().value == pytest.approx(1.0)
    square[0].weight.data = torch.outer(points(1, 5)[0], points(1, 5, seed=2)[0])
    one = effective_rank(square, points(1, 5))
    row = next(iter(one.rows()))
    assert [row[k] for k in ("effective_rank", "stable_rank", "participation_ratio")] == (
        pytest.approx([1.0, 1.0, 1.0])
    )
    square[0].weight.data.zero_()
    assert effective_rank(square, points(1, 5)).ranks.tolist() == [0.0]


def test_rank_does_not_see_the_scale_of_a_layer(net):
    x = points(1, 1, 8, 8)
    before = effective_rank(net, x)
    net.first.weight.data *= 1e-160  # its squares underflow
    assert_close(effective_rank(net, x).ranks, before.ranks)


def test_a_convolution_without_a_feature_map_asks_for_its_size(net):
    net.unused = nn.Conv2d(2, 2, 3).double().eval()
    with pytest.raises(ValueError, match=r"'unused' must be known, .* pass sizes=\{'unused': \(32"):
        conv_spectrum(net, points(1, 1, 8, 8), layers=["unused"])
    result = conv_spectrum(net, points(1, 1, 8, 8), sizes={"unused": (4, 4)}, layers=["unused"])
    assert_close(result.values, torch.linalg.svdvals(operator(net.unused, 4, 4)))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"layers": ["frist"]}, r"layer was expected, found no 'frist' .* did you mean 'first'\?"),
        ({"sizes": {"first": (8,)}}, r"must be 2 integers above 0, found \(8,\): pass"),
        ({"sizes": {"first": (8, 0)}}, r"must be 2 integers above 0, found \(8, 0\)"),
        ({"steps": 0}, "steps must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused(net, settings, text):
    with pytest.raises(ValueError, match=text):
        conv_spectrum(net, points(1, 1, 8, 8), **settings)


def test_a_map_smaller_than_its_kernel_is_refused(net):
    net.first.padding = (0, 0)
    net.first._reversed_padding_repeated_twice = [0, 0, 0, 0]
    with pytest.raises(ValueError, match=r"must be as large as its kernel, found \(2, 2\) for a"):
        effective_rank(net, points(1, 1, 8, 8), sizes={"first": (2, 2)})


def test_memory_for_two_steps_is_needed(net, monkeypatch):
    monkeypatch.setattr("inscape.spectra.exact_spectrum.LARGE", 10)
    with pytest.raises(BudgetError, match=r"two steps .* memory=100: raise memory to at least"):
        conv_spectrum(net, points(1, 1, 8, 8), memory=100)


def test_network_without_such_layers_is_answered_with_the_reason():
    bare = nn.Flatten().eval()
    for instrument in (conv_spectrum, effective_rank):
        result = instrument(bare, points(2, 3))
        assert isinstance(result, NotApplicable)
        assert "has no Linear layer and no convolution" in result.status


def test_other_layers_with_weights_are_named():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ConvTranspose2d(2, 1, 3)).double().eval()
    assert effective_rank(net, points(1, 1, 5, 5)).left_out == ("1",)


def test_convolutions_that_the_forward_pass_does_not_call_are_left_out_by_name(net):
    x = points(1, 1, 8, 8)
    alone = effective_rank(net, x)
    net.average = copy.deepcopy(net.first)
    for measure in (effective_rank, conv_spectrum):
        assert measure(net, x).left_out == ("average",)
    assert_close(effective_rank(net, x).ranks, alone.ranks)
    sized = effective_rank(net, x, sizes={"average": (8, 8)})
    assert (sized.layers[-1], sized.left_out) == ("average", ())


def test_effective_rank_names_layers_that_have_none():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.Conv2d(2, 3, 3, padding=1)).double()
    result = effective_rank(net.append(nn.Flatten()).eval(), points(1, 1, 64, 63))
    assert (result.layers, result.left_out) == (("1",), ("0",))  # the stride does not divide 63
    assert result.summary().basis.endswith("1 left out")
