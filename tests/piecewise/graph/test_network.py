"""What may pass as exact: affine row by row, the same each time; and what the reader remembers."""

from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.piecewise import chain, cut, export, two_layer
from inscape.piecewise.graph.matrix_chain import layers
from inscape.piecewise.graph.network import piecewise


class Normed(nn.Module):
    """Two layers with a batch norm that keeps no statistics, or keeps them."""

    def __init__(self, *, tracks: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(2, 3), nn.Linear(3, 1)
        self.norm = nn.BatchNorm1d(3, track_running_stats=tracks)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


class NormedInPlace(Normed):
    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu_())


class Noisy(nn.Module):
    """A layer whose weights are dropped at random: DropConnect."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 3)

    def forward(self, x):
        weight = functional.dropout(self.inner.weight, 0.5)
        return torch.relu(functional.linear(x, weight, self.inner.bias))


def by_line(f, x):
    return cut(export(f, x), x[0], x[1])


READERS = {"piecewise": piecewise, "chain": chain, "two_layer": two_layer, "line": by_line}


def by_all(names):
    """Give every case to the first reader, and one case to each of the others."""
    first, *others = READERS
    names = list(names)
    pairs = [*((first, name) for name in names), *((reader, names[0]) for reader in others)]
    return pytest.mark.parametrize(("reader", "name"), pairs)


def rows(x):
    return x.shape[0]


RANDOM = {
    "dropout": lambda x: functional.dropout(torch.relu(x), 0.5),
    "native_dropout": lambda x: functional.dropout(torch.relu(x).add_(1), 0.5),
    "feature_dropout": lambda x: functional.dropout1d(torch.relu(x)[:, :, None], 0.5).flatten(1),
    "alpha_dropout": lambda x: functional.alpha_dropout(torch.relu(x), 0.5, training=True),
    "randn": lambda x: torch.relu(x) + torch.randn(2, dtype=x.dtype),
    "rand_like": lambda x: torch.relu(x) + torch.rand_like(x),
}

MIXING = {
    "flip": lambda x: torch.relu(x.flip(0)),
    "flip, from the end": lambda x: torch.relu(x.flip(-2)),
    "roll": lambda x: torch.relu(x.roll(1, 0)),
    "roll, of all": lambda x: torch.relu(x.roll(1)),
    "index_select": lambda x: torch.relu(x.index_select(0, torch.arange(rows(x)).flip(0))),
    "pad": lambda x: torch.relu(functional.pad(x, (0, 0, 1, -1))),
    "cumsum": lambda x: torch.relu(x.cumsum(0)),
    "index": lambda x: torch.relu(x[torch.arange(rows(x)).flip(0)]),
    "rot90": lambda x: torch.relu(torch.rot90(x, 2)),
    "cat": lambda x: torch.relu(torch.cat([x, x], 0)),
    "mean": lambda x: torch.relu(x - x.mean(0)),
    "sum": lambda x: torch.relu(x + x.sum(0, keepdim=True)),
    "expand": lambda x: torch.relu(x[:, :1].expand(rows(x), rows(x)).t()[:, :1]),
}

PRODUCTS = {
    "matmul": lambda x: torch.relu(torch.ones(rows(x), rows(x), dtype=x.dtype) @ x),
    "einsum": lambda x: torch.relu(
        torch.einsum("ij,ki->kj", x, torch.ones(rows(x), rows(x), dtype=x.dtype))
    ),
    "mul": lambda x: torch.relu(x * torch.arange(rows(x))[:, None]),
    "div": lambda x: torch.relu(x / rows(x)),
    "where": lambda x: torch.relu(torch.where(torch.arange(rows(x))[:, None] > 1, x, 0.0)),
    "lerp": lambda x: torch.relu(torch.lerp(x, -x, x)),
    "addcmul": lambda x: torch.relu(torch.addcmul(x, x, x)),
    "div, of a tensor": lambda x: torch.relu(x / torch.tensor(rows(x))),
    "cat": lambda x: torch.relu(torch.cat([x, torch.arange(rows(x))[:, None].double()], 1)),
}

ROUNDING = {
    "half": lambda x: torch.relu(x.half().double()),
    "float": lambda x: torch.relu(x.float()).double(),
    "to, at the end": lambda x: torch.relu(x).to(torch.float32),
    "_to_copy, in place": lambda x: torch.relu(x.bfloat16().double()).add_(1),
}


@by_all(RANDOM)
def test_what_draws_at_random_is_refused(reader, name):
    match = f"same values for the same input, but '{name}' draws at random: switch it off"
    with pytest.raises(UnsupportedModelError, match=match):
        READERS[reader](RANDOM[name], points(4, 2))


def test_random_weights_are_refused_with_their_place():
    with pytest.raises(UnsupportedModelError, match="'dropout' in module 'net' draws at random"):
        piecewise(nn.Sequential(OrderedDict(net=Noisy())).double().eval(), points(4, 2))


def test_dropout_that_is_off_or_unused_passes():
    def f(x):
        functional.dropout(x, 0.5)
        x = functional.dropout(torch.relu(x - 0.1), 0.5, training=False)
        return functional.alpha_dropout(functional.dropout(x, 0.0), 0.5)

    x = points(6, 2)
    assert_close(piecewise(f, x).values(x), torch.relu(x - 0.1))


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", [Normed, NormedInPlace])
def test_statistics_of_the_batch_are_refused(read, kind):
    with pytest.raises(UnsupportedModelError, match=r"batch_norm.* in module 'norm'"):
        read(kind(tracks=False).double().eval(), points(4, 2))


def test_statistics_of_the_batch_are_explained():
    with pytest.raises(UnsupportedModelError, match=r"depends on the whole batch: track them\."):
        piecewise(Normed(tracks=False).double().eval(), points(4, 2))


@pytest.mark.parametrize("kind", [Normed, NormedInPlace])
def test_running_statistics_pass(kind):
    f, x = kind(tracks=True).double().eval(), points(6, 2)
    net = piecewise(f, x)
    assert_close(net.values(x, net.patterns(x)), f(x).detach())


@by_all(MIXING)
def test_rows_that_change_their_places_are_refused(reader, name):
    plain = name.partition(",")[0]
    with pytest.raises(UnsupportedModelError, match=f"'{plain}' moves"):
        READERS[reader](MIXING[name], points(4, 2))


@by_all(PRODUCTS)
def test_rows_that_know_of_each_other_are_refused(reader, name):
    plain = name.partition(",")[0]
    with pytest.raises(UnsupportedModelError, match=f"'{plain}'"):
        READERS[reader](PRODUCTS[name], points(4, 2))


@by_all(ROUNDING)
def test_rounding_is_refused(reader, name):
    with pytest.raises(UnsupportedModelError, match=r"'to'|'_to_copy'"):
        READERS[reader](ROUNDING[name], points(4, 2))


def test_rounding_is_explained():
    with pytest.raises(UnsupportedModelError, match=r"found 'to': it rounds: keep one precision"):
        piecewise(ROUNDING["half"], points(4, 2))


@pytest.mark.parametrize("read", [piecewise, by_line])
def test_what_stays_inside_a_row_passes(read):
    def f(x):
        weight = torch.ones(3, 2, dtype=x.dtype)
        x = x.flip(1).roll(1, -1).index_select(1, torch.tensor([1, 0]))
        x = functional.pad(torch.einsum("ij,kj->ik", x, weight), (1, 0)) - x.mean(1, keepdim=True)
        tall = torch.einsum(
            "...i,ji", torch.ones(2, 2, dtype=x.dtype) @ x[:, :2, None], x.new_ones(2, 1)
        )
        x = torch.cat([x, torch.zeros(rows(x), 1, dtype=x.dtype), tall.flatten(1)], 1)
        return torch.relu(x.to(torch.float64) * torch.ones_like(x))

    x = points(5, 2)
    read(f, x)
    net = piecewise(f, x)
    assert_close(net.values(x, net.patterns(x)), f(x))


@pytest.mark.parametrize("dim", [0, -2])
def test_a_softmax_over_the_batch_is_no_activation(dim):
    with pytest.raises(UnsupportedModelError, match="'softmax' is neither affine nor known"):
        chain(lambda x: torch.softmax(x, dim), points(4, 2))
    assert len(chain(lambda x: torch.softmax(2 * x, 1), points(4, 2))) == 1


RETURNS = {
    r"a tuple of 2: wrap it, as in lambda x: model\(x\)\[0\]": lambda x: (x.relu(), x.abs()),
    r"a list of 1: wrap it, as in lambda x: model\(x\)\[0\]": lambda x: [x.relu()],
    r"a dict of 2: wrap it, as in .*model\(x\)\['y'\]": lambda x: {"y": x.relu(), "z": x},
    "3: pass another model": lambda x: 3,
    "None: pass another model": lambda x: None,
}


@by_all(RETURNS)
def test_anything_but_one_tensor_is_refused(reader, name):
    with pytest.raises(UnsupportedModelError, match=f"return one tensor, but it returns {name}"):
        READERS[reader](RETURNS[name], points(4, 2))


def same(net, x):
    """Hold what is read of a network, cached or not, against the network."""
    result = piecewise(net, x)
    assert_close(result.values(x), net(x).detach())
    assert_close(result.values(x, result.patterns(x)), net(x).detach())
    return result


def test_a_network_is_read_once():
    net, x = dense(2, 4, 1), points(5, 2)
    assert piecewise(net, x).program.nodes is piecewise(net, x[:2]).program.nodes


def test_global_hooks_are_seen():
    net, x = dense(2, 4, 1), points(5, 2)
    same(net, x)
    for register, hook in (
        (register_module_forward_hook, lambda m, _, y: 2 * y if isinstance(m, nn.Linear) else None),
        (register_module_forward_pre_hook, lambda m, x: 3 * x[0] if m is net[2] else None),
    ):
        handle = register(hook)
        try:
            same(net, x)
        finally:
            handle.remove()
        same(net, x)


def test_another_forward_of_a_class_is_seen(monkeypatch):
    net, x = dense(2, 4, 1), points(5, 2)
    same(net, x)
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: x.abs())
    same(net, x)


def test_other_widths_are_seen():
    net, x = dense(2, 4, 1), points(5, 2)
    same(net, x)
    for tensor, kept in ((net[0].weight, 3), (net[0].bias, 3)):
        tensor.data = tensor.data[:kept]
    net[2].weight.data = net[2].weight.data[:, :3]
    result = layers(same(net, x))
    assert result is not None
    assert result.weights[0].shape == (1, 3)


LOW, HIGH = torch.tensor([0.3, 0.2]).double(), torch.tensor([-0.2, 0.6]).double()

KINKED = {
    "relu": torch.relu,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "prelu": lambda x: functional.prelu(x, torch.tensor([0.1, 0.3]).double()),
    "abs": torch.abs,
    "relu6": lambda x: functional.relu6(9 * x),
    "hardtanh": functional.hardtanh,
    "threshold": lambda x: functional.threshold(x, 0.1, 0.1),
    "clamp": lambda x: x.clamp(-0.1, 0.7),
    "clamp, from below": lambda x: x.clamp(min=0.1),
    "clamp, from above": lambda x: x.clamp(max=0.1),
    "clamp, the wrong way round": lambda x: x.clamp(0.7, -0.1) + x,
    "clamp, by tensors": lambda x: x.clamp(LOW, HIGH),
    "maximum": lambda x: torch.maximum(x, x.flip(1) / 2),
    "minimum": lambda x: torch.minimum(x, HIGH),
    "max": lambda x: torch.max(x.flip(1), HIGH),
    "min": lambda x: torch.min(LOW, x),
    "max_pool1d": lambda x: functional.max_pool1d(torch.cat([x, -x], 1)[:, None], 2, 1)[:, 0],
    "max_pool2d": lambda x: functional.max_pool2d(
        torch.cat([x, -x], 1).reshape(-1, 1, 2, 2), 2, 1, 1
    ).flatten(1),
}


@pytest.mark.parametrize("name", KINKED)
def test_piecewise_linear_operations_give_what_torch_gives(name):
    f, x = KINKED[name], points(50, 2)
    net = piecewise(f, x)
    assert_close(net.values(x, net.patterns(x)), f(x))


@pytest.mark.parametrize("name", KINKED)
def test_one_pattern_does_for_many_points(name):
    f, x = KINKED[name], points(6, 2)
    net = piecewise(f, x)
    near = x[:1] + 1e-9 * points(40, 2)
    pattern = net.patterns(x[:1])
    assert_close(net.values(near, pattern), f(near))
    many = [choice.expand(len(x), -1) for choice in pattern]
    assert_close(net.values(x, pattern), net.values(x, many))


@pytest.mark.parametrize("name", ["max", "min", "clamp, the wrong way round"])
def test_the_kinks_of_a_line(name):
    f, x = KINKED[name], points(2, 2)
    result = cut(export(f, x), x[0], x[1])
    t = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
    expected = f(torch.lerp(x[0], x[1], t))
    right = torch.searchsorted(result.t, t[:, 0]).clamp(1, len(result.t) - 1)
    share = ((t[:, 0] - result.t[right - 1]) / (result.t[right] - result.t[right - 1]))[:, None]
    assert_close(torch.lerp(result.values[right - 1], result.values[right], share), expected)


def test_places_of_the_largest_are_refused():
    def f(x):
        largest, place = x.max(1)
        return largest + place

    with pytest.raises(UnsupportedModelError, match="found 'max'"):
        piecewise(f, points(4, 2))
