import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.anytime import batches, finished
from inscape.data import annulus
from inscape.extrapolation import ZONES, extrapolation
from inscape.extrapolation._baselines import linear

BASELINES = ("gaussian_process", "nearest_neighbour", "linear")


def total(x):
    return x.sum(1, keepdim=True)


def on_ring(x):
    return (x.norm(dim=1) >= 0.5) & (x.norm(dim=1) <= 1)


@pytest.fixture(scope="module")
def ring():
    return annulus(n=200, n_test=0, dtype=torch.float64)


def square(n, seed=0):
    return 3 * torch.rand(n, 2, generator=torch.Generator().manual_seed(seed)).double() - 1.5


def asked(f, ring, queries, **settings):
    return extrapolation(f, ring.x, ring.y, queries=queries, target=total, **settings)


def test_zones_of_a_ring_are_told_by_the_norm(ring):
    q = square(300)
    found = asked(total, ring, q, domain=on_ring, baselines=())
    radius = q.norm(dim=1)
    expected = torch.where(on_ring(q), 0, torch.where(radius < 0.5, 1, 2))
    assert torch.equal(found.zones, expected)
    assert found.reach is None
    assert not found.flat
    assert {row["zone"] for row in found.by_zone()} == set(ZONES) - {"undecided"}


def test_domain_by_distance_is_where_data_have_neighbours(ring):
    found = asked(total, ring, square(300), baselines=())
    gaps = torch.cdist(ring.x, ring.x).fill_diagonal_(torch.inf).min(1).values
    assert_close(found.reach, float(torch.quantile(gaps, 0.99)))
    assert torch.equal(found.zones == 0, found.distances <= found.reach)
    new = annulus(n=300, n_test=0, seed=9, dtype=torch.float64).x
    inside = asked(total, ring, new, baselines=()).zones == 0
    assert float(inside.double().mean()) > 0.95


def test_distances_and_errors_equal_the_loop(ring):
    net = dense(2, 5, 1)
    q = square(6)
    found = asked(net, ring, q)
    for k, point in enumerate(q):
        assert_close(found.distances[k], (ring.x - point).norm(dim=1).min())
        error = float(net(point[None]).detach() - point.sum()) ** 2
        assert float(found.errors[k, 0]) == pytest.approx(error)
        nearest = ring.y[(ring.x - point).norm(dim=1).argmin()]
        assert float(found.errors[k, 2]) == pytest.approx(float(nearest - point.sum()) ** 2)


def test_peers_know_what_they_should(ring):
    found = asked(lambda x: 0 * total(x), ring, square(100))
    assert found.models == ("network", "gaussian_process", "nearest_neighbour", "linear")
    worst = found.errors.max(0).values
    assert worst[3] < 1e-20  # a sum is linear
    assert worst[1] < 1e-4
    assert worst[2] > 0.1
    assert worst[0] > 1
    outside = {r["model"]: r["error"] for r in found.by_zone() if r["zone"] == "outside"}
    assert outside["network"] > outside["nearest_neighbour"] > outside["gaussian_process"]


def test_the_best_linear_model_is_the_normal_equations():
    x, q = points(30, 3), points(10, 3, seed=4)
    y = x.square()
    found = extrapolation(lambda x: x, x, y, queries=q, answers=q.square(), baselines=("linear",))
    ones = torch.ones(30, 1, dtype=torch.float64)
    design = torch.cat([x, ones], dim=1)
    weights = torch.linalg.solve(design.T @ design, design.T @ y)
    wrong = torch.cat([q, ones[:10]], dim=1) @ weights - q.square()
    assert_close(found.errors[:, 1], wrong.square().mean(1))


def test_folds_judge_each_point_by_the_others():
    x = points(20, 2)
    found = extrapolation(total, x, total(x), folds=4, baselines=("nearest_neighbour",))
    assert len(found.distances) == 20
    assert (found.folds, found.known) == (4, 15)
    assert found.distances.min() > 0  # no point is its own neighbour
    assert found.errors[:, 0].max() == 0
    assert found.errors[:, 1].min() > 0


def test_held_out_points_in_the_order_of_their_distance(ring):
    near, far = square(200) / 10, square(200, seed=1)
    q = torch.cat([near, far])
    found = asked(lambda x: total(x) + x.norm(dim=1, keepdim=True) ** 3, ring, q, baselines=())
    smooth = found.profile()
    assert smooth.mean[-1] > smooth.mean[0]
    last = found.distances.argsort()[-100:]
    assert_close(found.summary().value, float(found.errors[last, 0].mean()))
    assert found.summary().basis.startswith("the 100 farthest of 400 points")


