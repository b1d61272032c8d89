import pytest
import torch
from torch.testing import assert_close

from cases import CASES, points
from inscape._core import NotApplicable
from inscape._core.sampling import draw_numbers
from inscape.smoothness import Rugosity, rugosity
from inscape.smoothness.rugosity import _directions
from oracles.smoothness import jacobian


def drawn(x, count, seed):
    order = draw_numbers(len(x), len(x), seed=seed)  # directions belong to points as drawn
    ways = _directions(x[order], count, torch.Generator().manual_seed(seed))
    return ways[:, order.argsort()]


@pytest.mark.parametrize("case", CASES)
def test_each_point_equals_the_loop(case):
    f, x, _ = CASES[case]()
    result = rugosity(f, x, directions=3, seed=5)
    ways = drawn(x, 3, 5)
    for i, point in enumerate(x):
        moved = [jacobian(f, point + result.distance * way[i]) for way in ways]
        change = torch.stack([(m - jacobian(f, point)).norm() for m in moved]).mean()
        assert_close(result.changes[i], change / result.distance)


def test_quadratic_form_has_the_closed_form_at_any_step():
    hessian = torch.tensor([[2.0, 1.0], [1.0, -3.0]], dtype=torch.float64)
    x = points(40, 2)

    def f(x):
        return (x @ hessian * x).sum(1, keepdim=True) / 2

    for step in (0.01, 3.0):
        result = rugosity(f, x, directions=2, step=step)
        expected = (drawn(x, 2, 0) @ hessian).norm(dim=2).mean(0)
        assert_close(result.changes, expected, rtol=1e-6, atol=1e-9)  # differences of 0.01


def test_one_kink_is_crossed_as_often_as_it_is_near():
    # From a point at distance s of the kink a step of 1 in one dimension crosses it half the time.
    x = torch.linspace(-1, 1, 2001, dtype=torch.float64)[:, None]
    result = rugosity(
        torch.abs, x, points=2001, directions=8, step=0.5 / float(x.std(correction=0))
    )
    assert_close(result.distance, 0.5)
    assert set(result.changes[x[:, 0].abs() > 0.51].tolist()) == {0.0}
    # A quarter of all steps cross (half the points, half the directions); the jump is 2, over 0.5.
    value, half = result.summary().value, result.summary().high - result.summary().value
    assert abs(value - 1.0) < 5 * half / 1.96


def test_directions_are_unit_vectors_without_preference():
    ways = drawn(points(500, 2, 2), 4, 1).flatten(2)
    assert_close(ways.norm(dim=2), torch.ones(4, 500, dtype=torch.float64))
    assert float(ways.mean((0, 1)).abs().max()) < 5 / (2 * 2000**0.5)
    cov = torch.einsum("kni,knj->ij", ways, ways) / 2000
    assert_close(cov, torch.eye(4, dtype=torch.float64) / 4, atol=0.03, rtol=0)  # five errors


def test_affine_function_has_none():
    f = torch.nn.Linear(3, 2, dtype=torch.float64).eval()
    assert float(rugosity(f, points(6, 3)).changes.max()) == 0.0


def test_step_is_a_share_of_the_spread_of_the_data():
    x = points(30, 3)
    spread = (x - x.mean(0)).square().sum(1).mean().sqrt()
    assert_close(rugosity(torch.sin, x, step=0.3).distance, 0.3 * float(spread))
    assert_close(rugosity(torch.sin, 7 * x, step=0.3).distance, 2.1 * float(spread))


def test_memory_changes_the_chunks_and_not_the_numbers():
    f, x, _ = CASES["two-layer, three outputs"]()
    assert_close(rugosity(f, x, memory=1).changes, rugosity(f, x).changes)


def test_summary_and_rows():
    result = rugosity(torch.sin, points(30, 2), points=20)
    assert isinstance(result, Rugosity)
    assert len(list(result.rows())) == 20
    assert result.summary().basis == "20 points x 4 directions"
    assert_close(result.summary().value, float(result.changes.mean()))


def test_equal_points_have_no_scale():
    result = rugosity(torch.sin, torch.ones(4, 2))
    assert isinstance(result, NotApplicable)
    assert result.reason.startswith("all points are the same, so that there is no scale")


@pytest.mark.parametrize("step", [0.0, -1.0, float("inf"), float("nan")])
def test_steps_must_go_somewhere(step):
    text = r"step must be (positive and )?finite, found .*: (use e.g. step=0.1|choose another num)"
    with pytest.raises(ValueError, match=text):
        rugosity(torch.sin, points(4, 2), step=step)


def test_zero_directions_are_refused():
    with pytest.raises(ValueError, match="directions must be at least 1, found 0: raise direct"):
        rugosity(torch.sin, points(4, 2), directions=0)
