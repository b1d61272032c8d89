"""The page is part of the budget: time is kept for it, with a clock that the test drives."""

import pytest
from torch import nn

from inscape.report import look, pictures
from inscape.report.look import reserve
from inscape.report.look.look import Look
from inscape.report.look.watch import BudgetWatch
from inscape.runtime.deadline import clock

#: What is measured: some figures beside the slice.
SHOWN = ["gradient_norm", "path_length", "rugosity", "fisher_rao_norm", "plane_regions"]
#: The same without linear regions, quick to measure.
QUICK = SHOWN[:4]


class Time:
    """A clock that stands still unless somebody works, the same for all copies of a network."""

    def __deepcopy__(self, memo):
        return self

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    moment = Time()
    with clock(moment):
        yield moment


def costly(monkeypatch, time, *, plain):
    """Let every figure take a declared time."""
    draw = pictures.inline

    def inline(svg, *, prefix, label):
        time.now += plain
        return draw(svg, prefix=prefix, label=label)

    monkeypatch.setattr(pictures, "inline", inline)


class Slow(nn.Module):
    """A network whose rows take a declared time."""

    def __init__(self, net, time, *, row):
        super().__init__()
        self.net, self.time, self.row = net, time, row

    def forward(self, x):
        self.time.now += self.row * len(x)
        return self.net(x)


@pytest.mark.parametrize("plain", [0.05, 0.4])
@pytest.mark.parametrize("budget", [10.0, 60.0])
def test_the_page_is_written_within_the_budget(
    budget, plain, time, network, regression, monkeypatch, tmp_path
):
    slow = Slow(network, time, row=1e-3).eval()
    costly(monkeypatch, time, plain=plain)
    report = look(slow, regression, budget=budget, only=QUICK, quiet=True)
    measured = time.now
    assert isinstance(report, Look)
    report.save(tmp_path / "page.html")
    assert time.now - measured >= 4 * plain  # the figures were drawn, and cost what was declared
    assert time.now <= 1.1 * budget + 5
    assert measured <= budget


def test_figures_that_cost_more_now_are_given_more_time(time, monkeypatch):
    costly(monkeypatch, time, plain=0.1)
    quick = reserve.page_seconds(SHOWN, budget=1000.0)
    costly(monkeypatch, time, plain=0.2)  # on top of the first
    assert reserve.page_seconds(SHOWN, budget=1000.0) == pytest.approx(3 * quick)
    assert reserve.page_seconds(QUICK, budget=1000.0) < 2 * quick
    assert reserve.page_seconds(SHOWN, budget=8.0) == reserve.MOST * 8.0


def test_time_that_is_kept_is_not_left(time):
    watch = BudgetWatch(60.0)
    watch.reserve(10.0)
    time.now += 45.0
    assert watch.left == pytest.approx(5.0)
    assert watch.allows(5.0)
    assert not watch.allows(5.5)
    time.now += 5.0
    assert watch.over