def test_classes_count_wrong_answers():
    x = points(60, 2)
    y = (x[:, 0] > 0).long()
    q = points(50, 2, seed=2)
    right = (q[:, 0] > 0).long()
    for f in (
        lambda x: torch.stack([-x[:, 0], x[:, 0]], dim=1),
        lambda x: x[:, :1],  # one output: its sign
    ):
        found = extrapolation(f, x, y, queries=q, answers=right)
        assert found.classes
        assert found.errors[:, 0].sum() == 0
        assert 0 < found.errors[:, 2].mean() < 0.3
        assert found.profile("linear").mean.max() <= 1
    wrong = extrapolation(lambda x: -x[:, :1], x, y, queries=q, answers=right, baselines=())
    assert wrong.summary().value == 1


def test_few_points_in_many_dimensions_have_a_flat_hull():
    x, q = points(12, 30), points(8, 30, seed=3)
    found = extrapolation(total, x, total(x), queries=q, target=total)
    assert found.flat
    assert set(found.zones.tolist()) <= {0, 2}


def test_samples_are_drawn_and_pictures_flattened():
    x = points(50, 1, 4, 4)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 1)).double().eval()
    y = net(x).detach()
    found = extrapolation(net, x, y, queries=x, answers=y, points=10, known=20, baselines=())
    assert (len(found.errors), found.known) == (10, 20)
    # Both sum 17 terms, in other orders where the batch has another size: each order is off by at
    # most 17 roundings of the sum of the sizes of the terms.
    weight, bias = (p.detach().abs() for p in net.parameters())
    size = float((x.flatten(1).abs() @ weight.T + bias).max())
    assert found.errors.max() <= (2 * 17 * torch.finfo(torch.float64).eps * size) ** 2
    rows = list(found.rows())
    assert rows[0]["zone"] in ZONES
    assert rows[0]["network"] == 0


def test_bad_input_is_refused(unchecked):
    x = points(9, 2)
    y = total(x)
    ask = {"queries": x, "answers": y}
    cases = [
        ((x, y), {"answers": y}, "answers and target belong to queries, found none"),
        ((x, y), {"queries": x}, "must be passed once, found neither: pass either"),
        ((x, y), {**ask, "target": total}, "must be passed once, found both"),
        ((x, y), {"queries": x[:, :1], "answers": y}, r"points of shape \(2,\) as x has, found"),
        ((x, y), {**ask, "baselines": ("oracle",)}, "baselines must be one of 'gaussian_process'"),
        ((x, y), {**ask, "points": 0}, "points must be at least 1"),
        ((x, y), {"folds": 1}, "folds must be at least 2"),
        ((x[:3], y[:3]), {}, "must have at least 5 points for 5 folds, found 3"),
        ((x, x), ask, "as many numbers as the model has outputs, 1, found 2"),
        ((x, y), {**ask, "domain": lambda x: x[:, 0]}, "domain must return True or False for each"),
        ((x, y), {"queries": x * torch.nan, "answers": y}, "queries must be finite"),
    ]
    for data, settings, text in cases:
        with pytest.raises(ValueError, match=text):
            extrapolation(total, *data, **settings)
    found = extrapolation(total, x, y, baselines=())
    with pytest.raises(ValueError, match="model must be one of 'network', found 'linear'"):
        found.profile("linear")


def test_what_does_not_depend_on_the_network_is_kept(monkeypatch):
    x = points(20, 2)
    first = extrapolation(total, x, total(x))
    monkeypatch.setattr("inscape.extrapolation._zones.BASELINES", {})  # nobody may be asked
    again = extrapolation(lambda x: 2 * total(x), x, total(x))
    assert torch.equal(first.errors[:, 1:], again.errors[:, 1:])
    assert again.errors[:, 0].min() > 0
    with pytest.raises(KeyError):
        extrapolation(total, x, 2 * total(x))


