"""Ranger against its two equations written out, and as one of the optimizers of fit."""

import math

import pytest
import torch
from torch import nn

from inscape.ensembles import fit_many
from inscape.errors import UnsupportedModelError
from inscape.kernels import path_kernel
from inscape.models import mlp
from inscape.training import Trajectory, fit, plateau, replay
from inscape.training.ranger import Ranger

N = 13


def data():
    rng = torch.Generator().manual_seed(2)
    kind = {"generator": rng, "dtype": torch.float64}
    return torch.randn(N, 3, **kind), torch.randn(N, 2, **kind)


def plain(seed=1):
    return mlp(3, 6, 2, seed=seed, dtype=torch.float64)


def gradient(weights):
    return 2 * weights * torch.arange(1.0, 5.0, dtype=torch.float64)


def radam_step(weights, moments, t, lr, beta1=0.9, beta2=0.999):
    """Liu et al., algorithm 2."""
    slope = gradient(weights)
    mean, square = moments
    mean, square = beta1 * mean + (1 - beta1) * slope, beta2 * square + (1 - beta2) * slope**2
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / (1 - beta2**t)
    step = mean / (1 - beta1**t)
    if length > 5:
        over = (length - 4) * (length - 2) * longest
        under = (longest - 4) * (longest - 2) * length
        step = step * math.sqrt(over / under) * math.sqrt(1 - beta2**t) / (square.sqrt() + 1e-8)
    return weights - lr * step, (mean, square)


@pytest.mark.parametrize(("every", "share"), [(6, 0.5), (1, 0.3), (5, 1.0)])
def test_steps_are_those_of_the_papers(every, share):
    start = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    theirs = nn.Parameter(start.clone())
    optimizer = Ranger([theirs], lr=0.01, every=every, share=share)
    fast, slow, moments = start, start, (torch.zeros(4), torch.zeros(4))
    for t in range(1, 20):
        theirs.grad = gradient(theirs.detach())
        optimizer.step()
        fast, moments = radam_step(fast, moments, t, 0.01)
        if t % every == 0:
            fast = slow = slow + share * (fast - slow)
        torch.testing.assert_close(theirs.detach(), fast)


def test_the_whole_way_is_radam_alone():
    ours, theirs = (nn.Parameter(torch.ones(4, dtype=torch.float64)) for _ in range(2))
    pair = Ranger([ours], share=1.0), torch.optim.RAdam([theirs], lr=0.01)
    for _ in range(15):
        for parameter, optimizer in zip((ours, theirs), pair, strict=True):
            parameter.grad = gradient(parameter.detach())
            optimizer.step()
    torch.testing.assert_close(ours, theirs)


def test_a_parameter_without_gradient_stays():
    still, moved = (nn.Parameter(torch.ones(4, dtype=torch.float64)) for _ in range(2))
    optimizer = Ranger([still, moved])
    moved.grad = gradient(moved.detach())
    optimizer.step()
    assert still.tolist() == [1.0] * 4
    assert moved.tolist() != [1.0] * 4
    assert "slow" not in optimizer.state[still]


@pytest.mark.parametrize("record", [1, 4, 100])
def test_every_step_comes_back_bit_for_bit_after_saving(record, tmp_path):
    x, y = data()
    settings = {"optimizer": "ranger", "batch": 5, "lr": 0.03, "betas": (0.8, 0.99)}
    run = fit(plain(), x, y, epochs=6, record=record, **settings)
    assert run.settings.optimizer == "ranger"
    assert "0.slow" in run.trajectory.memory
    run.trajectory.save(tmp_path / "way.npz")
    way = Trajectory.load(tmp_path / "way.npz")
    for epochs in range(1, 7):
        short = fit(plain(), x, y, epochs=epochs, **settings)
        state = replay(way, plain(), x, y, short.steps)
        assert all(torch.equal(state[name], t) for name, t in short.model.state_dict().items())


def test_it_differs_from_radam_only_after_the_first_pull():
    x, y = data()
    runs = {
        steps: [
            fit(plain(), x, y, epochs=steps, **by).loss
            for by in ({"optimizer": "ranger"}, {"optimizer": lambda p: torch.optim.RAdam(p, 0.01)})
        ]
        for steps in (6, 8)
    }
    assert runs[6][0] == runs[6][1]
    assert runs[8][0] != runs[8][1]


def test_many_are_trained_one_after_the_other():
    x, y = data()
    settings = {"optimizer": "ranger", "epochs": 7, "schedule": plateau(0.1, 0, threshold=0.5)}
    runs = fit_many([plain(0), plain(1)], x, y, **settings)
    for seed, run in enumerate(runs):
        alone = fit(plain(seed), x, y, **settings)
        assert all(
            torch.equal(t, run.model.state_dict()[name])
            for name, t in alone.model.state_dict().items()
        )


def test_the_path_kernel_refuses_it():
    x, y = data()
    way = fit(plain(), x, y, epochs=2, optimizer="ranger", record=1).trajectory
    with pytest.raises(UnsupportedModelError, match=r"sgd, adam and adamw, found 'ranger': train"):
        path_kernel(plain(), x, y, trajectory=way)
