"""Networks of images, their coefficients, and the closest three images."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape._core.sampling import generator
from inscape.errors import DataError
from inscape.lab.store import Record
from inscape.models.image_nets import image_net
from inscape.papers.sattelberg import _closest, _images, figure_6_3
from inscape.papers.sattelberg import image_networks as table_6_1


def record(settings: dict[str, Any], values: dict[str, Any]) -> Record:
    return Record(
        experiment="sattelberg/table-6.1",
        scale="laptop",
        key="",
        settings=settings,
        data="",
        values=values,
        claims={},
        provenance={},
    )


def test_images_are_resized_repeated_and_normalised():
    given = _images.prepared("digits:n=50")
    assert given.x.shape == (50, 3, 32, 32)
    assert_close(given.x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    assert_close(given.x.std((0, 2, 3)), torch.ones(3), atol=1e-5, rtol=0)
    assert_close(given.x[:, 0], given.x[:, 2])
    small = _images.raw("digits:n=50").x
    large = _images.resized(small)
    assert_close(large.mean((1, 2, 3)), small.mean((1, 2, 3)))  # 8 x 8 to 32 x 32 keeps the mean
    assert _images.resized(large).shape == large.shape


def test_too_few_images_are_a_matter_of_data():
    with pytest.raises(DataError, match=r"digits:n=5000 needs files that are not here: n must be"):
        _images.raw("digits:n=5000")
    with pytest.raises(DataError, match=r"digits:n=5,n_test=0 must have test images, found none"):
        _images.prepared("digits:n=5,n_test=0")


def test_training_is_repeated_bit_by_bit_and_copies_differ():
    first, again, other = (
        _images.trained("simple", "sgd", "digits:n=64", 1, copy) for copy in (1, 1, 2)
    )
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)
    )
    assert not torch.equal(first[0].weight, other[0].weight)
    assert first[0].weight.is_contiguous()


def test_layout_in_memory_changes_nothing_but_rounding():
    model = image_net("complex", seed=3)
    x = torch.randn(4, 3, 32, 32, generator=generator(0))
    before = model(x)
    _images._lay_out(model, torch.channels_last)
    assert_close(model(x), before)


def test_coefficients_are_finite_differences():
    model = image_net("simple", seed=1)
    x = torch.randn(3, 32, 32, generator=generator(1), dtype=torch.float64)
    found = _images.coefficients(model, x)
    assert found.shape == (10, 32, 32)
    double = image_net("simple", seed=1).double()
    for i, j in ((0, 0), (7, 19), (31, 4)):
        step = torch.zeros_like(x)
        step[:, i, j] = 1e-6  # all three channels at once
        with torch.no_grad():
            slope = (double((x + step)[None]) - double((x - step)[None]))[0] / 2e-6
        assert_close(found[:, i, j], slope, rtol=1e-6, atol=1e-8)


def test_linear_coefficients_are_the_weights():
    model = image_net("linear", seed=2)
    found = _images.coefficients(model, torch.zeros(3, 32, 32))
    assert_close(found, model[1].weight.detach().double().reshape(10, 3, 32, 32).sum(1))


def test_accuracy():
    x = torch.zeros(3, 3, 32, 32)
    x[:, 0, 0, :3] = torch.eye(3)
    first = nn.Sequential(nn.Flatten(), nn.Linear(3072, 3, bias=False))
    with torch.no_grad():
        first[1].weight.copy_(torch.eye(3, 3072))
    assert _images.accuracy(first, x, torch.tensor([0, 1, 1])) == pytest.approx(2 / 3)


def test_jaggedness_in_closed_form():
    chess = np.indices((6, 6)).sum(0) % 2 * 2.0 - 1
    assert figure_6_3.jaggedness(chess) == pytest.approx(2 * 2 * 6 * 5 / 36)
    assert figure_6_3.jaggedness(3 * chess) == figure_6_3.jaggedness(chess)
    assert figure_6_3.jaggedness(np.ones((4, 4))) == 0
    assert np.isnan(figure_6_3.jaggedness(np.zeros((4, 4))))


def test_share_near_ink():
    image = np.zeros((9, 9))
    image[4, 4] = 1.0
    assert figure_6_3.near_ink(image, margin=1).sum() == 9
    assert figure_6_3.near_ink(image, margin=0).sum() == 1
    corner = np.zeros((9, 9))
    corner[0, 0] = 1.0
    assert figure_6_3.near_ink(corner, margin=2).sum() == 9
    assert figure_6_3.on_ink(image, np.ones((10, 9, 9))) == pytest.approx(25 / 81)


def test_jagged_ratio_pairs_outputs_of_one_copy():
    flat = np.ones((10, 4, 4)) + np.arange(4) * 0.1
    image = np.ones((4, 4))
    rows = [
        record(
            {"data": "mnist:n=60000", "net": "dense", "copy": copy, "optimizer": by},
            {"coefficients": c, "image": image},
        )
        for copy in (1, 2)
        for by, c in (("sgd", flat), ("adamw", np.where(np.indices((4, 4)).sum(0) % 2, 1.0, -flat)))
    ]
    found = figure_6_3.analyse(rows)
    assert found["jagged/dense"].n == 2  # the outputs of one network are one unit
    assert found["jagged/dense"].low > 1
    assert found["on ink/dense"].value == 1


def test_gaps_of_accuracies():
    levels = {"linear": 80.0, "dense": 90.0, "simple": 94.0, "complex": 96.0}
    rows = [
        record(
            {"data": "mnist:n=60000", "net": net, "copy": copy, "optimizer": by},
            {"accuracy": level + copy * (net == "dense"), "tested": 10_000},
        )
        for net, level in levels.items()
        for copy in (1, 2)
        for by in ("sgd", "adamw")
        if net != "linear" or copy == 1
    ]
    found = table_6_1.analyse_accuracy(rows)
    assert found["mnist: dense - linear"].value == pytest.approx(11.5)
    assert found["mnist: convolutional - dense"].value == pytest.approx(3.5)
    assert found["mnist/sgd/linear/1"].se == pytest.approx(0.4)


def test_printed_table_is_that_of_the_facts():
    from inscape.lab.catalogue import paper_facts

    entries = {entry["id"]: entry for entry in paper_facts("sattelberg")["entries"]}
    rows = {row[0]: tuple(row[1:]) for row in entries["table-6.1"]["rows"]}
    for (net, copy), numbers in table_6_1.PRINTED.items():
        assert rows[net if net == "linear" else f"{net} {copy}"] == tuple(numbers)


@pytest.mark.parametrize("seed", range(5))
def test_closest_triple_is_that_of_all_triples(seed: int, monkeypatch):
    monkeypatch.setattr(_closest, "BLOCK", 7)
    x = torch.rand(40, 3, generator=generator(seed))
    found, size = _closest.closest_triple(x)
    sizes = {t: _closest.perimeter(x[list(t)].double()) for t in combinations(range(40), 3)}
    best = min(sizes, key=sizes.__getitem__)
    assert tuple(found) == best
    assert size == pytest.approx(sizes[best])


def test_closest_triple_beyond_nearest_neighbours():
    """Three points at distance 1 are the best, though each has two others that are nearer."""
    x = torch.zeros(9, 9)
    x[:3, :3] = torch.eye(3) / 2**0.5
    for k in range(3):
        for j in range(2):
            x[3 + 2 * k + j] = x[k]
            x[3 + 2 * k + j, 3 + 2 * k + j] = 0.9
    assert set(_closest._nearest(x, 2)[0].tolist()) == {3, 4}
    found, size = _closest.closest_triple(x)
    assert found == [0, 1, 2]
    assert size == pytest.approx(3)


def test_plane_keeps_distances():
    a, b, c = torch.rand(3, 20, generator=generator(0), dtype=torch.float64)
    places, directions = _closest.plane(a, b, c)
    assert_close(torch.pdist(places), torch.pdist(torch.stack([a, b, c])))
    assert_close(directions @ directions.T, torch.eye(2, dtype=torch.float64))
    assert places[0].tolist() == [0, 0]