def test_results_of_a_stopped_run_are_some_queries_of_a_whole_one():
    x = points(60, 3)
    with batches(4):
        results = list(extrapolation.refine(total, x, total(x) + x[:, :1], points=40))
    whole = extrapolation(total, x, total(x) + x[:, :1], points=40)
    assert results[0].models == ("network",)  # peers come after the first answer
    assert len(results[0].distances) == 8
    assert {result.known for result in results} == {32}
    place = {float(error): k for k, error in enumerate(whole.errors[:, 0])}
    for result in results:
        rows = [place[float(error)] for error in result.errors[:, 0]]
        assert_close(result.distances, whole.distances[rows])
        assert rows == sorted(rows)
        assert_close(result.errors, whole.errors[rows][:, : len(result.models)])
    assert_close(results[-1].errors, whole.errors)


def test_wide_inputs_have_the_same_peers():
    x, q = points(30, 100), points(12, 100, seed=1)
    y = torch.sin(x[:, :2])
    ask = {"queries": q, "answers": torch.sin(q[:, :2])}
    wide = extrapolation(lambda x: x[:, :2], x, y, **ask).errors
    # the same inner products in 42 dimensions, where distances come from differences
    both = torch.linalg.qr(torch.cat([x, q]).T).R.T
    ask["queries"] = both[30:]
    narrow = extrapolation(lambda x: torch.zeros(len(x), 2).double(), both[:30], y, **ask).errors
    assert_close(wide[:, 1:], narrow[:, 1:], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("shape", [(12, 20), (40, 20), (300, 20)])
def test_linear_models_are_those_of_least_squares_for_any_shape(shape):
    x, q = points(*shape), points(9, shape[1], seed=3)
    x[:, 4] = 1.0  # an input that never varies has no weight
    x[-1] = x[0]
    y = x[:, :2].square()
    found = finished(linear((x, y), q, 0))[0]
    centred, mean = x - x.mean(0), y.mean(0)
    expected = (q - x.mean(0)) @ (torch.linalg.pinv(centred) @ (y - mean)) + mean
    assert_close(found, expected, rtol=1e-6, atol=1e-8)


def circle(n, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=rng, dtype=torch.float64)
    return x, (x.norm(dim=1) > 1.1).long()


def test_the_process_sees_a_step():
    (x, y), (q, right) = circle(300), circle(200, seed=1)
    found = extrapolation(
        lambda x: x[:, :1], x, y, queries=q, answers=right, baselines=BASELINES[:2]
    )
    error = found.errors.mean(0)
    assert error[1] < 0.1  # a single start takes all for noise: 0.5
    assert error[2] < 0.1
    assert found.warnings == ()


def test_the_process_is_conditioned_on_all_points(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(400, 2, generator=rng, dtype=torch.float64)
    q = torch.rand(50, 2, generator=rng, dtype=torch.float64)

    def waves(x):
        return torch.sin(9 * x[:, :1]) * torch.cos(8 * x[:, 1:])

    def error(known):
        ask = {"queries": q, "target": waves, "baselines": ("gaussian_process",)}
        found = extrapolation(waves, x[:known], waves(x[:known]), **ask)
        return float(found.errors[:, 1].mean())

    assert error(400) < error(150) / 30  # with the settings of 150 points in both


def test_a_process_that_finds_nothing_says_so():
    x, q = points(40, 2), points(20, 2, seed=1)
    y = torch.randn(40, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = extrapolation(total, x, y, queries=q, target=total, baselines=("gaussian_process",))
    assert any("predicts their mean" in warning for warning in found.warnings)
    assert_close(found.errors[:, 1], (y.mean() - total(q))[:, 0].square())
    assert "read the warnings" in found.summary().basis
    even = extrapolation(total, x, 0 * y, queries=q, target=total, baselines=("gaussian_process",))
    assert even.warnings == ()
    assert_close(even.errors[:, 1], total(q)[:, 0].square())


def test_folds_are_doubted_and_queries_are_not():
    x = points(20, 2)
    folded = extrapolation(total, x, total(x), baselines=())
    assert "if the network was trained on them" in folded.warnings[0]
    assert "read the warnings" in folded.summary().basis
    assert extrapolation(total, x, total(x), queries=x, target=total, baselines=()).warnings == ()


def test_a_sigmoid_is_a_probability_and_what_looks_like_one_is_doubted():
    x, q = points(30, 2), points(40, 2, seed=1)
    y, right = ((part[:, 0] > 0).long() for part in (x, q))
    ask = {"queries": q, "answers": right, "baselines": ()}
    for ending in (torch.sigmoid, lambda z: torch.cat([-z, z], 1).softmax(1)[:, 1]):
        found = extrapolation(lambda x, end=ending: end(3 * x[:, :1]), x, y, **ask)
        assert found.errors.sum() == 0
        assert found.warnings == ()
    unseen = extrapolation(lambda x: 1 / (1 + (-x[:, :1]).exp()), x, y, **ask)
    assert any("are read as logits" in warning for warning in unseen.warnings)
    assert extrapolation(lambda x: x[:, :1], x, y, **ask).warnings == ()


def test_shares_of_wrong_classes_stay_between_0_and_1():
    x = points(60, 2)
    y = (x[:, 0] > 0).long()
    found = extrapolation(lambda x: x[:, :1] + 0.05, x, y, baselines=("linear",))
    rows = [*found.by_zone()]
    assert all(0 <= row["low"] <= row["error"] <= row["high"] <= 1 for row in rows)
    n, p = rows[0]["queries"], rows[0]["error"]
    for end in ("low", "high"):  # Wilson's ends are where the share is 1.96 deviations away
        deviation = (rows[0][end] * (1 - rows[0][end]) / n) ** 0.5
        assert abs(rows[0][end] - p) == pytest.approx(1.959964 * deviation)
    band = found.profile()
    assert 0 <= band.low.min() < band.high.max() <= 1
    assert (band.high > band.low).all()
    summary = found.summary()
    assert 0 <= summary.low <= summary.value <= summary.high


def test_undecided_queries_are_counted_apart(monkeypatch):
    monkeypatch.setattr("inscape.extrapolation._zones.WORK", 0.0)
    x = points(60, 9)
    q = torch.cat([x.mean(0, keepdim=True).repeat(3, 1) + points(3, 9) / 50, 99 + points(2, 9)])
    found = extrapolation(
        total, x, total(x), queries=q, target=total, baselines=(), domain=lambda x: x[:, 0] > 1e9
    )
    assert [ZONES[zone] for zone in found.zones] == ["undecided"] * 3 + ["outside"] * 2
    assert "For 3 of 5 queries it would take too long" in found.warnings[0]


def test_profiles_are_true_where_errors_are_exactly_zero():
    x, q = square(300), square(300, seed=1)
    y, right = (torch.where(part[:, :1] > 0, 1.0, -1.0).double() for part in (x, q))
    found = extrapolation(
        total, x, y, queries=q, answers=right, domain=lambda x: x[:, 0] < 9, baselines=BASELINES
    )
    assert not found.logarithmic
    means = {row["model"]: row["error"] for row in found.by_zone()}
    assert means["nearest_neighbour"] < 0.2
    for model in found.models:  # the mean over points of the smoothed mean is near the plain one
        smooth = found.profile(model, bandwidth=0.05)
        locations = torch.searchsorted(smooth.at, found.distances).clamp(max=len(smooth.at) - 1)
        assert float(smooth.mean[locations].mean()) == pytest.approx(means[model], rel=0.3)
        assert smooth.low.min() >= 0
    zero = extrapolation(total, x, y, queries=x, answers=y, baselines=("nearest_neighbour",))
    assert zero.profile("nearest_neighbour").mean.abs().max() == 0


def test_profiles_without_zeros_are_of_logarithms(ring):
    found = asked(lambda x: total(x) + 0.1, ring, square(100), baselines=("nearest_neighbour",))
    assert found.logarithmic
    assert_close(found.profile().mean.exp(), torch.full((60,), 0.01).double())


@pytest.mark.parametrize(
    ("y", "answers", "text"),
    [
        (None, None, "extrapolation needs the label of each point .* without labels: pass y"),
        ([-1, 1], None, r"class numbers must lie between 0 and 1, .* found -1 to 1 .* renumber y"),
        ([0, 5], None, r"class numbers must lie between 0 and 1, .* found 0 to 5 in shape \(40,\)"),
        ([0, 1], [-1, 1], "found -1 to 1 .* renumber the answers"),
    ],
)
def test_labels_that_cannot_be_are_refused(y, answers, text):
    x, q = points(40, 2), points(20, 2, seed=1)
    y = None if y is None else torch.tensor(y).repeat(20)
    asked_for = {} if answers is None else {"queries": q, "answers": torch.tensor(answers * 10)}
    with pytest.raises(ValueError, match=text):
        extrapolation(lambda x: x[:, :1], x, y, **asked_for)


def test_classes_may_stand_in_a_column():
    x = points(40, 2)
    y = (x[:, 0] > 0).long()
    flat, column = (extrapolation(lambda x: x[:, :1], x, y) for y in (y, y[:, None]))
    assert torch.equal(flat.errors, column.errors)
