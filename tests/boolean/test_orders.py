"""Orders by weights: their number, that they differ, and that none is missing."""

from itertools import permutations, product

import numpy as np
import pytest

from inscape.boolean import orders


def lower(weights):
    members = np.arange(1 << len(weights))[:, None] >> np.arange(len(weights)) & 1
    sums = members @ weights
    assert len(set(sums.tolist())) == len(sums)
    return tuple(np.argsort(sums).tolist())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_there_are_as_many_as_is_known(n):
    found = orders.weights(n)
    assert len(found) == (1, 1, 2, 14, 516, 124187)[n - 1]
    assert (found[:, 0] > 0).all()
    assert (np.diff(found, axis=1) > 0).all()


@pytest.mark.parametrize("n", [3, 4, 5])
def test_all_are_different_and_have_no_ties(n):
    found = orders.weights(n)
    assert len({lower(row) for row in found}) == len(found)


def test_orders_of_small_whole_weights_are_all_found():
    # every order of four weights has a representative up to 14; three further draws for five
    known = {lower(row) for row in orders.weights(4)}
    seen = set()
    for row in product(range(1, 15), repeat=4):
        sums = {sum(w for k, w in enumerate(row) if e >> k & 1) for e in range(16)}
        if list(row) == sorted(row) and len(sums) == 16:
            seen.add(lower(np.array(row)))
    assert seen == known


def test_orders_of_random_weights_are_all_found():
    for n in (5, 6):
        tree = orders.trie(n)
        paths = branches(tree, n)
        rng = np.random.default_rng(n)
        for _ in range(200):
            row = np.sort(rng.exponential(size=n))
            assert lower(row)[: 1 << (n - 1)] in paths


def branches(tree, n):
    last = np.flatnonzero(tree.depth == (1 << (n - 1)) - 1)
    rows = orders.weights(n)[tree.order[last]]
    return {tuple(half.tolist()) for half in orders._lower_halves(rows, n)}


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_trie_holds_every_order_once(n):
    tree = orders.trie(n)
    paths, path = [], {}
    for node, (subset, depth) in enumerate(zip(tree.subset, tree.depth, strict=True)):
        path[int(depth)] = int(subset)
        below = [k for k in range(node + 1, len(tree.depth)) if tree.depth[k] <= depth]
        assert tree.after[node] == (below[0] if below else len(tree.depth))
        if depth == (1 << (n - 1)) - 1:
            paths.append(tuple(path[k] for k in range(1 << (n - 1))))
            order = orders.weights(n)[tree.order[node]]
            assert lower(order)[: 1 << (n - 1)] == paths[-1]
    assert len(set(paths)) == len(paths) == len(orders.weights(n))


def test_placements_and_covers():
    for row, order in zip(orders.placements(3), permutations(range(3)), strict=True):
        assert sorted(row) == list(range(8))
        assert row[1] == 1 << order[0]
    for weights in orders.weights(4):
        for low, high in orders.covers(4):
            sums = [sum(w for k, w in enumerate(weights) if e >> k & 1) for e in (low, high)]
            assert sums[0] < sums[1]


@pytest.mark.parametrize("n", [0, 7])
def test_refuses_other_numbers_of_inputs(n):
    with pytest.raises(ValueError, match=f"swaps are exact for 1 to 6 inputs, found {n}: .*bound"):
        orders.weights(n)
