"""The standard deviation of weights is held, in every scope, through training and out of it."""

import copy
from math import sqrt

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.controls import LengthScale, length_scale, release
from inscape.ensembles import fit_many
from inscape.ensembles.grouping import groups
from inscape.models import mlp
from inscape.training import fit, fit_shallow


def net(seed=0):
    return mlp(3, 8, 5, 1, activation="tanh", dtype=torch.float64, seed=seed)


def task():
    x = points(12, 3)
    return x, x.sum(1, keepdim=True)


def test_every_layer_has_its_standard_deviation():
    model = length_scale(net(), 0.7)
    for layer, inputs in ((model[0], 3), (model[2], 8), (model[4], 5)):
        assert_close(layer.weight.std(), torch.tensor(0.7 / sqrt(inputs), dtype=torch.float64))


@pytest.mark.parametrize(("scope", "dims"), [("row", (1, 2, 3)), ("column", (0, 2, 3))])
@pytest.mark.parametrize("unbiased", [True, False])
def test_rows_and_columns_of_a_convolution(scope, dims, unbiased):
    layer = nn.Conv2d(2, 4, 3, dtype=torch.float64)
    length_scale(layer, 2.0, scope=scope, unbiased=unbiased)
    spread = layer.weight.std(dims, correction=int(unbiased))
    assert_close(spread, torch.full_like(spread, 2.0 / sqrt(18)))


def test_row_scope_without_correction_is_the_equation():
    layer = nn.Linear(6, 4, dtype=torch.float64)
    w = layer.weight.detach().clone()
    length_scale(layer, 0.3, scope="row", unbiased=False)
    for row, held in zip(w, layer.weight, strict=True):
        expected = row * 0.3 / ((row - row.mean()) ** 2).sum().sqrt()
        assert_close(held, expected)


def test_matrix_scope_is_the_released_code():
    layer = nn.Linear(6, 4, dtype=torch.float64)
    w, b = layer.weight.detach().clone(), layer.bias.detach().clone()
    length_scale(layer, 0.3, bias="normalised")
    assert_close(layer.weight, w * 0.3 / (sqrt(6) * w.std()))
    assert_close(layer.bias, b * 0.3 / b.std())


def test_a_single_bias_is_only_multiplied():
    layer = nn.Linear(6, 1, dtype=torch.float64)
    bias = layer.bias.detach().clone()
    assert_close(length_scale(layer, 0.3, bias="normalised").bias, 0.3 * bias)


def test_free_biases_stay_themselves():
    model = net()
    before = model[0].bias
    assert length_scale(model, 0.3)[0].bias is before


@pytest.mark.parametrize("scope", ["matrix", "row", "column"])
def test_gradients_and_their_gradients(scope):
    w = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    held = LengthScale(0.4, scope)
    w.requires_grad_()
    assert torch.autograd.gradcheck(held, w)
    assert torch.autograd.gradgradcheck(held, w)


def test_closed_form_and_plain_operations_agree():
    w = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = torch.linspace(-1, 1, 15, dtype=torch.float64).view(5, 3)
    found = torch.func.grad(lambda w: (LengthScale(0.4)(w) * weights).sum())(w)
    expected = torch.func.grad(lambda w: (w * (0.4 / w.std()) * weights).sum())(w)
    assert_close(found, expected)
    assert_close(torch.vmap(LengthScale(0.4))(w.expand(2, 5, 3))[1], LengthScale(0.4)(w))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_training_keeps_it_and_release_leaves_plain_weights(optimizer):
    model = length_scale(net(), 0.7, bias="normalised")
    x, y = task()
    before = model(x).detach()
    fit(model, x, y, optimizer=optimizer, lr=0.02, epochs=20, momentum=0.0)
    after = model(x).detach()
    assert not torch.allclose(before, after)
    for layer, inputs in ((model[0], 3), (model[2], 8)):
        assert_close(layer.weight.std().item(), 0.7 / sqrt(inputs))
    assert release(model) is model
    assert type(model[0]) is nn.Linear
    assert isinstance(model[0].weight, nn.Parameter)
    assert isinstance(model[0].bias, nn.Parameter)
    assert_close(model(x).detach(), after)
    assert list(model.state_dict()) == list(net().state_dict())  # in their order, too


@pytest.mark.parametrize("bias", ["free", "normalised"])
def test_release_leaves_copies_as_they_are(bias):
    """A copy shares the class that torch made, and takes away what is in it."""
    model, (x, _) = length_scale(net(), 0.7, bias=bias), task()
    before = model(x)
    copied = copy.deepcopy(model)
    plain = release(copy.deepcopy(model))
    assert type(plain[0]) is nn.Linear
    for one in (plain, model, copied, release(model), copied):
        assert torch.equal(one(x), before)
    assert_close(copied[0].weight.std().item(), 0.7 / sqrt(3))


