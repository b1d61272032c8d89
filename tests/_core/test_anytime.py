import inspect
import math

import torch

from inscape._core.anytime import (
    anytime,
    batches,
    most_rows,
    patience,
    refinements,
    step_within,
    stoppable,
)
from inscape._core.inference import no_grad
from inscape._core.sampling import Draw, draw_pair_numbers
from inscape.smoothness import gradient_norm, path_length


@anytime
def halving(start: float, *, steps: int = 3):
    for k in range(steps):
        yield start / 2**k, stoppable()


def test_the_plain_call_returns_the_last_result_of_the_same_generator():
    assert halving(8.0)[0] == 2.0
    assert [value for value, _ in halving.refine(8.0)] == [8.0, 4.0, 2.0]


def test_only_who_can_stop_is_told_so():
    assert halving(8.0)[1] is False
    assert all(told for _, told in halving.refine(8.0))
    assert not stoppable()


def test_each_step_is_told_how_long_its_consumer_waits():
    @anytime
    def waiting():
        while True:
            yield patience()

    steps = waiting.refine()
    with step_within(2.0):
        assert next(steps) == 2.0
    assert next(steps) == math.inf


def test_a_function_without_steps_has_one_refinement():
    assert list(refinements(max, 3, 5)) == [5]
    assert len(list(refinements(halving, 1.0, steps=2))) == 2


def test_batches_bounds_the_rows_while_the_block_runs():
    with batches(7):
        assert most_rows(1600) == 7
        assert most_rows(3) == 3
    assert most_rows(1600) == 1600


def test_the_signature_promises_one_result():
    assert inspect.signature(gradient_norm).return_annotation.__name__ == "GradientNorm"
    assert "points" in inspect.signature(gradient_norm).parameters


def test_a_stopped_run_holds_the_first_samples_of_a_whole_one():
    x = torch.randn(40, 3, dtype=torch.float64)
    f = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    f = f.double().eval()
    with batches(6):
        partial = list(gradient_norm.refine(f, x, points=30, seed=4))
    whole = gradient_norm(f, x, points=30, seed=4).norms
    assert [len(result.norms) for result in partial] == [6, 12, 18, 24, 30]
    for result in partial:
        torch.testing.assert_close(result.norms, whole[: len(result.norms)])


def test_all_points_come_in_the_order_of_the_data_and_parts_in_random_order():
    x = torch.arange(1.0, 33.0, dtype=torch.float64)[:, None]
    f = lambda x: x**2 / 2  # its slope at x is x  # noqa: E731
    with batches(8):
        partial = list(gradient_norm.refine(f, x))
    assert partial[0].norms.sort().values.tolist() != x[:8, 0].tolist()
    assert torch.equal(partial[-1].norms, x[:, 0])


def test_a_generator_leaves_inference_mode_in_its_steps_alone():
    x = torch.randn(20, 3, dtype=torch.float64)
    f = torch.nn.Linear(3, 1, dtype=torch.float64).eval()
    with torch.inference_mode(), batches(20):
        steps = path_length.refine(f, x.clone(), pairs=3, knots=12)
        lengths = [len(result.lengths) for result in steps if torch.is_inference_mode_enabled()]
    assert lengths == [2, 3, 3, 3, 3]  # two coarse walks in a batch, then fine ones, one in each


def test_gradients_are_off_within_steps_and_as_they_were_between():
    seen = []

    @no_grad
    def steps():
        for _ in range(2):
            seen.append(torch.is_grad_enabled())
            yield

    assert [torch.is_grad_enabled() for _ in steps()] == [True, True]
    assert seen == [False, False]


def test_a_walk_that_takes_many_batches_begins_coarsely():
    x = torch.randn(20, 2, dtype=torch.float64)
    with batches(9):
        results = list(path_length.refine(torch.sin, x, pairs=20, knots=40))
    coarse = [result for result in results if result.knots == 8]
    assert [len(result.lengths) for result in coarse[:15]] == list(range(2, 17))
    assert all(len(result.lengths) >= 16 for result in results[15:])
    assert {result.summary().kind for result in coarse} == {"lower bound"}
    assert results[-1].knots == 40
    assert results[-1].summary().kind == "estimate"
    torch.testing.assert_close(
        results[-1].lengths, path_length(torch.sin, x, pairs=20, knots=40).lengths
    )


def test_a_longer_draw_extends_a_shorter_one():
    few, many = (Draw(50, rows, seed=3) for rows in (10, 30))
    assert torch.equal(torch.cat(list(few.parts(4))), torch.cat(list(many.parts(7)))[:10])
    pairs = [draw_pair_numbers(50, count, seed=3) for count in (10, 30)]
    assert torch.equal(pairs[0], pairs[1][:, :10])


def test_all_rows_are_not_copied_where_nobody_can_stop():
    draw = Draw(10, 10, seed=0)
    assert list(draw.parts(4)) == [slice(0, 3), slice(3, 6), slice(6, 10)]
    assert len(Draw(10, 10, seed=0, shuffled=True)) == 10
    values = torch.arange(10.0)
    shuffled = Draw(10, 10, seed=0, shuffled=True)
    assert torch.equal(
        shuffled.in_order(torch.cat([values[some] for some in shuffled.parts(4)])), values
    )
