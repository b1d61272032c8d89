"""The script behind ``make test-elsewhere``: what it skips, starts, counts and says."""

import dataclasses
import sys
import time
from pathlib import Path

import pytest

import elsewhere
from elsewhere import Outcome, Setting, counts, reason_to_skip, run, variable

TESTS = Path(__file__).parent

ROUNDS = """
import os, pytest

@pytest.mark.rounding
def test_of_rounding():
    assert os.environ["MKL_CBWR"] == "AVX2", "not as on other machines"

def test_of_other_things():
    raise AssertionError
"""


def test_a_setting_that_the_processor_lacks_is_named_and_skipped(tmp_path, monkeypatch):
    strange = variable("MKL_CBWR", "AVX512", "avx512f", "avx2")
    assert reason_to_skip(strange, frozenset({"avx2", "avx512f"})) is None
    reason = reason_to_skip(strange, frozenset({"avx2"}))
    assert reason == "skipped: this processor has no avx512f"
    missing = Setting(name="x", prefix=("no-such-program",))
    assert reason_to_skip(missing, frozenset()) == "skipped: there is no no-such-program here"
    monkeypatch.setattr(elsewhere, "processor_flags", lambda: frozenset())
    outcome = run(strange, [], tmp_path)
    assert outcome.is_good
    assert "skipped: this processor has no avx512f" in elsewhere.line(outcome)


def test_flags_are_those_of_the_first_processor(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("flags\t\t: fpu avx2\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert elsewhere.processor_flags(info) == {"fpu", "avx2"}
    assert elsewhere.processor_flags(tmp_path / "none") == set()


@pytest.mark.parametrize(("value", "failed"), [("AVX2", 0), ("COMPATIBLE", 1)])
def test_marked_tests_run_under_the_setting(value, failed, tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(ROUNDS)
    own = ["--config-file", str(tmp_path / "pytest.ini")]
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = rounding\n")
    outcome = run(variable("MKL_CBWR", value), [*own, str(file)], tmp_path)
    assert (outcome.passed, outcome.failed) == (1 - failed, failed)
    assert outcome.is_good != bool(failed)
    assert ("see " in elsewhere.line(outcome)) == bool(failed)


def test_no_test_or_a_broken_pytest_is_no_success(tmp_path, monkeypatch):
    assert not Outcome(setting="x").is_good
    monkeypatch.setattr(
        elsewhere, "command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"]
    )
    assert run(Setting(name="x"), [], tmp_path).failed == 1


def test_a_setting_that_does_not_end_is_stopped_with_all_that_it_started(tmp_path, monkeypatch):
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(900)"
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read():\n"
        "    time.sleep(0.01)\n"
        "time.sleep(900)\n"
    )
    monkeypatch.setattr(elsewhere, "command", lambda *_: [sys.executable, "-c", parent])
    begin = elsewhere.subprocess.Popen

    class Begun(begin):
        def wait(self, timeout=None):
            while timeout and not (mark.exists() and mark.read_text()):
                time.sleep(0.01)  # the limit counts from there, however slow the machine is
            return super().wait(timeout and 0.0)

    monkeypatch.setattr(elsewhere.subprocess, "Popen", Begun)
    outcome = run(Setting(name="x"), [], tmp_path)
    assert outcome.failed == 1
    assert outcome.note.startswith("no end in 30 minutes")
    state = Path(f"/proc/{mark.read_text()}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)


def test_busy_processes_end_with_the_tests(tmp_path, monkeypatch):
    started = []
    begin = elsewhere.subprocess.Popen

    def noting(words, **options):
        started.append((words, begin(words, **options)))
        return started[-1][1]

    monkeypatch.setattr(elsewhere.subprocess, "Popen", noting)
    monkeypatch.setattr(
        elsewhere, "command", lambda *_: [sys.executable, "-c", "print('1 passed')"]
    )
    assert run(Setting(name="x", beside=2), [], tmp_path).passed == 1
    busy = [process for words, process in started if words == elsewhere.BUSY]
    assert len(busy) == 2
    assert all(process.poll() is not None for process in busy)


def test_marked_tests_are_those_of_their_folders_and_those_marked_by_hand(request):
    files = {
        str(item.path) for item in request.session.items if item.get_closest_marker("rounding")
    }
    places = elsewhere.marked()
    assert all(any(file.startswith(place) for place in places) for file in files)
    assert str(elsewhere.ROOT / "tests" / "spectra") in places


def test_words_of_the_command():
    one_core = next(setting for setting in elsewhere.SETTINGS if setting.name == "one core")
    assert elsewhere.command(one_core, [])[:2] == ["taskset", "--cpu-list"]
    assert elsewhere.command(one_core, [])[2].isdigit()
    assert elsewhere.command(one_core, [])[-len(elsewhere.marked()) :] == elsewhere.marked()
    assert "rounding" in elsewhere.command(one_core, ["tests/spectra"])
    loaded = elsewhere.command(elsewhere.SETTINGS[-1], [])
    assert "rounding" not in loaded
    assert loaded[-1] == str(TESTS / "runtime")
    assert elsewhere.command(elsewhere.SETTINGS[-1], ["tests/spectra"])[-1] == "tests/spectra"
    assert counts("") == {"failed": 0, "passed": 0, "skipped": 0}
    names = [setting.name for setting in elsewhere.SETTINGS]
    assert len(set(names)) == len(names) == 12
    assert dataclasses.asdict(one_core)["variables"] == {}


def test_all_places_of_marked_tests_exist():
    places = elsewhere.ROUNDING + elsewhere.LOADED
    missing = [place for place in places if not (TESTS / place).exists()]
    assert missing == []


def test_combined_settings_hold_each_one_once():
    few = elsewhere.combined(elsewhere.SETTINGS)
    assert [setting.name for setting in few[-2:]] == [s.name for s in elsewhere.SETTINGS[-2:]]
    pairs = [pair for setting in few for pair in setting.variables.items()]
    assert sorted(pairs) == sorted(p for s in elsewhere.SETTINGS for p in s.variables.items())
    assert few[0].variables["MKL_CBWR"] == "COMPATIBLE"
    assert few[0].variables["ATEN_CPU_CAPABILITY"] == "default"
    assert set(few[2].needs) == set(elsewhere.AVX512)
    assert len(few) == 5
