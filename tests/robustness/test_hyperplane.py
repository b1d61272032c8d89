"""The nearest point of a hyperplane in a box, against other methods."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch.testing import assert_close

from cases import points
from inscape.robustness._hyperplane import nearest

LOW, HIGH = -torch.ones(1, 6, dtype=torch.float64), torch.ones(1, 6, dtype=torch.float64)


def cases(seed):
    """Return points in the box, normals, and gaps that can be met."""
    x = points(25, 6, seed=seed).clamp(-1, 1)
    w = points(25, 6, seed=seed + 1)
    corner = torch.where(w > 0, HIGH, LOW)
    reach = (w * (corner - x)).sum(1)
    return x, w, reach * torch.linspace(0.02, 0.95, 25, dtype=torch.float64)


def bisected(x, w, gap):
    """Return the L2 solution by bisection of the multiplier."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        z = np.clip(x + middle * w, -1, 1)
        low, high = (low, middle) if w @ (z - x) > gap else (middle, high)
    return np.clip(x + high * w, -1, 1) - x


@pytest.mark.parametrize("sign", [1, -1])
def test_l2_equals_bisection(sign):
    x, w, gap = cases(3)
    found = nearest(x, sign * w, sign * gap, "l2", LOW, HIGH)
    for k in range(25):
        expected = bisected(x[k].numpy(), w[k].numpy(), float(gap[k]))
        assert_close(found[k].numpy(), expected, rtol=1e-5, atol=1e-5)


def test_linf_is_as_short_as_the_linear_programme_says():
    x, w, gap = cases(5)
    found = nearest(x, w, gap, "linf", LOW, HIGH)
    assert_close((w * found).sum(1), gap, rtol=1e-5, atol=1e-8)
    assert bool(((x + found).abs() <= 1 + 1e-12).all())
    for k in range(25):
        eye = np.eye(6)
        ends = np.r_[np.c_[eye, -np.ones(6)], np.c_[-eye, -np.ones(6)]]
        best = linprog(
            np.r_[np.zeros(6), 1.0],
            A_ub=ends,
            b_ub=np.zeros(12),
            A_eq=np.r_[w[k].numpy(), 0.0][None],
            b_eq=[float(gap[k])],
            bounds=[(-1 - v, 1 - v) for v in x[k].tolist()] + [(0, None)],
        )
        assert float(found[k].abs().max()) == pytest.approx(best.fun, rel=1e-5)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_without_a_box_one_step_is_exact_and_out_of_reach_ends_in_the_corner(norm):
    x, w, gap = cases(7)
    free = nearest(x, w, gap, norm, None, None)
    assert_close((w * free).sum(1), gap)
    dual = w.norm(dim=1) if norm == "l2" else w.abs().sum(1)
    assert_close(free.norm(dim=1, p=2 if norm == "l2" else torch.inf), gap / dual)
    far = nearest(x, w, 100 * gap + 100, norm, LOW, HIGH)
    assert_close(x + far, torch.where(w > 0, HIGH, LOW))
