"""Which labels are classes: the guess, its words, and what can be said against it."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.errors import DataError
from inscape.loaders import open_data


def opened(y, **options):
    y = np.asarray(y)
    return open_data((np.zeros((len(y), 1)), y), **options)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0, 1, 1, 0], "classes"),
        ([0.0, 1.0, 1.0, 0.0], "classes"),
        ([[0], [1], [1], [0]], "classes"),
        ([3, 8, 8, 3, 3, 8], "classes"),
        ([0, 1, 2], "classes"),
        ([True, False], "classes"),
        (["a", "b"], "classes"),
        ([-1, 1, 1], "regression"),
        ([-1.0, 1.0], "regression"),
        ([0.5, 1.5], "regression"),
        ([17, 80, 44, 31], "regression"),
        (list(range(5, 3000)) * 2, "regression"),
        ([-3, 2, -3, 2], "regression"),
        ([0], "regression"),
        (np.eye(3), "classes"),
        (np.eye(3) * 2, "regression"),
        (np.ones((3, 2)), "regression"),
    ],
)
def test_the_guess(y, task):
    data = opened(y)
    assert data.task == task
    assert data.y.dtype == (torch.int64 if task == "classes" else torch.float32)
    assert data.y.ndim == (1 if task == "classes" else 2)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([0, 1, 1, 0], "2 different integers: taken as classes (use --labels regression oth"),
        ([-1, 1], "y holds -1 and 1: taken as regression, but two classes are written like this"),
        ([-1, 1], "if the output of the model is a logit that tells them apart, use --labels clas"),
        (
            [0.5, 1],
            "y holds real numbers or many different integers: taken as regression (use --labels c",
        ),
        (np.eye(3), "y is one-hot: taken as 3 classes (use --labels regression otherwise)"),
    ],
)
def test_the_guess_is_said(y, said):
    data = opened(y)
    assert any(said in note for note in data.notes)
    assert said in data.guess
    assert opened(y, labels=data.task).guess == ""


def test_wishes_win():
    assert_close(opened([0, 1], labels="regression").y, torch.tensor([[0.0], [1.0]]))
    assert opened([-1, 1, 1], labels="classes").y.tolist() == [0, 1, 1]
    assert opened(np.eye(3)[[2, 0, 1]], labels="classes").y.tolist() == [2, 0, 1]
    assert_close(opened(np.eye(3), labels="regression").y, torch.eye(3))
    assert opened([0, 1], labels="none").y is None


def test_classes_keep_their_numbers_if_they_can_count():
    data = opened([4, 9, 9, 4])
    assert data.y.tolist() == [4, 9, 9, 4]  # the model decides whether they index its outputs


def test_both_splits_share_one_numbering():
    x = np.zeros((2, 1))
    data = open_data(
        {"x": x, "y": np.array(["b", "d"]), "x_test": x, "y_test": np.array(["a", "d"])}
    )
    assert data.y.tolist() == [1, 2]
    assert data.y_test.tolist() == [0, 2]
    assert data.notes[-1] == "the classes 'a', 'b', 'd' are numbered from 0 in this order"


def test_a_long_list_of_names_is_cut():
    assert "'e', ... are numbered" in opened(list("abcdefg")).notes[-1]


@pytest.mark.parametrize(
    ("y", "labels", "said"),
    [
        ([0.5, 1], "classes", r"class labels must be integers, found 0\.5"),
        (["a", "b"], "regression", "labels of a regression must be numbers, found .*'a'"),
        (np.ones((3, 2)), "classes", r"one per example or one-hot, found examples of shape \(2,\)"),
    ],
)
def test_wishes_that_cannot_be_met(y, labels, said):
    with pytest.raises(DataError, match=said):
        opened(y, labels=labels)


def test_wishes_without_labels():
    with pytest.raises(DataError, match="labels must be classes, found data without any"):
        open_data(np.zeros((3, 1)), labels="classes")
    with pytest.raises(ValueError, match="labels must be one of 'auto', 'classes'"):
        open_data(np.zeros((3, 1)), labels="maybe")
