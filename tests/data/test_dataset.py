import hashlib
from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from inscape.data import Dataset, disc

X = torch.arange(12, dtype=torch.float64).reshape(6, 2)
REAL = Dataset(name="real", x=X, y=X[:, :1], task="regression", x_test=X[:3], y_test=X[:3, 1:])
SORTS = Dataset(name="sorts", x=X, y=torch.tensor([0, 1, 2, 0, 1, 2]), task="classes")


def test_the_hash_is_that_of_bytes_shapes_and_dtypes():
    by_hand = hashlib.sha256()
    for tensor in (REAL.x, REAL.y, REAL.x_test, REAL.y_test):
        by_hand.update(f"{tensor.dtype}{tuple(tensor.shape)};".encode())
        by_hand.update(tensor.contiguous().numpy().tobytes())
    assert REAL.hash == by_hand.hexdigest()


def test_the_hash_sees_every_tensor_and_no_name():
    same = replace(REAL, name="other", notes=("a note",))
    assert same.hash == REAL.hash
    others = [
        replace(REAL, x=X.flip(0)),
        replace(REAL, y=X[:, 1:]),
        replace(REAL, x_test=X[1:4]),
        replace(REAL, y_test=X[:3, :1]),
        replace(REAL, x_test=None, y_test=None),
        REAL.to(dtype=torch.float32),
        Dataset(name="real", x=X.reshape(6, 2, 1), y=X[:, :1], task="regression"),
    ]
    assert len({data.hash for data in [*others, REAL]}) == len(others) + 1


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        REAL.name = "x"


def test_classes_are_counted_over_both_halves_or_named():
    assert REAL.classes is None
    assert SORTS.classes == 3
    assert replace(SORTS, x_test=X[:1], y_test=torch.tensor([6])).classes == 7
    assert replace(SORTS, class_names=("a", "b", "c", "d")).subset(1).classes == 4


def test_subset_keeps_the_first_rows_and_the_test_half():
    part = REAL.subset(2)
    assert torch.equal(part.x, X[:2])
    assert torch.equal(part.y, X[:2, :1])
    assert torch.equal(part.x_test, REAL.x_test)
    assert part.notes == ("subset: the first 2 of 6 training examples",)
    assert part.hash != REAL.hash
    assert REAL.subset(6) is REAL


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "n must be at least 1, found 0"), (7, "at most the 6 training examples of real, found 7")],
)
def test_subset_of_a_wrong_size_is_refused(n, text):
    with pytest.raises(ValueError, match=text):
        REAL.subset(n)


def test_to_changes_floats_and_leaves_classes():
    single = REAL.to(dtype=torch.float32)
    kinds = {t.dtype for t in (single.x, single.y, single.x_test, single.y_test)}
    assert kinds == {torch.float32}
    assert SORTS.to(dtype=torch.float32, device="cpu").y.dtype == torch.int64
    assert SORTS.to(dtype=torch.float32).x_test is None


def test_to_another_kind_of_number_is_refused():
    with pytest.raises(TypeError, match=r"dtype must be a floating-point type, found torch.int64"):
        REAL.to(dtype=torch.int64)


def test_repr_is_one_line():
    assert repr(REAL) == "Dataset(real: 6 x 2 -> 1 real, 3 test examples)"
    assert repr(SORTS.subset(2)) == (
        "Dataset(sorts: 2 x 2 -> 2 classes, subset: the first 2 of 6 training examples)"
    )


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"x": X[:0], "y": X[:0, :1]}, ValueError, "x must hold at least one point"),
        ({"x": X / 0}, ValueError, "x must be finite, found NaN or Inf in 6 of 6 points"),
        ({"x": X.long()}, TypeError, "x must hold floating-point numbers, found torch.int64"),
        ({"y": X[:5, :1]}, ValueError, r"one label for each of the 6 points, found shape \(5, 1\)"),
        (
            {"y": X[:, 0]},
            ValueError,
            r"floats of shape \(n, c\), found torch.float64 of shape \(6,",
        ),
        ({"y": X[:, :1].long()}, ValueError, "regression labels must be floats"),
        ({"y": X[:, :1] / 0}, ValueError, "y must be finite"),
        ({"y_test": None}, ValueError, "x_test and y_test must be given together"),
        (
            {"x_test": X[:3, :1]},
            ValueError,
            r"x_test must have examples of shape \(2,\).*found \(1,\)",
        ),
        ({"task": "ranking"}, ValueError, "task must be one of 'regression', 'classes'"),
        ({"task": "classes"}, ValueError, r"class labels must be int64 of shape \(n,\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_wrong_parts_are_refused(changes, error, text):
    with pytest.raises(error, match=text):
        replace(REAL, **changes)


@pytest.mark.parametrize("y", [torch.tensor([0, 1, -1, 0, 0, 0]), torch.zeros(6, 1).long()])
@pytest.mark.usefixtures("unchecked")
def test_wrong_classes_are_refused(y):
    with pytest.raises(ValueError, match="class labels must be int64"):
        replace(SORTS, y=y)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    disc(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
