"""Random projections stand for all outputs: the same norms on average, intervals that cover."""

import math

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape._core.anytime import batches
from inscape.smoothness import gradient_norm, gradient_path_length, rugosity
from inscape.smoothness._projection import bias, projections_for, unbiased
from repeated import repeated

SEEDS = 200


def many_outputs(c=60, d=5):
    """Return a smooth network with more outputs than are taken whole."""
    return dense(d, 12, c, act=torch.nn.Tanh).eval()


def spectra():
    """Return singular values of Jacobians: of one rank, even, falling, and with one far ahead."""
    falling = 1 / torch.arange(1.0, 31.0, dtype=torch.float64)
    ahead = torch.cat([torch.ones(1), torch.full((20,), 0.1)]).double()
    return [torch.ones(1).double(), torch.ones(30).double(), falling, ahead]


@pytest.mark.parametrize("k", [2, 4, 8])
def test_bias_is_that_of_rank_one_and_less_for_other_spectra(k):
    draw = torch.Generator().manual_seed(0)
    trials = 50_000
    for n, values in enumerate(spectra()):
        square = torch.zeros(trials, k, dtype=torch.float64)
        for value in values:
            drawn = torch.randn(trials, k, generator=draw, dtype=torch.float64)
            square += (value * drawn).square()
        norms = unbiased(square.sqrt()) / values.norm()
        mean, error = float(norms.mean()), float(norms.std()) / trials**0.5
        if n == 0:
            assert abs(1 - mean - bias(k)) <= 5 * error
        assert 1 - bias(k) - 5 * error <= mean <= 1 + 5 * error


def test_bias_has_its_closed_form():
    # two squares: E sqrt((a^2 + b^2) / 2) = sqrt(pi) / 2, and E |a| = sqrt(2 / pi)
    assert bias(2) == pytest.approx(1 - math.sqrt(math.pi) + math.sqrt(2 / math.pi))
    assert bias(0) == 0.0


def test_norms_of_any_size_keep_their_digits():
    norms = points(6, 8).abs()
    for size in (1e-200, 1e200):
        assert_close(unbiased(norms * size) / size, unbiased(norms))
    assert unbiased(torch.zeros(2, 4)).tolist() == [0.0, 0.0]


def test_few_outputs_are_taken_whole_and_many_by_projections():
    x = points(20, 5)
    few, many = gradient_norm(many_outputs(32), x), gradient_norm(many_outputs(33), x)
    assert (few.projections, many.projections) == (0, 8)
    assert few.summary().basis == "20 points"
    assert many.summary().basis == "20 points x 8 random projections"
    whole = gradient_norm(many_outputs(33), x, projections=0)
    assert whole.projections == 0
    assert projections_for(5, 8) == 0  # more vectors than outputs say no more than all of these


def test_one_projection_is_refused():
    with pytest.raises(ValueError, match=r"0 for the whole Jacobian or at least 2 .* found 1"):
        gradient_norm(many_outputs(), points(4, 5), projections=1)


@pytest.mark.parametrize("d", [5, 40])  # the second has a narrowing first layer
def test_projected_norms_are_those_of_the_jacobian_on_average(d):
    f, x = many_outputs(d=d), points(3, d)
    exact = gradient_norm(f, x, projections=0).norms
    runs = torch.stack([gradient_norm(f, x, seed=seed).norms for seed in repeated(range(SEEDS))])
    error = runs.std(0) / SEEDS**0.5
    assert bool(((runs.mean(0) - exact).abs() <= 5 * error + bias(8) * exact).all())


@pytest.mark.parametrize("d", [5, 40])
def test_projected_changes_along_chords_are_right_on_average(d):
    f, x = many_outputs(d=d), points(2, d)
    settings = {"pairs": 400, "knots": 4}
    exact = gradient_path_length(f, x, projections=0, **settings).lengths
    lengths = gradient_path_length(f, x, **settings).lengths
    for length in exact[exact > 1e-9].unique():  # a chord from a point to itself has none
        same = lengths[exact == length]
        error = float(same.std()) / len(same) ** 0.5
        assert abs(float(same.mean() - length)) <= 5 * error + bias(8) * float(length)


def test_projected_rugosity_is_right_on_average():
    f, x = many_outputs(), points(30, 5)
    exact = rugosity(f, x, projections=0).changes
    seeds = range(40)
    runs = torch.stack([rugosity(f, x, seed=seed).changes.mean() for seed in repeated(seeds)])
    # other seeds draw other directions of the steps, too
    whole = [rugosity(f, x, projections=0, seed=seed).changes.mean() for seed in repeated(seeds)]
    error = (runs.var() + torch.stack(whole).var()).sqrt() / len(seeds) ** 0.5
    assert exact.shape == (30,)
    assert abs(runs.mean() - torch.stack(whole).mean()) <= 5 * error + bias(8) * exact.mean()


def test_the_same_vectors_whatever_the_batches():
    f, x = many_outputs(), points(30, 5)
    for measure in (gradient_norm, rugosity):
        with batches(3):
            small = measure(f, x)
        field = "norms" if measure is gradient_norm else "changes"
        assert_close(getattr(small, field), getattr(measure(f, x), field))


@pytest.mark.parametrize("measure", [gradient_norm, gradient_path_length, rugosity])
def test_intervals_cover_the_mean_of_the_whole_jacobians(measure):
    f, x = many_outputs(), points(4000, 5)
    settings = {"pairs": 12, "knots": 3} if measure is gradient_path_length else {"points": 12}
    large = {"pairs": 4000, "knots": 3} if measure is gradient_path_length else {"points": 4000}
    truth = measure(f, x, projections=0, seed=SEEDS, **large).summary().value
    for k in (2, 8):
        results = [measure(f, x, projections=k, seed=s, **settings) for s in repeated(range(SEEDS))]
        covers = [r.summary().low <= truth <= r.summary().high for r in results]
        assert 0.90 <= sum(covers) / SEEDS <= 0.99, k


def test_a_short_batch_begins_with_two_projections():
    f, x = many_outputs(10), points(50, 5)
    with batches(1):
        results = list(gradient_norm.refine(f, x, points=20))
    assert [len(results[0].norms), results[0].projections] == [2, 2]
    assert results[0].summary().low < results[0].summary().high
    assert [len(results[-1].norms), results[-1].projections] == [20, 0]
    counts = [len(result.norms) for result in results]
    assert counts == sorted(counts)
