import copy
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable, UnsupportedModelError
from inscape.controls import activation_scale, length_scale, release
from inscape.landscape import interpolation


def data(n=40, d=2):
    x = points(n, d)
    return x, (x[:, :1] * x[:, 1:2]).sin()


def shuffled(model, seed=0):
    """Return the same function with the hidden units in another order."""
    model = copy.deepcopy(model)
    layers = [m for m in model if isinstance(m, nn.Linear)]
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for first, second in pairwise(layers):
            order = torch.randperm(first.out_features, generator=rng)
            first.weight.copy_(first.weight[order])
            first.bias.copy_(first.bias[order])
            second.weight.copy_(second.weight[:, order])
    return model


def test_loss_of_a_linear_model_is_the_parabola_of_its_coefficients():
    x, y = data()
    one, two = (nn.Linear(2, 1).double().eval() for _ in range(2))
    design = torch.cat([x, torch.ones(len(x), 1).double()], dim=1)
    a, b = (torch.cat([m.weight[0], m.bias]).detach()[:, None] for m in (one, two))
    found = interpolation(one, x, y, other=two)
    start, way = design @ a - y, design @ (b - a)
    for at, loss in zip(found.at, found.losses, strict=True):
        expected = (
            start.square().mean() + 2 * at * (start * way).mean() + at**2 * way.square().mean()
        )
        assert_close(loss, expected)
    assert found.barrier == 0.0  # a convex loss has none
    assert found.summary().kind == "lower bound"


def test_barrier_is_the_highest_rise_above_the_line_between_the_ends():
    x = torch.ones(1, 1, dtype=torch.float64)

    class Wave(nn.Module):
        def __init__(self, w):
            super().__init__()
            self.w = nn.Parameter(torch.tensor(w, dtype=torch.float64))

        def forward(self, x):
            return x * (2 + torch.sin(torch.pi * self.w) + self.w).sqrt()

    one, two = Wave(0.0).eval(), Wave(1.0).eval()
    at = torch.linspace(0, 1, 21)
    found = interpolation(one, x, 0 * x, other=two, at=at)  # loss 2 + sin(pi w) + w
    assert_close(found.barrier, 1.0)
    half = interpolation(one, x, 0 * x, other=two, at=torch.tensor([0.0, 0.25, 1.0]))
    assert_close(half.barrier, 0.5**0.5)
    assert interpolation(one, x, 0 * x, other=two, at=torch.tensor([0.0, 1.0])).barrier == 0.0


def test_ends_are_the_losses_of_both_networks_and_states_may_stand_for_them():
    x, y = data()
    one, two, third = (dense(2, 6, 1, seed=seed) for seed in range(3))
    before = copy.deepcopy(one.state_dict())
    found = interpolation(one, x, y, other=two)
    for net, loss in ((one, found.losses[0]), (two, found.losses[-1])):
        assert_close(loss, (net(x) - y).square().mean().detach())
    again = interpolation(third, x, y, start=one.state_dict(), other=two.state_dict())
    assert torch.equal(found.losses, again.losses)
    assert all(torch.equal(before[k], v) for k, v in one.state_dict().items())


@pytest.mark.parametrize("widths", [(2, 12, 1), (2, 8, 9, 7, 1)])
def test_a_network_in_another_order_has_a_barrier_until_it_is_aligned(widths):
    x, y = data()
    net = dense(*widths)
    y = net(x).detach()
    other = shuffled(net)
    plain = interpolation(net, x, y, other=other)
    assert plain.barrier > 0.01
    found = interpolation(net, x, y, other=other, align=True)
    assert found.aligned
    assert found.barrier < 1e-20
    assert found.similarity == pytest.approx(1)
    assert plain.similarity < 0.9


@pytest.mark.parametrize("bias", ["free", "kept"])
def test_the_last_layer_solved_is_never_worse_on_its_own_data(bias):
    x, y = data()
    found = interpolation(dense(2, 6, 1), x, y, other=dense(2, 6, 1, seed=1), solve=True, bias=bias)
    assert (found.solved <= found.losses * (1 + 1e-12)).all()
    assert (found.solved < 0.9 * found.losses).any()


