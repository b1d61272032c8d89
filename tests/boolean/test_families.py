"""Families of functions: counts that are known, members by brute force, their swaps."""

import itertools

import numpy as np
import pytest

from inscape.boolean import families, formula, npn, swaps_many, table


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_monotone_by_brute_force(n):
    numbers, index = np.arange(1 << (1 << n)), np.arange(1 << n)
    for b in range(n):
        bits = numbers[:, None] >> index[::-1] & 1
        numbers = numbers[(bits <= bits[:, index | 1 << b]).all(1)]
    assert len(numbers) == [3, 6, 20, 168][n - 1]
    assert families.monotone(n).tolist() == np.unique(npn.canonical_many(numbers, n)).tolist()


def test_threshold_classes_are_as_many_as_is_known():
    assert [len(families.threshold(n)) for n in range(1, 6)] == [2, 3, 6, 15, 63]


def test_symmetric_functions_have_as_many_swaps_as_their_counts_change():
    for n in (2, 3, 4, 5):
        numbers = families.symmetric(n)
        assert npn.canonical(table(0, n).number, n) in numbers
        assert swaps_many(numbers, n).swaps.max() == n


def test_read_once_by_formulas():
    found = families.read_once(4).tolist()
    assert npn.canonical(formula("x1 & x2 | x3 & x4").number, 4) in found
    assert npn.canonical(formula("x1 & (x2 | x3 & x4)").number, 4) in found
    assert npn.canonical(formula("x1 & x2 | x1 & x3 | x2 & x3", 4).number, 4) not in found
    assert len(families.read_once(2)) == 3
    assert len(families.read_once(3)) == 5


def test_parities_of_k_inputs_have_k_swaps():
    assert sorted(swaps_many(families.parities(5), 5).swaps.tolist()) == [0, 1, 2, 3, 4, 5]


def test_algebraic_degree_by_brute_force():
    for n in (2, 3, 4):
        for number in npn.classes(n)[:: 1 + 20 * (n == 4)].tolist():
            bits = table(number, n).bits
            degree = 0
            for members in itertools.product((0, 1), repeat=n):
                under = [
                    int("".join(map(str, one)), 2)
                    for one in itertools.product((0, 1), repeat=n)
                    if all(a <= b for a, b in zip(one, members, strict=True))
                ]
                if bits[under].sum() % 2:
                    degree = max(degree, sum(members))
            assert families.algebraic_degrees([number], n)[0] == degree


def test_quadratic_functions_are_those_of_degree_two():
    for n in (2, 3, 4):
        numbers = npn.classes(n)
        small = numbers[families.algebraic_degrees(numbers, n) <= 2]
        assert families.quadratic(n).tolist() == small.tolist()


@pytest.mark.parametrize("n", [0, 7])
@pytest.mark.parametrize(
    "name", ["symmetric", "parities", "monotone", "read_once", "threshold", "quadratic"]
)
def test_refuses_other_numbers_of_inputs(name, n):
    with pytest.raises(ValueError, match=f"families are listed for 1 to 6 inputs, found {n}"):
        getattr(families, name)(n)
