"""Every instrument says which way its number points; the page is ordered by surprise."""

import pytest

from inscape._core import Result, Summary, instruments
from inscape.report.look.directions import by_question, direction, question, surprise
from inscape.report.look.parts import Measured, Reference


def measured(name="path_length", family="smoothness", value=2.0, low=None, high=None, **against):
    references = tuple(
        Reference(name=key, label="", value=other, reason="" if other is not None else "none")
        for key, other in against.items()
    )
    return Measured(
        name=name,
        title="",
        family=family,
        meaning="",
        cites="",
        doc="",
        result=Result(),
        summary=None
        if value is None
        else Summary(value=value, low=low, high=high, kind="exact", basis=""),
        references=references,
        seconds=0.0,
        command="",
    )


def test_every_instrument_has_a_direction_and_no_other_name_has():
    assert all(direction(name) for name in instruments())
    assert direction("accuracy") is None


def test_directions_read_as_sentences():
    assert direction("robustness").short == "larger is better"
    assert direction("extrapolation").sentence == (
        "Smaller is better: larger means more error far from the data."
    )
    assert direction("path_length").sentence == (
        "Larger means rougher, in itself neither better nor worse."
    )
    assert direction("nobody") is None


def test_every_family_asks_a_question():
    for family in {instrument.family for instrument in instruments().values()}:
        assert question(family).endswith("?")
    assert question("elsewhere") == "Elsewhere"


def test_surprise_is_the_distance_from_the_nearest_baseline_in_units_of_intervals():
    assert surprise(measured(value=2.0, linear=1.0)) == pytest.approx(1.0 / 0.1)
    wide = measured(value=2.0, low=1.0, high=3.0, linear=1.0, initialisation=10.0)
    assert surprise(wide) == pytest.approx(1.0)
    assert surprise(measured(value=2.0)) == 0.0
    assert surprise(measured(value=None, linear=1.0)) == 0.0
    assert surprise(measured(value=2.0, linear=None)) == 0.0
    assert surprise(measured(value=2.0, bound=1.0)) == 0.0
    assert surprise(measured(value=0.0, linear=0.0)) == 0.0
    assert surprise(measured(value=float("inf"), linear=1.0)) == 0.0


def test_measures_stand_together_by_question_the_most_surprising_first():
    same = measured("gradient_norm", value=1.0, linear=1.0)
    other = measured("path_length", value=2.0, linear=1.0)
    most = measured("robustness", "robustness", value=9.0, linear=1.0)
    assert by_question([same, other, most]) == [
        ("robustness", [most]),
        ("smoothness", [other, same]),
    ]
