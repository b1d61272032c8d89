"""Swaps: published values, brute force, symmetries, and linear programmes as a second way."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import inscape
from inscape.boolean import (
    analysis,
    bent,
    boolean_function,
    changes,
    disjunction,
    npn,
    parity,
    random,
    swaps,
    swaps_bound,
    swaps_by_programmes,
    swaps_many,
    table,
)
from inscape.boolean import swaps as swaps_of  # the function, whose module has its name
from inscape.boolean.linear_programs import at_most, contradicts

FACTS = json.loads((Path(inscape.__file__).parent / "papers/sattelberg/published.json").read_text())
CHECK = next(one for one in FACTS["entries"] if one["id"] == "table-3.1")["own_check"]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_histograms_are_those_of_an_independent_enumeration(n):
    found = swaps_many(npn.classes(n), n)
    assert np.bincount(found.swaps).tolist() == CHECK["histogram"][str(n)]


def test_four_inputs_class_by_class():
    numbers = npn.classes(4)
    found = swaps_many(numbers, 4).swaps
    for value, classes in CHECK["n4_classes_by_swaps"].items():
        assert numbers[found == int(value)].tolist() == classes


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_parity_has_as_many_swaps_as_inputs(n):
    assert swaps(parity(n)).swaps == n


@pytest.mark.parametrize("n", [1, 3, 5, 6])
def test_weights_show_the_swaps(n):
    for seed in range(10):
        function = random(n, seed)
        found = swaps(function)
        assert changes(function, found.weights.numpy()) == found.swaps
        assert len({row["at"] for row in found.rows()}) == 1 << n  # no ties at all
        values = [row["value"] for row in found.rows()]
        assert sum(a != b for a, b in itertools.pairwise(values)) == found.swaps


def test_no_random_weights_do_better():
    rng = np.random.default_rng(0)
    for n in (3, 4, 5, 6):
        for seed in range(10):
            function = random(n, seed)
            least = swaps(function).swaps
            for _ in range(100):
                weights = rng.integers(-(10**6), 10**6, n)
                assert changes(function, weights) >= least


def test_functions_made_of_bands_have_no_more_swaps_than_cuts():
    rng = np.random.default_rng(1)
    for n in (3, 4, 5, 6):
        for cuts in (1, 2, 3, 5):
            places = np.argsort(np.argsort(parity(n).points @ rng.normal(size=n)))
            at = np.sort(rng.choice(np.arange(1, 1 << n), cuts, replace=False))
            bits = np.searchsorted(at, places, side="right") % 2
            number = int("".join(map(str, bits)), 2)
            assert swaps(table(number, n)).swaps <= cuts


def test_equal_within_a_class():
    for n in (4, 5, 6):
        numbers = np.array([random(n, seed).number for seed in range(12)], dtype=np.uint64)
        whole = npn.canonical_many(numbers, n)
        np.testing.assert_array_equal(swaps_many(numbers, n).swaps, swaps_many(whole, n).swaps)


def test_threads_change_nothing():
    numbers = npn.classes(4)
    one, two = swaps_many(numbers, 4, threads=1), swaps_many(numbers, 4, threads=2)
    np.testing.assert_array_equal(one.swaps, two.swaps)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert len(swaps_many([], 4).swaps) == 0


def test_chains_bound_from_below():
    found = swaps_many(npn.classes(4), 4)
    assert (found.chains <= found.swaps).all()
    assert (found.chains == found.swaps).mean() > 0.9


@pytest.mark.parametrize("n", [1, 2, 3])
def test_linear_programmes_agree_on_all_classes(n):
    for number in npn.classes(n).tolist():
        second = swaps_by_programmes(table(number, n))
        assert (second.swaps, second.unproved) == (swaps(table(number, n)).swaps, 0)


@pytest.mark.parametrize("number", [414, 1782, 27030, 1650, 24, 863])
def test_linear_programmes_agree_on_four_inputs(number):
    # 414 and 1782 are what the printed list of cases gets wrong (S2)
    second = swaps_by_programmes(table(number, 4))
    assert (second.swaps, second.unproved) == (swaps(table(number, 4)).swaps, 0)
    assert changes(table(number, 4), second.weights) == second.swaps


def test_linear_programmes_refute_one_swap_fewer_with_five_inputs():
    function = table(66537, 5)
    assert swaps(function).swaps == 3
    refuted = at_most(function, 2)
    assert (refuted.weights, refuted.unproved) == (None, 0)


def test_contradictions_are_exact():
    sides = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [1.0, 1.0]])
    assert contradicts(sides, np.array([0.5, 0.5, 0.5, 0.0]), 3)
    assert not contradicts(sides, np.array([0.5, 0.5, 0.4, 0.0]), 3)
    assert not contradicts(sides, np.zeros(4), 3)
    assert not contradicts(sides[::-1].copy(), np.array([0.0, 1.0, 1.0, 1.0]), 1)


@pytest.mark.parametrize("n", [3, 6])
def test_bound_lies_above(n):
    for seed in range(3):
        function = random(n, seed)
        found = swaps_bound(function, tries=300)
        assert found.kind == ("exact" if found.swaps < 2 else "upper bound")
        assert swaps(function).swaps <= found.swaps == changes(function, found.weights.numpy())


def test_bound_of_ten_inputs():
    assert swaps_bound(parity(10), tries=6).weights.tolist() == [1] * 10
    function = bent(10)
    found = swaps_bound(function, tries=60)
    assert changes(function, found.weights.numpy()) == found.swaps < 1023


def test_changes_refuses():
    with pytest.raises(ValueError, match="weights must be 2 integers, one for each input"):
        changes(parity(2), [1, 2, 3])
    with pytest.raises(ValueError, match=r"found \[0.5, 1.0\]: scale and round them"):
        changes(parity(2), np.array([0.5, 1.0]))
    with pytest.raises(ValueError, match="tell inputs of different value apart, found equal sums"):
        changes(parity(2), [0, 1])


def test_changes_of_weights_too_large_for_a_word():
    for weights in ([2**62, 2**62], np.array([2**63, 2**63], dtype=np.uint64)):
        assert changes(parity(2), weights) == 2


def test_many_refuse_what_cannot_be():
    with pytest.raises(ValueError, match=r"from 0 to 2\^16 - 1, found 70000: change the number"):
        swaps_many([70000], 4)
    with pytest.raises(ValueError, match="threads must be at least 1, found 0"):
        swaps_many([1], 4, threads=0)
    assert swaps_many([], 4).weights.shape == (0, 4)


def test_bound_of_none_or_one_is_exact():
    assert swaps_bound(table(0, 8), tries=6).kind == "exact"
    found = swaps_bound(disjunction(8), tries=6)
    assert (found.swaps, found.kind) == (1, "exact")


def test_swaps_refuses_seven_inputs_and_offers_a_bound():
    with pytest.raises(ValueError, match=r"exact for 1 to 6 inputs, found 7: .* take swaps_bound"):
        swaps(parity(7))
    with pytest.raises(ValueError, match=r"exact for 1 to 6 inputs, found 7: .* take swaps_bound"):
        swaps_by_programmes(parity(7))
    with pytest.raises(ValueError, match="tries must be at least 6, found 1"):
        swaps_bound(parity(7), tries=1)


def test_wrong_weights_are_never_given_out(monkeypatch):
    import sys

    module = sys.modules[swaps_of.__module__]
    monkeypatch.setattr(module, "changes", lambda function, weights: 99)
    with pytest.raises(RuntimeError, match="do not give the 2 swaps found for function 6 of 2"):
        swaps(parity(2))


def test_results_are_saved_and_read(tmp_path):
    found = swaps(parity(3))
    again = inscape.load(found.save(tmp_path / "swaps.json"))
    assert again.swaps == 3
    assert torch.equal(again.weights, found.weights)
    assert found.summary().kind == "exact"
    assert again.order.tolist() == found.order.tolist()


def test_network_is_read_as_a_boolean_function():
    def xor(x):
        return 1 - (x.sum(1, keepdim=True)).abs()

    corners = torch.zeros(1, 2)
    found = boolean_function(xor, corners)
    assert (found.number, found.npn_class, found.swaps, found.table) == ("6", "6", 2, parity(2))
    competing = boolean_function(lambda x: torch.cat([-xor(x), xor(x)], 1), corners)
    assert competing.number == "6"
    assert boolean_function(xor, corners, level=5.0).number == "0"


def test_networks_that_are_no_boolean_function():
    wide = boolean_function(lambda x: x[:, :1], torch.zeros(1, 7))
    assert wide.status == (
        "not applicable: it reads the corners of a cube of at most 6 inputs, found 7"
    )
    many = boolean_function(lambda x: x, torch.zeros(1, 3))
    assert many.status.endswith("it supports one output, or two that compete, found 3")


def test_analysis_has_it_all():
    found = analysis(table(1785, 4))
    row = next(found.rows())
    assert (row["class"], row["swaps"], row["degree"]) == ("1785", 5, found.degree)
    assert found.summary().value == 5
