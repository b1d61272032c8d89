"""Cutting many segments at once, against exact rational arithmetic and against the network."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.functional.jacobians import jacobians
from inscape.piecewise.graph.matrix_chain import layers
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines import matrix_layers, segments
from inscape.piecewise.lines.evaluation import SegmentEvaluation, differentiable
from inscape.piecewise.lines.prefix import cut_graph
from inscape.piecewise.lines.segments import NARROW, CutSegments, lines


@pytest.fixture(autouse=True)
def _always_compiled(monkeypatch):
    """Send chains of matrices the compiled way, however small they are."""
    monkeypatch.setattr(segments, "SMALL", 0)


def cut(f, a, b, **settings):
    return lines(piecewise(f, a), a, b, **settings)


def by_graph(f, a, b, memory=2**20):
    """Cut without the chain of matrices."""
    return CutSegments(**cut_graph(SegmentEvaluation(piecewise(f, a), a, b, memory), NARROW))


def rational_pieces(model, a, b):
    """Return knots, values and slopes on one segment in exact rational arithmetic."""
    slope = Fraction(0)
    steps = [m for m in model if isinstance(m, nn.Linear)]
    kinks = [m for m in model if not isinstance(m, nn.Linear)]
    start, stop = ([Fraction(v) for v in end.flatten().tolist()] for end in (a, b))
    pieces = [(Fraction(0), Fraction(1), [(p, q - p) for p, q in zip(start, stop, strict=True)])]
    for at, layer in enumerate(steps):
        weight = [[Fraction(v) for v in row] for row in layer.weight.tolist()]
        bias = [Fraction(v) for v in layer.bias.tolist()]
        pieces = [(lo, hi, affine(weight, bias, h)) for lo, hi, h in pieces]
        if at == len(kinks):
            break
        slope = Fraction(getattr(kinks[at], "negative_slope", 0.0))
        pieces = [part for piece in pieces for part in split(*piece, slope)]
    t = [lo for lo, _, _ in pieces] + [Fraction(1)]
    values = [[p + q * lo for p, q in h] for lo, _, h in pieces]
    values.append([p + q for p, q in pieces[-1][2]])
    return t, values, [[q for _, q in h] for _, _, h in pieces]


def affine(weight, bias, h):
    return [
        (
            sum((w * p for w, (p, _) in zip(row, h, strict=True)), c),
            sum(w * q for w, (_, q) in zip(row, h, strict=True)),
        )
        for row, c in zip(weight, bias, strict=True)
    ]


def split(lo, hi, z, slope):
    """Cut a piece at the zeros strictly inside it, and apply the ReLU."""
    zeros = {-p / q for p, q in z if q and lo < -p / q < hi}
    for left, right in pairwise([lo, *sorted(zeros), hi]):
        middle = (left + right) / 2
        on = [p + q * middle > 0 for p, q in z]
        yield (
            left,
            right,
            [(p, q) if o else (slope * p, slope * q) for o, (p, q) in zip(on, z, strict=True)],
        )


def numbers(rows):
    return torch.tensor([[float(v) for v in row] for row in rows], dtype=torch.float64)


def rounded(model, *, zero_biases=False):
    """Make all weights multiples of 1/4, small enough for many of them to coincide."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_((4 * p).round() / 4 * (0 if zero_biases and "bias" in name else 1))
    return model


def check(model, a, b):
    net = piecewise(model, a)
    for result in (
        lines(net, a, b),
        CutSegments(**cut_graph(SegmentEvaluation(net, a, b, 2**20), NARROW)),
    ):
        for i in range(len(a)):
            t, values, slopes = rational_pieces(model, a[i], b[i])
            own = slice(int(result.offsets[i]), int(result.offsets[i + 1]))
            assert_close(result.t[own], numbers([t])[0], rtol=0, atol=1e-12)
            assert_close(result.values[own], numbers(values), rtol=0, atol=1e-11)
            assert_close(result.slopes[result.segment == i], numbers(slopes), rtol=0, atol=1e-11)


@pytest.mark.parametrize("act", [nn.ReLU, lambda: nn.LeakyReLU(0.25)], ids=["relu", "leaky"])
@pytest.mark.parametrize("zero_biases", [False, True], ids=["biases", "no biases"])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_tiny_networks_equal_rational_arithmetic(seed, zero_biases, act):
    model = rounded(dense(2, 4, 5, 3, 2, act=act, seed=seed), zero_biases=zero_biases)
    check(model, (3 * points(9, 2, seed=seed)).round() + 0.0, (2 * points(9, 2, seed=99)).round())


