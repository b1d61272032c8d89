"""RankMin and RankMax: beside matrices, and what must hold whatever the kernel is."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls import after_epochs, length_scale, rank_max, rank_min
from inscape.spectra import conv_spectrum, effective_rank
from inscape.training import fit


def convolution(*args, seed=0, **options):
    layer = nn.Conv2d(*args, padding_mode="circular", bias=False, **options).double()
    draw = torch.Generator().manual_seed(seed)
    layer.weight.data = torch.randn(layer.weight.shape, generator=draw, dtype=torch.float64)
    return layer.eval()


def operator(layer, *size):
    zero = torch.zeros(1, layer.in_channels, *size, dtype=torch.float64)
    basis = torch.eye(zero.numel(), dtype=torch.float64).reshape(-1, *zero.shape[1:])
    with torch.no_grad():
        return layer(basis).flatten(1).T


def changed_matrix(matrix, change):
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    return (left * change(values)) @ right


CASES = {
    "stride 1": (convolution(2, 3, 3, padding=1), (5, 4)),
    "stride 2": (convolution(2, 3, 3, padding=1, stride=2), (6, 4)),
    "groups": (convolution(4, 4, 3, padding=1, groups=2), (4, 4)),
    "beyond the map": (convolution(2, 2, 3, padding=1), (2, 2)),
    "1 x 1": (convolution(3, 2, 1), (3, 3)),
}


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("case", CASES)
def test_kernel_is_the_nearest_to_the_changed_matrix(case, kind):
    layer, size = copy.deepcopy(CASES[case][0]), CASES[case][1]
    matrix = operator(layer, *size)
    values = torch.linalg.svdvals(matrix)
    gaps = values[:-1] - values[1:]  # opposite frequencies have the same value: cut in a wide gap
    cut = len(values) // 3 + int(gaps[len(values) // 3 : 2 * len(values) // 3].argmax())
    middle = float(values[cut] + values[cut + 1]) / 2
    if kind == "min":
        target = changed_matrix(matrix, lambda v: v * (v >= middle))
        report = rank_min(layer, points(1, layer.in_channels, *size), middle)
    else:
        target = changed_matrix(matrix, lambda v: v.clamp(max=middle))
        report = rank_max(layer, points(1, layer.in_channels, *size), middle)
    # the nearest convolution with such a kernel: least squares over all kernels
    columns = []
    for k in range(layer.weight.numel()):
        unit = copy.deepcopy(layer)
        unit.weight.data.zero_().view(-1)[k] = 1.0
        columns.append(operator(unit, *size).flatten())
    nearest = (
        torch.stack(columns, 1)
        @ torch.linalg.lstsq(torch.stack(columns, 1), target.flatten(), driver="gelsd").solution
    )
    after = operator(layer, *size)
    assert_close(after.flatten(), nearest)
    error = float((after - target).norm() / target.norm())
    assert float(report.errors[0]) == pytest.approx(error, abs=1e-12)
    ranks = [float(v.sum() / v.norm()) for v in map(torch.linalg.svdvals, (matrix, target, after))]
    found = [float(getattr(report, name)[0]) for name in ("before", "target", "after")]
    assert found == pytest.approx(ranks)
    share = float(((values < middle) if kind == "min" else (values > middle)).double().mean())
    assert float(report.changed[0]) == pytest.approx(share)


def test_linear_maps_are_changed_exactly():
    net = dense(4, 5, 2)
    values = torch.linalg.svdvals(net[0].weight.detach())
    report = rank_min(net, points(1, 4), float(values[1]) * 0.999)
    after = torch.linalg.svdvals(net[0].weight.detach())
    assert_close(after, torch.cat([values[:2], torch.zeros(2).double()]), atol=1e-12, rtol=1e-9)
    assert report.errors.tolist() == [0.0, 0.0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, stride=2)
        self.shortcut = nn.Conv2d(4, 4, 1, stride=2)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.head(torch.relu(self.second(x) + self.shortcut(x)).mean((2, 3)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().double()


def test_the_ranks_go_where_their_names_say(net):
    x = points(2, 1, 8, 8)
    high = copy.deepcopy(net)
    before = effective_rank(net.eval(), x).ranks
    rank_min(net, x, 0.4)
    rank_max(high, x, 0.3)
    low, high = effective_rank(net, x).ranks, effective_rank(high.eval(), x).ranks
    assert bool((low[:2] < before[:2]).all())
    assert bool((high[:2] > before[:2]).all())


def test_modes_statistics_and_chosen_layers_stay(net):
    net.train()
    before = copy.deepcopy(net.state_dict())
    report = rank_min(net, points(2, 1, 8, 8), 0.5, first=False, pointwise=False)
    assert report.layers == ("second", "head")
    assert all(module.training for module in net.modules())
    moved = {name for name, t in net.state_dict().items() if not torch.equal(t, before[name])}
    assert moved <= {"second.weight", "head.weight"}
    assert rank_max(net, points(2, 1, 8, 8), layers=["first"]).layers == ("first",)
    assert [row["layer"] for row in report.rows()] == ["second", "head"]


def test_stride_one_is_the_treatment_of_sedghi(net):
    x, plain = points(2, 1, 8, 8), copy.deepcopy(net)
    plain.second.stride = plain.shortcut.stride = (1, 1)
    rank_max(net, x, 0.3, stride="one", layers=["second"])
    rank_max(plain, x, 0.3, layers=["second"])
    assert_close(net.second.weight, plain.second.weight)
    other = copy.deepcopy(net)
    rank_max(other, x, 0.3, layers=["second"])
    assert not torch.allclose(other.second.weight, plain.second.weight)


def test_twice_is_less_than_once_more(net):
    x = points(2, 1, 8, 8)
    errors = [float(rank_max(net, x, 0.5, layers=["first"]).errors[0]) for _ in range(4)]
    assert errors == sorted(errors, reverse=True)  # projections onto two sets in turn
    assert float(conv_spectrum(net.eval(), x).circular_largest[0]) < 0.6


def test_after_epochs_in_fit_and_in_a_loop_of_ones_own():
    calls = []
    model = dense(2, 3, 1)
    x = points(10, 2)

    def project():
        calls.append(model.training)
        rank_max(model, x, 0.2)

    fit(
        model, x, x[:, :1], batch=4, epochs=4, progress=False,
        optimizer=lambda p: after_epochs(
            torch.optim.SGD(p, 1e-9), project, epochs=(2, 4), per_epoch=3
        ),
    )  # fmt: skip
    assert calls == [True, True]
    assert float(torch.linalg.matrix_norm(model[0].weight.detach(), 2)) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda n, x: rank_min(n, x, 0.0), ValueError, "threshold must be a finite number above 0"),
        (lambda n, x: rank_max(n, x, -1), ValueError, "ceiling must be a finite number above 0"),
        (lambda n, x: rank_min(n, x, stride="two"), ValueError, "stride must be one of 'own'"),
        (
            lambda n, x: rank_min(n, x, sizes={"second": (7, 7)}),
            ValueError,
            r"stride of 'second' must divide its feature map, found \(2, 2\) and \(7, 7\): pass",
        ),
        (lambda n, x: rank_min(n.forward, x), TypeError, "model must be a torch.nn.Module"),
        (
            lambda n, x: rank_min(length_scale(n, 1.0), x),
            ValueError,
            r"weight of 'first' must be a parameter, .* release\(model\)",
        ),
        (
            lambda n, x: after_epochs(None, print, epochs=(0,), per_epoch=1),
            ValueError,
            "epochs must be at least 1",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_is_refused_before_anything_is_changed(net, call, error, text):
    before = [p.clone() for p in net.parameters()]
    with pytest.raises(error, match=text):
        call(net, points(2, 1, 8, 8))
    if "release" not in text:
        assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
