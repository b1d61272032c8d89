"""Intervals hold what they promise: stopped early, in the middle and late, over 200 seeds.

Functions have closed forms, or so many samples that what is left is no error. Data are drawn anew
for each seed, so that also measures that use all points have something to estimate.
"""

import math
import sys
from dataclasses import fields

import pytest
import torch

from inscape._core import generator
from inscape._core.anytime import batches
from inscape._core.sampling import draw_pair_numbers
from inscape.extrapolation import extrapolation
from inscape.functional.jacobians import MEMORY, probe
from inscape.kernels import tangent_kernel
from inscape.robustness import robustness
from inscape.smoothness import (
    gradient_deflection,
    gradient_norm,
    gradient_path_length,
    path_length,
    rugosity,
)
from inscape.smoothness._length_scale_intervals import bootstrap_interval
from inscape.smoothness._line_moments import Moments, concatenated, line_moments, scale
from inscape.spectra import fisher_rao_norm
from repeated import repeated

SEEDS = 200
#: How many samples a run has when it is stopped early, in the middle, and late.
STOPS = (8, 24, 64)


@pytest.fixture(autouse=True)
def _steps_that_end_where_runs_are_stopped(monkeypatch):
    # the combinations of a kernel are drawn before the first step: they are the same
    monkeypatch.setattr(sys.modules["inscape.kernels.tangent_kernel"], "STEP", STOPS[0])


def gaussian(n, d, seed):
    """Return points of a standard normal distribution."""
    draw = torch.Generator().manual_seed(10_000 + seed)
    return torch.randn(n, d, generator=draw, dtype=torch.float64)


def parabola(x):
    """Return half the squared length of each point: its gradient is the point itself."""
    return x.square().sum(1, keepdim=True) / 2


