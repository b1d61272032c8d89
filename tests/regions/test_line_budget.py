"""Lines within a time: what is covered is a prefix, exact, and says which budget ended it."""

import itertools
from functools import cache

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError
from inscape._core.anytime import step_within
from inscape.piecewise.lines import matrix_layers, segments
from inscape.regions import line_regions
from inscape.runtime.deadline import clock


def ticking():
    """Return a clock that goes on by a second each time it is looked at."""
    count = itertools.count()
    return lambda: float(next(count))


def spent(f, x, seconds, **settings):
    with clock(ticking()):
        return line_regions(f, x, seconds=seconds, **settings)


def assert_prefix(result, whole):
    """Everything that was found is what the whole has at its beginning."""
    assert not result.complete
    assert result.ended_by == "seconds"
    assert result.asked == len(whole.cells)
    segments, knots, pieces = len(result.cells), len(result.t), len(result.slopes)
    assert_close(result.t, whole.t[:knots], rtol=0, atol=1e-12)
    assert_close(result.values, whole.values[:knots])
    assert_close(result.slopes, whole.slopes[:pieces])
    assert torch.equal(result.cells[:-1], whole.cells[: segments - 1])
    assert_close(result.variation[:-1], whole.variation[: segments - 1])
    assert torch.equal(result.starts, whole.starts[:segments])
    last = (result.points()[-1] - result.starts[-1]).norm()
    length = result.lengths[:-1].sum() + last
    assert result.covered == pytest.approx(float(length / whole.lengths.sum()))
    assert 0 < result.covered < 1


@pytest.mark.parametrize("seconds", [30, 60, 100])
def test_a_graph_is_covered_from_the_first_line_on(seconds):
    f, x = dense(3, 10, 10, 2), points(20, 3)
    assert_prefix(spent(f, x, seconds), line_regions(f, x))


@cache
def whole_chain():
    """Return a network, points, and all segments between them, computed once for any budget."""
    f, x = dense(3, 20, 20, 2), 3 * points(20, 3)
    return f, x, line_regions(f, x)


@pytest.mark.parametrize("seconds", [1, 4, 8])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_chain_of_matrices_is_covered_from_the_first_line_on(seconds, threads, monkeypatch):
    monkeypatch.setattr(segments, "SMALL", 0)
    monkeypatch.setattr(segments, "BLOCK", 4)
    monkeypatch.setattr(segments, "LEAVES", 1)
    monkeypatch.setattr(matrix_layers, "CHUNK", 1)
    f, x, whole = whole_chain()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert_prefix(spent(f, x, seconds), whole)
    finally:
        torch.set_num_threads(before)


def test_what_is_asked_of_each_piece_ends_with_the_time_too(monkeypatch):
    from inscape.piecewise.lines import evaluation

    f, x = dense(3, 10, 10, 2), points(20, 3)
    options = {"patterns": True, "maps": True, "gradients": True}
    whole = line_regions(f, x, **options)
    monkeypatch.setattr(evaluation, "MOST", 8)
    result = spent(f, x, 60, **options)
    assert_prefix(result, whole)
    pieces = len(result.slopes)
    for name in ("patterns", "maps", "biases"):
        assert_close(getattr(result, name), getattr(whole, name)[:pieces])
    assert_close(result.gradient_variation[:-1], whole.gradient_variation[: len(result.cells) - 1])
    assert_close(result.vertex_jumps, whole.vertex_jumps[: len(result.cells) - 1])


def test_the_summary_is_a_mean_of_whole_segments_or_a_lower_bound():
    f, x = dense(3, 10, 10, 2), points(20, 3)
    result = spent(f, x, 100)
    assert len(result.cells) > 2
    said = result.summary()
    ended = result.t[result.offsets[1:] - 1] == 1
    assert (said.kind, said.value) == ("estimate", float(result.cells[ended].double().mean()))
    assert said.basis == f"{result.covered:.1%} of 19 lines, then the budget (seconds) was spent"
    summary = spent(f, x[:2], 30).summary()
    assert (summary.kind, summary.value) == ("lower bound", 1.0)


def test_too_short_a_time_says_where_it_went():
    f, x = dense(3, 10, 10, 2), points(20, 3)
    said = (
        "the time must do for one linear region, but 3 s are over, 1 s of it to read the network: "
        r"raise seconds \(a network of the same structure is not exported again\), or take fewer "
        "inputs, as by smaller images."
    )
    with pytest.raises(BudgetError, match=said):
        spent(f, x, 3)


