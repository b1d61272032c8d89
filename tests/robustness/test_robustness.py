"""Curves, intervals, distances, and all that a search must keep."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from scipy.stats import norm as normal
from torch import nn
from torch.testing import assert_close

import inscape
from cases import dense, points
from inscape._core import NotApplicable
from inscape.robustness import (
    Apgd,
    AutoAttack,
    Fab,
    Fgsm,
    Noise,
    Pgd,
    Robustness,
    Square,
    robustness,
)
from inscape.robustness.robustness import wilson
from robustness.lines import exact_distances, linear


def short(name, norm):
    """Return an attack with few steps."""
    return {
        "fgsm": Fgsm(norm=norm),
        "fgsm-sign": Fgsm(norm=norm, reading="sign"),
        "pgd": Pgd(norm=norm, steps=20, step_size=0.3),
        "apgd-ce": Apgd(norm=norm, steps=12),
        "apgd-dlr": Apgd(norm=norm, loss="dlr", steps=12),
        "apgd-t": Apgd(norm=norm, loss="targeted", steps=8),
        "fab": Fab(norm=norm, steps=8),
        "fab-t": Fab(norm=norm, targeted=True, steps=8),
        "square": Square(norm=norm, queries=60),
        "autoattack": AutoAttack(norm=norm, steps=6, queries=10),
    }[name]


STRONG = ("pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "autoattack")
SOME = ("fgsm", "fgsm-sign", "pgd", "apgd-dlr", "fab", "square")


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", STRONG)
def test_a_linear_classifier_breaks_at_its_exact_distance(name, norm):
    classes = 4 if name in ("apgd-t", "fab", "fab-t", "autoattack") else 2  # others aim at no class
    model, x = linear(6, classes), points(1, 6)
    y = model(x).argmax(1)
    exact = float(exact_distances(model, x, y, norm))
    budgets = [0.999 * exact, 1.03 * exact]  # just below and just above
    found = robustness(model, x, y, attack=short(name, norm), budgets=budgets)
    assert found.accuracy.tolist() == [1.0, 1.0, 0.0]
    assert float(found.lengths[0]) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ["fab", "fab-t"])
def test_fab_finds_the_exact_distance_in_one_run(name, norm):
    model, x = linear(6, 4), points(12, 6)
    y = model(x).argmax(1)
    found = robustness(model, x, y, attack=short(name, norm), budgets=[0.1, 9.0])
    assert_close(found.lengths, exact_distances(model, x, y, norm), rtol=2e-3, atol=0.0)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_square_and_fgsm_never_break_below_the_exact_distance(norm):
    model, x = linear(6, 4), points(40, 6)
    y = model(x).argmax(1)
    exact = exact_distances(model, x, y, norm)
    for name in ("square", "fgsm", "fgsm-sign"):
        found = robustness(model, x, y, attack=short(name, norm), budgets=[0.3, 1.0, 3.0])
        assert bool((found.lengths >= exact * (1 - 1e-9)).all())
        assert int(found.lengths.isfinite().sum()) > 20


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_fab_reaches_what_brute_force_finds_for_a_network(norm):
    model, x = dense(2, 8, 3), points(6, 2)
    y = model(x).argmax(1)
    angles = torch.linspace(0, 2 * torch.pi, 361, dtype=torch.float64)
    ring = torch.stack([angles.cos(), angles.sin()], dim=1)
    if norm == "linf":
        ring = ring / ring.abs().amax(1, keepdim=True)
    radii = torch.linspace(0.005, 4, 800, dtype=torch.float64)
    with torch.no_grad():
        at = x[:, None, None] + radii[:, None, None] * ring
        wrong = (model(at).argmax(-1) != y[:, None, None]).any(2)
    brute = torch.where(wrong.any(1), radii[wrong.double().argmax(1)], torch.inf)
    found = robustness(model, x, y, attack=Fab(norm=norm, steps=40, restarts=3), budgets=[4.0])
    assert bool(brute.isfinite().all())
    assert bool((found.lengths >= brute - 0.006).all())
    met = torch.isclose(found.lengths, brute, rtol=0.02, atol=0.006)
    assert int(met.sum()) >= 5  # a local search: one of six ends at another piece


def test_each_attack_stays_within_budget_and_bounds():
    model, x = dense(5, 16, 3), points(5, 5).clamp(-1, 1)
    y = model(x).argmax(1)
    for norm in ("l2", "linf"):
        for name in SOME:
            found = robustness(
                model, x, y, attack=short(name, norm), budgets=[0.7], bounds=(-1, 1), examples=5
            )
            broken = found.lengths[found.lengths.isfinite()]
            assert len(found.after) == len(broken) > 0, name
            assert bool((found.after.abs() <= 1).all())
            moved = (found.after - found.before).norm(dim=1, p=2 if norm == "l2" else torch.inf)
            assert_close(moved.sort().values, broken.sort().values)
            within = found.accuracy[1] == (found.lengths > 0.7 + 1e-9).double().mean()
            assert bool(within)
            with torch.no_grad():
                assert torch.equal(model(found.after).argmax(1), found.answer)
            assert not torch.any(found.answer == found.label)


@pytest.mark.parametrize("name", SOME)
def test_accuracy_falls_with_the_budget(name):
    model, x = dense(2, 16, 3), points(15, 2)
    y = model(x).argmax(1)
    found = robustness(model, x, y, attack=short(name, "l2"), budgets=[0.1, 0.5, 2.0])
    assert bool((found.accuracy.diff() <= 0).all())
    assert found.accuracy[0] == 1.0
    assert found.accuracy[-1] < 0.8


def test_more_steps_and_restarts_never_help_the_defender():
    model, x = dense(3, 24, 24, 4), points(25, 3)
    y = model(x).argmax(1)
    few, more, again = (
        robustness(model, x, y, attack=Pgd(step_size=0.3, **chosen), budgets=[0.4])
        for chosen in ({"steps": 3}, {"steps": 12}, {"steps": 3, "restarts": 4})
    )
    stands = [found.lengths.isinf() for found in (few, more, again)]
    assert int(stands[0].sum()) > int(stands[1].sum()) > 0
    assert bool((stands[0] | ~stands[1]).all())
    assert bool((stands[0] | ~stands[2]).all())


def test_a_single_step_that_overshoots_is_told():
    def well(x):  # class 1 between 1 and 2
        return torch.cat([torch.zeros_like(x), 0.5 - (x - 1.5).abs()], dim=1)

    x, y = torch.tensor([[0.5], [-9.0]], dtype=torch.float64), torch.tensor([0, 0])
    alone = robustness(well, x, y, attack=Fgsm(), budgets=[1.0, 2.0], carry=False)
    assert alone.accuracy.tolist() == [1.0, 0.5, 1.0]
    assert any("right again at a larger one" in warning for warning in alone.warnings)
    carried = robustness(well, x, y, attack=Fgsm(), budgets=[1.0, 2.0])
    assert carried.accuracy.tolist() == [1.0, 0.5, 0.5]
    assert not any("right again" in warning for warning in carried.warnings)


def test_noise_breaks_as_often_as_the_normal_law_says():
    model, x = linear(8, 2), points(300, 8)
    y = model(x).argmax(1)
    exact = exact_distances(model, x, y, "l2").numpy()
    draws = 40
    found = robustness(model, x, y, attack=Noise(draws=draws), budgets=[0.3, 1.5], points=300)
    for budget, share in zip([0.3, 1.5], found.accuracy[1:].tolist(), strict=True):
        expected = normal.cdf(exact / budget)
        error = np.sqrt((expected * (1 - expected)).sum() / draws) / 300
        assert abs(share - expected.mean()) < 5 * error
    assert found.norm == "std"
    assert found.summary().kind == "estimate"


def test_fgsm_in_its_three_readings_steps_as_far_as_it_says():
    model = linear(5, 2)
    x = points(1, 5)
    y = model(x).argmax(1)
    w = (model.weight[1 - y[0]] - model.weight[y[0]]).detach()
    cases = {
        Fgsm(): w / w.norm(),
        Fgsm(reading="sign"): w.sign() / 5**0.5,
        Fgsm(norm="linf"): w.sign(),
    }
    for attack, step in cases.items():
        found = robustness(model, x, y, attack=attack, budgets=[50.0])
        assert_close(found.after - x, 50 * step[None])


@pytest.mark.parametrize("classes", [1, 2, 4])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_autoattack_takes_any_number_of_classes(classes, norm):
    model, x = linear(4, classes, seed=2), points(10, 4)
    scores = model(x)
    y = (scores[:, 0] > 0).long() if classes == 1 else scores.argmax(1)
    found = robustness(model, x, y, attack=short("autoattack", norm), budgets=[0.05, 20.0])
    assert found.accuracy[0] == 1.0
    assert found.accuracy[-1] == 0.0
    pair = nn.Linear(4, 2).double().eval()
    if classes == 1:
        with torch.no_grad():
            pair.weight.copy_(torch.cat([torch.zeros_like(model.weight), model.weight]))
            pair.bias.copy_(torch.cat([torch.zeros_like(model.bias), model.bias]))
        assert bool((found.lengths >= exact_distances(pair, x, y, norm) * (1 - 1e-9)).all())


@pytest.mark.parametrize("shape", [(5, 6), (3, 2, 2, 2), (1,)])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_inputs_of_any_shape(shape, norm):
    model = nn.Sequential(nn.Flatten(), linear(torch.Size(shape).numel(), 3)).eval()
    x = points(6, *shape)
    y = model(x).argmax(1)
    for name in ("autoattack", "square"):
        found = robustness(model, x, y, attack=short(name, norm), budgets=[40.0])
        assert found.after.shape[1:] == x.shape[1:]
        assert float(found.accuracy[1]) < 0.7


@pytest.mark.parametrize("name", ["noise", "pgd", "apgd-ce", "fab-t", "square"])
def test_the_answer_does_not_depend_on_how_much_fits_into_memory(name):
    model, x = dense(3, 16, 4), points(12, 3)
    y = model(x).argmax(1)
    attack = Noise() if name == "noise" else short(name, "l2")
    whole, batches = (
        robustness(model, x, y, attack=attack, budgets=[0.5], memory=memory)
        for memory in (2**25, 9000)
    )
    assert torch.equal(whole.accuracy, batches.accuracy)
    assert_close(whole.lengths, batches.lengths)


def test_only_some_points_are_attacked_and_all_of_them_if_asked():
    model, x = linear(3, 3), points(50, 3)
    y = model(x).argmax(1)
    some = robustness(model, x, y, points=10, examples=3, sanity=False)
    assert len(some.lengths) == 10
    assert len(some.examples) == 3
    assert_close(some.before, x[some.examples])
    assert torch.equal(some.label, y[some.examples])
    assert len(robustness(model, x, y, points=99, sanity=False).lengths) == 50


def test_points_that_are_wrong_from_the_start_count_at_every_budget():
    model, x = linear(3, 3), points(20, 3)
    y = (model(x).argmax(1) + torch.arange(20).remainder(2)) % 3  # every other one is wrong
    found = robustness(model, x, y, budgets=[1e-6])
    assert found.accuracy.tolist() == [0.5, 0.5]
    assert int((found.lengths == 0).sum()) == 10
    assert len(found.examples) == 0


def test_budgets_are_taken_from_the_distance_between_classes():
    x = torch.tensor([[0.0, 0.0], [0.0, 4.0], [1.0, 0.0], [1.0, 4.0]])
    y = torch.tensor([0, 1, 0, 1])
    found = robustness(lambda x: x - 2, x, y)
    assert found.rival == 4.0
    assert found.budgets.tolist() == [0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0]
    alone = robustness(lambda x: x - 2, x, torch.zeros_like(y))
    assert alone.rival == 0.0
    assert bool((alone.budgets.diff() > 0).all())


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (90, 100), (1, 1)])
def test_intervals_are_wilsons_or_exact_where_all_points_are_alike(right, n):
    share = torch.tensor(right / n, dtype=torch.float64)
    method = "exact" if right in (0, n) else "wilson"
    expected = binomtest(right, n).proportion_ci(method=method)
    assert_close(wilson(share, n).tolist(), [expected.low, expected.high])


def test_the_world_stays_as_it_was_and_the_seed_decides():
    model, x = dense(3, 12, 3), points(20, 3)
    y = model(x).argmax(1)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    one, two, other = (robustness(model, x, y, budgets=[0.3], seed=s) for s in (0, 0, 1))
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(one.after, two.after)
    assert not torch.equal(one.lengths, other.lengths)


def test_results_are_saved_and_read_back(tmp_path):
    model, x = dense(3, 12, 3), points(20, 3).clamp(-2, 2)
    y = model(x).argmax(1)
    found = robustness(model, x, y, budgets=[0.3, 0.6], bounds=(-2.0, 2.0))
    again = inscape.load(found.save(tmp_path / "found.json"))
    assert isinstance(again, Robustness)
    assert torch.equal(found.lengths, again.lengths)
    assert (again.bounds, again.warnings, again.settings) == (
        found.bounds,
        found.warnings,
        found.settings,
    )
    rows = list(again.rows())
    assert [row["budget"] for row in rows] == pytest.approx([0.0, 0.3, 0.6])
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in rows)
    assert len(repr(found)) < 120


def test_real_labels_are_answered_with_a_reason():
    model, x = linear(3, 1), points(5, 3)
    found = robustness(model, x, model(x).detach())
    assert isinstance(found, NotApplicable)
    assert found.reason == "the labels are real numbers, not classes"