class Scaled(torch.nn.Module):
    """One weight that scales the only input."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[1.5]], dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight


def of_gradient_norm(seed):
    # the length of a normal vector in the plane
    return gradient_norm.refine(parabola, gaussian(64, 2, seed)), math.sqrt(math.pi / 2)


def of_path_length(seed):
    # along a line the sum over outputs is straight: the distance of two normal points in the plane
    steps = path_length.refine(lambda x: 3 * x, gaussian(400, 2, seed), pairs=64, knots=3)
    return steps, 3 * math.sqrt(math.pi)


def of_gradient_path_length(seed):
    steps = gradient_path_length.refine(parabola, gaussian(400, 2, seed), pairs=64, knots=3)
    return steps, math.sqrt(math.pi)


def of_gradient_deflection(seed):
    # on a chord of length r slopes go from -r^2 / 2 to r^2 / 2 about their mean, evenly: with k
    # knots their deviation is r^2 sqrt((1 - 1 / (k - 1)^2) / 12), and r^2 is 4 on average
    steps = gradient_deflection.refine(parabola, gaussian(400, 2, seed), pairs=64, knots=5)
    return steps, 4 * math.sqrt((1 - 1 / 16) / 12)


def of_rugosity(seed):
    # the slope of x^3 / 6 is x^2 / 2, which steps of length e change by |x + e / 2| or |x - e / 2|
    x = gaussian(64, 1, seed)
    step = 0.1
    e = step * float((x - x.mean()).square().mean().sqrt())
    tail = math.exp(-(e**2) / 8) / math.sqrt(2 * math.pi)
    expected = 2 * tail + e / 2 * math.erf(e / 2 / math.sqrt(2))
    return rugosity.refine(lambda x: x**3 / 6, x, step=step), expected


def of_fisher_rao_norm(seed):
    # f = w x with labels f - 2 and half squares: the derivative along w is 2 w x
    x = gaussian(64, 1, seed)
    return fisher_rao_norm.refine(Scaled().eval(), x, 1.5 * x - 2), 2 * 1.5


def of_heavy_fisher_rao_norm(seed):
    # labels 0: the derivative along w is (w x)^2, whose square has three times its mean squared
    x = gaussian(64, 1, seed)
    return fisher_rao_norm.refine(Scaled().eval(), x, 0 * x), 1.5**2 * math.sqrt(3)


def of_robustness(seed):
    # right where x > 0 and the class is 1 and so on; moved by 1/2 those that are nearer to 0 fall
    x = gaussian(64, 1, seed)
    steps = robustness.refine(
        lambda x: x, x, (x[:, 0] > 0).long(), attack="fgsm", budgets=[0.5], sanity=False
    )
    return steps, 1 - math.erf(0.5 / math.sqrt(2))


def of_tangent_kernel(seed):
    # one linear map of 65 outputs: its gradient by the weights is the point, output by output
    x, model = gaussian(3, 4, seed), torch.nn.Linear(4, 65, bias=False).double().eval()
    steps = tangent_kernel.refine(model, x, outputs="trace", projections=64, seed=seed)
    return steps, math.sqrt(65) * float(x.norm(dim=1).mean())


def of_tangent_kernel_of_few_directions(seed):
    # all outputs are multiples of one: the squares of a random vector have one degree of freedom
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Linear(1, 65, bias=False))
    model = model.double().eval()
    model[1].weight.requires_grad_(False)
    x = gaussian(3, 4, seed)
    steps = tangent_kernel.refine(model, x, outputs="trace", projections=64, seed=seed)
    return steps, float(model[1].weight.norm() * (x.square().sum(1) + 1).sqrt().mean())


#: By name, how to make an estimator for a seed, and the rows of input that one sample takes.
ESTIMATORS = {
    "gradient_norm": (of_gradient_norm, 1),
    "path_length": (of_path_length, 3),
    "gradient_path_length": (of_gradient_path_length, 3),
    "gradient_deflection": (of_gradient_deflection, 5),
    "rugosity": (of_rugosity, 10),
    "fisher_rao_norm": (of_fisher_rao_norm, 1),
    "fisher_rao_norm, heavy tails": (of_heavy_fisher_rao_norm, 1),
    "robustness": (of_robustness, 1),
    "tangent_kernel": (of_tangent_kernel, 3),
    "tangent_kernel, few directions": (of_tangent_kernel_of_few_directions, 3),
}


def samples_in(result):
    """Return how many samples a result has."""
    names = ("variances", "norms", "deflections", "changes", "squares", "squared_norms", "lengths")
    return next(len(getattr(result, name)) for name in names if hasattr(result, name))


def covered(name):
    """Return in which fraction of the runs the interval holds the truth, at each stop."""
    make, rows = ESTIMATORS[name]
    hits = dict.fromkeys(STOPS, 0)
    for seed in repeated(range(SEEDS)):
        with batches(8 * rows):
            steps, truth = make(seed)
            results = {samples_in(result): result for result in steps}
        for stop in STOPS:
            summary = results[stop].summary()
            hits[stop] += summary.low <= truth <= summary.high
    return {stop: count / SEEDS for stop, count in hits.items()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_intervals_cover_the_truth_however_early_a_run_is_stopped(name):
    for stop, fraction in covered(name).items():
        assert 0.90 <= fraction <= 0.99, (stop, fraction)


def test_intervals_of_length_scales_cover_that_of_very_many_lines():
    x, knots = 3 * gaussian(400, 2, 0), 6
    f = probe(lambda x: torch.sin(2 * x[:, :1]) + torch.cos(x[:, 1:]), x)
    ends = draw_pair_numbers(len(x), 200 * SEEDS, seed=0)
    starts = torch.rand(ends.shape[1], generator=generator(1), dtype=torch.float64)
    every = concatenated(list(line_moments(f, x, ends, starts, knots, memory=MEMORY)))
    longest = 10 * float(every.lengths.square().mean().sqrt())
    truth = scale(every.lengths, every.variances, every.slopes, knots, longest)
    for stop in STOPS:
        hits = 0
        for seed in repeated(range(SEEDS)):
            own = slice(200 * seed, 200 * seed + stop)
            lines = Moments(**{part.name: getattr(every, part.name)[own] for part in fields(every)})
            value = scale(lines.lengths, lines.variances, lines.slopes, knots, longest)
            low, high = bootstrap_interval(lines, value, longest, resamples=500, seed=seed)
            hits += low <= truth <= high
        assert 0.90 <= hits / SEEDS <= 0.99, (stop, hits)


#: Labels of queries, and the mean error at the quarter that lies farthest: |x| from 2.25 to 3.
FARTHEST = {
    "real": (lambda q: 0 * q, (3**3 - 2.25**3) / (3 * 0.75)),
    "classes": (lambda q: (q[:, 0].abs() > 2.5).long(), 1 / 3),
}


@pytest.mark.parametrize("kind", FARTHEST)
def test_intervals_of_extrapolation_cover_the_error_far_from_the_data(kind):
    # data on [-1, 1], queries even on [-3, 3]; the errors are x^2, or 1 where |x| <= 2.5
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)[:, None]
    labels, truth = FARTHEST[kind]
    stops, hits = (32, 96, 256), dict.fromkeys((32, 96, 256), 0)
    f = (lambda x: x) if kind == "real" else (lambda x: x.abs() * 0 + 1)
    for seed in repeated(range(SEEDS)):
        draw = torch.Generator().manual_seed(seed)
        queries = 6 * torch.rand(256, 1, generator=draw, dtype=torch.float64) - 3
        ask = {"queries": queries, "answers": labels(queries), "baselines": ()}
        for stop in stops:
            few = {name: part[:stop] if name != "baselines" else part for name, part in ask.items()}
            summary = extrapolation(f, x, labels(x), seed=seed, **few).summary()
            hits[stop] += summary.low <= truth <= summary.high
    for stop, count in hits.items():
        assert 0.90 <= count / SEEDS <= 0.99, (stop, count / SEEDS)