def test_steps_are_short_and_each_result_is_a_longer_prefix(monkeypatch):
    from inscape.piecewise.lines import evaluation

    monkeypatch.setattr(evaluation, "MOST", 16)
    f, x = dense(3, 10, 10, 2), points(20, 3)
    now = ticking()
    with clock(now), step_within(10.0):
        results, times = [], [now()]
        for result in line_regions.refine(f, x):
            results += [] if result is None else [result]
            times.append(now())
    steps = torch.tensor(times).diff()
    assert len(results) > 5
    assert float(steps[1:].max()) <= 10.0 + 3  # what was begun is one operation
    whole = line_regions(f, x)
    for result in results:
        assert result.complete or assert_prefix(result, whole) is None
    assert results[-1].complete
    assert_close(results[-1].slopes, whole.slopes)


def test_chains_of_matrices_refine_too(monkeypatch):
    monkeypatch.setattr(segments, "SMALL", 0)
    monkeypatch.setattr(segments, "BLOCK", 4)
    monkeypatch.setattr(segments, "LEAVES", 1)
    f, x = dense(3, 20, 20, 2), 3 * points(20, 3)
    whole = line_regions(f, x)
    with clock(ticking()), step_within(1.0):
        results = [result for result in line_regions.refine(f, x) if result is not None]
    assert len(results) > 3
    for result in results[:-1]:
        assert result.complete or assert_prefix(result, whole) is None
    assert_close(results[-1].t, whole.t)


def test_enough_time_is_no_budget():
    f, x = dense(3, 10, 10, 2), points(20, 3)
    result, whole = spent(f, x, 1e9), line_regions(f, x)
    assert result.complete
    assert (result.covered, result.ended_by) == (1.0, "complete")
    assert_close(result.t, whole.t, rtol=0, atol=1e-12)


def test_no_time_is_refused():
    f, x = dense(3, 4, 1), points(3, 3)
    with pytest.raises(ValueError, match="seconds must be above 0, found 0: raise seconds"):
        line_regions(f, x, seconds=0)


def interrupted_after(monkeypatch, place, name, calls):
    """Let a function be interrupted, as by Ctrl-C, when it is called once more."""
    original, left = getattr(place, name), [calls]

    def once_too_often(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(place, name, once_too_often)


@pytest.mark.parametrize("chain", [False, True])
def test_an_interrupted_call_returns_what_is_covered(chain, monkeypatch):
    from inscape.piecewise.lines import evaluation, prefix

    f, x = dense(3, 20, 20, 2), 3 * points(20, 3)
    if chain:
        monkeypatch.setattr(segments, "SMALL", 0)
        monkeypatch.setattr(segments, "BLOCK", 4)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    else:
        monkeypatch.setattr(evaluation, "MOST", 32)
    whole = line_regions(f, x)
    if chain:
        interrupted_after(monkeypatch, segments._SegmentBlock, "advance", 3)
    else:
        interrupted_after(monkeypatch, prefix, "_refuse_curved", 3)
    said = r"line_regions was interrupted after \S+ of 19 segments: the result covers these alone"
    with pytest.warns(UserWarning, match=said):
        result = line_regions(f, x)
    assert result.ended_by == "interrupted"
    assert 0 < result.covered < 1
    pieces, knots = len(result.slopes), len(result.t)
    assert_close(result.t, whole.t[:knots], rtol=0, atol=1e-12)
    assert_close(result.slopes, whole.slopes[:pieces])
    assert "lines, then it was interrupted" in result.summary().basis


def test_an_interruption_goes_on_where_nothing_is_known_or_steps_are_consumed(monkeypatch):
    from inscape.piecewise.lines import evaluation, prefix

    monkeypatch.setattr(evaluation, "MOST", 32)
    f, x = dense(3, 20, 20, 2), 3 * points(20, 3)
    interrupted_after(monkeypatch, prefix, "_refuse_curved", 0)
    with pytest.raises(KeyboardInterrupt):
        line_regions(f, x)
    monkeypatch.undo()
    monkeypatch.setattr(evaluation, "MOST", 32)
    interrupted_after(monkeypatch, prefix, "_refuse_curved", 3)
    with pytest.raises(KeyboardInterrupt):
        list(line_regions.refine(f, x))


def test_progress_is_shown_as_the_fraction_that_is_cut(monkeypatch):
    from inscape.piecewise.lines import evaluation
    from inscape.runtime.progress import Bar

    monkeypatch.setattr(evaluation, "MOST", 32)
    done = []
    advance = Bar.advance
    monkeypatch.setattr(
        Bar, "advance", lambda bar, n=1: (advance(bar, n), done.append(bar.done))[0]
    )
    line_regions(dense(3, 20, 20, 2), 3 * points(20, 3))
    assert done == sorted(done)
    assert done[-1] == 100
    assert len(set(done)) > 5
