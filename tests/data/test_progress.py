import io

from inscape.data.progress import Meter


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_now_and_then_with_the_time_left(capsys):
    clock = Clock()
    with Meter("file", 10_000_000, clock=clock) as meter:
        for _ in range(10):
            clock.now += 2
            meter.advance(1_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "file: 3.0 of 10.0 MB, about 14 s left",
        "file: 6.0 of 10.0 MB, about 8 s left",
        "file: 9.0 of 10.0 MB, about 2 s left",
        "file: 10.0 of 10.0 MB",
    ]


def test_time_left_counts_only_what_this_transfer_brought():
    clock = Clock()
    meter = Meter("file", 10_000_000, 5_000_000, clock=clock)
    assert meter.line() == "file: 5.0 of 10.0 MB"
    clock.now = 60
    meter.advance(1_000_000)
    assert meter.line() == "file: 6.0 of 10.0 MB, about 4 min left"


def test_unknown_length_shows_what_came():
    meter = Meter("file")
    meter.advance(2_500_000)
    assert meter.line() == "file: 2.5 MB"


def test_a_short_transfer_is_silent(capsys):
    with Meter("file", 10) as meter:
        meter.advance(10)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stderr", out := Terminal())
    with Meter("file", 2000) as meter:
        meter.advance(1000)
    assert "file" in out.getvalue()
    assert "1.0/2.0 kB" in out.getvalue()