def test_a_tensor_that_layers_share_is_held_at_one_thing():
    def tied():
        one, two = nn.Linear(4, 1), nn.Linear(4, 1)
        two.weight, two.bias = one.weight, one.bias
        return nn.Sequential(one, nn.Linear(1, 4), two).double()

    model, x = length_scale(tied(), 0.5, bias="normalised"), points(5, 4)
    before = model(x)
    release(model)
    assert torch.equal(model(x), before)
    assert model[0].bias is model[2].bias
    model = tied()
    with pytest.raises(ValueError, match="weight that layers share must be held at one thing, fou"):
        length_scale(model, (0.5, 1.0, 2.0))
    assert type(model[0]) is nn.Linear


def test_a_state_of_another_sigma_is_refused(tmp_path):
    model, other = (length_scale(net(), sigma, scope="row") for sigma in (0.5, 2.0))
    torch.save(model.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match=r"must be held as where the state comes from, at {'by'"):
        other.load_state_dict(state)
    other.load_state_dict(dict(state))
    assert_close(other[0].weight, 4 * model[0].weight)
    with pytest.raises(RuntimeError, match=r"'scope': 'row'.*found .*'scope': 'matrix'"):
        length_scale(net(), 0.5).load_state_dict(state)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_forward_mode_and_hessians():
    model, (x, y) = length_scale(mlp(3, 4, 1, dtype=torch.float64), 0.7), task()
    start = {name: p.detach() for name, p in model.named_parameters()}

    def loss(p):
        return (torch.func.functional_call(model, p, (x,)) - y).square().mean()

    found = torch.func.hessian(loss)(start)
    expected = torch.func.jacrev(torch.func.jacrev(loss))(start)
    for one in start:
        for two in start:
            assert_close(found[one][two], expected[one][two])


def test_layers_that_stay_free_are_named():
    model = nn.Sequential(nn.Conv1d(2, 3, 2), nn.ConvTranspose1d(3, 2, 2), nn.BatchNorm1d(2))
    with pytest.warns(UserWarning, match=r"others that stay free: ConvTranspose1d '1'\."):
        length_scale(model, 1.0)


