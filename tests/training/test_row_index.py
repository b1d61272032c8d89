"""Rows of batches are found in the data by their values, and told apart by every bit."""

import pytest
import torch

from inscape.training.batch_finder import BatchFinder
from inscape.training.loop_log import LoopLog
from inscape.training.row_index import SAMPLED, DataIndex, RowIndex


def test_hashes_tell_rows_apart_that_differ_in_one_bit():
    x = torch.zeros(65, 3, 5)
    x.view(65, -1)[torch.arange(1, 65), torch.arange(64) % 15] = torch.arange(1, 65).float()
    y = torch.zeros(65, dtype=torch.int64)
    index = RowIndex(x, y)
    assert index.numbers(index.hashes(x, y)) == list(range(65))
    assert index.numbers(index.hashes(x, y + 1)) == [-1] * 65
    assert index.numbers(index.hashes(-x, y)) == [-1] * 65


def rows(dtype, shape=(3, 5)):
    draws = torch.randn(200, *shape, generator=torch.Generator().manual_seed(0)) * 40
    return draws.to(dtype), torch.arange(200) % 7


@pytest.mark.parametrize("shape", [(3, 5), (4, 64), (1,), (129,)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8]
)
def test_rows_of_every_type_are_found(dtype, shape):
    x, y = rows(dtype, shape)
    x[0] = 0
    index = DataIndex(x, y)
    batch = torch.tensor([3, 199, 0, 3, 77])
    numbers = index.numbers(x[batch], y[batch])
    assert torch.equal(x[numbers].float(), x[batch].float())
    assert torch.equal(y[numbers], y[batch])
    assert torch.equal(index.numbers(x[batch].flatten(1), y[batch]), numbers)
    assert (numbers <= batch).all()  # rows that are alike have the number of the first


def test_a_change_between_the_sampled_words_is_seen():
    x, y = torch.zeros(4, 2 * SAMPLED, 4), torch.arange(4)
    index = DataIndex(x, y)
    batch = x.clone()
    batch[2, 1, 3] = 1e-30  # no word by which a row is looked up
    assert index.numbers(batch, y).tolist() == [0, 1, -1, 3]


def test_rows_that_share_the_sampled_words_are_told_apart():
    x, y = torch.zeros(5, 2 * SAMPLED, 4), torch.zeros(5, dtype=torch.int64)
    x[1:4, 1, 3] = torch.tensor([1.0, 2.0, 1.0])
    index = DataIndex(x, y)
    assert index.numbers(x, y).tolist() == [0, 1, 2, 1, 0]


def test_rows_of_another_size_or_with_other_targets_are_not_found():
    x, y = rows(torch.float32)
    index = DataIndex(x, y)
    assert index.numbers(x[:3].double(), y[:3]).tolist() == [-1, -1, -1]
    assert index.numbers(x[:3], y[:3] + 1).tolist() == [-1, -1, -1]
    assert index.numbers(x[:3].flip(-1), y[:3]).tolist() == [-1, -1, -1]
    assert index.numbers(x[:0], y[:0]).tolist() == []


def test_rows_of_black_images_are_known_by_as_many_values_as_it_takes():
    x, y = torch.zeros(50, 1, 28, 28), torch.zeros(50, dtype=torch.int64)
    x.view(50, -1)[torch.arange(50), 7 * torch.arange(50) + 3] = 1.0  # between the sampled ones
    index, rows = DataIndex(x, y), torch.tensor([7, 49, 0, 7])
    for ends in (False, True):
        assert torch.equal(index.numbers_if_known(x[rows], y[rows], ends=ends), rows)
    assert index.numbers_if_known(x[rows].flip(-1), y[rows]) is None


def test_a_batch_whose_rows_are_all_in_the_data_is_not_taken_for_an_augmentation():
    x, y = torch.randn(30, 4), torch.arange(30) % 3
    notes, log = [], LoopLog()
    finder = BatchFinder((x, y), log, notes.append, 10**6)
    moved = finder.logged((x[:3] + 1, y[:3]), None)
    assert any("not in the data" in note for note in notes)
    assert moved.sources is not None
    notes.clear()
    batch = finder.logged((x[5:9], y[5:9]), None)
    assert batch.rows.tolist() == [5, 6, 7, 8]
    assert batch.sources is None
    assert not notes
