"""The analyses of the two-dimensional networks, against shapes that are known."""

import numpy as np
import pytest
import torch

from inscape.lab import Record
from inscape.lab.statistics import proportion_of
from inscape.models import mlp
from inscape.papers.sattelberg import _toy, figure_6_4, figure_7_5
from inscape.papers.sattelberg import cross_sections as figure_6_12
from inscape.papers.sattelberg import deep_circle as figure_6_5
from inscape.papers.sattelberg import deep_circle as figure_7_2
from inscape.papers.sattelberg import settling_layers as settling
from inscape.papers.sattelberg._planes import Cells, boundary, packed


def directions(degrees, radius=1.0):
    angle = np.radians(np.asarray(degrees, dtype=float))
    return radius * np.stack([np.cos(angle), np.sin(angle)], 1)


def record(values, **settings) -> Record:
    return Record(
        schema=1,
        experiment="sattelberg/toy",
        scale="smoke",
        key="0",
        settings=settings,
        data="none",
        values=values,
        claims={},
        provenance={},
    )


def hexagon_net() -> torch.nn.Sequential:
    """Return three units with lines at distance 0.3, 120 degrees apart, that point outwards."""
    model = mlp(2, 3, 1)
    model[0].weight.data = torch.from_numpy(directions([90, 210, 330])).float()
    model[0].bias.data = torch.full((3,), -0.3)
    model[2].weight.data = torch.full((1, 3), -1.0)
    model[2].bias.data = torch.full((1,), 0.3)
    return model


def test_the_hexagon_of_the_dissertation_is_one():
    cells = Cells.of(packed(_toy.cut(hexagon_net())))
    assert figure_6_4.centre_and_hexagon(cells.regions[:, 0, :2])
    assert figure_6_4.closed_sides(boundary(cells)) == 6


@pytest.mark.parametrize(
    "slopes",
    [
        directions(range(0, 360, 60)),  # no centre
        np.concatenate([np.full((1, 2), 0.3), directions(range(0, 360, 60))]),  # centre not flat
        np.concatenate([np.zeros((1, 2)), directions([0, 20, 120, 180, 240, 300])]),  # uneven
        np.concatenate([np.zeros((1, 2)), directions([0, 31, 62, 93, 124, 155])]),  # one side
    ],
)
def test_other_shapes_are_no_hexagon(slopes):
    assert not figure_6_4.centre_and_hexagon(slopes)


def test_open_boundaries_have_no_sides():
    assert figure_6_4.closed_sides(np.array([[[-1.0, 0.0], [1.0, 0.0]]])) == 0
    assert figure_6_4.closed_sides(np.zeros((0, 2, 2))) == 0


def test_triangle_needs_three_units_around_the_centre():
    lines = directions([90, 210, 330, 10])
    assert figure_6_5.triangle(lines, np.array([-0.3, -0.3, -0.3, 5.0]))
    assert figure_6_5.triangle(2 * lines, np.array([0.6, 0.6, 0.6, 5.0]))
    assert not figure_6_5.triangle(lines, np.array([-0.3, -0.3, 0.3, 5.0]))  # one faces inwards
    assert not figure_6_5.triangle(lines, np.array([-0.3, -0.3, -0.8, 5.0]))  # one is too far
    assert not figure_6_5.triangle(directions([0, 50, 100]), np.full(3, -0.1))
    assert figure_6_5.crossing_lines(lines, np.array([-0.3, -0.3, 0.3, 5.0]))
    assert not figure_6_5.crossing_lines(directions([0, 10, 20]), np.full(3, 0.1))


