import copy
from dataclasses import fields

import pytest
import torch
from torch.testing import assert_close

import inscape
from cases import dense, points
from inscape._core import NotApplicable
from inscape.regions.boundary import boundary
from inscape.regions.plane_regions import plane_regions
from inscape.regions.region_evolution import region_evolution
from inscape.training import fit

BOX = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
X = points(20, 2)
Y = (X[:, :1] * X[:, 1:]).sign()


@pytest.fixture(scope="module")
def run():
    return fit(dense(2, 6, 5, 1), X, Y, optimizer="adam", lr=0.05, epochs=12, record=3)


@pytest.fixture(scope="module")
def evolution(run):
    return region_evolution(run.model, X, trajectory=run.trajectory, domain=BOX)


def model_at(run, step):
    model = copy.deepcopy(run.model)
    model.load_state_dict(run.trajectory.at(step))
    return model


def test_every_step_has_the_regions_of_the_network_at_that_step(run, evolution):
    assert evolution.steps.tolist() == [0, 3, 6, 9, 12]
    for place, step in enumerate(evolution.steps.tolist()):
        expected = plane_regions(model_at(run, step), X, domain=BOX)
        result = evolution.regions_at(place)
        for field in fields(expected):
            first, second = getattr(result, field.name), getattr(expected, field.name)
            same = (
                torch.equal(first, second) if isinstance(first, torch.Tensor) else first == second
            )
            assert same, field.name
        assert int(evolution.cells[place]) == expected.cells
        assert int(evolution.regions[place]) == expected.regions


def test_boundary_of_every_step_is_that_of_the_network(run, evolution):
    for place, step in enumerate(evolution.steps.tolist()):
        expected = boundary(model_at(run, step), X, domain=BOX)
        assert_close(evolution.boundary_at(place).points, expected.points)
        assert_close(float(evolution.lengths[place]), expected.length)
    last = evolution.boundary_at(-1).points
    assert len(last)
    assert_close(run.model(last).detach(), torch.zeros(len(last), 1, dtype=torch.float64))


def test_patterns_are_compared_with_the_last_ones_at_places_of_a_grid(run, evolution):
    side = -1 + 2 * (torch.arange(64, dtype=torch.float64) + 0.5) / 64
    at = torch.cartesian_prod(side, side)

    def patterns(model):
        hidden = model[0](at)
        return [hidden > 0, model[2](hidden.relu()) > 0]

    final = patterns(run.model)
    for place, step in enumerate(evolution.steps.tolist()):
        for op, pattern in enumerate(patterns(model_at(run, step))):
            expected = (pattern != final[op]).double().mean()
            assert_close(evolution.differs[place, op], expected)
    assert evolution.samples == 64 * 64
    assert evolution.differs[0].min() > 0
    assert evolution.differs[-1].tolist() == [0.0, 0.0]


def test_a_layer_is_settled_from_when_on_it_stays_near_the_end(run, evolution):
    for op in range(2):
        expected = 12
        for place in reversed(range(5)):
            if evolution.differs[place, op] > evolution.tolerance:
                break
            expected = int(evolution.steps[place])
        assert int(evolution.settled[op]) == expected
    strict = region_evolution(run.model, X, trajectory=run.trajectory, domain=BOX, tolerance=0)
    loose = region_evolution(run.model, X, trajectory=run.trajectory, domain=BOX, tolerance=1)
    assert (strict.settled >= evolution.settled).all()
    assert loose.settled.tolist() == [0, 0]


def test_frozen_first_layer_settles_at_once():
    model = dense(2, 6, 5, 1)
    model[0].requires_grad_(False)
    run = fit(model, X, Y, optimizer="adam", lr=0.05, epochs=6, record=2)
    result = region_evolution(model, X, trajectory=run.trajectory, tolerance=0.0)
    assert result.differs[:, 0].tolist() == [0.0] * 4
    assert int(result.settled[0]) == 0
    assert int(result.settled[1]) > 0


def test_steps_are_spread_or_named(run):
    few = region_evolution(run.model, X, trajectory=run.trajectory, steps=2)
    assert few.steps.tolist() == [0, 12]
    named = region_evolution(run.model, X, trajectory=run.trajectory, steps=[12, 3, 3])
    assert named.steps.tolist() == [3, 12]


def test_rows_summary_and_file(evolution, tmp_path):
    rows = list(evolution.rows())
    assert [row["step"] for row in rows] == [0, 3, 6, 9, 12]
    assert rows[0].keys() >= {"cells", "regions", "boundary", "complete", "differs 0", "differs 1"}
    summary = evolution.summary()
    assert summary.value == rows[-1]["cells"]
    assert "settled at" in summary.basis
    again = inscape.load(evolution.save(tmp_path / "evolution.json"))
    assert torch.equal(again.regions_at(2).vertices, evolution.regions_at(2).vertices)


def test_budget_that_is_reached_is_said(run):
    result = region_evolution(run.model, X, trajectory=run.trajectory, regions=5, steps=2)
    assert not result.complete.any()
    assert result.summary().kind == "lower bound"


def test_model_is_left_as_it_was(run):
    before = copy.deepcopy(run.model.state_dict())
    region_evolution(run.model, X, trajectory=run.trajectory, steps=[0])
    assert all(torch.equal(before[k], v) for k, v in run.model.state_dict().items())


def test_without_a_recorded_training_it_does_not_apply(run):
    answer = region_evolution(run.model, X)
    assert isinstance(answer, NotApplicable)
    assert answer.reason == "it needs a recorded training: pass fit(..., record=...).trajectory"


def test_bad_arguments_are_named(run):
    other = dense(2, 7, 5, 1)
    with pytest.raises(ValueError, match="trajectory must be that of the model, found weights"):
        region_evolution(other, X, trajectory=run.trajectory)
    with pytest.raises(ValueError, match="steps must hold at least one number, found none"):
        region_evolution(run.model, X, trajectory=run.trajectory, steps=[])
    with pytest.raises(ValueError, match="step 4 is no checkpoint, the nearest before it is 3"):
        region_evolution(run.model, X, trajectory=run.trajectory, steps=[4])
    with pytest.raises(ValueError, match="steps must be at least 2"):
        region_evolution(run.model, X, trajectory=run.trajectory, steps=1)
