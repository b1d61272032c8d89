"""Tables of text: headers, labels, delimiters, and what is wrong with them."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from inscape.errors import DataError
from inscape.loaders import open_data


def table(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_last_column_is_the_label_unless_said(tmp_path):
    path = table(tmp_path, "a,b,c\n1.5,0,2.5\n3.5,1,4.5\n")
    data = open_data(path)
    assert_close(data.x, torch.tensor([[1.5, 0], [3.5, 1]]))
    assert_close(data.y, torch.tensor([[2.5], [4.5]]))
    assert {"the first line was taken as a header", "y is the column 'c', the last one"} <= set(
        data.notes
    )
    data = open_data(path, target="b")
    assert_close(data.x, torch.tensor([[1.5, 2.5], [3.5, 4.5]]))
    assert data.y.tolist() == [0, 1]
    data = open_data(path, labels="none")
    assert data.x.shape == (2, 3)
    assert data.y is None


def test_names_of_classes_are_numbered_and_said(tmp_path):
    data = open_data(table(tmp_path, "1,2,dog\n3,4,cat\n5,6,dog\n"))
    assert data.y.tolist() == [1, 0, 1]
    assert "the classes 'cat', 'dog' are numbered from 0 in this order" in data.notes
    assert "the first line was taken as a header" not in data.notes


def test_row_numbers_are_left_out(tmp_path):
    data = open_data(table(tmp_path, ",a,y\n0,0.5,1\n1,0.25,0\n"))
    assert_close(data.x, torch.tensor([[0.5], [0.25]]))
    assert any("has no name (a row number)" in note for note in data.notes)


def test_a_header_may_hold_numbers_too(tmp_path):
    data = open_data(table(tmp_path, "label,0,1\n5,0.5,0.25\n4,1,2\n"), target="label")
    assert_close(data.x, torch.tensor([[0.5, 0.25], [1, 2]]))
    assert "the first line was taken as a header" in data.notes


def test_semicolons_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffa;y\n0.5;1\n0.25;0\n".encode())
    assert_close(open_data(path).x, torch.tensor([[0.5], [0.25]]))


def test_one_column_is_x(tmp_path):
    data = open_data(table(tmp_path, "0.5\n0.25\n"))
    assert data.x.tolist() == [[0.5], [0.25]]
    assert data.y is None


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a,b\n1,2\n3,x\n", {"labels": "none"}, "found 'x' in row 1 of the column 'b': encode or"),
        ("red,b\n1,2\ngreen,3\n", {}, "found 'green' in row 1 of the column 'red'"),
        (
            "a,b\n1,2\n,3\n",
            {},
            r"NaN or Inf in 1 of 2 examples, first in example 1 \(counted from 0\)",
        ),
        ("a,b\n1,cat\n2,\n", {}, "must have a label in every row, found none in row 1"),
        ("a,b\n1,2\n1,2,3,4\n", {}, "rows of one length, found one that cannot be read"),
        ("a,b\n1,2\n", {"target": "bb"}, "the column 'bb', found none: did you mean 'b'"),
        ("a,b\n1,2\n", {"target": "zzz"}, "the column 'zzz', found none: it has a, b"),
        ("\n \n", {}, "found blank lines only"),
        ("", {}, "found an empty file"),
        ("a,b\n", {}, r"x must hold at least one example, found shape \(0, 1\)"),
    ],
)
def test_bad_tables(tmp_path, text, options, said):
    with pytest.raises(DataError, match=said):
        open_data(table(tmp_path, text), **options)


def test_a_table_in_another_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe\x00,1\n")
    with pytest.raises(DataError, match="must be a table of text"):
        open_data(tmp_path / "t.csv")


def test_a_table_of_a_million_columns_is_not_begun(tmp_path):
    with pytest.raises(DataError, match=r"at most 200,000 columns, found 1,000,001: save it as"):
        open_data(table(tmp_path, "1," * 1_000_000 + "1\n"))


def test_target_belongs_to_tables():
    with pytest.raises(DataError, match=r"target must name a column of a \.csv"):
        open_data((torch.ones(2, 1), torch.ones(2)), target="a")