def test_the_solved_layer_is_the_pseudo_inverse_of_the_hidden_units():
    x, y = data()
    net, other = dense(2, 6, 1), dense(2, 6, 1, seed=1)
    far = points(30, 2, seed=7)
    right = far.sum(1, keepdim=True)
    found = interpolation(net, far, right, other=other, solve=True, solve_on=(x, y), bias="zero")
    h, q = (torch.relu(net[0](at)).detach() for at in (x, far))
    beta = torch.linalg.pinv(h.T @ h) @ h.T @ y  # Eq. (9), H of one row for each point
    assert_close(found.solved[0], (q @ beta - right).square().mean(), rtol=1e-6, atol=1e-9)
    free = interpolation(net, far, right, other=other, solve=True, solve_on=(x, y))
    ones = torch.ones(len(x), 1, dtype=torch.float64)
    beta = torch.linalg.lstsq(torch.cat([h, ones], dim=1), y, driver="gelsd").solution
    expected = (torch.cat([q, ones[:30]], dim=1) @ beta - right).square().mean()
    assert_close(free.solved[0], expected, rtol=1e-6, atol=1e-9)
    rows = list(free.rows())
    assert rows[0]["solved"] == float(free.solved[0])
    assert free.summary().basis.endswith(f"solved {free.barrier_solved:.2g}")


def test_classes_take_cross_entropy():
    x = points(20, 2)
    y = (x[:, 0] > 0).long()
    one, two = dense(2, 5, 2), dense(2, 5, 2, seed=1)
    found = interpolation(one, x, y, other=two)
    assert found.loss == "cross_entropy"
    assert_close(found.losses[0], nn.functional.cross_entropy(one(x), y).detach())
    assert found.barrier_solved is None


def test_running_statistics_are_interpolated_and_said():
    x, y = data()
    one, two = (
        nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).double()
        for _ in range(2)
    )
    two(x)
    found = interpolation(one.eval(), x, y, other=two.eval(), at=torch.tensor([0.0, 0.5, 1.0]))
    assert found.norms
    middle = copy.deepcopy(one)
    for name, value in middle.state_dict().items():
        if value.is_floating_point():
            value.copy_((one.state_dict()[name] + two.state_dict()[name]) / 2)
    assert_close(found.losses[1], (middle(x) - y).square().mean().detach())
    assert not interpolation(dense(2, 3, 1), x, y, other=dense(2, 3, 1, seed=1)).norms


@pytest.mark.parametrize("bias", ["free", "normalised"])
@pytest.mark.parametrize("kept", ["free", "zero", "kept"])
def test_the_last_layer_of_held_networks_is_solved_as_of_plain_ones(bias, kept):
    x, y = data()
    held = [length_scale(dense(2, 6, 1, seed=seed), 1.3, bias=bias) for seed in range(2)]
    settings = {"at": torch.tensor([0.0, 1.0]), "solve": True, "bias": kept}
    found = interpolation(held[0], x, y, other=held[1], **settings)
    plain = [release(copy.deepcopy(net)) for net in held]
    expected = interpolation(plain[0], x, y, other=plain[1], **settings)
    assert_close(found.solved, expected.solved)
    assert_close(found.losses, expected.losses)
    assert nn.utils.parametrize.is_parametrized(held[0][2])


def test_networks_on_the_way_stay_held_and_can_be_aligned():
    x, y = data()
    one, two = (length_scale(dense(2, 6, 1, seed=seed), 1.3, bias="normalised") for seed in (0, 1))
    middle = length_scale(dense(2, 6, 1), 1.3, bias="normalised")
    ends = one.state_dict(), two.state_dict()
    middle.load_state_dict({k: (ends[0][k] + ends[1][k]) / 2 for k in ends[0]})
    found = interpolation(one, x, y, other=two, at=torch.tensor([0.0, 0.5, 1.0]))
    assert_close(found.losses[1], (middle(x) - y).square().mean().detach())
    other = length_scale(shuffled(dense(2, 6, 1)), 1.3, bias="normalised")
    found = interpolation(one, x, one(x).detach(), other=other, align=True)
    assert found.barrier < 1e-20
    assert found.similarity == pytest.approx(1)


