"""A few hundred random calls of all instruments; tens of thousands by ``make fuzz``."""

from collections.abc import Iterator
from dataclasses import replace
from functools import wraps

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import config

from fuzz import __main__ as program
from fuzz import calls
from fuzz.__main__ import report
from fuzz.calls import NAMES, call
from fuzz.ownership import ours
from fuzz.verdicts import judge
from inscape._core import BudgetError, checks, instruments

#: Calls of each instrument, and the largest number that one is drawn by.
EACH, NUMBERS = 10, 10**9


@pytest.fixture(autouse=True)  # of each test: conftest.py switches the checks on before it
def _unchecked() -> Iterator[None]:
    """Switch the shape checks off, to see the errors that a user sees."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.mark.filterwarnings("default")  # judge() turns those of the instrument into errors
@pytest.mark.parametrize("instrument", NAMES)
@settings(max_examples=EACH, suppress_health_check=list(HealthCheck), database=None)
@given(number=st.integers(0, NUMBERS))
def test_every_call_is_right_or_refused_by_us(instrument, number):
    verdict = judge(call(number, instrument))
    assert verdict.outcome not in ("wrong", "foreign"), verdict.text


def test_every_instrument_has_settings_and_an_oracle():
    from fuzz.truths import ORACLES

    assert set(NAMES) == set(instruments()) == set(ORACLES)


def test_one_number_is_one_call():
    one, two = call(123_456), call(123_456)
    assert one.kinds == two.kinds
    assert one.network is two.network
    assert repr(one.x) == repr(two.x)
    assert repr(one.settings.keys()) == repr(two.settings.keys())


def planted(monkeypatch, instrument, change):
    """Let an instrument give a changed answer to a call that it answers rightly."""
    number = next(
        n
        for n in range(10**6)
        if call(n, instrument).network.dtype is torch.float64
        and judge(call(n, instrument)).outcome == "answered"
    )
    entry = instruments()[instrument]

    @wraps(entry.function)  # the signature tells whether labels are wanted
    def function(*args, **kwargs):
        return change(entry.function(*args, **kwargs))

    changed = {**instruments(), instrument: replace(entry, function=function)}
    monkeypatch.setattr(calls, "_register", lambda: changed)
    return judge(call(number, instrument))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("instrument", "field"),
    [
        ("gradient_norm", "norms"),
        ("path_length", "lengths"),
        ("tangent_kernel", "kernel"),
        ("local_maps", "jacobians"),
        ("plane_regions", "intercepts"),
        ("distance_from_init", "distances"),
        ("interpolation", "losses"),
        ("magnitude_pruning", "losses"),
    ],
)
def test_an_answer_that_is_off_by_five_percent_is_found(monkeypatch, instrument, field):
    def off(result):
        return replace(result, **{field: getattr(result, field) * 1.05 + 1e-3})

    verdict = planted(monkeypatch, instrument, off)
    assert verdict.outcome == "wrong"
    assert "brute force" in verdict.text


def test_an_exception_of_another_library_is_foreign(monkeypatch):
    verdict = planted(monkeypatch, "gradient_norm", lambda result: torch.zeros(2) @ torch.zeros(3))
    assert verdict.outcome == "foreign"
    assert "RuntimeError" in verdict.text


def _raised(function):
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def test_ours_are_raised_by_the_package_with_our_form_of_text():
    def here():
        raise ValueError("x must be a tensor, found a list: convert it.")

    assert ours(_raised(lambda: checks.whole(1, points=0)))
    assert not ours(_raised(here))  # not raised by the package
    assert not ours(_raised(lambda: torch.zeros(2).reshape(3)))
    assert not ours(_raised(lambda: checks.points(torch.zeros(2, 2), 1 / 0)))
    assert not ours(BudgetError("no traceback, found none: raise it."))


def test_the_table_counts_outcomes_by_instrument():
    from collections import Counter

    text = report({"a": Counter(answered=3, wrong=1)}, Counter({"meta": 1}))
    assert "answered: 75.0% of all calls" in text
    assert "failures with meta: 1" in text


def test_a_log_is_gone_on_with_and_older_code_is_judged_again(monkeypatch, tmp_path, capsys):
    def run(*words):
        monkeypatch.setattr("sys.argv", ["fuzz", "--log", str(log), "--even", *words])
        assert program.main() == 0
        return capsys.readouterr().out

    def row(number, instrument):
        made.append((number, instrument))
        return {"number": number, "instrument": instrument, "outcome": "answered", "kinds": [],
                "commit": program.commit()}  # fmt: skip

    log, made = tmp_path / "log.jsonl", []
    monkeypatch.setattr(program, "_row", row)
    monkeypatch.setattr(program, "commit", lambda: "old")
    run("--calls", "3")
    assert made == [(number, NAMES[number]) for number in range(3)]
    with log.open("a") as file:
        file.write('{"number": 3, "instr')  # killed amid a line
    monkeypatch.setattr(program, "commit", lambda: "new")
    run("--calls", "3")
    assert len(made) == 3
    assert f"all{3:29}{3:16}" in run("--calls", "3", "--afresh")
    assert len(made) == 6
    assert len(log.read_text().splitlines()) == 7
