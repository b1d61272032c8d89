"""Stationary points of tiny networks: against gradients, the text and a search."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy
import torch

from inscape.boolean._inequalities import above_zero, solution
from inscape.boolean._stationary_case import loss_of, symbols
from inscape.boolean.matching import match, symmetric
from inscape.boolean.stationary import (
    XOR,
    Problem,
    gradient_flow,
    named,
    ramp_points,
    stationary,
    unit_patterns,
)


@pytest.fixture(scope="module")
def found():
    return stationary()


def vector(example: dict[str, Fraction]) -> list[float]:
    return [float(example[name]) for name in ("w1", "w2", "b1", "b2", "o1", "o2", "c")]


def torch_gradient(weights: list[float]) -> tuple[float, torch.Tensor]:
    """Return loss (3.25) and its gradient by PyTorch."""
    at = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    x = torch.tensor([-1.0, 0.0, 0.0, 1.0]).double()
    y = torch.tensor([-1.0, 1.0, 1.0, -1.0]).double()
    w, b, o, c = at.split([2, 2, 2, 1])
    loss = ((o @ torch.relu(w[:, None] * x + b[:, None]) + c - y) ** 2).sum()
    loss.backward()
    return loss.item(), at.grad


def test_thirty_six_of_sixty_four_cases(found):
    assert len(unit_patterns()) == 6
    assert found.cases == 36
    assert found.levels == (0, Fraction(8, 3), 4)
    assert "36 cases, losses 0, 8/3, 4" in found.summary().basis


def test_every_example_is_stationary_in_its_case_for_pytorch(found):
    for family in found.families:
        weights = vector(family.example)
        loss, gradient = torch_gradient(weights)
        assert loss == pytest.approx(float(family.loss), abs=1e-12)
        assert gradient.abs().max() < 1e-12
        before = np.outer(weights[:2], XOR.points) + np.array(weights[2:4])[:, None]
        assert named([tuple(row.tolist()) for row in before > 0]) == family.name
        assert family.inner == bool((np.abs(before) > 1e-9).all())


def test_conditions_make_the_gradient_vanish_whatever_is_free(found):
    weights = symbols(2)
    rng = np.random.default_rng(0)
    for family in found.families[::4]:
        numbers = {name: sympy.Rational(int(rng.integers(1, 50)), 7) for name in weights}
        equations = [text.split(" = ") for text in family.conditions]
        for _ in range(3):  # right sides may need each other's left sides
            for left, right in equations:
                at = {weights[n]: v for n, v in numbers.items()}
                numbers[left] = sympy.sympify(right, locals=weights).subs(at)
        at = {weights[name]: value for name, value in numbers.items()}
        loss = loss_of(XOR, family.patterns, weights)
        assert all(sympy.diff(loss, one).subs(at) == 0 for one in weights.values()), family
        assert loss.subs(at) == sympy.Rational(family.loss.numerator, family.loss.denominator)


def test_a_long_descent_finds_no_other_loss(found):
    levels = np.array([float(level) for level in found.levels])
    for seed in range(4):
        at = torch.randn(7, generator=torch.Generator().manual_seed(seed)).double().tolist()
        for _ in range(1000):
            loss, gradient = torch_gradient(at)
            at = [a - 0.02 * g for a, g in zip(at, gradient.tolist(), strict=True)]
        assert np.abs(levels - loss).min() < 0.02
        assert match(at, found).family is not None


def test_minima_and_saddles_are_what_they_say(found):
    """Around a minimum nothing is lower; around a saddle something is."""
    rng = np.random.default_rng(1)
    for family in (one for one in found.families if one.inner):
        here = np.array(vector(family.example))
        away = here + 0.003 * rng.normal(size=(3000, 7))
        before = away[:, :2, None] * np.array(XOR.points) + away[:, 2:4, None]
        out = (away[:, 4:6, None] * np.maximum(before, 0)).sum(1) + away[:, 6:]
        losses = ((out - np.array(XOR.targets)) ** 2) @ np.array(XOR.weights)
        lower = losses.min() < float(family.loss) - 1e-9
        assert lower == (family.kind == "saddle"), family


def test_the_case_in_the_text(found):
    """Section 3.3.3 names three families where all is on, all of loss four."""
    here = [one for one in found.families if one.name == "+++;+++"]
    said = {one.conditions for one in here}
    assert ("c = -b1*o1 - b2*o2", "w1 = -o2*w2/o1") in said
    assert ("c = 0", "o1 = 0", "o2 = 0") in said
    assert ("c = -b2*o2", "w2 = 0", "o1 = 0") in said
    assert {one.loss for one in here} == {4}


def test_flow_goes_down_the_gradient():
    """Erratum S5: the printed system has the other sign."""
    flow = gradient_flow([(True,) * 3] * 2)
    w1, w2, o1, o2, b1, b2, c = (symbols(2)[n] for n in ("w1", "w2", "o1", "o2", "b1", "b2", "c"))
    assert sympy.expand(flow["w1"] + 4 * o1 * (o1 * w1 + o2 * w2)) == 0
    assert sympy.expand(flow["c"] + 8 * (b1 * o1 + b2 * o2 + c)) == 0
    printed = 8 * b1**2 * o1 + 8 * b1 * b2 * o2 + 8 * b1 * c + 4 * o1 * w1**2 + 4 * o2 * w1 * w2
    assert sympy.expand(flow["o1"] + printed) == 0


def test_ramp():
    """Erratum S4: (2, 1) lies outside of a < 0, and the dead unit is stationary."""
    found = {one.case: one for one in ramp_points()}
    right, left, dead = (found[case] for case in ("a > 0", "a < 0", "a = 0"))
    assert (right.a, right.b, right.loss, right.inside) == (2, -1, 0, True)
    assert (left.a, left.b, left.inside) == (2, 1, False)
    assert (dead.a, dead.b, dead.loss, dead.inside) == (0, 0, 2, True)


def test_one_unit_on_two_points():
    """A line through two points: any unit that is on at both, or at one, fits both."""
    line = Problem(points=(-1, 1), targets=(-1, 1), weights=(1, 1))
    found = stationary(line, units=1)
    assert found.cases == 4
    assert found.levels == (0, 2)
    dead = next(one for one in found.families if one.name == "--")
    assert (dead.loss, dead.conditions) == (2, ("c = 0",))


def test_matching_knows_families_and_symmetries(found):
    for family in found.families:
        if family.inner and not any(family.silent):
            got = match(vector(family.example), found)
            assert got.family is family
            assert got.gradient < 1e-9
    halfway = match([1.0, 1.0, 0.5, 0.25, 1.0, 1.0, 0.0], found)
    assert halfway.family is None
    assert halfway.gradient > 1


def test_gradient_of_a_match_is_pytorchs(found):
    weights = [0.7, -1.2, 0.3, 0.9, 1.1, -0.4, 0.2]
    loss, gradient = torch_gradient(weights)
    got = match(weights, found)
    assert got.loss == pytest.approx(loss)
    assert got.gradient == pytest.approx(float(gradient.norm()))


def test_a_unit_at_its_kink_counts_as_what_fits(found):
    family = next(one for one in found.families if one.name == "---;--+")
    weights = vector(family.example)
    weights[0], weights[2] = 1.0, -1.0 + 1e-9  # just on at 1, with nothing to say
    weights[4] = 0.5
    assert match(weights, found).family is family


def test_symmetries_are_four():
    flat, up = (False, False, False), (False, True, False)
    down = (False, False, True)
    assert symmetric([flat, up], XOR) == symmetric([down, flat], XOR)
    assert symmetric([up, up], XOR) == symmetric([down, down], XOR) != symmetric([up, down], XOR)
    lopsided = Problem(points=(0, 1, -1), targets=(1, -1, 0), weights=(2, 1, 1))
    assert symmetric([flat, up], lopsided) != symmetric([flat, down], lopsided)


def test_turning_one_weight_is_no_symmetry(found):
    """Section 3.3.3 counts eight equivalent optima; four it is."""
    by_name = {one.name: one.loss for one in found.families if not any(one.silent)}
    assert (by_name["-+-;-+-"], by_name["--+;-+-"]) == (Fraction(8, 3), 0)


def test_weights_of_another_size_are_refused(found):
    with pytest.raises(ValueError, match=r"must be the 7 of a network .* found shape \(4,\)"):
        match([1.0, 2.0, 3.0, 4.0], found)


def test_no_units_are_refused():
    with pytest.raises(ValueError, match="units must be at least 1, found 0"):
        stationary(units=0)


def test_inequalities_against_a_grid():
    rng = np.random.default_rng(3)
    grid = [tuple(Fraction(v, 2) for v in p) for p in product(range(-4, 5), repeat=2)]
    empty = 0
    for _ in range(100):
        system = [
            above_zero(rng.integers(-2, 3, 2).tolist(), int(rng.integers(-2, 3)), strict=k % 2 == 0)
            for k in range(4)
        ]
        point = solution(system, 2)
        if point is None:
            empty += 1
            assert not any(all(one.holds(p) for one in system) for p in grid)
        else:
            assert all(one.holds(point) for one in system)
    assert 10 < empty < 90
