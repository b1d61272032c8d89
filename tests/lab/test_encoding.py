"""What is written is what is read, and settings that mean the same have one key."""

import json
import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inscape.lab.encoding import canonical, cell_key, decoded, encoded, like, shown


def through_json(value):
    arrays = {}
    text = json.dumps(encoded(value, arrays), allow_nan=False)
    return decoded(json.loads(text), arrays)


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


@given(st.floats(allow_nan=False))
def test_every_float_comes_back_bit_for_bit(number):
    back = through_json({"a": [number]})["a"][0]
    assert type(back) is float
    assert bits(back) == bits(number)


def test_nan_comes_back():
    assert math.isnan(through_json({"a": float("nan")})["a"])
    assert encoded(float("nan")) == {"~float": "nan"}
    assert encoded(-math.inf) == {"~float": "-inf"}


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet='a~"\\\né\0'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abc.0"), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(alphabet="abc"), PLAIN))
def test_plain_values_come_back(values):
    assert through_json(values) == values


def test_numpy_scalars_come_back_as_python_numbers():
    values = {"i": np.int32(3), "f": np.float32(0.1), "b": np.bool_(True), "d": np.float64(0.1)}
    back = through_json(values)
    assert back == {"i": 3, "f": float(np.float32(0.1)), "b": True, "d": 0.1}
    assert [type(value) for value in back.values()] == [int, float, bool, float]


def test_arrays_go_elsewhere_under_names_that_differ():
    first, second = np.arange(3), np.ones((2, 2), dtype=np.float32)
    arrays = {}
    values = {"a": [first], "a.0": second, "file": {"x": np.float64(2.0) * second}}
    stored = encoded(values, arrays)
    assert stored["a"] == [{"~npz": "a.0"}]
    assert len(arrays) == 3
    back = decoded(stored, arrays)
    assert back["a"][0] is first
    assert back["a.0"] is second


@pytest.mark.parametrize("value", [torch.ones(2), {1, 2}, 1j, np.array([{}]), np.complex64(1)])
def test_other_things_are_refused(value):
    with pytest.raises(
        TypeError, match=r"a\.b must be made of numbers, .*, arrays, found .*tolist"
    ):
        encoded({"a": {"b": value}}, {})


def test_settings_hold_no_arrays():
    with pytest.raises(TypeError, match=r"a must be made of numbers, .*, dicts, found ndarray"):
        canonical({"a": np.ones(2)})


@pytest.mark.parametrize("name", [1, "~npz", None])
def test_names_are_strings(name):
    with pytest.raises(TypeError, match=r"names in a must be strings .*'~', found .*: rename it"):
        encoded({"a": {name: 1}}, {})


SAME = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": (1, 2)}, {"a": [1, 2]}),
    ({"a": range(3)}, {"a": [0, 1, 2]}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": 0}, {"a": -0.0}),
    ({"a": [{"b": 2}]}, {"a": [{"b": 2.0}]}),
    ({"a": np.int64(4)}, {"a": 4}),
    ({"a": float("nan")}, {"a": np.float64("nan")}),
]

DIFFERENT = [
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"a": "1"}),
    ({"a": 1}, {"a": [1]}),
    ({"a": None}, {}),
    ({"a": 0.1}, {"a": 0.1 + 2**-56}),
    ({"a": 2**53}, {"a": 2**53 + 1}),
    ({"a": math.inf}, {"a": "inf"}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_means_the_same_has_one_key(one, other):
    assert cell_key("p/i", one, 1, "none") == cell_key("p/i", other, 1, "none")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_has_another_key(one, other):
    assert cell_key("p/i", one, 1, "none") != cell_key("p/i", other, 1, "none")


def test_the_key_depends_on_name_schema_and_data():
    keys = {
        cell_key("p/i", {"a": 1}, 1, "none"),
        cell_key("p/j", {"a": 1}, 1, "none"),
        cell_key("p/i", {"a": 1}, 2, "none"),
        cell_key("p/i", {"a": 1}, 1, "some"),
    }
    assert len(keys) == 4
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in keys)


def test_the_key_is_the_same_tomorrow():
    assert cell_key("volhejn/table-4.1", {"size": 2, "seed": 0}, 1, "none") == "4669b568e6fe9ab8"


def test_values_take_the_type_of_their_axis():
    assert [type(v) for v in like([1, 0.5, "x"], [0.1, 1.0])] == [float, float, str]
    assert [type(v) for v in like([1, True], [1])] == [int, bool]
    assert [type(v) for v in like([1], [])] == [int]


def test_settings_are_shown_on_one_line():
    assert shown({"size": 4, "seed": 0}) == "size=4, seed=0"
    assert shown({}) == "no settings"
