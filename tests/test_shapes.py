"""The check of annotations that all other tests run under sees what it should, and no more."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeGuard, TypeVar

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, config
from torch import Tensor

from inscape._core import checks
from shapes import _may_name_axes, jaxtyped

check = jaxtyped()


@check
def product(a: Float[Tensor, "n k"], b: Float[Tensor, "k m"], *, by: float = 1) -> object:
    return by * a @ b


@check
def halved(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    return x[::2]


@check
@dataclass(frozen=True)
class Pair:
    first: Float[Tensor, "n"]
    second: Float[Tensor, "n"]


def test_one_axis_name_is_one_length_within_a_call():
    assert product(torch.ones(2, 3), torch.ones(3, 1)).shape == (2, 1)
    assert product(torch.ones(4, 5), b=torch.ones(5, 1), by=2).shape == (4, 1)
    with pytest.raises(BeartypeCallHintViolation):
        product(torch.ones(2, 3), torch.ones(2, 3))


def test_the_result_is_held_against_the_arguments():
    assert len(halved(torch.ones(1))) == 1
    with pytest.raises(BeartypeCallHintViolation):
        halved(torch.ones(4))


def test_kinds_other_than_arrays_are_checked():
    with pytest.raises(BeartypeCallHintViolation):
        product(torch.ones(2, 3), torch.ones(3, 1), by="twice")


def test_a_dataclass_is_checked_when_it_is_made():
    Pair(torch.ones(2), torch.ones(2))
    with pytest.raises(BeartypeCallHintViolation):
        Pair(torch.ones(2), torch.ones(3))


def test_an_inner_call_has_axes_of_its_own():
    @check
    def outer(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        product(torch.ones(7, 2), torch.ones(2, 1))
        return x

    assert len(outer(torch.ones(3))) == 3


def test_a_call_without_axes_stands_between_two_that_have_them():
    @check
    def between(names: list[str], act: Callable[[int], str] | None, **more: object) -> int:
        return len(halved(torch.ones(len(names))))

    @check
    def outer(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        between(["a"], None, by=1)
        return x

    assert len(outer(torch.ones(3))) == 3
    with pytest.raises(BeartypeCallHintViolation):
        between([1], None)
    with pytest.raises(BeartypeCallHintViolation):  # by the inner call
        between(["a", "b"], None)


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (int, False),
        (None, False),
        (object, False),
        (list[str] | None, False),
        (Callable[[int, str], None], False),
        (Literal["n k"], False),
        (tuple[int, ...], False),
        (Float[Tensor, "n"], True),
        (list[Float[Tensor, "n"]] | None, True),
        (Callable[[Float[Tensor, "n"]], None], True),
        ("Float[Tensor, 'n']", True),
        (TypeVar("T"), True),
    ],
    ids=str,
)
def test_axis_names_are_seen_wherever_they_stand(hint, named):
    assert _may_name_axes(hint) is named


def test_functions_of_the_same_lines_are_checked_by_their_own_annotations():
    def of(kind: type) -> Callable[[object], object]:
        @check
        def same(x: kind) -> object:
            return x

        return same

    assert of(int)(1) == 1
    assert of(str)("1") == "1"
    with pytest.raises(BeartypeCallHintViolation):
        of(str)(1)


def test_a_generator_and_words_for_the_type_checker_alone():
    @check
    def numbers(upto: int, nothing: "Unknown" = None) -> Iterator[int]:
        yield from range(upto)

    assert list(numbers(3)) == [0, 1, 2]
    with pytest.raises(BeartypeCallHintViolation):
        numbers("3")


Nested = Mapping[str, "int | Nested"]


def test_a_type_may_hold_itself():
    @check
    def depth(tree: Nested) -> int:
        return 1 + max((depth(part) for part in tree.values() if isinstance(part, dict)), default=0)

    assert depth({"a": {"b": 1}}) == 2
    with pytest.raises(BeartypeCallHintViolation):
        depth([1])


def test_annotations_that_only_a_result_may_have():
    @check
    def is_number(value: object) -> TypeGuard[int]:
        return value if value == "not a bool" else isinstance(value, int)

    @check
    def fails() -> NoReturn:
        raise KeyError

    assert is_number(1)
    with pytest.raises(BeartypeCallHintViolation):
        is_number("not a bool")
    with pytest.raises(KeyError):
        fails()


@pytest.mark.parametrize("arguments", [(), (torch.ones(2), 2)])
def test_arguments_that_do_not_fit_are_refused_by_python(arguments):
    with pytest.raises(TypeError, match="argument"):
        halved(*arguments)


@pytest.mark.usefixtures("unchecked")
def test_the_check_can_be_switched_off():
    assert config.jaxtyping_disable
    assert len(halved(torch.ones(4))) == 2


def test_the_package_is_under_the_check():
    with pytest.raises(BeartypeCallHintViolation):
        checks.finite("many", "values")
