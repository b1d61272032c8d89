"""Data from files and objects: one content, many ways in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

from inscape.data import Dataset
from inscape.data import load as load_named
from inscape.errors import DataError
from inscape.loaders import open_data

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4)).round(3)
Y = np.arange(12) % 3


def written(folder: Path, form: str) -> Any:
    """Put X and Y into one of the forms that data come in."""
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    path = folder / f"data.{form.split()[0]}"
    match form:
        case "npz":
            np.savez(path, x=X, y=Y)
        case "pt pair":
            torch.save((x, y), path)
        case "pt dict":
            torch.save({"y": y, "x": x}, path)
        case "csv":
            lines = [",".join(map(str, [*row, label])) for row, label in zip(X, Y, strict=True)]
            path.write_text("\n".join(lines) + "\n")
        case "csv header":
            lines = [",".join(map(str, [*row, label])) for row, label in zip(X, Y, strict=True)]
            path.write_text("a,b,c,d,label\n" + "\n".join(lines) + "\n")
        case "tsv":
            lines = ["\t".join(map(str, [*row, label])) for row, label in zip(X, Y, strict=True)]
            path.write_text("\n".join(lines) + "\n")
        case "tensors":
            return x, y
        case "arrays":
            return X, Y
        case "lists":
            return [X.tolist(), Y.tolist()]
        case "dict":
            return {"data": X, "target": Y}
        case "loader":
            return DataLoader(TensorDataset(x, y), batch_size=5)
        case "torch dataset":
            return TensorDataset(x, y)
        case "dict loader":
            rows = [{"images": a, "labels": b} for a, b in zip(x, y, strict=True)]
            return DataLoader(rows, batch_size=5)
        case "dataset":
            return Dataset(name="mine", x=x.float(), y=y, task="classes")
    return path


FORMS = ["npz", "pt pair", "pt dict", "csv", "csv header", "tsv", "tensors", "arrays", "lists"]
FORMS += ["dict", "loader", "torch dataset", "dict loader", "dataset"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_data(tmp_path, form):
    data = open_data(written(tmp_path, form))
    assert_close(data.x, torch.from_numpy(X).float())
    assert data.y.dtype == torch.int64
    assert data.y.tolist() == Y.tolist()
    assert data.task == "classes"
    assert data.loss == "cross_entropy"
    assert data.split == "all"
    assert data.measured[0] is data.x
    assert len(data.hash) == 64


def test_paths_may_be_text(tmp_path):
    path = written(tmp_path, "npz")
    data = open_data(str(path), dtype="float64")
    assert_close(data.x, torch.from_numpy(X), rtol=0, atol=0)
    assert data.name == "data.npz"


def test_the_guess_about_labels_is_said(tmp_path):
    said = "y holds 3 different integers: taken as classes (use --labels regression otherwise)"
    assert said in open_data((X, Y)).notes
    assert said in open_data((X, Y.astype(float))).notes
    assert open_data((X, Y), labels="classes").notes == ()


def test_the_hash_follows_the_content():
    first = open_data((X, Y)).hash
    assert open_data((X.copy(), Y.copy())).hash == first
    assert open_data((X, Y[::-1].copy())).hash != first
    assert open_data(X).hash != first
    named = load_named("disc:n=8")
    assert open_data(named).hash == named.hash


def test_settings_are_recorded():
    data = open_data((X, Y), input_shape="2x2", divide="2", normalise="0.5,0.25", limit=5)
    assert dict(data.settings) == {
        "input_shape": (2, 2),
        "divide": 2.0,
        "normalise": ((0.5,), (0.25,)),
        "labels": "classes",
        "loss": "auto",
        "limit": 5,
        "target": None,
        "dataset": None,
    }
    with pytest.raises(TypeError, match="does not support item assignment"):
        data.settings["limit"] = 3


# --- which array is which


@pytest.mark.parametrize(
    ("x", "y"),
    [("x", "y"), ("X", "Y"), ("X", "y"), ("data", "target"), ("images", "labels")],
)
def test_names_of_arrays(tmp_path, x, y):
    np.savez(tmp_path / "d.npz", other=np.zeros(3), **{y: Y, x: X})
    data = open_data(tmp_path / "d.npz")
    assert data.y.tolist() == Y.tolist()
    assert f"x is {x!r}, y is {y!r}" in data.notes


def test_the_names_of_keras_bring_a_test_set(tmp_path):
    np.savez(tmp_path / "d.npz", x_train=X[:8], y_train=Y[:8], x_test=X[8:], y_test=Y[8:])
    data = open_data(tmp_path / "d.npz")
    assert data.split == "test"
    assert data.measured == (data.x_test, data.y_test)
    assert_close(data.x_test, torch.from_numpy(X[8:]).float())
    assert "with a test set" in data.notes


def test_unknown_names_are_taken_by_their_order(tmp_path):
    np.savez(tmp_path / "d.npz", first=X, second=Y, third=np.zeros(2))
    data = open_data(tmp_path / "d.npz")
    assert data.y.tolist() == Y.tolist()
    text = (
        "x is 'first', y is 'second': taken by their order, for no name is one of x, data, images"
    )
    assert text in data.notes
    np.savez(tmp_path / "d.npz", first=X, second=np.zeros(3))
    data = open_data(tmp_path / "d.npz")
    assert data.y is None
    assert data.notes[0].startswith("x is 'first', and there is no y")


def test_inputs_alone(tmp_path):
    np.save(tmp_path / "x.npy", X)
    torch.save(torch.from_numpy(X), tmp_path / "x.pt")
    np.savez(tmp_path / "x.npz", x=X)
    for spec in (tmp_path / "x.npy", tmp_path / "x.pt", tmp_path / "x.npz", X, (X,)):
        data = open_data(spec)
        assert data.y is None
        assert data.task == "unlabelled"
        assert data.loss is None
        assert_close(data.x, torch.from_numpy(X).float())


def test_points_on_a_line_become_a_column():
    assert open_data(np.linspace(0, 1, 5)).x.shape == (5, 1)


def test_bfloat16_and_sparse_tensors_are_read():
    x = torch.eye(3)
    assert_close(open_data(x.bfloat16()).x, x)
    assert_close(open_data(x.to_sparse()).x, x)


# --- names


def test_a_named_data_set_keeps_its_task_and_settings():
    data = open_data("digits-binary:4-9", dtype="float64")
    expected = load_named("digits-binary:4-9", dtype="float64")
    assert data.x.dtype == torch.float64
    assert_close(data.x, expected.x, rtol=0, atol=0)
    assert data.task == "regression"
    assert data.split == "test"
    assert data.settings["dataset"] == dict(expected.settings)


def test_labels_of_a_named_data_set_can_be_read_otherwise():
    data = open_data("digits-binary:4-9", labels="classes")
    assert set(data.y.tolist()) == {0, 1}
    assert "the classes -1.0, 1.0 are numbered from 0 in this order" in data.notes


@pytest.mark.data
def test_a_named_data_set_from_files(data_dir):
    data = open_data("mnist-binary:4-9", data_dir=data_dir, limit=50)
    assert data.x_test.shape == (50, 784)


def test_a_missing_file_is_told_from_an_unknown_name(tmp_path):
    (tmp_path / "train.npz").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"data must be an existing file.*mean 'train\.npz'"):
        open_data(str(tmp_path / "trian.npz"))
    with pytest.raises(ValueError, match=r"no data set is called 'minst': did you mean mnist"):
        open_data("minst")
    with pytest.raises(ValueError, match="data must be a file, found the folder"):
        open_data(str(tmp_path))
    (tmp_path / "d.parquet").write_bytes(b"x")
    with pytest.raises(DataError, match=r"must end in \.npz, .*found d\.parquet"):
        open_data(tmp_path / "d.parquet")


def test_a_dot_in_a_setting_is_no_suffix():
    assert open_data("gp:length_scale=0.25,n=4").x.shape == (4, 1)


# --- bad content


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ((X[:0], Y[:0]), r"x must hold at least one example, found shape \(0, 4\)"),
        ((X, Y[:5]), r"y must hold one label for each of the 12 examples, found shape \(5,\)"),
        (np.float64(3), r"at least one example, found shape \(\)"),
        (np.array([["a"]]), "x must hold real numbers, found dtype <U1"),
        (X.astype(complex), "found dtype complex128"),
        (np.array([None, 1]), "found dtype object"),
        ((X, np.array([None] * 12)), "y must hold numbers or names of classes, found dtype object"),
        ([[[1, 2], [3]], [0, 1]], "examples of one length, found a list that is none"),
        ((X, Y, Y), r"x or a pair \(x, y\), found 3 parts"),
        (
            {"x": X, "y": Y, "x_test": X[:, :2], "y_test": Y},
            r"x_test must have examples of shape \(4,\)",
        ),
        ({"x": X, "y": Y, "x_test": X}, "labels must be given for both splits or for none"),
        ({}, "the dict must hold an array, found none"),
    ],
)
def test_bad_arrays(spec, said):
    with pytest.raises(DataError, match=said):
        open_data(spec)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_counted_and_placed(bad):
    x = X.copy()
    x[[3, 7], 1] = bad
    with pytest.raises(
        DataError, match="x must be finite, found NaN or Inf in 2 of 12 examples, first i"
    ):
        open_data((x, Y))
    y = X[:, 0].copy()
    y[5] = bad
    with pytest.raises(
        DataError, match=r"y must be finite, found .* in 1 of 12 examples, first in example 5"
    ):
        open_data((X, y))


def test_sums_that_overflow_are_not_taken_for_infinite_numbers():
    x = np.full((3, 2), 1e308)
    assert open_data(x, dtype="float64").x.shape == (3, 2)
    text = r"{} must fit into torch\.float32, found numbers that become infinite"
    with pytest.raises(DataError, match=text.format("x")):
        open_data(x)
    with pytest.raises(DataError, match=text.format("y")):
        open_data((X[:3], x[:, 0]), labels="regression")


def test_damaged_files(tmp_path):
    for form in ("npz", "pt pair"):
        path = written(tmp_path, form)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(DataError, match="truncated"):
            open_data(path)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-40])
    with pytest.raises(DataError, match="damaged or truncated"):
        open_data(tmp_path / "x.npy")
    np.savez(tmp_path / "bad.npz", x=X)
    data = bytearray((tmp_path / "bad.npz").read_bytes())
    data[200] ^= 255
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(DataError, match=r"damaged or truncated \(BadZipFile"):
        open_data(tmp_path / "bad.npz")


def test_object_arrays_are_not_unpickled(tmp_path):
    mark = tmp_path / "was_here"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (mark,))

    np.savez(tmp_path / "d.npz", x=np.array([Evil()], dtype=object))
    np.save(tmp_path / "d.npy", np.array([Evil()], dtype=object))
    torch.save((torch.ones(1), Evil()), tmp_path / "d.pt")
    for name in ("d.npz", "d.npy"):
        with pytest.raises(
            DataError, match="found an array of Python objects, which could run code"
        ):
            open_data(tmp_path / name)
    with pytest.raises(DataError, match=r"would run code \(.*save them with torch\.save\(\(x, y\)"):
        open_data(tmp_path / "d.pt")
    assert not mark.exists()


def test_a_suffix_that_lies(tmp_path):
    for name in ("d.npz", "d.npy", "d.pt"):
        (tmp_path / name).write_text("<html>404</html>")
        with pytest.raises(DataError, match="must be what its suffix says, found a web page"):
            open_data(tmp_path / name)


# --- limit, loss


def test_the_limit_draws_rows_of_both_splits():
    data = open_data({"x": X, "y": Y, "x_test": X, "y_test": Y}, limit=5, dtype="float64")
    again = open_data({"x": X, "y": Y, "x_test": X, "y_test": Y}, limit=5, dtype="float64")
    assert len(data.x) == len(data.x_test) == 5
    assert_close(data.x, again.x, rtol=0, atol=0)
    order = [X.tolist().index(row.tolist()) for row in data.x]
    assert order == sorted(order)
    assert order != list(range(5))  # not just the first rows, which may be of one class
    assert data.y.tolist() == Y[order].tolist()
    for rows in ("examples", "test examples"):
        assert f"kept 5 of 12 {rows}, drawn with seed 0" in data.notes
    assert len(open_data((X, Y), limit=99).x) == 12
    with pytest.raises(ValueError, match="limit must be at least 1, found 0"):
        open_data((X, Y), limit=0)


def test_the_loss_follows_the_labels_or_is_refused():
    real = X[:, 0]
    assert open_data((X, real)).loss == "mse"
    assert open_data((X, Y), loss="mse").loss == "mse"
    assert open_data((X, Y), loss="bce_logits").loss == "bce_logits"
    with pytest.raises(DataError, match="loss cross_entropy must have classes as labels"):
        open_data((X, real), loss="cross_entropy")
    with pytest.raises(DataError, match="loss mse must have labels, found none"):
        open_data(X, loss="mse")
    with pytest.raises(ValueError, match="loss must be one of 'auto', 'mse'"):
        open_data((X, Y), loss="hinge")


def test_unknown_device_and_precision():
    with pytest.raises(ValueError, match="device must be auto"):
        open_data((X, Y), device="tpu")
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        open_data((X, Y), dtype=torch.float16)