def test_networks_held_otherwise_or_made_from_several_tensors_are_refused():
    x, y = data()
    one, two = (length_scale(dense(2, 6, 1), sigma) for sigma in (1.0, 2.0))
    for other in (two, two.state_dict()):
        with pytest.raises(ValueError, match=r"other must be held at what holds the model .*: bui"):
            interpolation(one, x, y, other=other)
    one, two = (activation_scale(dense(2, 6, 1), scale).eval() for scale in (1.0, 2.0))
    with pytest.raises(ValueError, match=r"other must be held at .*one scale of activations\)"):
        interpolation(one, x, y, other=two)
    with pytest.raises(ValueError, match="start must be held at what holds the model"):
        interpolation(one, x, y, start=two.state_dict(), other=one)
    norm = nn.utils.parametrizations.weight_norm
    one, two = (dense(2, 6, 1, seed=seed) for seed in range(2))
    for net in (one, two):
        norm(net[0])
        norm(net[2])
        net.eval()
    found = interpolation(one, x, y, other=two, solve=True)
    assert (found.solved <= found.losses * (1 + 1e-12)).all()
    with pytest.raises(UnsupportedModelError, match="weight of layer '0' made from other tensors"):
        interpolation(one, x, y, other=two, align=True)


def test_an_order_that_a_parametrization_does_not_keep_is_refused():
    class Rising(nn.Module):
        def forward(self, weight):
            return weight * torch.arange(1.0, len(weight) + 1).to(weight)[:, None]

    x, y = data()
    one = dense(2, 6, 1)
    nn.utils.parametrize.register_parametrization(one[0], "weight", Rising())
    with pytest.raises(UnsupportedModelError, match="alike in any order of units, found the"):
        interpolation(one.eval(), x, y, other=copy.deepcopy(one), align=True)


def test_one_network_has_no_way():
    x, y = data()
    found = interpolation(dense(2, 3, 1), x, y)
    assert isinstance(found, NotApplicable)
    assert "needs a second network" in found.status


def test_bad_input_is_refused(unchecked):
    x, y = data()
    net, other = dense(2, 3, 1), dense(2, 3, 1, seed=1)
    broken = copy.deepcopy(other)
    broken[0].bias.data[0] = torch.nan
    cases = [
        (
            {"other": dense(2, 3, 3, 1)},
            "must have the parameters of the model, found that '4.bias'",
        ),
        ({"other": dense(2, 4, 1)}, r"must have the shapes of the model, found \(4, 2\) for '0.w"),
        ({"other": broken}, "other must be finite, found NaN or Inf in '0.bias'"),
        ({"at": torch.tensor([0.0, 1.0, 0.5])}, "at must have at least two increasing positions"),
        ({"bias": "none"}, "bias must be one of 'free', 'zero', 'kept', found 'none'"),
        ({"solve": True, "loss": "bce_logits"}, "needs the loss 'mse', found 'bce_logits'"),
        (
            {"solve": True, "solve_on": (x, torch.cat([y, y], dim=1))},
            "as many numbers as the last layer has outputs, 1, found 2",
        ),
    ]
    for settings, text in cases:
        with pytest.raises(ValueError, match=text):
            interpolation(net, x, y, **{"other": other, **settings})


class Upside(nn.Module):
    """A network whose last layer is registered first, and may be used twice."""

    def __init__(self, seed, times=1):
        super().__init__()
        first, _, last = dense(2, 6, 6 if times > 1 else 1, seed=seed)
        self.out, self.hidden, self.times = last, first, times
        self.eval()

    def forward(self, x):
        x = self.hidden(x).tanh()
        for _ in range(self.times):
            x = self.out(x)
        return x


def test_the_last_layer_is_the_one_that_is_called_last():
    x, y = data()
    one, two = (Upside(seed) for seed in range(2))
    chains = [nn.Sequential(net.hidden, nn.Tanh(), net.out).eval() for net in (one, two)]
    found = interpolation(one, x, y, other=two, solve=True)
    expected = interpolation(chains[0], x, y, other=chains[1], solve=True)
    assert_close(found.solved, expected.solved)
    many = y.expand(-1, 6)
    with pytest.raises(UnsupportedModelError, match="that is used once, found it used 2 times"):
        interpolation(Upside(0, 2), x, many, other=Upside(1, 2), solve=True)


def test_networks_that_do_not_end_in_a_linear_layer_cannot_be_solved():
    x, y = data()
    bent = nn.Sequential(nn.Linear(2, 1), nn.Tanh()).double().eval()
    with pytest.raises(UnsupportedModelError, match="found other operations after it"):
        interpolation(bent, x, y, other=copy.deepcopy(bent), solve=True)
    bare = nn.Sequential(nn.Conv1d(1, 1, 2), nn.Flatten()).double().eval()
    with pytest.raises(UnsupportedModelError, match="ends in a linear layer, found none"):
        interpolation(bare, x[:, None], y, other=copy.deepcopy(bare), solve=True)
