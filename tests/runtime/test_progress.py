import io
import subprocess
import sys

import pytest

from inscape.runtime import progress as module
from inscape.runtime.progress import clock, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def time(monkeypatch):
    """A clock that stands still unless it is told to go."""

    class Time:
        now = 100.0

        def go(self, seconds):
            self.now += seconds

    hand = Time()
    monkeypatch.setattr(module, "monotonic", lambda: hand.now)
    monkeypatch.delenv("INSCAPE_QUIET", raising=False)
    return hand


def test_short_work_shows_nothing(time, capsys):
    with progress(10, label="work") as bar:
        for _ in range(10):
            time.go(0.19)
            bar.advance()
    assert capsys.readouterr().err == ""


def test_lines_come_every_ten_seconds_with_the_time_left(time, capsys):
    with progress(100, label="work") as bar:
        for i in range(30):
            time.go(1)
            bar.advance(note=f"loss {i}")
        captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "work 2/100 (2%), 1:38 left, loss 1",
        "work 12/100 (12%), 1:28 left, loss 11",
        "work 22/100 (22%), 1:18 left, loss 21",
    ]
    assert capsys.readouterr().err == "work 30/100 (30%) in 0:30, loss 29\n"


def test_a_note_stays_and_steps_may_be_large(time, capsys):
    with progress(1000, label="work") as bar:
        bar.advance(40, note="loss 3.1e-3")
        time.go(8)
        bar.advance(300)
    assert "work 340/1000 (34%), 0:16 left, loss 3.1e-3\n" in capsys.readouterr().err


def test_without_a_step_there_is_no_estimate(time, capsys):
    with progress(0, label="nothing") as bar:
        time.go(5)
        bar.advance(0)
    assert capsys.readouterr().err == "nothing 0\nnothing 0 in 0:05\n"


@pytest.mark.parametrize(
    ("quiet", "variable", "shown"),
    [
        (None, None, True),
        (None, "", True),
        (None, "0", True),
        (None, "1", False),
        (True, None, False),
        (True, "0", False),
        (False, "1", True),
    ],
)
def test_quiet_is_asked_for_or_in_the_environment(
    time, capsys, monkeypatch, quiet, variable, shown
):
    if variable is not None:
        monkeypatch.setenv("INSCAPE_QUIET", variable)
    with progress(3, label="work", quiet=quiet) as bar:
        time.go(50)
        bar.advance()
    assert bool(capsys.readouterr().err) is shown


def test_a_terminal_gets_a_bar_that_goes_away(time, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress(100, label="work [red]") as bar:
        time.go(1)
        bar.advance(10)
        assert screen.getvalue() == ""
        time.go(1)
        bar.advance(10, note="loss 3.1e-3")
        shown = screen.getvalue()
        time.go(0.05)
        bar.advance()
        assert screen.getvalue() == shown
        time.go(0.06)
        bar.advance()
        assert screen.getvalue() != shown
    assert "work [red] 20/100 (20%), 0:08 left, loss 3.1e-3" in shown
    assert "━" in shown
    assert screen.getvalue().endswith("\x1b[2K")  # the line is wiped


def test_a_dumb_terminal_gets_lines(time, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "dumb")
    with progress(4, label="work") as bar:
        time.go(3)
        bar.advance()
    assert screen.getvalue() == "work 1/4 (25%), 0:09 left\nwork 1/4 (25%) in 0:03\n"


def test_of_nested_bars_the_first_shown_stays(time, capsys):
    with progress(2, label="outer") as outer:
        time.go(3)
        outer.advance()
        with progress(2, label="inner") as inner:
            time.go(3)
            inner.advance()
        with progress(2, label="second") as second:
            pass
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["outer"] * 2
    with progress(2, label="outer") as outer:
        with progress(2, label="inner") as inner:
            time.go(3)
            inner.advance()
        time.go(3)
        outer.advance()
    lines = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["inner", "inner", "outer", "outer"]
    assert second.done == 0


def test_an_error_takes_the_bar_away(time, capsys):
    with pytest.raises(KeyboardInterrupt), progress(2, label="work") as bar:  # noqa: PT012
        time.go(3)
        bar.advance()
        raise KeyboardInterrupt
    assert not module._on_screen
    assert capsys.readouterr().err.endswith("work 1/2 (50%) in 0:03\n")


def test_after_the_end_nothing_is_shown(time, capsys):
    with progress(2, label="work") as bar:
        pass
    time.go(10)
    bar.advance()
    assert capsys.readouterr().err == ""


def test_durations_read_well():
    assert [clock(s) for s in (0, 9.6, 61, 3599.4, 3723, -1)] == [
        "0:00",
        "0:10",
        "1:01",
        "59:59",
        "1:02:03",
        "0:00",
    ]


def test_rich_is_imported_only_when_a_bar_is_drawn():
    code = (
        "import sys\n"
        "from inscape.runtime.progress import progress\n"
        "with progress(3, label='work') as bar:\n"
        "    bar.advance()\n"
        "assert 'rich' not in sys.modules\n"
        "from inscape.runtime import progress as module\n"
        "module._Terminal(3)\n"
        "assert 'rich' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_bytes_are_shown_in_megabytes_and_resumed_ones_do_not_count_for_the_time(monkeypatch):
    now = 0.0
    monkeypatch.setattr("inscape.runtime.progress.monotonic", lambda: now)
    with progress(10_000_000, label="file", done=5_000_000, in_bytes=True, quiet=True) as bar:
        assert bar.line() == "file 5.0/10.0 MB (50%), ? left"
        now = 60.0
        bar.advance(1_000_000)
        assert bar.line() == "file 6.0/10.0 MB (60%), 4:00 left"


def test_unknown_length_shows_what_came():
    with progress(0, label="file", in_bytes=True, quiet=True) as bar:
        bar.advance(2_500_000)
        assert bar.line() == "file 2.5 MB"
