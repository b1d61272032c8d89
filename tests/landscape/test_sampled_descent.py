import torch
from torch import nn

from cases import points
from inscape._core.anytime import step_within
from inscape.landscape import local_minimum
from inscape.landscape._loss_function import loss_function_of
from inscape.landscape._sampled_descent import sampled_steps

SEEDS = 40


def least_squares(n=64, d=3, off=0.0):
    """Return a linear network at the least squares solution, or off it, with its data."""
    x = points(n, d)
    y = x[:, :1] - x[:, 1:2] + points(n, 1, seed=4)
    model = nn.Linear(d, 1).double().eval()
    full = torch.cat([x, torch.ones(n, 1)], dim=1)
    solution = torch.linalg.lstsq(full, y).solution[:, 0] + off
    model.weight.data, model.bias.data = solution[None, :d], solution[d:]
    return model, x, y


def steps(model, x, y, seed):
    problem = loss_function_of(model, x, y)
    return [step for step in sampled_steps(problem, seed) if step is not None]


def test_at_a_minimum_hardly_any_draw_shows_a_step_down():
    model, x, y = least_squares()
    shown = [step.lowered > 0 for seed in range(SEEDS) for step in steps(model, x, y, seed)]
    assert len(shown) == 3 * SEEDS  # 8, 16 and 32 samples
    assert sum(shown) <= 0.05 * len(shown)


def test_what_is_shown_of_others_holds_for_the_loss_on_all_data():
    model, x, y = least_squares(off=2.0)
    last = [steps(model, x, y, seed)[-1] for seed in range(SEEDS)]
    assert all(step.lowered > 0 for step in last)
    best, _, _ = least_squares()
    loss = nn.functional.mse_loss
    gap = float((loss(model(x), y) - loss(best(x), y)).detach())
    assert sum(step.lowered > gap for step in last) <= 0.05 * SEEDS


def test_samples_that_make_a_step_do_not_judge_it():
    x, y = points(16, 20), points(16, 1, seed=4)  # enough weights to fit any eight samples
    model = nn.Linear(20, 1).double().eval()
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    own = torch.stack([torch.tensor(steps(model, x, y, k)[0].lowered) for k in range(SEEDS)])
    assert float((own > 0).double().mean()) <= 0.05


def test_all_data_are_judged_once_there_is_time_for_them():
    model, x, y = least_squares(off=2.0)
    with step_within(0.0):
        hurried = local_minimum.refine(model, x, y)
        known = [result for result, _ in zip(hurried, range(60), strict=False) if result]
    assert {result.samples for result in known} == {16, 32, 64}
    assert known[-1].verdict == "not stationary"
    assert known[-1].summary().basis == "not stationary"
    assert known[0].summary().basis == f"{known[0].verdict}, 16 of 64 samples"
    *_, whole = local_minimum.refine(model, x, y)
    assert whole.sentence == local_minimum(model, x, y).sentence
    assert "down the gradient lowers the loss by" in whole.sentence
    assert "of 32 samples lowers the loss on 32 others by at least" in known[-1].sentence
