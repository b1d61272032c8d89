"""The task of section 6.3, groups of its features, and what kind of kernel a training has built."""

from itertools import combinations

import pytest
import torch
from torch import nn

from inscape.papers.courtois import _contributions as parts
from inscape.papers.courtois import _groups, _peaks, figure_11
from inscape.papers.courtois._descent import descent, taken_apart


def filled(places: tuple[int, ...]) -> int:
    """Return the middle pixel after the intervals between successive peaks are filled."""
    row = [0] * 65
    for first, last in zip(places[::2], places[1::2], strict=True):
        row[first : last + 1] = [1] * (last + 1 - first)
    return row[32]


@pytest.mark.parametrize("peaks", [2, 4, 6])
def test_labels_are_those_of_filling(peaks: int):
    near = list(combinations(range(28, 37), peaks))
    found = _peaks.labels(torch.tensor(near)).long().tolist()
    assert found == [filled(places) for places in near]
    assert 0 < sum(found) < len(found)


def test_two_peaks_have_the_text_s_label_and_groups():
    pairs = _peaks.all_pairs()
    first, last = pairs.T
    assert len(pairs) == 2016
    assert torch.equal(_peaks.labels(pairs), (first <= 32) & (last >= 32))
    kinds = _peaks.groups(pairs)
    assert torch.bincount(kinds).tolist() == [32 * 31 // 2, 33 * 32 // 2, 31 * 32]
    assert ((first < 32) & (last > 32)).equal(kinds == _peaks.ACROSS)


def test_inputs_have_their_peaks():
    x = _peaks.inputs(torch.tensor([[1, 64], [32, 33]]))
    assert x.sum(1).tolist() == [2.0, 2.0]
    assert x[0, 0] == x[0, 63] == x[1, 31] == x[1, 32] == 1


@pytest.mark.parametrize("peaks", [2, 4])
def test_unseen_inputs_are_unseen(peaks: int):
    train, test = _peaks.draw(peaks, 100, 0, n_test=200)
    seen = {tuple(row) for row in train.tolist()}
    assert len(seen) == 100
    assert not seen & {tuple(row) for row in test.tolist()}
    assert len(test) == (1916 if peaks == 2 else 200)
    assert (train.diff(dim=1) > 0).all()
    assert 1 <= int(train.min()) <= int(train.max()) <= 64


def test_accuracy_counts_sides_of_one_half():
    model = nn.Linear(64, 1)
    with torch.no_grad():
        model.weight.zero_()
        model.bias.fill_(1.0)
    pairs = _peaks.all_pairs()
    assert _peaks.accuracy(model, pairs) == pytest.approx(1055 / 2016)


def test_figure_11_by_hand():
    found = figure_11.cell(0)
    assert (found["inputs"], found["of label 1"], found["nearest"]) == (2016, 1055, 124)
    assert [filled(tuple(places)) for places in found["examples"]] == [0, 1]
    pairs = list(combinations(range(1, 65), 2))
    x = _peaks.inputs(torch.tensor(pairs))
    labels = torch.tensor([filled(pair) for pair in pairs]).double()
    close = (torch.cdist(x, x) - 2**0.5).abs() < 1e-5
    shares = close.double() @ labels / close.sum(1)
    right = ((shares > 0.5) == (labels > 0.5)).double().mean()
    assert found["vote"] == pytest.approx(float(right))
    assert found["mixed"] == pytest.approx(float((shares * (1 - shares) > 1e-9).double().mean()))


def test_purity_and_partition_of_known_groups():
    rng = torch.Generator().manual_seed(0)
    middles = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    kinds = torch.arange(90) % 3
    points = middles[kinds] + 0.3 * torch.randn(90, 2, generator=rng)
    assert _groups.purity(points, kinds) == 1.0
    assert _groups.partition(points, kinds) == {"agreement": pytest.approx(1.0), "groups": 3}
    mixed = kinds[torch.randperm(90, generator=rng)]
    assert _groups.purity(points, mixed) < 0.5
    assert _groups.partition(points, mixed)["agreement"] < 0.2


def test_a_linear_network_s_neighbours_share_a_peak():
    pairs = _peaks.all_pairs()[::7]
    model = nn.Sequential(nn.Linear(64, 1, dtype=torch.float64)).eval()
    assert _groups.sharing(model, pairs, count=2) == {
        "first shares one": 1.0,
        "ten share one": 1.0,
    }


def test_participation_and_rank_at_their_ends():
    even = torch.tensor([[1.0, -1.0, 1.0, -1.0], [1.0, 0, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(
        parts.participation(even), torch.tensor([1.0, 0.25], dtype=torch.float64)
    )
    assert parts.effective_rank(torch.eye(5, dtype=torch.float64)) == pytest.approx(5)
    assert parts.effective_rank(torch.ones(3, 4, dtype=torch.float64)) == pytest.approx(1)


def test_pushes_along_labels_and_sharing():
    added = torch.tensor([[3.0, -1.0, 1.0, -5.0]], dtype=torch.float64)
    labels = torch.tensor([True, True, False, False])
    assert parts.with_labels(added, labels).item() == pytest.approx(0.8)
    other = torch.tensor([[1.0, 0], [0, 1], [0, 1], [1, 0]], dtype=torch.float64)
    one = torch.tensor([[1.0, 0]], dtype=torch.float64)
    assert parts.sharing(added, one, other, top=2) == pytest.approx(2.0)


def test_correlation_is_pearson_s():
    rng = torch.Generator().manual_seed(0)
    one, two = torch.randn(2, 1, 30, generator=rng, dtype=torch.float64)
    expected = torch.corrcoef(torch.cat((one, two)))[0, 1]
    assert parts.correlation(one, two) == pytest.approx(float(expected))


def small(optimizer: str, steps: int):
    train, test = _peaks.draw(4, 12, 0, n_test=6)
    x, y = _peaks.inputs(train).double(), _peaks.targets(train).double()
    case = _peaks.Case(peaks=4, optimizer=optimizer)
    model = _peaks.first_network(case, 0, torch.float64)
    run = descent(model, x, y, eta=1e-3, steps=steps, optimizer=optimizer)
    return run, x, y, train, test


def test_one_step_of_adam_is_the_tangent_kernel_in_its_metric():
    """After one step the denominators are sizes of the gradient, up to Adam's epsilon."""
    run, x, y, _, test = small("adam", 1)
    at = _peaks.inputs(test).double()
    found = taken_apart(run, x, y, at).samples[:, :, 0]
    start = _peaks.first_network(_peaks.Case(peaks=4), 0, torch.float64)
    slopes = 2 * (start(x).detach() - y)[:, 0] / len(x)
    kernel = parts.kernel_at_end(start, at, x, parts.metric(run))
    torch.testing.assert_close(found, -1e-3 * kernel * slopes)


def test_descent_has_no_metric_of_its_own():
    run, x, y, train, test = small("sgd", 3)
    split = taken_apart(run, x, y, _peaks.inputs(test).double(), mode="exact")
    found = parts.measured(run, split, train, test)
    assert found["tangent"] == found["own metric"]
    assert 0 < found["participation"] <= 1
    assert 1 <= found["rank"] <= 6
