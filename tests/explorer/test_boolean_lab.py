"""The Boolean lab beside the instruments, by hand, and by evaluating the networks that it draws."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from inscape._core.anytime import finished
from inscape.boolean import changes, points, table
from inscape.explorer.boolean_lab import (
    FunctionFigureRequest,
    FunctionRequest,
    TrialRequest,
    function_facts,
    function_figure,
    trial_facts,
)

NOWHERE = Path("no-records")


def facts_of(bits, formula=""):
    return finished(function_facts(FunctionRequest(bits=bits, formula=formula), NOWHERE))[0]


@pytest.mark.parametrize("bits", ["01", "0110", "00010111", "0110100110010110", "0001", "0000"])
def test_the_networks_drawn_compute_the_function(bits):
    facts = facts_of(bits)
    for network in facts["networks"]:
        h = points(facts["n"])
        for k, layer in enumerate(network["layers"]):
            h = h @ np.array(layer["weights"]).T + np.array(layer["bias"])
            h = h if k == len(network["layers"]) - 1 else np.maximum(h, 0)
        assert [int(value > 0) for value in h[:, 0]] == [int(bit) for bit in bits]
        assert network["isRight"]
    least = min(network["parameters"] for network in facts["networks"])
    assert facts["networks"][facts["smallest"]]["parameters"] == least


def test_parity_of_four_as_the_dissertation_has_it():
    facts = facts_of("0110100110010110")
    assert (facts["number"], facts["class"], facts["classSize"]) == ("27030", "27030", 2)
    assert (facts["swaps"], facts["degree"], facts["influence"]) == (4, 4, 4.0)
    assert changes(table(27030, 4), facts["weights"]) == 4
    assert len(facts["line"]["zeros"]) == 4
    only = [each for each in facts["spectrum"] if each["coefficient"]]
    assert [each["set"] for each in only] == ["x1 x2 x3 x4"]


def test_the_curve_over_the_line_has_the_sign_of_the_function():
    for bits in ("0110", "00010110", "0000"):
        line = facts_of(bits)["line"]
        for each in line["inputs"]:
            value = np.interp(each["at"], line["t"], line["values"])
            assert (value > 0) == bool(each["value"])


def test_a_formula_goes_before_the_table():
    assert facts_of("01", "x1 and not x2")["bits"] == "0010"
    assert facts_of("01", "27030:4")["bits"] == "0110100110010110"
    with pytest.raises(ValueError, match="at most 5 inputs here, found 6"):
        facts_of("01", "x1 xor x6")


@pytest.mark.parametrize("bits", ["", "0", "011", "012", "0" * 64])
def test_what_is_no_table_is_refused(bits):
    with pytest.raises(ValidationError):
        FunctionRequest(bits=bits)


def test_records_of_the_hardest_figure_are_named_where_they_are():
    results = Path(__file__).parents[2] / "results"
    facts, _ = finished(function_facts(FunctionRequest(bits="0110100110010110"), results))
    assert {each["activation"] for each in facts["earlier"]} == {"ReLU", "leaky ReLU"}
    assert facts_of("0110100110010110")["earlier"] == []


def test_trials_count_networks_and_are_repeatable():
    asked = TrialRequest(bits="0001", width=3, networks=8)
    first, again = (finished(trial_facts(asked))[0] for _ in range(2))
    assert first["size"] == "2-3-1"
    assert [each["solved"] for each in first["trials"]] == [
        each["solved"] for each in again["trials"]
    ]
    assert all(0 < each["solved"] <= 8 == each["networks"] for each in first["trials"])
    assert all(each["low"] <= each["fraction"] <= each["high"] for each in first["trials"])


@pytest.mark.parametrize("of", ["line", "spectrum"])
def test_line_and_spectrum_are_drawn_by_the_library(of):
    asked = FunctionFigureRequest(bits="0110", of=of, format="pdf")
    assert bytes(finished(function_figure(asked))[1]["file"]).startswith(b"%PDF")