def test_duplicate_dead_and_linear_units_equal_rational_arithmetic():
    model = rounded(dense(2, 5, 4, 1))
    with torch.no_grad():
        model[0].weight[1], model[0].bias[1] = model[0].weight[0], model[0].bias[0]  # duplicate
        model[0].weight[2], model[0].bias[2] = -model[0].weight[0], -model[0].bias[0]  # mirrored
        model[0].bias[3] = -100.0  # dead
        model[0].bias[4] = 100.0  # always on
        model[2].weight[1], model[2].bias[1] = 0.0, 0.0  # identically zero
    check(model, (3 * points(12, 2)).round(), (3 * points(12, 2, seed=5)).round() + 1)


def test_segment_through_the_origin_of_a_network_without_biases_has_one_knot():
    model = dense(3, 16, 16, 16, 1)
    with torch.no_grad():
        for m in model:
            if isinstance(m, nn.Linear):
                m.bias.zero_()
    end = points(20, 3)
    for method in (cut, by_graph):
        result = method(model, -0.3 * end, end)
        assert result.pieces.tolist() == [2] * 20
        assert_close(result.t[1::3], torch.full((20,), 0.3 / 1.3, dtype=torch.float64))


def test_segment_inside_the_hyperplane_of_a_unit():
    model = rounded(dense(2, 3, 3, 1))
    with torch.no_grad():
        model[0].weight[0], model[0].bias[0] = torch.tensor([1.0, -1.0]), 0.0
    ends = torch.tensor([[-3.0, -3.0], [2.0, 2.0]], dtype=torch.float64)
    check(model, ends[:1], ends[1:])
    with torch.no_grad():  # the same, with numbers that round
        model[0].weight[0], model[0].bias[0] = torch.tensor([0.1, -0.3]), 0.7
    ends = torch.tensor([[-7.0, 0.0], [0.2, 2.4]], dtype=torch.float64)
    for method in (cut, by_graph):
        result = method(model, ends[:1], ends[1:])
        expected = method(without_first_unit(model), ends[:1], ends[1:])
        assert_close(result.t, expected.t)


def without_first_unit(model):
    other = dense(2, 2, 3, 1)
    with torch.no_grad():
        other[0].weight.copy_(model[0].weight[1:])
        other[0].bias.copy_(model[0].bias[1:])
        other[2].weight.copy_(model[2].weight[:, 1:])
        other[2].bias.copy_(model[2].bias)
        other[4].load_state_dict(model[4].state_dict())
    return other


@pytest.mark.parametrize("act", [nn.ReLU, nn.PReLU, nn.LeakyReLU], ids=["relu", "prelu", "leaky"])
def test_slopes_are_the_gradients_inside_and_values_those_of_the_network(act):
    f, a, b = dense(20, 40, 40, 40, 3, act=act), points(30, 20), points(30, 20, seed=2)
    result = cut(f, a, b)
    share = torch.rand(len(result.segment), generator=torch.Generator().manual_seed(0)).double()
    t = result.t[result.start] + (0.1 + 0.8 * share) * result.widths
    x = torch.lerp(a[result.segment], b[result.segment], t[:, None])
    slopes = (jacobians(f, x) @ (b - a)[result.segment][:, :, None])[:, :, 0]
    scale = float(slopes.abs().max())
    assert_close(result.slopes, slopes, rtol=0, atol=1e-12 * scale)
    rows = SegmentEvaluation(piecewise(f, a), a, b, 2**20)
    knots = torch.repeat_interleave(torch.arange(30), result.offsets.diff())
    assert_close(result.values, rows.values(knots, result.t), rtol=0, atol=1e-12 * scale)


def test_every_knot_is_a_zero_of_a_unit_and_every_zero_is_a_knot():
    f, a, b = dense(4, 12, 12, 1), points(10, 4), points(10, 4, seed=2)
    result = cut(f, a, b)
    net = piecewise(f, a)
    inside = (result.t > 0) & (result.t < 1)
    knots = torch.repeat_interleave(torch.arange(10), result.offsets.diff())
    x = torch.lerp(a[knots], b[knots], result.t[:, None])
    z = torch.cat([net.functions(x, 0), net.functions(x, 1)], 1)
    assert float(z[inside].abs().amin(1).max()) < 1e-13
    dense_t = torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]
    for i in range(10):
        x = torch.lerp(a[i], b[i], dense_t)
        on = torch.cat([net.functions(x, 0), net.functions(x, 1)], 1) > 0
        seen = int((on[1:] != on[:-1]).any(1).sum())
        assert seen <= int(result.pieces[i]) - 1 <= seen + 3  # a grid may see two knots as one


def test_small_tasks_are_not_compiled(monkeypatch):
    f, a, b = dense(6, 30, 2), points(4, 6), points(4, 6, seed=3)
    expected = cut(f, a, b)
    monkeypatch.setattr(segments, "SMALL", 120)
    monkeypatch.delattr(segments, "SegmentCutter")
    assert_close(cut(f, a, b).t, expected.t)


