"""Sizes of summands against absolute values, and patterns that rounding cannot decide."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.piecewise.graph.matrix_chain import layers
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.evaluation import settled_patterns
from inscape.piecewise.lines.rounding import with_sizes


def each(x):
    return torch.arange(len(x))


def test_sizes_of_a_chain_are_those_of_its_matrices():
    f, x = dense(3, 7, 5, 2), points(6, 3)
    net = piecewise(f, x)
    chain = layers(net)
    weight, bias = f[0].weight.detach(), f[0].bias.detach()
    functions, sizes = with_sizes(net, x, 0, each(x))
    assert_close(functions, x @ weight.T + bias)
    assert_close(sizes, x.abs() @ weight.abs().T + bias.abs())
    group = torch.tensor([0, 0, 0, 1, 1, 2])
    hidden = torch.relu(functions)
    largest = torch.stack([hidden[group == k].amax(0) for k in range(3)])
    functions, sizes = with_sizes(net, x, 1, group)
    assert_close(functions, net.functions(x, 1))
    weight, bias = (torch.from_numpy(part[0]).abs() for part in (chain.weights, chain.biases))
    assert_close(sizes, largest @ weight.T + bias)


def test_fixed_patterns_are_followed_beyond_their_cells():
    f, x = dense(3, 7, 5, 2), points(6, 3)
    net = piecewise(f, x)
    patterns = [pattern.flip(0) for pattern in net.patterns(x)]
    for at in (0, 1):
        result = with_sizes(net, x, at, each(x), patterns)[0]
        assert_close(result, net.functions(x, at, patterns))


def normed():
    norm = nn.BatchNorm1d(4).double()
    for p in (norm.running_mean, norm.weight.data, norm.bias.data):
        p.copy_(points(4, seed=int(p.sum()) + 5))
    norm.running_var.copy_(1 + points(4).square())
    return nn.Sequential(norm, nn.ReLU()).eval()


def sizes_of_norm(x, f):
    norm = f[0]
    scale = norm.weight.abs() / (norm.running_var + norm.eps).sqrt()
    return (x.abs() + norm.running_mean.abs()) * scale + norm.bias.abs()


W = points(4, 4, seed=9)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: torch.relu(x @ W - 2 * x), lambda x, f: x.abs() @ W.abs() + 2 * x.abs()),
        (lambda x: torch.relu(1 - x), lambda x, f: 1 + x.abs()),
        (lambda x: torch.relu(torch.sub(x, 1, alpha=-3)), lambda x, f: x.abs() + 3),
        (lambda x: torch.relu(-x / -3), lambda x, f: x.abs() / 3),
        (lambda x: x.clamp(min=-2.0), lambda x, f: x.abs() + 2),
        (lambda x: torch.maximum(x, -x), lambda x, f: torch.cat([x.abs()] * 2, 1)),
        (lambda x: torch.relu(x @ torch.exp(W)), lambda x, f: x.abs() @ torch.exp(W)),
        (normed(), sizes_of_norm),
    ],
    ids=["residual", "rsub", "alpha", "neg", "clamp", "maximum", "constants", "norm"],
)
def test_nothing_cancels_in_other_operations(f, expected):
    x = points(5, 4)
    functions, sizes = with_sizes(piecewise(f, x), x, 0, each(x))
    assert_close(sizes, expected(x, f).detach())
    assert (functions.abs() <= sizes * (1 + 1e-12)).all()


def test_convolutions_are_their_matrices():
    f = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.Flatten()).double().eval()
    x = points(4, 2, 4, 4)
    net = piecewise(f, x)
    sizes = with_sizes(net, x, 0, each(x))[1]
    with torch.no_grad():
        for p in f.parameters():
            p.abs_()
        assert_close(sizes, f[0](x.abs()).flatten(1))


def test_ties_but_for_rounding_are_ties():
    t = torch.linspace(-3, 3, 200).double()[:, None]
    for turn in (1.0, 1e9, 1e-9):
        scale = torch.tensor([turn, 1.0])

        def f(x, scale=scale):
            units = torch.stack([0.1 * x[:, 0] - 0.3 * x[:, 1], x[:, 0] + 10], 1)
            return torch.relu(units * scale)

        x = t @ torch.tensor([[3.0, 1.0]]).double()
        net = piecewise(f, x)
        assert net.patterns(x)[0][:, 0].any()  # rounding
        assert settled_patterns(net, x)[0].tolist() == [[0, 1]] * 200
        beside = settled_patterns(net, x + torch.tensor([1e-9, 0.0]))[0]
        assert beside.tolist() == [[1, 1]] * 200


def test_windows_that_rounding_draws_apart_take_the_first():
    x = torch.linspace(-3, 3, 200).double()[:, None] @ torch.tensor([[1.0, 3.0]]).double()
    net = piecewise(lambda x: torch.maximum(0.3 * x[:, :1], 0.1 * x[:, 1:]), x)
    assert net.patterns(x)[0].any()  # rounding
    assert not settled_patterns(net, x)[0].any()
    assert settled_patterns(net, x + torch.tensor([0.0, 1e-9]))[0].all()


def test_what_is_no_doubt_is_the_plain_pattern():
    f, x = dense(3, 20, 20, 1), points(50, 3)
    net = piecewise(f, x)
    for first, second in zip(settled_patterns(net, x), net.patterns(x), strict=True):
        assert torch.equal(first, second)
