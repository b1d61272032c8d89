import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import UnsupportedModelError
from inscape.functional import substitution
from inscape.functional.substitution import checked_copy, outputs_with, refuse_unread
from inscape.kernels import tangent_kernel
from inscape.landscape import interpolation
from inscape.pruning import magnitude_pruning, node_pruning
from inscape.spectra import fisher_rao_norm

UNREAD = "must compute with its registered parameters"


class Variable:
    """A value that a layer of another library holds, as Keras does."""

    def __init__(self, value):
        self.value = value


class KerasLike(nn.Module):
    """Registers its parameters, but reads them from variables captured when it was built."""

    def __init__(self):
        super().__init__()
        self.variables = {"w": Variable(points(3, 1)), "b": Variable(points(1, 1, seed=2)[0])}
        for variable in self.variables.values():
            variable.value = nn.Parameter(variable.value)
        self.params = nn.ParameterList(variable.value for variable in self.variables.values())

    def forward(self, x):
        return (x @ self.variables["w"].value + self.variables["b"].value).tanh()


class Closure(nn.Module):
    """Calls a closure over the parameters of the module that was built, not of a copy."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(points(3, 1))
        weight = self.w
        self.call = lambda x: (x @ weight).tanh()

    def forward(self, x):
        return self.call(x)


class HalfRead(nn.Module):
    """Reads one of its two layers from a list that is no part of the module."""

    def __init__(self):
        super().__init__()
        self.first, self.last = dense(3, 4, seed=1), dense(4, 1, seed=2)
        self.layers = [[self.first[0].weight]]

    def forward(self, x):
        return self.last((x @ self.layers[0][0].T).tanh())


class Detached(nn.Module):
    """Lets no gradient reach one of its two parameters."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(points(3, 1)), nn.Parameter(points(3, 1, seed=2))

    def forward(self, x):
        return x @ self.a * (x @ self.b.detach())


X, Y = points(6, 3), points(6, 1, seed=3)


@pytest.mark.parametrize("model", [KerasLike, Closure, HalfRead])
def test_parameters_put_in_that_are_not_read_are_refused(model):
    with pytest.raises(UnsupportedModelError, match=f"{UNREAD}, but values put into it for"):
        fisher_rao_norm(model().eval(), X, Y)


@pytest.mark.parametrize("frozen", [False, True])
def test_copies_that_read_the_original_are_refused(frozen):
    model = Closure().eval().requires_grad_(not frozen)
    other = Closure().eval()
    for call in (
        lambda: interpolation(model, X, Y, other=other),
        lambda: magnitude_pruning(model, X, Y),
        lambda: node_pruning(model, X, Y),
        lambda: checked_copy(model, X),
    ):
        with pytest.raises(UnsupportedModelError, match=f"{UNREAD}, but values given to a copy"):
            call()


def test_copies_that_read_their_own_are_accepted():
    model = KerasLike().eval()  # a deep copy of the variables keeps them the registered ones
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.params[0].neg_()
    found = interpolation(model, X, Y, other=other, at=torch.tensor([0.0, 1.0]))
    expected = [(m(X) - Y).square().mean().item() for m in (model, other)]
    assert_close(found.losses, torch.tensor(expected, dtype=torch.float64))


def test_tangent_kernel_of_parameters_that_cannot_be_put_in_is_right():
    found = tangent_kernel(KerasLike().eval(), X).kernel.squeeze()
    rows = []
    for point in X:
        model = KerasLike()
        model(point[None]).sum().backward()
        rows.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    assert_close(found, torch.stack(rows) @ torch.stack(rows).T)


def test_parameters_without_gradient_that_act_are_refused():
    with pytest.raises(
        UnsupportedModelError, match="let gradients reach its parameters, but 'b' changes"
    ):
        fisher_rao_norm(Detached().eval(), X, Y)


def test_frozen_parameters_and_dead_ones_are_accepted():
    model = dense(3, 4, 1)
    model[0].weight.requires_grad_(False)
    with torch.no_grad():
        model[0].bias.fill_(-1e6)  # no unit is ever on
    assert fisher_rao_norm(model, X, Y).summary().value > 0
    assert fisher_rao_norm(model.requires_grad_(False), X, Y).summary().value > 0


def test_shared_modules_are_filled_once_and_put_back():
    layer = nn.Linear(3, 3).double()
    model = nn.ModuleDict({"one": layer, "two": layer})
    both = nn.Sequential(model["one"], nn.Tanh(), model["two"]).eval()
    weight = layer.weight
    y = outputs_with(both, {"0.weight": 2 * weight.detach(), "0.bias": 0 * layer.bias}, X)
    assert_close(y, (X @ (2 * weight.T)).tanh() @ (2 * weight.T))
    assert layer.weight is weight


def test_the_proof_is_remembered_while_the_model_lives():
    calls = []
    model = dense(3, 4, 1)
    model.register_forward_hook(lambda *_: calls.append(1))
    refuse_unread(model, X)
    first = len(calls)
    refuse_unread(model, X)
    assert len(calls) == first > 0
    held = weakref.ref(model)
    del model
    gc.collect()
    assert held() is None
    assert all(module is not None for module in substitution._checked)


def test_modules_that_cannot_be_copied_are_refused_with_what_was_raised():
    class Uncopied(nn.Linear):
        def __deepcopy__(self, memo):
            raise RuntimeError("one of a kind")

    with pytest.raises(
        UnsupportedModelError, match=r"copy\.deepcopy raised RuntimeError: one of a"
    ):
        checked_copy(Uncopied(3, 1).double().eval(), X)


def test_modules_that_fail_with_other_values_are_refused_with_what_was_raised():
    class Picky(nn.Linear):
        def forward(self, x):
            if not isinstance(self.weight, nn.Parameter):
                raise TypeError("no parameter")
            return super().forward(x)

    with pytest.raises(UnsupportedModelError, match="with them it raised TypeError: no parameter"):
        fisher_rao_norm(Picky(3, 1).double().eval(), X, Y)
