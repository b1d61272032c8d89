"""NPN classes: counts, canonical forms by brute force, and the file in the cache."""

import itertools

import numpy as np
import pytest

from inscape.boolean import _cache as keeping
from inscape.boolean import npn, parity, random, table


def members(number, n):
    """Return the numbers of all functions of a class, slowly."""
    bits = table(number, n).bits
    index = np.arange(1 << n)
    found = set()
    for order in itertools.permutations(range(n)):
        moved = sum((index >> b & 1) << to for b, to in enumerate(order))
        for flips in range(1 << n):
            image = bits[moved ^ flips]
            text = "".join(map(str, image))
            found |= {int(text, 2), int("".join(map(str, 1 - image)), 2)}
    return found


@pytest.mark.parametrize(("n", "count"), [(1, 2), (2, 4), (3, 14), (4, 222)])
def test_classes_are_counted_listed_and_partition_all_functions(n, count):
    numbers = npn.classes(n)
    assert npn.class_count(n) == len(numbers) == count
    assert npn.class_sizes(numbers, n).sum() == 1 << (1 << n)
    np.testing.assert_array_equal(npn.canonical_many(numbers, n), numbers)
    assert (np.diff(numbers.astype(int)) > 0).all()


def test_counts_of_five_and_six_inputs_by_burnside():
    assert npn.class_count(5) == 616126
    assert npn.class_count(6) == 200253952527184


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_canonical_is_the_smallest_of_all_members(n):
    for seed in range(5):
        number = random(n, seed).number
        every = members(number, n)
        assert npn.canonical(number, n) == min(every)
        assert npn.class_sizes([number], n)[0] == len(every)


def test_six_inputs_all_members_have_one_canonical_form():
    function = random(6, seed=1)
    every = [~function, table(int(str(function)[::-1], 2), 6)]  # all inputs negated
    swapped = "".join(str(function)[k] for k in (i >> 5 | (i & 31) << 1 for i in range(64)))
    every.append(table(int(swapped, 2), 6))  # inputs moved round
    smallest = npn.canonical(function.number, 6)
    assert {npn.canonical(one.number, 6) for one in every} == {smallest}
    assert smallest <= min(one.number for one in every)


def test_permuted_keeps_negated_inputs_apart():
    one, other = 0b0001, 0b0100  # and; x2 without x1
    assert npn.canonical(one, 2) == npn.canonical(other, 2)
    first, second, third = npn.permuted([one, other, 0b0010], 2)
    assert first != second == third


def test_class_of_parity_is_itself():
    assert npn.canonical(parity(5).number, 5) == min(parity(5).number, (~parity(5)).number)


@pytest.mark.parametrize("n", [0, 7])
def test_refuses_other_numbers_of_inputs(n):
    with pytest.raises(ValueError, match=f"a canonical form needs 1 to 6 inputs, found {n}"):
        npn.canonical(0, n)
    with pytest.raises(ValueError, match=f"the list of all classes needs 1 to 5 inputs, found {n}"):
        npn.classes(n)


@pytest.mark.parametrize("many", [npn.canonical_many, npn.permuted, npn.class_sizes])
@pytest.mark.parametrize("wrong", [-1, 1 << 16])
def test_refuses_numbers_out_of_range(many, wrong):
    message = rf"functions of 4 inputs must have numbers from 0 to 2\^16 - 1, found {wrong}: change"
    for numbers in ([1, wrong], np.array([1, wrong])):
        with pytest.raises(ValueError, match=message):
            many(numbers, 4)
    assert many([0, 65535], 4).shape == (2,)
    assert many([(1 << 64) - 1, 5], 6).shape == (2,)


def test_list_of_five_inputs_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(keeping, "cache_dir", lambda: tmp_path)
    calls = []

    def listed(n):
        calls.append(n)
        return np.array([0, 1], dtype=np.uint64)

    monkeypatch.setattr(npn, "listed", listed)
    assert npn.classes(5).tolist() == [0, 1] == npn.classes(5).tolist()
    assert calls == [5]
    path = tmp_path / "boolean" / "npn-classes-5.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"?")  # damaged: found anew
    assert npn.classes(5).tolist() == [0, 1]
    assert calls == [5, 5]


def test_list_is_given_even_where_it_cannot_be_kept(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(keeping, "cache_dir", lambda: tmp_path / "file")
    arrays = keeping.cached_arrays("some", lambda: {"numbers": np.arange(3)})
    assert arrays["numbers"].tolist() == [0, 1, 2]
