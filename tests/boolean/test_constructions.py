"""Networks written down for Boolean functions: their signs, exactly, on every input."""

from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest
import torch
from torch import nn

from inscape._core import UnsupportedModelError
from inscape.boolean import npn
from inscape.boolean.constructions import (
    binary_weights,
    exact_value,
    narrow_network,
    parity_network,
    projected,
    represents,
    wide_network,
)
from inscape.boolean.line_networks import activation, alternating
from inscape.boolean.truth_table import TruthTable, parity, random

LEAKS = (0.0, 0.1, 0.25)


@cache
def orders(n: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return weights for every order of the inputs that a generic weighted sum can give."""
    points = TruthTable(n, 0).points
    sorted_cone = {}
    for sizes in combinations(range(1, 14), n):
        places = points @ np.array(sizes)
        if len({*places}) == 2**n:
            sorted_cone.setdefault(tuple(np.argsort(places).tolist()), sizes)
    found = [
        tuple(a * b for a, b in zip(moved, signs, strict=True))
        for sizes in sorted_cone.values()
        for moved, signs in product(permutations(sizes), product((-1, 1), repeat=n))
    ]
    return found, np.argsort(np.array(found) @ points.T, axis=1)


def witness(table: TruthTable) -> tuple[int, tuple[int, ...]]:
    """Return the fewest changes of a function over all orders, and weights with so many."""
    weights, order = orders(table.n)
    changes = np.count_nonzero(np.diff(table.bits[order].astype(int)), axis=1)
    return int(changes.min()), weights[int(changes.argmin())]


def hidden(model: nn.Sequential) -> list[int]:
    return [part.out_features for part in model if isinstance(part, nn.Linear)][:-1]


def signs(model: nn.Sequential, table: TruthTable) -> list[int]:
    with torch.no_grad():
        return (model(torch.from_numpy(table.points))[:, 0] > 0).int().tolist()


def right(model: nn.Sequential, table: TruthTable) -> bool:
    """Tell whether both ways of computing, with floats and with fractions, give the function."""
    return signs(model, table) == table.bits.tolist() and represents(model, table)


SMALL = [TruthTable(n, number) for n in (1, 2, 3) for number in range(1 << (1 << n))]


def test_there_are_as_many_orders_as_there_should_be():
    assert [len(orders(n)[0]) for n in (1, 2, 3, 4)] == [2, 8, 2 * 48, 14 * 384]


@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_every_function_of_up_to_three_inputs(leak: float):
    for table in SMALL[:: 1 if leak == 0 else 3]:
        swaps, weights = witness(table)
        wide = wide_network(table, weights, leak=leak)
        narrow = narrow_network(table, weights, leak=leak)
        assert right(wide, table)
        assert right(narrow, table)
        assert hidden(wide) == [max(1, swaps)]
        assert hidden(narrow) == [2] * max(1, swaps - 1)
        assert right(narrow_network(table, leak=leak), table)


@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_every_class_of_four_inputs(leak: float):
    counts = []
    for number in npn.classes(4)[:: 1 if leak == 0 else 4].tolist():
        table = TruthTable(4, number)
        swaps, weights = witness(table)
        counts.append(swaps)
        wide = wide_network(table, weights, leak=leak)
        assert right(wide, table)
        assert hidden(wide) == [max(1, swaps)]
        assert right(narrow_network(table, weights, leak=leak), table)
    if leak == 0:
        assert np.bincount(counts).tolist() == [1, 14, 63, 93, 49, 2]


@pytest.mark.parametrize("leak", [0.0, 0.1])
@pytest.mark.parametrize("n", [5, 6])
def test_random_functions_of_five_and_six_inputs(n: int, leak: float):
    for seed in range(3):
        table = random(n, seed=seed)
        weights = [9.0, -2.0, 4.0, 1.0, -17.0, 35.0][:n]
        changes = projected(table, binary_weights(n)).changes
        assert right(wide_network(table, binary_weights(n), leak=leak), table)
        assert right(narrow_network(table, leak=leak), table)
        assert hidden(narrow_network(table)) == [2] * (changes - 1)
        assert right(wide_network(table, weights, leak=leak), table)


def test_weights_of_a_relu_are_whole_numbers_and_halves():
    table = random(5, seed=4)
    for model in (wide_network(table, binary_weights(5)), narrow_network(table)):
        for part in model.parameters():
            assert torch.equal(part * 2, (part * 2).round())


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize(
    ("n", "width", "depth"), [(1, 1, 1), (2, 2, 1), (4, 2, 2), (3, 3, 1), (5, 3, 2), (8, 2, 3)]
)
def test_parity(n: int, width: int, depth: int, leak: float):
    model = parity_network(n, width=width, depth=depth, leak=leak)
    assert hidden(model) == [width] * depth
    assert right(model, parity(n))


def test_parity_of_more_than_fits_is_refused():
    with pytest.raises(ValueError, match=r"width\^depth = 2\^2 = 4, found 5: make the network"):
        parity_network(5, width=2, depth=2)
    with pytest.raises(ValueError, match="n must be at least 1, found 0"):
        parity_network(0, width=2)


@pytest.mark.parametrize("first", [1, -1])
@pytest.mark.parametrize("leak", LEAKS)
def test_zigzag_has_its_zeros_and_one_slope(first: int, leak: float):
    zeros = [1.0, 2.5, 3.0, 7.0]
    model = alternating(zeros, start=0.0, first=first, leak=leak)
    x = torch.linspace(0, 9, 3601, dtype=torch.float64)
    y = model(x[:, None])[:, 0].detach()
    distance = (x[:, None] - torch.tensor(zeros).double()).abs().amin(1)
    wave = first * (-1) ** (x[:, None] > torch.tensor(zeros)).sum(1) * (1 - leak) * distance
    torch.testing.assert_close(y, wave)


def test_a_wrong_network_does_not_represent():
    xor = TruthTable(2, 6)
    model = wide_network(xor, [1, 1])
    assert represents(model, xor)
    assert not represents(model, TruthTable(2, 7))
    with torch.no_grad():
        model[2].bias -= 1  # now exactly zero where it should be positive
    assert not represents(model, xor)


def test_exact_value_is_a_fraction():
    layer = nn.Linear(2, 1).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.1, 0.25]]))
        layer.bias.fill_(-1)
    leaky = nn.Sequential(layer, nn.LeakyReLU(0.5))
    tenth = Fraction(layer.weight[0, 0].item())
    assert exact_value(leaky, [1, 1]) == (tenth + Fraction(1, 4) - 1) / 2
    message = "supports Linear, ReLU and LeakyReLU, found Tanh"
    with pytest.raises(UnsupportedModelError, match=message):
        exact_value(nn.Sequential(layer, nn.Tanh()), [1, 1])


def test_weights_must_fit_the_function():
    xor = TruthTable(2, 6)
    assert projected(xor, [1, 1]).changes == 2
    with pytest.raises(ValueError, match=r"weights must not put .* on one place, found \[1, -1\]"):
        wide_network(TruthTable(2, 1), [1, -1])
    with pytest.raises(ValueError, match=r"2 finite numbers, one for each input, found \[1\]"):
        wide_network(xor, [1])
    with pytest.raises(ValueError, match=r"2 finite numbers, .* found \[1, nan\]"):
        wide_network(xor, [1, float("nan")])


def test_a_leak_of_one_is_refused():
    with pytest.raises(ValueError, match="leak must be at least 0 and below 1, found 1"):
        activation(1.0)
