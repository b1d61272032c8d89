"""The page is part of the budget: time is kept for it, with a clock that the test drives."""

import pytest
from torch import nn

from inscape.report import look, pictures
from inscape.report.look import reserve
from inscape.report.look.look import Look
from inscape.report.look.schedule import TaskSchedule
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


def kept(names, *, budget):
    return reserve.page_seconds(names, reserve.PlainFigure.timed().seconds, budget=budget)


def test_figures_that_cost_more_now_are_given_more_time(time, monkeypatch):
    costly(monkeypatch, time, plain=0.1)
    quick = kept(SHOWN, budget=1000.0)
    costly(monkeypatch, time, plain=0.2)  # on top of the first
    assert kept(SHOWN, budget=1000.0) == pytest.approx(3 * quick)
    assert kept(QUICK, budget=1000.0) < 2 * quick


def test_one_figure_that_was_held_up_keeps_no_time(time, monkeypatch):
    seconds = iter([5.0, 3.0, 0.1])  # the first one loads the library

    def drawn():
        time.now += next(seconds)

    monkeypatch.setattr(reserve, "plain_figure", drawn)
    assert reserve.PlainFigure.timed().seconds == pytest.approx(0.1)


def test_a_page_is_kept_a_quarter_of_the_budget_and_more_only_beyond_what_is_allowed():
    plain = 20.0 / (reserve.REST + reserve.SLICE + reserve.REGIONS + 4 * reserve.FIGURE)
    for budget, seconds in ((100.0, 20.0), (72.0, 18.0), (56.0, 15.0), (30.0, 12.0), (8.0, 3.2)):
        assert reserve.page_seconds(SHOWN, plain, budget=budget) == pytest.approx(seconds)


def test_a_plain_figure_is_taken_at_the_speed_of_the_whole_look(time, monkeypatch):
    watch = BudgetWatch(60.0)
    figure = reserve.PlainFigure(seconds=2.0, processor=0.5)
    assert figure.now(watch, 1) == 2.0  # a driven clock tells nothing of the processor
    time.now += 6.0
    for processor, threads, seconds in (
        (3.0, 1, 1.0),
        (12.0, 1, 0.5),
        (12.0, 2, 0.5),
        (1.0, 1, 2.0),
    ):
        monkeypatch.setattr(BudgetWatch, "processor", processor)
        assert figure.now(watch, threads) == seconds


def test_time_is_kept_for_the_page_before_anything_is_measured(
    time, network, regression, monkeypatch
):
    """Else a look whose first answers take all of its time has none left for its page."""
    costly(monkeypatch, time, plain=0.1)
    first, kept = TaskSchedule.first, []

    def noted(self, tasks, seconds=None):
        kept.append(self.watch.reserved)
        first(self, tasks, seconds)

    monkeypatch.setattr(TaskSchedule, "first", noted)
    look(network, regression, budget=20.0, only=["gradient_norm"], quiet=True)
    assert kept
    assert min(kept) > 1.0


def test_time_that_is_kept_is_not_left(time):
    watch = BudgetWatch(60.0)
    watch.reserve(10.0)
    time.now += 45.0
    assert watch.left == pytest.approx(5.0)
    assert watch.allows(5.0)
    assert not watch.allows(5.5)
    time.now += 5.0
    assert watch.over
