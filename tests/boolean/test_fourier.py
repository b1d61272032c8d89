"""Fourier spectra: definitions by brute force, Parseval, invariance within a class."""

import itertools
import math

import numpy as np
import pytest
import torch

from inscape.boolean import disjunction, fourier, metrics, npn, parity, random, table, variable


def slow(function):
    """Return all coefficients by the definition."""
    x, y = function.points, function.values
    found = []
    for members in itertools.product((0, 1), repeat=function.n):
        sign = np.prod(np.where(np.array(members) == 1, x, 1.0), axis=1)
        found.append(float((y * sign).mean()))
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_coefficients_are_those_of_the_definition(n):
    function = random(n, seed=n)
    found = fourier(function)
    torch.testing.assert_close(found.coefficients, torch.tensor(slow(function)).double())
    torch.testing.assert_close(float((found.coefficients**2).sum()), 1.0)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_influence_is_how_often_a_flipped_input_changes_the_output(n):
    function = random(n, seed=n)
    index = np.arange(1 << n)
    flipped = [
        float((function.bits != function.bits[index ^ (1 << (n - 1 - k))]).mean()) for k in range(n)
    ]
    found = fourier(function)
    torch.testing.assert_close(found.influences, torch.tensor(flipped).double())
    torch.testing.assert_close(found.influence, sum(flipped))


def test_closed_forms():
    assert [fourier(variable(1, 3)).coefficients.tolist()[4], fourier(table(0, 3)).degree] == [1, 0]
    for n in range(1, 7):
        found = fourier(parity(n))
        assert (found.degree, found.influence, found.entropy) == (n, n, 0.0)
        torch.testing.assert_close(fourier(disjunction(n)).influence, n / 2 ** (n - 1))
    # S6: the entropy of OR is largest at n = 3 and falls after
    printed = {2: 2.0, 3: 2.22, 4: 1.70, 10: 0.076}
    for n, value in printed.items():
        assert abs(fourier(disjunction(n)).entropy - value) < 0.005


def test_many_are_as_one_by_one_and_equal_within_a_class():
    for n in (3, 5):
        numbers = [random(n, seed).number for seed in range(30)]
        many = metrics(numbers, n)
        whole = metrics(npn.canonical_many(numbers, n), n)
        for name in ("degree", "influence", "entropy"):
            single = [getattr(fourier(table(number, n)), name) for number in numbers]
            np.testing.assert_allclose(many[name], single, atol=1e-12)
            np.testing.assert_allclose(many[name], whole[name], atol=1e-12)
    wide = metrics([parity(8).number, 0], 8)
    assert wide["degree"].tolist() == [8, 0]
    for n in (4, 7):
        assert all(len(values) == 0 for values in metrics([], n).values())


def test_many_refuse_what_cannot_be():
    with pytest.raises(ValueError, match=r"numbers from 0 to 2\^16 - 1, found 65536: change"):
        metrics([1 << 16], 4)
    with pytest.raises(ValueError, match="n must be from 1 to 20 inputs, found 0"):
        metrics([0], 0)


def test_rows_and_summary():
    found = fourier(parity(2))
    assert list(found.rows())[3] == {"set": "x1 x2", "size": 2, "coefficient": -1.0}
    assert next(found.rows())["set"] == "1"
    assert found.summary().value == 2
    assert math.isclose(sum(row["coefficient"] ** 2 for row in found.rows()), 1)
