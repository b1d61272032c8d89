"""Corner cases of a look: few rows, rows that a model refuses, interruptions, threads."""

import os
import threading
from dataclasses import replace

import pytest
import torch
from torch import nn

from inscape._core import UnsupportedModelError, instruments
from inscape.models import mlp
from inscape.report import look
from inscape.report.look.finding import mean_interval
from inscape.report.look.hooks import hooks_kept
from inscape.report.look.page import page
from inscape.report.look.predictions import _chosen
from inscape.report.look.pulse import Pulse, pulse
from inscape.report.look.schedule import LookTask, TaskSchedule
from inscape.report.look.session import FITTING, FURTHER, prepare
from inscape.report.look.subject import opened_data
from inscape.report.look.tasks import MeasurementTasks, relative_width
from inscape.report.look.watch import BudgetWatch, Interrupted
from inscape.report.look.work import WorkCounts
from inscape.runtime.progress import QUIET, progress, silence
from inscape.smoothness import GradientNorm
from markup import Structure

NET = mlp(4, 6, 3, seed=0)


def rows(n):
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(0)), torch.arange(n) % 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_make_nothing_fail(n):
    report = look(NET, rows(n), quiet=True, work="batch=64")
    assert not report.failed
    reasons = {skipped.name: skipped.reason for skipped in report.not_applicable}
    assert reasons["extrapolation"] == f"it needs at least 5 examples, the data have {n}"
    few = {name for name, one in instruments().items() if one.least_rows > n and one.by_default}
    assert few <= set(reasons)
    assert few == {name for name, reason in reasons.items() if "needs at least" in reason}


class Picky(nn.Module):
    """Refuses rows that begin with a large number, as one with a check of its inputs does."""

    def __init__(self, *, raises=ValueError):
        super().__init__()
        self.body, self.raises = mlp(4, 6, 3, seed=0), raises

    def forward(self, x):
        if bool((x[:, 0] > 50).any()):
            raise self.raises("out of the range of the sensor")
        return self.body(x)


@pytest.mark.parametrize("row", [8, 61])
@pytest.mark.parametrize("raises", [ValueError, KeyError])
def test_a_row_that_the_model_refuses_is_named(row, raises):
    x, y = rows(70)
    x[row, 0] = 99.0
    text = (
        f"must accept every example of the data, but it raised {raises.__name__} at example {row} "
    )
    with pytest.raises(UnsupportedModelError, match=text):
        prepare(Picky(raises=raises).eval(), (x, y), budget=5)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([2.0], {0: "the only example"}),
        ([2.0, 3.0], {1: "the largest error", 0: "the smallest error"}),
        (
            [2.0, 4.0, 3.0],
            {1: "the largest error", 2: "an error of usual size", 0: "the smallest error"},
        ),
    ],
)
def test_errors_of_few_rows_are_called_what_they_are(errors, expected):
    outputs, y = torch.tensor(errors)[:, None], torch.full((len(errors), 1), 0.25)
    data = opened_data((outputs, y), NET)
    assert _chosen(outputs, y, data) == expected


