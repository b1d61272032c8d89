"""Tangent kernels of modules that share, fold, route, switch off and count: all were once wrong."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from cases import dense, points
from inscape.errors import UnsupportedModelError
from inscape.kernels import neighbours, tangent_features, tangent_kernel


class Net(nn.Module):
    """Parts, and how they are put together."""

    def __init__(self, forward, **parts):
        super().__init__()
        self._forward = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self._forward(self, x)


def jacobian(model, x):
    """Return the gradient of every output by all trainable parameters, one plain call for each."""
    weights = [p for p in model.parameters() if p.requires_grad]

    def row(y):
        found = torch.autograd.grad(y, weights, retain_graph=True, materialize_grads=True)
        return torch.cat([g.flatten() for g in found])

    return torch.stack([torch.stack([row(y) for y in model(p[None].clone())[0]]) for p in x])


def built(build, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build().double().eval()


def check(model, x, **settings):
    """Hold kernel and features against plain gradients, and the model against what it was."""
    expected, before = jacobian(model, x), dict(model.named_parameters(remove_duplicate=False))
    found = tangent_kernel(model, x, **settings)
    assert_close(found.kernel, torch.einsum("nip,mjp->nmij", expected, expected))
    assert_close(tangent_features(model, x).view_as(expected), expected)
    after = dict(model.named_parameters(remove_duplicate=False))
    assert all(after[name] is p for name, p in before.items())
    copy.deepcopy(model)
    return found


def twice(module, *last):
    return nn.Sequential(module, nn.Tanh(), module, *last)


class Tied(nn.Module):
    """One module under two names, and one weight in two modules."""

    def __init__(self):
        super().__init__()
        self.a, self.c = nn.Conv1d(1, 1, 2), nn.Conv1d(1, 1, 2)
        self.b, self.c.weight = self.a, self.a.weight

    def forward(self, x):
        return self.c(self.b(self.a(x[:, None]).tanh()).tanh()).flatten(1)


SHARED = {
    "convolution": lambda: twice(nn.Conv2d(1, 1, 3, padding=1), nn.Flatten(), nn.Linear(16, 2)),
    "group norm": lambda: nn.Sequential(nn.Flatten(), twice(nn.GroupNorm(2, 16), nn.Linear(16, 2))),
    "RMS norm": lambda: nn.Sequential(nn.Flatten(), twice(nn.RMSNorm(16), nn.Linear(16, 2))),
    "names": lambda: nn.Sequential(nn.Flatten(), Tied(), nn.Linear(13, 2)),
}


@pytest.mark.parametrize("name", SHARED)
def test_modules_that_are_registered_twice(name):
    check(built(SHARED[name]), points(3, 1, 4, 4))


def test_the_model_is_left_alone_where_gradients_cannot_be_mapped():
    def forward(self, x):
        self.last = self.pair(self.again(x, x).tanh(), x)
        return self.last * (1 if self.last.sum().item() < 99 else 2)

    pair = nn.Bilinear(4, 4, 4)
    model, x = built(lambda: Net(forward, pair=pair, again=pair)), points(3, 4)
    expected = jacobian(model, x)
    found = tangent_kernel(model, x)
    assert_close(found.kernel, torch.einsum("nip,mjp->nmij", expected, expected))
    assert dict(found.layers)["pair.weight"] == "dense gradient, sample by sample"
    assert model.pair.weight.requires_grad
    assert model.last.tolist()  # a tensor of a transform that is over has no numbers


def constant(self, x):
    return self.head(x[:, 0]) + self.more(torch.ones(3, 4).to(x))[2]


def made_weights(self, x):
    return functional.linear(x[:, 0], self.head(torch.ones(1, 4).to(x)))


def sequence_first(self, x):
    return self.head(self.more(x.transpose(0, 1)).tanh())[2]


def numbered(self, x):
    return self.head(x + self.places(torch.arange(3))).tanh().sum(1)


def folded(self, x):
    return self.head(self.norm(x.reshape(-1, 4))).tanh().view(len(x), -1)


def frames(self, x):
    return self.conv(x.reshape(-1, 1, 4)).tanh().view(len(x), -1)


def pairs(self, x):
    one, two = self.head(torch.cat([x[:, 0], x[:, 1]])).tanh().chunk(2)
    return one - two


def experts(self, x):
    x = x[:, 0]
    y = x.new_zeros(len(x), 2)
    for part, rows in ((self.head, x[:, 0] > 1), (self.more, x[:, 0] <= 1)):
        if rows.any():
            y = y.index_put((rows,), part(x[rows]))
    return y


def ordered(self, x):
    order = (x[:, 0, 0] > 1).long().argsort(stable=True)
    return self.head(x[order, 0]).tanh()[order.argsort()]


def backwards(self, x):
    return torch.stack(self.head(x[:, 0].flip(0)).tanh().unbind()[::-1])


FORWARDS = {
    "constant": (constant, lambda: {"head": nn.Linear(4, 2), "more": nn.Linear(4, 2)}),
    "made weights": (made_weights, lambda: {"head": nn.Linear(4, 4)}),
    "sequence first": (sequence_first, lambda: {"head": nn.Linear(5, 2), "more": nn.Linear(4, 5)}),
    "numbered": (numbered, lambda: {"head": nn.Linear(4, 2), "places": nn.Embedding(3, 4)}),
    "folded": (folded, lambda: {"head": nn.Linear(4, 2), "norm": nn.LayerNorm(4)}),
    "frames": (frames, lambda: {"conv": nn.Conv1d(1, 2, 3)}),
    "pairs": (pairs, lambda: {"head": nn.Linear(4, 2)}),
    "experts": (experts, lambda: {"head": nn.Linear(4, 2), "more": nn.Linear(4, 2)}),
    "ordered": (ordered, lambda: {"head": nn.Linear(4, 2)}),
    "backwards": (backwards, lambda: {"head": nn.Linear(4, 2)}),
}
ROUTED = ["experts", "ordered"]


@pytest.mark.parametrize("name", sorted(FORWARDS.keys() - ROUTED))
def test_maps_whose_first_axis_may_not_count_the_points(name):
    forward, parts = FORWARDS[name]
    model = built(lambda: Net(forward, **parts()))
    for n in (1, 3, 4):
        check(model, 2 * points(n, 3, 4))


@pytest.mark.parametrize("name", ROUTED)
def test_points_that_rarely_go_another_way(name):
    forward, parts = FORWARDS[name]
    x = points(30, 3, 4)
    x[:, 0, 0] = 0
    x[[6, 11], 0, 0] = 2
    model = built(lambda: Net(forward, **parts()))
    check(model, x)
    check(model, x, memory=3000)  # in blocks, of which some take parameters in other ways


def slope(self, x):
    x = x.requires_grad_()
    return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


INSIDE = {
    "gradients": slope,
    "gradients by torch.func": lambda self, x: torch.vmap(
        torch.func.grad(lambda p: self.net(p)[0])
    )(x),
    "vmap": lambda self, x: torch.vmap(self.net)(x),
    "checkpoints": lambda self, x: self.net[2](checkpoint(self.net[:2], x, use_reentrant=False)),
}


@pytest.mark.parametrize("name", INSIDE)
def test_modules_that_differentiate_themselves(name):
    model = Net(INSIDE[name], net=dense(3, 4, 1, act=nn.Tanh)).eval()
    check(model, points(4, 3))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_callers_may_have_switched_gradients_off(mode):
    model, x = dense(3, 4, 2), points(7, 3)
    wanted = [tangent_kernel(model, x).kernel, neighbours(model, x).cosines]
    with mode():
        found = [tangent_kernel(model, x).kernel, neighbours(model, x).cosines]
        features = tangent_features(model, x * 1)
    assert_close(found, wanted)
    assert_close(features.clone(), jacobian(model, x).flatten(1))


def headed(self, x):
    with torch.no_grad():
        x = self.body(x).tanh()
    return self.head(x)


def test_parameters_behind_no_grad_do_not_count_and_are_told():
    model = built(lambda: Net(headed, body=nn.Linear(3, 4), head=nn.Linear(4, 2)))
    found = check(model, points(5, 3))
    assert found.unreached == ("body.weight", "body.bias")
    assert found.frozen == ()
    assert found.summary().basis == "5 points, 2 parameters; no gradient reaches 2 others"
    assert {name for name, _ in found.layers} == {"head.weight", "head.bias"}


def test_parameters_that_are_detached_are_told():
    parts = {"head": nn.Linear(3, 2), "scale": nn.Parameter(torch.ones(2))}
    model = built(lambda: Net(lambda self, x: self.head(x) * self.scale.detach(), **parts))
    assert check(model, points(5, 3)).unreached == ("scale",)


def test_a_model_without_any_gradient_is_refused():
    model = built(lambda: Net(lambda self, x: (self.head(x) > 0).double(), head=nn.Linear(3, 2)))
    for instrument in (tangent_kernel, tangent_features):
        with pytest.raises(UnsupportedModelError, match="must let gradients reach its parameters"):
            instrument(model, points(5, 3))


def words(rows=10):
    return built(lambda: nn.Sequential(nn.Embedding(rows, 4), nn.Flatten(), nn.Linear(12, 2)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_whole_numbers(dtype):
    x = torch.randint(10, (7, 3), generator=torch.Generator().manual_seed(0)).to(dtype)
    check(words(), x)
    check(words(4), x % 4)
    near = neighbours(words(), x, count=2)
    assert_close(near.distances, torch.cdist(x.double(), x.double()).sort(1).values[:, 1:3])
    asked = neighbours(words(), x, queries=x[:2], count=1)
    assert asked.by_kernel.flatten().tolist() == [0, 1]


def test_whole_numbers_that_the_model_does_not_take():
    x = torch.arange(6).view(2, 3)
    with pytest.raises(TypeError, match=r"floating-point numbers, found torch.int64: use x.float"):
        tangent_kernel(dense(3, 4, 2), x)
    with pytest.raises(UnsupportedModelError, match="IndexError: index out of range"):
        tangent_kernel(words(), x + 9)
    with pytest.raises(ValueError, match=r"x must be a batch of shape \(n, ...\)"):
        tangent_kernel(words(), x[0])