def test_both_ways_to_cut_agree():
    f, a, b = dense(6, 30, 30, 2), points(40, 6), points(40, 6, seed=3)
    first, second = cut(f, a, b), by_graph(f, a, b)
    assert torch.equal(first.offsets, second.offsets)
    for name in ("t", "values", "slopes"):
        assert_close(getattr(first, name), getattr(second, name), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1, 2**6, 2**9])
def test_chunks_blocks_and_threads_change_nothing(size, monkeypatch):
    f, a, b = dense(4, 20, 20, 20, 1), points(30, 4), points(30, 4, seed=3)
    whole = cut(f, a, b)
    monkeypatch.setattr(matrix_layers, "CHUNK", size)
    monkeypatch.setattr(segments, "BLOCK", 7)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        parts = cut(f, a, b)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert torch.equal(whole.offsets, parts.offsets)
    assert_close(whole.t, parts.t, rtol=0, atol=1e-13)
    assert_close(whole.slopes, parts.slopes)


def test_one_row_at_a_time_changes_nothing():
    f, a, b = dense(4, 20, 20, 20, 1), points(3, 4), points(3, 4, seed=3)
    assert_close(by_graph(f, a, b, memory=1).slopes, by_graph(f, a, b).slopes)


class Residual(nn.Module):
    """Convolutions, a way past them, two kinds of pooling, overlapping windows, a clamp."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.last = nn.Linear(12, 2)

    def forward(self, x):
        h = nn.functional.max_pool2d(self.first(x), 3, stride=2, padding=1)
        h = h + torch.relu(self.second(h))
        h = nn.functional.max_pool2d(torch.relu(h), 2)
        return torch.maximum(self.last(h.flatten(1)).clamp(-0.3, 0.4), x.mean((1, 2, 3))[:, None])


def test_convolutions_with_pooling_and_residuals_against_fine_sampling():
    torch.manual_seed(0)
    f, a, b = Residual().double().eval(), points(6, 1, 8, 8), points(6, 1, 8, 8, seed=2)
    assert layers(piecewise(f, a)) is None
    result = cut(f, a, b)
    x = SegmentEvaluation(piecewise(f, a), a, b, 2**20).at(result.segment, result.middles)
    slopes = (jacobians(f, x) @ (b - a).flatten(1)[result.segment][:, :, None])[:, :, 0]
    assert_close(result.slopes, slopes, rtol=0, atol=1e-12 * float(slopes.abs().max()))
    fine = torch.linspace(0, 1, 20_001, dtype=torch.float64).reshape(-1, 1, 1, 1)
    for i in range(6):
        with torch.no_grad():
            secants = float(f(torch.lerp(a[i], b[i], fine)).diff(dim=0).norm(dim=1).sum())
        # Secants never beat the truth, and come near to it: one step at each of the kinks.
        assert -1e-12 < float(result.variation()[i]) - secants < 1e-3


def test_neighbouring_pieces_have_different_patterns():
    torch.manual_seed(1)
    f, a, b = Residual().double().eval(), points(6, 1, 8, 8), points(6, 1, 8, 8, seed=2)
    result, net = cut(f, a, b), piecewise(f, a)
    at = SegmentEvaluation(net, a, b, 2**20).at(result.segment, result.middles)
    patterns = torch.cat(net.patterns(at), 1)
    assert bool((patterns[result.inner] != patterns[result.inner - 1]).any(1).all())


def test_ties_in_a_window_go_to_the_first_and_make_no_cell():
    def f(x):  # three copies of one function: the largest is always the first
        return nn.functional.max_pool1d(torch.relu(torch.cat([x, x, x], 1))[:, None], 3)[:, 0]

    ends = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    assert cut(f, ends[:1], ends[1:]).t.tolist() == [0.0, 0.5, 1.0]


def test_window_cuts_are_the_upper_envelope_of_its_functions():
    draw = np.random.default_rng(0)
    for _ in range(8):
        left, right = draw.integers(-4, 5, (2, 6)) / 4
        lines_of = torch.tensor(np.stack([left, right - left]))

        def f(x, lines_of=lines_of):
            z = lines_of[0] + x * lines_of[1]
            return nn.functional.max_pool1d(z[:, None], 6)[:, 0]

        result = cut(f, torch.zeros(1, 1).double(), torch.ones(1, 1).double())
        lines_in = {(Fraction(p), Fraction(r) - Fraction(p)) for p, r in zip(left, right)}  # noqa: B905
        crossings = {(q - p) / (s - r) for p, s in lines_in for q, r in lines_in if s != r}
        inside = sorted(c for c in crossings if 0 < c < 1)
        kinks = [c for c in inside if kinks_at(lines_in, c)]
        assert_close(result.t[1:-1], torch.tensor([float(c) for c in kinks], dtype=torch.float64))


def kinks_at(functions, c):
    """Tell whether the largest of the functions has two slopes at c."""
    top = max(p + q * c for p, q in functions)
    return len({q for p, q in functions if p + q * c == top}) > 1


def test_coincident_knots_count_once_and_cancelling_ones_merge():
    f = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double().eval()
    with torch.no_grad():
        f[0].weight.copy_(torch.tensor([[3.0], [7.0]]))
        f[0].bias.copy_(
            torch.tensor([-1.0, -7.0 / 3.0], dtype=torch.float64)
        )  # both have their kink at 1/3
        f[2].weight.copy_(torch.tensor([[7.0, -3.0]]))  # and cancel
    ends = torch.tensor([[-2.0], [2.0]], dtype=torch.float64)
    result = cut(f, ends[:1], ends[1:])
    assert result.pieces.tolist() == [2]
    assert result.merged().tolist() == [1]


def test_slopes_that_only_rounding_tells_apart_merge():
    model = dense(3, 21, 2)
    with torch.no_grad():
        model[0].weight[10:20], model[0].bias[10:20] = -model[0].weight[:10], -model[0].bias[:10]
        model[2].weight[:, 10:20] = -model[2].weight[:, :10]  # relu(z) - relu(-z) is z
        model[0].bias[20] = 100.0  # always on
    for method in (cut, by_graph):
        result = method(model, points(30, 3), 3 * points(30, 3, seed=2))
        assert int(result.pieces.sum()) > 60
        assert result.merged().tolist() == [1] * 30


def test_unit_that_is_zero_but_for_rounding_makes_no_knots():
    model = dense(3, 20, 6, 1)
    with torch.no_grad():
        model[0].weight[10:], model[0].bias[10:] = model[0].weight[:10], model[0].bias[:10]
        model[2].weight[0, 10:], model[2].bias[0] = -model[2].weight[0, :10], 0.0
    a, b = points(50, 3), 3 * points(50, 3, seed=2)
    result = [method(model, a, b) for method in (cut, by_graph)]
    with torch.no_grad():
        model[2].weight[0] = 0.0  # zero to the last digit
    expected = cut(model, a, b)
    for cuts in result:
        assert torch.equal(cuts.offsets, expected.offsets)
        assert_close(cuts.t, expected.t)


def test_zero_length_and_networks_without_kinks_are_one_piece():
    f, a = dense(3, 8, 1), points(4, 3)
    assert cut(f, a, a).pieces.tolist() == [1] * 4
    assert float(cut(f, a, a).variation().max()) == 0.0
    g = nn.Linear(3, 2).double().eval()
    result = cut(g, a, a + 1)
    assert result.pieces.tolist() == [1] * 4
    assert_close(result.slopes, (g(a + 1) - g(a)).detach())


def test_functional_in_place_and_reused_forms_are_the_same():
    f, a, b = dense(3, 8, 8, 1), points(5, 3), points(5, 3, seed=2)
    first, _, second, _, three = f
    same = nn.ReLU(inplace=True)
    forms = (
        nn.Sequential(first, same, second, same, three).eval(),
        lambda x: three(torch.relu_(second(nn.functional.relu(first(x))))),
        lambda x: three(second(first(x).clamp(min=0)).clamp_min_(0)),
    )
    expected = cut(f, a, b)
    for form in forms:
        result = cut(form, a, b)
        assert torch.equal(result.t, expected.t)
        assert torch.equal(result.slopes, expected.slopes)


@pytest.mark.parametrize("small", [0, 2**15], ids=["compiled", "plain"])
def test_what_is_not_straight_inside_its_pieces_is_refused(small, monkeypatch):
    monkeypatch.setattr(segments, "SMALL", small)
    f, a, b = dense(3, 8, 1), points(5, 3), points(5, 3, seed=2)
    net = piecewise(f, a)
    monkeypatch.setattr(type(net), "values", lambda self, x, patterns=None: x[:, :1] ** 2)
    with pytest.raises(UnsupportedModelError, match=r"linear between its knots, .* an estimate"):
        lines(net, a, b)


def test_autograd_follows_the_network_of_the_graph():
    f, a = dense(3, 8, 1), points(5, 3)
    assert_close(jacobians(differentiable(piecewise(f, a)), a), jacobians(f, a))


def test_maps_of_a_chain_are_found_a_few_unit_vectors_at_a_time(monkeypatch):
    torch.manual_seed(0)
    parts = nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)
    net = piecewise(nn.Sequential(*parts).double().eval(), points(3, 1, 6, 6))
    monkeypatch.setattr("inscape.piecewise.graph.matrix_chain.BLOCK", 5 * 48)  # five of 48 at once
    result = layers(net)
    assert_close(torch.from_numpy(result.weights[0]), parts[3].weight.detach())
    assert_close(torch.from_numpy(result.biases[0]), parts[3].bias.detach())
