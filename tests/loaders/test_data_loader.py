"""Loaders are read to the end or to the limit, and no random state moves."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from inscape.errors import DataError
from inscape.loaders import open_data
from inscape.loaders.data_loader import _untouched

X = np.random.default_rng(0).normal(size=(12, 4)).round(3)
Y = np.arange(12) % 3


def test_a_loader_leaves_every_random_state_alone():
    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    own = torch.Generator().manual_seed(3)
    for loader in (
        DataLoader(data, batch_size=5, shuffle=True),
        DataLoader(data, batch_size=5, shuffle=True, generator=own),
    ):
        states = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        before = own.get_state()
        first, second = open_data(loader), open_data(loader)
        assert torch.equal(torch.random.get_rng_state(), states[0])
        assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
        assert torch.equal(own.get_state(), before)
        assert_close(first.x, second.x, rtol=0, atol=0)
        order = [X.tolist().index(row.tolist()) for row in open_data(loader, dtype="float64").x]
        assert sorted(order) == list(range(12))
        assert first.y.tolist() == Y[order].tolist()


def test_transforms_draw_the_same_numbers_each_time():
    class Noisy(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            noise = random.random() + np.random.random() + torch.rand(1).item()  # noqa: NPY002
            return super().__getitem__(index)[0] + noise

    loader = DataLoader(Noisy(torch.zeros(4, 2)))
    assert_close(open_data(loader).x, open_data(loader).x, rtol=0, atol=0)
    before = random.getstate()
    with _untouched(loader):
        random.random()
    assert random.getstate() == before


def test_a_loader_is_read_no_further_than_the_limit():
    seen = []

    class Rows(TensorDataset):
        def __getitem__(self, index: int) -> Any:
            seen.append(index)
            return super().__getitem__(index)

    loader = DataLoader(Rows(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=2)
    data = open_data(loader, limit=3)
    assert len(seen) == 4
    assert_close(data.x, torch.from_numpy(X[:3]).float())


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        yield from torch.from_numpy(X)


def test_a_stream_without_length_and_labels():
    data = open_data(DataLoader(Stream(), batch_size=5))
    assert_close(data.x, torch.from_numpy(X).float())
    assert data.y is None


class Failing(TensorDataset):
    def __getitem__(self, index: int) -> Any:
        raise KeyError("file 7 is gone")


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (DataLoader(Failing(torch.ones(3)), batch_size=2), "it raised KeyError: 'file 7 is gone'"),
        (DataLoader(TensorDataset(torch.ones(0, 2))), "at least one example, found none"),
        (DataLoader([(1, 2, 3)]), "x or a pair"),
        (DataLoader([torch.ones(2), torch.ones(3)]), r"one shape, found \(2,\) and \(3,\)"),
    ],
)
def test_bad_loaders(loader, said):
    with pytest.raises(DataError, match=said):
        open_data(loader)
