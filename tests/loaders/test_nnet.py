"""Networks in .nnet files: the layers as they stand there, and what is wrong with a bad one."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import open_model

WEIGHTS = Path(__file__).parents[3] / "shared" / "weights"

TINY = """// a remark
2,2,1,3,
2,3,1,
0,
-1.0,-1.0,
1.0,1.0,
0.5,10.0,0.25,
2.0,4.0,8.0,
1.0,2.0,
-1.0,0.5,
0.0,1.0,
0.1,
0.2,
0.3,
1.0,-1.0,2.0,
-0.5,
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.nnet"
    path.write_text(TINY)
    return path


def test_a_network_is_computed_as_by_hand(tiny):
    opened = open_model(tiny)
    x = torch.tensor([[1.0, -2.0], [0.3, 0.4]])
    hidden = torch.relu(
        x @ torch.tensor([[1.0, -1, 0], [2, 0.5, 1]]) + torch.tensor([0.1, 0.2, 0.3])
    )
    assert_close(opened.model(x), hidden @ torch.tensor([[1.0], [-1.0], [2.0]]) - 0.5)
    assert [type(part) for part in opened.model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert "--normalise 0.5,10/2,4" in opened.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("2,3,1,\n", "2,300000000,1,\n", "lines of 2 numbers as the weights of layer 0"),
        ("2,3,1,\n", "2,3.5,1,\n", "integers as sizes"),
        ("2,3,1,\n", "2,3,\n", "the sizes of 2 layers"),
        ("2,2,1,3,\n", "2,-2,1,3,\n", "integers as sizes"),
        ("1.0,2.0,\n", "1.0,\n", r"lines of 2 numbers as the weights of layer 0, found 1"),
        ("0.1,\n", "zebra,\n", "zebra"),
        ("-0.5,\n", "", "the end of the file"),
        ("-0.5,\n", "-0.5,\n7.0,\n", "found 16"),
        ("2.0,4.0,8.0,\n", "2.0,\n", "2 numbers in line 7"),
        (TINY, "", "a header of 7 lines"),
    ],
)
def test_a_damaged_file_is_refused(tiny, old, new, text):
    tiny.write_text(TINY.replace(old, new, 1))
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(tiny)


def test_bytes_that_are_no_text_and_large_files_are_refused(tiny):
    tiny.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnsupportedModelError, match="of numbers"):
        open_model(tiny)
    tiny.write_text(TINY)
    with pytest.raises(DataError, match="must unpack to at most"):
        open_model(tiny, max_size=10)


@pytest.mark.skipif(not (WEIGHTS / "acasxu").is_dir(), reason="needs ../shared/weights")
@pytest.mark.parametrize("path", sorted((WEIGHTS / "acasxu").glob("*.nnet")), ids=lambda p: p.stem)
def test_acas_xu(path):
    model = open_model(path).model
    assert [part.out_features for part in model[::2]] == [50] * 6 + [5]
    assert model(torch.zeros(1, 5)).isfinite().all()
