import math

import pytest

from inscape.report.words import (
    command_for,
    jsonable,
    listed,
    number,
    one_line,
    seconds,
    shape,
    whole_command,
)

TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.00012345, f"1.234{TIMES}10⁻⁴"),
        (0.0012345, "0.001234"),
        (99999.0, "100,000"),
        (999999.0, f"1{TIMES}10⁶"),
        (123456.0, "123,500"),
        (1234567.0, f"1.235{TIMES}10⁶"),
        (-2.5, "\N{MINUS SIGN}2.5"),
        (100.0, "100"),
        (math.inf, "∞"),
        (-math.inf, "\N{MINUS SIGN}∞"),
        (math.nan, "nan"),
    ],
)
def test_numbers_read_as_one_would_write_them(value, text):
    assert number(value) == text


def test_numbers_keep_four_digits_of_their_value():
    for k in range(-8, 9):
        text = number(math.pi * 10.0**k).replace(",", "")
        for power, raised in zip(range(10), "⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True):
            text = text.replace(raised, str(power))
        result = float(text.replace("⁻", "-").replace(f"{TIMES}10", "e"))
        assert abs(result / (math.pi * 10.0**k) - 1) < 5e-4


def test_durations():
    assert [seconds(s) for s in (0.0, 59.4, 120.0, 3600.0)] == [
        "under 0.1 s",
        "59 s",
        "2 min",
        "1 h 0 min",
    ]


def test_lists_and_shapes():
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a and b"
    assert shape(()) == "1"
    assert shape((3, 32, 32)) == f"3 {TIMES} 32 {TIMES} 32"


@pytest.mark.parametrize(
    ("command", "alone"),
    [
        ("inscape look net.py:make", "inscape look net.py:make"),
        ("inscape look digits --budget 5 --out a.html --json -q --no-page", "inscape look digits"),
        ("inscape look digits --only=a --only b --seed 4", "inscape look digits --seed 4"),
        ("inscape look 'my net.py:f' --set 'n=1 2'", "inscape look 'my net.py:f' --set 'n=1 2'"),
    ],
)
def test_command_for_one_measure_keeps_what_says_which_model(command, alone):
    result = command_for(command, "path_length", 12.2, seed=0)
    assert result == f"{alone} --only path_length --budget 13"


def test_without_a_command_line_the_command_is_python():
    result = command_for(None, "path_length", 12, seed=7)
    assert result == "inscape.look(model, data, only='path_length', budget=12, seed=7)"
    work = "batch=64,robustness=3"
    assert whole_command(None, work, seed=7) == f"inscape.look(model, data, seed=7, work={work!r})"
    typed = "inscape look a --budget 9 --work=batch=2 --out b"
    assert whole_command(typed, work, seed=7) == f"inscape look a --out b --work {work}"


def test_errors_become_one_line():
    assert one_line(ValueError("\nfirst\nsecond")) == "first"
    assert one_line(KeyError()) == "KeyError"


def test_json_has_no_nan_and_no_tuples():
    given = {1: (1.5, math.nan), "a": {"b": None, "c": True}, "d": object}
    result = jsonable(given)
    assert result["1"] == [1.5, "nan"]
    assert result["a"] == {"b": None, "c": True}
    assert result["d"] == "<class 'object'>"