def test_answers_of_few_rows_are_called_what_they_are():
    outputs, y = torch.tensor([[3.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0])
    assert _chosen(outputs, y, opened_data((outputs, y), NET)) == {
        1: "the only wrong one",
        0: "the only right one",
    }


def test_samples_that_are_alike_have_much_to_gain_and_no_interval():
    result = GradientNorm(norms=torch.ones(4), outputs=1, seed=0)
    assert result.summary().low is None
    assert relative_width(result) == 0.5


def test_a_difference_that_was_never_seen_has_an_interval_that_can_be_right():
    low, high = mean_interval(torch.zeros(30), range=(-1.0, 1.0))
    assert low == -high
    assert high == pytest.approx(1 - 0.025 ** (1 / 30))
    assert mean_interval(torch.ones(30), range=(-1.0, 1.0))[1] == 1.0
    assert mean_interval(torch.ones(3)) == (float("-inf"), float("inf"))


def test_an_interrupted_measurement_leaves_no_hook():
    model = mlp(4, 6, 3, seed=0)
    kept = model[0].register_forward_hook(lambda *_: None)

    def interrupted():
        with hooks_kept(model):
            model[1].register_forward_hook(lambda *_: None)
            raise Interrupted

    with pytest.raises(Interrupted):
        interrupted()
    assert list(model[0]._forward_hooks) == [kept.id]
    assert not model[1]._forward_hooks


def test_an_instrument_that_is_interrupted_leaves_no_hook(monkeypatch):
    model, (x, y) = mlp(4, 6, 3, seed=0), rows(20)
    prepared = prepare(model, (x, y), only="gradient_norm", work="batch=8")

    def refine(self, model, *data, **settings):
        model[1].register_forward_hook(lambda *_: None)
        raise Interrupted("too much")
        yield

    monkeypatch.setattr(type(prepared.chosen["gradient_norm"]), "refine", refine)
    result = prepared.run(quiet=True)
    assert not any(module._forward_hooks for module in model.modules())
    assert [skipped.name for skipped in result.failed] == ["gradient_norm"]


def test_quiet_looks_in_threads_leave_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv(QUIET, raising=False)
    first, second = threading.Event(), threading.Event()

    def one():
        with pulse(1.0, quiet=True):
            first.set()
            second.wait(10)

    def other():
        first.wait(10)
        with pulse(1.0, quiet=True):
            second.set()
            threads[0].join(10)

    threads = [threading.Thread(target=target) for target in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert QUIET not in os.environ


def test_silence_keeps_bars_away_and_ends():
    with silence(), progress(3, label="a") as bar:
        assert bar._due == float("inf")
    with progress(3, label="a") as bar:
        assert bar._due < float("inf")


def test_memory_is_bounded_where_a_look_is_repeated():
    prepared = prepare(NET, rows(20), only="gradient_norm", work="batch=8", memory=2**40)
    watch = prepared.subject.clock
    limits = []

    def start():
        limits.append(watch._until)
        yield 1

    TaskSchedule(watch, slice=1.0).finish([LookTask(name="a", role="network", start=start)])
    assert watch._until == float("inf")
    assert limits[0] < float("inf")  # so that the watch interrupts what takes too much


def test_what_takes_too_much_memory_ends_in_an_error_where_a_look_is_repeated():
    def start():
        raise Interrupted("too much")
        yield

    task = LookTask(name="a", role="network", start=start)
    TaskSchedule(BudgetWatch(float("inf")), slice=1.0).finish([task])
    assert isinstance(task.error, MemoryError)
    assert task.ended


def test_progress_of_a_look_that_only_explains_is_that_of_explaining():
    prepared = prepare(NET, rows(40), only="attribution", budget=30)
    prepared = replace(prepared, explaining=replace(prepared.explaining, seconds=20.0))
    measures = MeasurementTasks(prepared.subject, {}, WorkCounts())
    measures.fitting.ended = True
    with progress(100, label="a", quiet=True) as bar:
        moved = Pulse(bar, 30.0)
        prepared._tell(moved, measures, measures.fitting)
        assert moved.ended < 0.05


def test_a_linear_model_that_is_not_at_its_minimum_goes_on(monkeypatch):
    x, y = rows(40)
    prepared = prepare(NET, (x, y), only="spectral_norm", budget=30)
    given = []
    first = TaskSchedule.first
    monkeypatch.setattr(
        TaskSchedule, "first",
        lambda self, tasks, seconds=None: (
            given.append(([task.name for task in tasks], seconds)), first(self, tasks, seconds)
        ),
    )  # fmt: skip
    prepared.run(quiet=True)
    fits = [seconds for names, seconds in given if names == ["linear_model"]]
    assert fits == [pytest.approx(30 * FITTING), pytest.approx(30 * FURTHER)]


def test_what_is_no_part_of_a_look_is_listed_with_the_command_that_runs_it(seen, classified):
    named = {other.name: other for other in seen.elsewhere}
    assert set(named) == {
        name
        for name, one in instruments().items()
        if not one.by_default or one.reads in ("trajectory", "pair")
    }
    alone = "inscape look net.py:make --only node_pruning --budget 600"
    assert named["node_pruning"].command == alone
    text = Structure(page(seen)).text
    assert alone in " ".join(text.split())
    by_python = {other.name: other.command for other in classified.elsewhere}
    assert by_python["node_pruning"].startswith("inscape.look(model, data, only='node_pruning'")
    assert by_python["kernel_drift"].endswith(
        "inscape.kernels.kernel_drift(model, x, trajectory=run.trajectory)"
    )


@pytest.mark.parametrize("which", ["seen", "classified"])
def test_commands_of_what_is_no_part_of_a_look_run(which, request):
    """Those in Python are what they say: names that exist, arguments that are known."""
    import inspect

    import inscape

    for other in request.getfixturevalue(which).elsewhere:
        result = instruments()[other.name]
        if result.reads in ("trajectory", "pair"):
            function = getattr(getattr(inscape, result.family), other.name)
            known = inspect.signature(function).parameters
            asked = other.command.rpartition("(model, ")[2].rstrip(")").split(", ")
            assert {word.partition("=")[0] for word in asked} <= set(known)
            assert ("y" in asked) == ("y" in known)
        else:
            assert f"{other.name}" in other.command
