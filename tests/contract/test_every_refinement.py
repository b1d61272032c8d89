"""What every instrument that refines its result must keep."""

from dataclasses import fields
from math import inf

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core import instruments
from inscape._core.anytime import batches, step_within
from inscape.robustness.robustness import UNFINISHED as SENTENCE

REGISTER = {
    name: entry for name, entry in instruments().items() if hasattr(entry.function, "refine")
}
#: Settings with which each takes several steps in little time.
SETTINGS = {
    "active_subspace": {"resamples": 5},
    "boundary": {},
    "effective_length_scale": {"lines": 20, "knots": 5, "resamples": 20},
    "extrapolation": {"points": 40},
    "fisher_rao_norm": {"points": 50},
    "gradient_deflection": {"pairs": 20, "knots": 12},
    "gradient_norm": {"points": 50},
    "gradient_path_length": {"pairs": 20, "knots": 12},
    "hessian_density": {"probes": 4, "steps": 5},
    "hessian_extremes": {"dense": 0, "products": 6},
    "hessian_trace": {"products": 24},
    "grid_regions": {"grid": 16},
    "line_regions": {"pairs": 20},
    "lipschitz": {"points": 20},
    "local_maps": {"points": 40},
    "local_minimum": {"dense": 0, "products": 5},
    "path_length": {"pairs": 20, "knots": 12},
    "plane_regions": {},
    "region_at": {},
    "region_sharing": {"points": 40},
    "robustness": {"points": 40},
    "rugosity": {"points": 30, "directions": 2},
    "saliency": {"points": 40, "steps": 16},
    "slope_variation": {"knots": 201},
    "tangent_kernel": {"outputs": "trace", "projections": 8},
    "total_variation": {"knots": 201},
}
#: The field whose rows are the samples.
SAMPLES = {
    "active_subspace": None,  # of more gradients, and with other points held out
    "boundary": None,  # windows are wider, and each is cut anew
    "effective_length_scale": "variances",
    "extrapolation": None,  # its queries come in their own order: see its own tests
    "fisher_rao_norm": "squares",
    "gradient_deflection": "deflections",
    "gradient_norm": "norms",
    "gradient_path_length": "lengths",
    "hessian_density": "nodes",
    "hessian_trace": "samples",
    "hessian_extremes": None,  # directions, of which the steepest are kept
    "grid_regions": None,  # grids are finer, and each is labelled anew
    "line_regions": "slopes",
    "lipschitz": None,  # chords, of which the steepest is kept
    "local_maps": "values",
    "local_minimum": None,  # ever more samples, which are no part of the result
    "path_length": "lengths",
    "plane_regions": None,  # as boundary
    "region_at": None,  # one point
    "region_sharing": None,  # numbers of regions, in the order in which they are met
    "robustness": "lengths",
    "rugosity": "changes",
    "saliency": "integrated",
    "slope_variation": None,  # points are denser, and lie between those before
    "tangent_kernel": "squared_norms",
    "total_variation": None,  # as slope_variation
}
#: Those that need a piecewise-linear network, whose steps are as short as the consumer asks.
LINEAR = {"boundary", "line_regions", "plane_regions", "region_at", "region_sharing"}
#: Those of a function of one input.
ONE_INPUT = {"slope_variation", "total_variation"}
SAMPLED = [name for name in SAMPLES if SAMPLES[name] is not None]
#: How a result says that its attack has not ended on all points yet.
UNFINISHED = SENTENCE.partition("{")[0]
#: Rows that a trial call may have, before anything is measured.
TRIAL = 4
ROWS = 8


class Counting(nn.Module):
    """A network that keeps the size of the largest batch that it was called with."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.largest = inner, 0

    def forward(self, x):
        if not torch.compiler.is_exporting():
            self.largest = max(self.largest, len(x))
        return self.inner(x)


def case(name):
    """Return a classifier, points that are more than anybody samples, and labels."""
    inputs, act = 1 if name in ONE_INPUT else 3, nn.ReLU if name in LINEAR else nn.Tanh
    x = points(60, inputs)
    outputs = 10 if name == "tangent_kernel" else 2  # it is exact unless they are many
    return Counting(dense(inputs, 8, outputs, act=act)).eval(), x, (x[:, 0] > 0).long()


def steps(name, rows):
    """Return the model and all results of a run whose batches have at most that many rows."""
    model, x, y = case(name)
    with batches(rows), step_within(1e-9 if name in LINEAR else inf):
        results = REGISTER[name].refine(model, x, y, **SETTINGS[name])
        return model, [result for result in results if result is not None]


def test_every_refinement_has_settings_here():
    assert set(REGISTER) == set(SETTINGS) == set(SAMPLES)


@pytest.mark.parametrize("name", REGISTER)
def test_no_batch_is_larger_than_allowed(name):
    model, _ = steps(name, ROWS)
    assert TRIAL <= ROWS
    assert 0 < model.largest <= ROWS


@pytest.mark.parametrize("name", REGISTER)
def test_every_step_has_a_summary_and_there_are_several(name):
    _, results = steps(name, ROWS)
    assert len(results) >= 3
    for result in results:
        summary = result.summary()
        assert summary is not None
        assert summary.basis


@pytest.mark.parametrize("name", REGISTER)
def test_the_last_result_is_that_of_the_plain_call(name):
    _, results = steps(name, ROWS)
    model, x, y = case(name)
    plain = REGISTER[name].measure(model, x, y, **SETTINGS[name])
    assert type(results[-1]) is type(plain)
    for field in fields(plain):
        last, expected = getattr(results[-1], field.name), getattr(plain, field.name)
        if isinstance(expected, torch.Tensor | float):
            torch.testing.assert_close(last, expected)
        else:
            assert last == expected, field.name


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_of_a_stopped_run_are_the_first_of_a_longer_one(name):
    _, results = steps(name, ROWS)
    fine = [result for result in results if _settings(result) == _settings(results[-1])]
    samples = [getattr(result, SAMPLES[name]) for result in fine]
    assert len(samples[0]) < len(samples[-1])
    for few in samples:
        torch.testing.assert_close(few, samples[-1][: len(few)])


def _settings(result):
    """Return how finely each sample is measured: a first answer may be a coarse one."""
    names = ("knots", "directions", "projections")
    how = tuple(getattr(result, name, None) for name in names)
    return *how, any(warning.startswith(UNFINISHED) for warning in getattr(result, "warnings", ()))


@pytest.mark.parametrize("name", SAMPLED)
def test_the_size_of_batches_does_not_change_the_samples(name):
    samples = [getattr(steps(name, rows)[1][-1], SAMPLES[name]) for rows in (ROWS, 1000)]
    torch.testing.assert_close(*samples)


def test_rows_that_are_all_wanted_come_in_their_own_order_at_the_end():
    model, x, y = case("gradient_norm")
    with batches(ROWS):
        *_, last = REGISTER["gradient_norm"].refine(model, x, y, points=60)
    torch.testing.assert_close(last.norms, REGISTER["gradient_norm"].measure(model, x, y).norms)


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_which_results_there_are_does_not_depend_on_how_long_steps_take(name):
    model, x, y = case(name)
    runs = []
    for patience in (1e-9, inf):
        with step_within(patience):
            distinct: list = []
            for result in REGISTER[name].refine(model, x, y, **SETTINGS[name]):
                if result is not None and not any(result is other for other in distinct):
                    distinct.append(result)
        runs.append([(result.summary().value, result.summary().basis) for result in distinct])
    assert runs[0] == runs[1]
    assert len(runs[0]) >= 3