class Own(nn.Module):
    """Layers in the style of a user, one of them before a norm."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv1d(2, 3, 2), nn.InstanceNorm1d(3)
        self.act = nn.Tanh()
        self.last = nn.Conv1d(3, 2, 1)


def test_layers_that_a_norm_scales_back_are_named():
    model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1)).double()
    x = points(20, 2)
    with pytest.warns(UserWarning, match=r"does nothing there, found one behind Linear '0': hold"):
        one = length_scale(copy.deepcopy(model), 0.3).train()
    with pytest.warns(UserWarning, match=r"behind Linear '0':"):
        two = length_scale(copy.deepcopy(model), (3.0, 0.3)).train()
    assert_close(one(x), two(x), rtol=1e-3, atol=1e-3)  # up to the norm's eps: the warning is true
    with pytest.warns(UserWarning, match=r"found one behind Conv1d 'first': hold other layers"):
        length_scale(Own(), 1.0)
    act = nn.Tanh()  # shared, and between the layer and the norm
    length_scale(nn.Sequential(nn.Linear(2, 3), act, nn.Linear(3, 3), act, nn.BatchNorm1d(3)), 1.0)


def test_any_other_optimizer_will_do():
    model, (x, y) = length_scale(net(), 0.7), task()
    run = fit(model, x, y, optimizer=lambda p: torch.optim.RMSprop(p, 0.01), epochs=30)
    assert run.losses[-1] < run.losses[0]
    assert_close(model[2].weight.std().item(), 0.7 / sqrt(8))


def test_state_saves_and_loads(tmp_path):
    x, y = task()
    model = length_scale(net(0), 0.7)
    fit(model, x, y, lr=0.05, epochs=5)
    torch.save(model.state_dict(), tmp_path / "state.pt")
    other = length_scale(net(1), 0.7)
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert torch.equal(model(x), other(x))
    assert torch.equal(copy.deepcopy(model)(x), model(x))


def test_assigned_weights_are_scaled():
    layer = length_scale(nn.Linear(4, 2, dtype=torch.float64), 1.0)
    given = torch.arange(8, dtype=torch.float64).view(2, 4)
    layer.weight = given
    assert_close(layer.weight, given / (2 * given.std()))


def test_many_share_a_stack_and_are_what_each_alone_would_be():
    x = points(4, 2)
    together, alone = (
        [length_scale(mlp(2, 4, 1, dtype=torch.float64, seed=seed), 0.7) for seed in range(2)]
        for _ in range(2)
    )
    members = fit_many(together, x, x[:, :1], epochs=3, backend="stacks")
    assert [choice.members for choice in members.choices] == [(0, 1)]
    for member in members:
        fit(alone[member.index], x, x[:, :1], epochs=3, seed=member.index)
        assert_close(member.model(x), alone[member.index](x))


def test_other_sigmas_do_not_share_a_stack():
    x, y = task()
    models = [length_scale(net(), sigma) for sigma in (0.5, 0.7, 0.5)]
    assert groups(models, [x] * 3, [y] * 3) == [[0, 2], [1]]


def test_each_layer_may_have_its_own():
    model = length_scale(net(), (0.5, 1.0, 2.0))
    spreads = [layer.weight.std().item() for layer in (model[0], model[2], model[4])]
    assert_close(spreads, [0.5 / sqrt(3), 1.0 / sqrt(8), 2.0 / sqrt(5)])


def test_settings_are_shown():
    shown = repr(length_scale(nn.Linear(4, 2), 1.0, bias="normalised"))
    assert "LengthScale(target=0.5, scope='matrix', unbiased=True)" in shown
    assert "Factor(factor=1)" in repr(length_scale(nn.Linear(4, 1), 1.0, bias="normalised"))


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_sigma_must_be_positive(sigma):
    model = net()
    with pytest.raises(ValueError, match=r"sigma must be a finite number above 0, found .*: pass"):
        length_scale(model, sigma)
    assert type(model[0]) is nn.Linear


def test_one_weight_has_no_standard_deviation():
    with pytest.raises(ValueError, match="at least two numbers, found 1 among the weights of the"):
        length_scale(nn.Linear(1, 1), 1.0)
    with pytest.raises(ValueError, match="weights of layer '0' in each row: leave this layer out"):
        length_scale(mlp(1, 4, 1), 1.0, scope="row")


def test_equal_weights_have_none_either():
    model = mlp(3, 4, 1)
    nn.init.constant_(model[2].weight, 0.5)
    with pytest.raises(ValueError, match="weights of layer '2' must differ, found equal ones, who"):
        length_scale(model, 1.0)
    assert type(model[0]) is nn.Linear  # nothing was changed
    nn.init.zeros_(model[0].bias)
    nn.init.normal_(model[2].weight)
    with pytest.raises(ValueError, match="biases of layer '0' must differ"):
        length_scale(model, 1.0, bias="normalised")


def test_words_and_numbers_are_checked(unchecked):
    with pytest.raises(ValueError, match="scope must be one of 'matrix', 'row', 'column'"):
        length_scale(net(), 1.0, scope="all")
    with pytest.raises(ValueError, match="bias must be one of 'free', 'normalised'"):
        length_scale(net(), 1.0, bias="none")
    with pytest.raises(ValueError, match="one for each of the 3 layers, found 2: pass as many"):
        length_scale(net(), (1.0, 2.0))
    for wrong in ("a", None, ["a", 1.0, 1.0], True, [1.0, True, 1.0]):
        with pytest.raises(TypeError, match=r"one number or a sequence of numbers, found .*: pass"):
            length_scale(net(), wrong)
    with pytest.raises(ValueError, match=r"weights that are there, found layer '0' \(LazyLinear\)"):
        length_scale(nn.Sequential(nn.LazyLinear(3)), 1.0)
    model = length_scale(net(), torch.tensor(0.5))
    assert_close(model[0].weight.std().item(), 0.5 / sqrt(3))
    model = net()
    model[0].weight.data[0, 0] = torch.nan
    with pytest.raises(ValueError, match="weights of layer '0' must be finite, found NaN or Inf"):
        length_scale(model, 1.0)


def test_a_model_without_layers_or_held_already_is_refused():
    with pytest.raises(ValueError, match=r"needs a Linear or Conv layer .*, found none in Tanh"):
        length_scale(nn.Tanh(), 1.0)
    with pytest.raises(ValueError, match="weight of layer '0' is made from another tensor already"):
        length_scale(length_scale(net(), 1.0), 2.0)


def test_foreign_parametrizations_stay():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    release(layer)
    assert nn.utils.parametrize.is_parametrized(layer)


def test_fit_shallow_refuses_held_layers():
    x = points(6, 3)
    with pytest.raises(ValueError, match=r"fit_shallow trains an nn.Sequential"):
        fit_shallow(length_scale(dense(3, 4, 1), 1.0), x, x[:, :1], epochs=1)
