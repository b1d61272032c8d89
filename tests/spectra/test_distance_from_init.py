import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import NotApplicable
from inscape.spectra import distance_from_init
from inscape.training import fit


def flat(model):
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


@pytest.mark.parametrize("case", CASES)
def test_norm_of_the_difference_of_the_flat_vectors(case):
    model, x, _ = CASES[case]()
    start = dense(*[m.in_features for m in model[::2]], model[-1].out_features, seed=9)
    result = distance_from_init(model, x, start=start)
    expected = (flat(model) - flat(start)).norm()
    assert_close(torch.tensor(result.summary().value, dtype=torch.float64), expected)
    assert result.summary().kind == "exact"


def test_each_tensor_has_its_own_row():
    model, start, x = dense(2, 3, 1), dense(2, 3, 1, seed=5), points(2, 2)
    rows = list(distance_from_init(model, x, start=start.state_dict()).rows())
    assert [row["parameter"] for row in rows] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    now, then = model[2].weight.detach(), start[2].weight.detach()
    assert rows[2]["distance"] == pytest.approx(float((now - then).norm()))
    assert rows[2]["norm_before"] == pytest.approx(float(then.norm()))
    assert rows[2]["norm_after"] == pytest.approx(float(now.norm()))


def test_module_state_dict_and_trajectory_say_the_same():
    model, x = dense(2, 4, 1), points(12, 2)
    start = copy.deepcopy(model)
    run = fit(model, x, x[:, :1] * x[:, 1:], epochs=5, lr=0.1, record=2)
    ways = (start, copy.deepcopy(start.state_dict()), run.trajectory)
    found = [distance_from_init(model.eval(), x, start=way) for way in ways]
    assert found[0].summary().value > 0.01
    assert len({one.summary().value for one in found}) == 1


def test_at_the_start_the_distance_is_zero():
    model, x, _ = CASES["deep relu"]()
    assert distance_from_init(model, x, start=model).summary().value == 0.0


def test_running_statistics_are_no_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double().eval()
    start = copy.deepcopy(model)
    model[1].running_mean += 7
    model[1].bias.data += 2
    result = distance_from_init(model, points(2, 2), start=start.state_dict())
    assert result.summary().value == pytest.approx(12**0.5)


def test_units_in_another_order_lie_elsewhere():
    model, x = dense(2, 4, 1), points(2, 2)
    other = copy.deepcopy(model)
    for tensor in (other[0].weight, other[0].bias, other[2].weight.T):
        tensor.data.copy_(tensor.data.flip(0))
    assert_close(other(x), model(x))
    assert distance_from_init(other, x, start=model).summary().value > 1


def test_small_steps_of_single_precision_are_seen():
    model = nn.Linear(1, 1, bias=False).eval()
    model.weight.data.fill_(1.0)
    start = {"weight": torch.full((1, 1), 1 + 1e-12, dtype=torch.float64)}
    found = distance_from_init(model, torch.ones(1, 1), start=start).summary().value
    assert found == pytest.approx(1e-12, rel=1e-3)


def test_without_a_start_there_is_no_distance():
    result = distance_from_init(dense(2, 3, 1), points(2, 2))
    assert isinstance(result, NotApplicable)
    assert result.reason.startswith("where training began is not known: pass start")


def test_start_of_another_network_is_refused():
    model, x = dense(2, 3, 1), points(2, 2)
    with pytest.raises(
        ValueError, match=r"found \(4, 2\) for '0.weight' instead of \(3, 2\): pass"
    ):
        distance_from_init(model, x, start=dense(2, 4, 1))
    with pytest.raises(ValueError, match=r"must hold every parameter of the model, found no '0.we"):
        distance_from_init(model, x, start={"weight": torch.ones(3, 2)})
    start = {name: p * torch.inf for name, p in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"start must be finite, found NaN or Inf in '0.weight'"):
        distance_from_init(model, x, start=start)


@pytest.mark.usefixtures("unchecked")
def test_start_must_be_a_network():
    with pytest.raises(TypeError, match=r"start must be a module, a state dict or .*, found 3.0"):
        distance_from_init(dense(2, 3, 1), points(2, 2), start=3.0)
