import time

from inscape.report.look.pulse import pulse


def test_bar_moves_by_the_clock_and_names_the_work(monkeypatch, capsys):
    monkeypatch.setattr("inscape.runtime.progress.PATIENCE", 0.0)
    monkeypatch.setattr("inscape.runtime.progress.BETWEEN_LINES", 0.0)
    with pulse(1000.0, quiet=False) as moved:
        moved.bar.note = "path_length"
        moved.start -= 500.0
        while moved.bar.done == 0:  # until the other thread has had its turn
            time.sleep(0.01)
        assert 50 <= moved.bar.done <= 99
    lines = capsys.readouterr().err.splitlines()
    assert any("left, path_length" in line for line in lines)
    assert lines[-1].startswith("looking 100/100 (100%) in 0:")


def test_work_longer_than_expected_never_shows_more_than_all():
    with pulse(0.0, quiet=True) as moved:
        moved.start -= 100
        moved.beat()
        assert moved.bar.done == 99
    assert moved.bar.done == 100