def test_flat_centre_compares_the_origin_with_the_rest():
    places = np.array([1, 1, 0, 1, 1])
    flat = {"maps": np.array([[0.1, 0.0, 1.0], [1.0, 0.0, 0.0]]), "places": places}
    steep = {"maps": np.array([[0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]), "places": places}
    assert figure_6_5.flat_centre(flat)
    assert not figure_6_5.flat_centre(steep)


def test_clusters_are_chains_of_short_links():
    near = np.array([[0.0, 0, 0], [0.4, 0, 0], [0.8, 0, 0], [10.0, 0, 0]])
    assert figure_7_2.clusters(near) == 2
    assert figure_7_2.clusters(near, link=0.01) == 4
    assert figure_7_2.clusters(near[:1]) == 1


def test_maps_on_the_grid_are_those_of_the_network():
    model = mlp(2, 6, 4, 1, seed=5)
    maps, places = _toy.grid_maps(model.state_dict(), side=21)
    x = _toy.grid(21)
    found = (maps[places][:, :2] * x).sum(1) + maps[places][:, 2]
    torch.testing.assert_close(found, model(x)[:, 0].detach(), atol=1e-6, rtol=1e-5)
    on = torch.cat(_toy.patterns(model.state_dict(), x), 1)
    assert len(maps) == len({tuple(row) for row in on.tolist()})
    assert len(maps) <= _toy.cut(model).cells


def test_grid_has_the_origin_in_its_middle():
    x = _toy.grid()
    assert len(x) == 101**2
    torch.testing.assert_close(x[len(x) // 2], torch.zeros(2), atol=1e-6, rtol=0)


def test_states_are_those_of_the_training():
    run = _toy.trained("circle", [3], n=64, epochs=5, seed=1, checkpoints=5)
    found = _toy.states(run, (0.0, 0.4, 1.0))
    assert list(found) == [0, 4, 10]
    torch.testing.assert_close(found[10], dict(run.model.state_dict()), rtol=0, atol=0)
    x, _ = _toy.points("circle", 64, 1)
    torch.testing.assert_close(_toy.loaded(found[10])(x), run.model(x), rtol=0, atol=0)


def test_share_is_wilsons_interval():
    from scipy.stats import binomtest

    ours = proportion_of([True] * 7 + [False] * 3)
    theirs = binomtest(7, 10).proportion_ci(method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-6)
    assert proportion_of([True] * 5).low < 1


def test_settling_time_is_the_end_of_the_last_difference():
    times = [0.0, 0.25, 0.5, 0.75, 1.0]
    assert settling.settling_time(times, np.array([0.3, 0.01, 0.2, 0.01, 0.0])) == 0.75
    assert settling.settling_time(times, np.array([0.05, 0.01, 0.0, 0.0, 0.0])) == 0.0
    assert settling.settling_time(times, np.array([0.3, 0.3, 0.3, 0.3, 0.0])) == 1.0


def test_later_layers_that_settle_later_are_found():
    def one(delay):
        differs = np.array([[0.5, 0.5, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 0.5 * delay], [0, 0, 0]])
        moved = np.array([[0.1, 0.2, 0.3 + 0.1 * delay]] * 3)
        return record({"times": [0.0, 0.1, 0.5, 1.0], "differs": differs, "moved": moved})

    found = settling.analyse_settling([one(1), one(0)])
    assert found["settled/1"].value == pytest.approx(0.1)
    assert found["settles later"].value == pytest.approx(((1.0 - 0.1) + (0.5 - 0.1)) / 2)
    assert found["moves more"].value == pytest.approx(0.25)


def test_parts_of_the_grid_follow_the_rule():
    parts = figure_6_12.parts(4, 2, 1)
    assert parts == [[0, 0, 0, 0], [1, 1, 1, 1], [1, 2, 3, 3], [3, 3, 3, 3]]
    first = figure_6_12.parts(3, 0, 0)
    assert sum(row.count(figure_6_12.COMPARED) for row in first) == 0


def test_agreement_pairs_networks_once():
    line = np.linspace(0, 1, 5)
    records = [record({"values": v}, width=20, seed=k) for k, v in enumerate([line, line, -line])]
    assert figure_7_5.agreement(records[:2]) == pytest.approx([1.0])
    assert figure_7_5.agreement(records) == pytest.approx([1.0])
    assert figure_7_5.agreement(records[1:]) == pytest.approx([-1.0])


def test_small_xor_network_uses_three_maps():
    values = figure_7_5.cell(2, 1, 0)
    assert len({tuple(dot) for dot in values["dots"]}) == 3
    assert values["accuracy"] == 1.0
