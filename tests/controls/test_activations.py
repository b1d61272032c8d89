"""Units have one standard deviation before their activation, in training and after."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls import ActivationScale, activation_scale
from inscape.training import fit


def test_units_are_centred_and_have_one_spread_together():
    model = activation_scale(dense(3, 8, 1), 0.5).train()
    z = model[:2](points(40, 3))
    assert_close(z.mean(0), torch.zeros(8, dtype=torch.float64), atol=1e-12, rtol=0)
    assert_close(z.square().mean(), torch.tensor(0.25, dtype=torch.float64))


def test_proportions_of_units_stay():
    scale = ActivationScale(2, 1.0, like=torch.zeros(1, dtype=torch.float64)).train()
    z = points(30, 2) * torch.tensor([1.0, 3.0], dtype=torch.float64)
    before, after = z.std(0), scale(z).std(0)
    assert_close(before[1] / before[0], after[1] / after[0])


def test_channels_of_images():
    scale = ActivationScale(2, 2.0, like=torch.zeros(1, dtype=torch.float64)).train()
    z = scale(points(5, 2, 3, 3))
    assert_close(z.mean((0, 2, 3)), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert_close(z.square().mean().sqrt().item(), 2.0)


def test_after_training_the_running_means_are_used():
    x = points(40, 3)
    model = activation_scale(dense(3, 8, 1), 0.5)
    run = fit(model, x, x.sum(1, keepdim=True), optimizer="adam", lr=0.02, epochs=60)
    assert run.losses[-1] < run.losses[0] / 2
    assert_close(model(x)[:3], model(x[:3]))  # rows do not see each other
    assert_close(model[:2](x).square().mean().sqrt().item(), 0.5, atol=0.05, rtol=0)


def test_the_first_batch_counts_in_full_and_others_by_their_share():
    scale = ActivationScale(1, 1.0, momentum=0.25, like=torch.zeros(1)).train()
    scale(torch.tensor([[1.0], [3.0]]))
    assert_close(scale.mean, torch.tensor([2.0]))
    scale(torch.tensor([[5.0], [7.0]]))
    assert_close(scale.mean, torch.tensor([3.0]))
    assert "1, scale=1, momentum=0.25" in repr(scale)


def test_chains_within_the_chain_and_parts_that_come_twice():
    act, layer = nn.Tanh(), nn.Linear(3, 3)
    inner = nn.Sequential(layer, act)
    model = nn.Sequential(nn.Linear(2, 3), act, inner, layer, act, nn.Linear(3, 1))
    found = activation_scale(model, 0.5)
    names = [type(part).__name__ for part in found.modules()]
    assert names.count("ActivationScale") == 3
    assert [type(part).__name__ for part in found[3]] == ["Linear", "ActivationScale", "Tanh"]
    assert [type(part).__name__ for part in found[4:]] == [
        *("Linear", "ActivationScale", "Tanh", "Linear")
    ]
    assert found[7].out_features == 1


def test_units_are_scaled_behind_a_batch_norm_not_before():
    norms = nn.BatchNorm1d(4), nn.BatchNorm1d(3)
    for norm in norms:  # so that it matters which of both comes last
        nn.init.constant_(norm.weight, 7.0)
    model = nn.Sequential(
        nn.Sequential(nn.Linear(2, 4)), norms[0], nn.Tanh(),
        nn.Linear(4, 3), norms[1], nn.Tanh(), nn.Linear(3, 1), nn.BatchNorm1d(1),
    )  # fmt: skip
    found = activation_scale(model.double().train(), 0.5)
    assert [type(part).__name__ for part in found] == [
        *("Sequential", "BatchNorm1d", "ActivationScale", "Tanh"),
        *("Linear", "BatchNorm1d", "ActivationScale", "Tanh", "Linear", "BatchNorm1d"),
    ]
    x = points(40, 2)
    for end in (3, 7):
        assert_close(found[:end](x).square().mean().sqrt().item(), 0.5)


def test_a_state_of_another_scale_is_refused(tmp_path):
    one, two = (activation_scale(dense(3, 8, 1), scale) for scale in (0.5, 2.0))
    torch.save(one.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match=r"1 must be held .*'scale': 0.5}, found .*'scale': 2.0"):
        two.load_state_dict(state)
    slower = activation_scale(dense(3, 8, 1), 0.5, momentum=0.01)
    slower.load_state_dict(state)  # the function is the same
    two.load_state_dict(dict(state))


def test_bad_input(unchecked):
    hidden = nn.ModuleList([nn.Linear(3, 3)])
    with pytest.raises(ValueError, match="found others in ModuleList: put ActivationScale modules"):
        activation_scale(nn.Sequential(nn.Linear(3, 3), hidden, nn.Linear(3, 1)), 1.0)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=r"scale must be a finite number above 0, found .*: p"):
            activation_scale(dense(3, 8, 1), wrong)
    with pytest.raises(TypeError, match="scale must be one number, found True: pass a float"):
        activation_scale(dense(3, 8, 1), True)
    with pytest.raises(ValueError, match="momentum must be a fraction between 0 and 1, found nan"):
        activation_scale(dense(3, 8, 1), 1.0, momentum=float("nan"))
    with pytest.raises(ValueError, match=r"takes an nn.Sequential, found Linear: put Activation"):
        activation_scale(nn.Linear(2, 1), 1.0)
    with pytest.raises(ValueError, match="needs a hidden layer before the last one, found none"):
        activation_scale(dense(3, 1), 1.0)
