"""Drift across widths against laws that are put in, and the law of lazy networks."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import points
from inscape.figures import draw
from inscape.kernels import KernelDrift, drift_across_widths, kernel_drift
from inscape.training import fit

X = points(8, 2)


def drift(change):
    column = torch.tensor([[0.0, change], [change, 0.0]], dtype=torch.float64)
    return KernelDrift(
        steps=torch.tensor([0, 9]), norms=torch.tensor([2.0, 3.0]).double(), correlation=1 - column,
        cosine=1 - column / 2, change=column, parameter_norms=torch.ones(2).double(), points=8,
        outputs="trace", normalised=False,
    )  # fmt: skip


def test_a_law_that_is_put_in_comes_out():
    found = drift_across_widths({w: [drift(3 * w**-0.7)] for w in (64, 4, 16)})
    assert found.power == pytest.approx(-0.7)
    assert found.low == pytest.approx(found.high) == pytest.approx(-0.7)
    assert found.widths.tolist() == [4, 16, 64]
    assert_close(found.cosine, 1 - found.change / 2)
    assert_close(found.correlation, 1 - found.change)
    row = list(found.rows())[1]
    assert row["change"] == pytest.approx(3 * 16**-0.7)
    assert (row["norm at start"], row["norm at end"]) == (2.0, 3.0)


def test_interval_covers_the_law_and_is_that_of_the_normal_equations():
    noise = torch.randn(5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) / 10
    widths = [4, 4, 8, 32, 128]
    drifts = {w: [] for w in widths}
    for w, e in zip(widths, noise, strict=True):
        drifts[w].append(drift(float(w**-0.5 * e.exp())))
    found = drift_across_widths(drifts)
    x, y = found.widths.double().log(), found.change.log()
    centred = x - x.mean()
    slope = (centred * y).sum() / centred.square().sum()
    left = (y - y.mean() - slope * centred).square().sum() / 3
    half = 3.182446305284263 * (left / centred.square().sum()).sqrt()
    assert (found.low, found.high) == pytest.approx((float(slope - half), float(slope + half)))
    assert found.low < -0.5 < found.high
    line = draw(found).get_lines()[1]
    assert line.get_ydata()[1] / line.get_ydata()[0] == pytest.approx(32**found.power)


class Divide(nn.Module):
    """Divides by a power of the width."""

    def __init__(self, power):
        super().__init__()
        self.power = power

    def forward(self, x):
        return x / x.shape[1] ** self.power


def law(power):
    """Networks whose units are divided by a power of the width, trained at the speed that fits."""
    drifts = {}
    for width in (32, 128, 512):
        draws = torch.Generator().manual_seed(width)
        layers = [nn.Linear(2, width), nn.Tanh(), Divide(power), nn.Linear(width, 1, bias=False)]
        net = nn.Sequential(*layers).double()
        for p in net.parameters():
            p.data = torch.randn(p.shape, generator=draws, dtype=p.dtype)
        rate = 0.2 * width ** (2 * power - 1)
        run = fit(net, X, points(8, 1, seed=8), lr=rate, epochs=40, record=40, progress=False)
        drifts[width] = [kernel_drift(net, X, trajectory=run.trajectory)]
    return drift_across_widths(drifts).power


def test_lazy_networks_keep_their_kernel_and_those_that_learn_features_do_not():
    assert law(0.5) < -0.4
    assert law(1.0) > -0.2


def test_two_networks_have_no_interval():
    found = drift_across_widths({4: [drift(1.0)], 16: [drift(0.5)]})
    assert (found.power, found.low, found.high) == (pytest.approx(-0.5), None, None)


@pytest.mark.parametrize(
    ("drifts", "text"),
    [
        ({4: [drift(1.0), drift(2.0)]}, r"two or more widths, all positive, found widths \[4\]: m"),
        ({0: [drift(1.0)], 4: [drift(1.0)]}, r"found widths \[0, 4\]"),
        ({4: [drift(1.0)], 8: [drift(0.0)]}, "found one at width 8 that did not or that vanishes"),
    ],
)
def test_refusals(drifts, text):
    with pytest.raises(ValueError, match=text):
        drift_across_widths(drifts)
