"""Finds the rows of a batch in the training data, and keeps the values of those not in them."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.files.atomic import written
from inscape.training.forward_watch import Forward
from inscape.training.loop_log import LoggedBatch, LoopLog, rows_of_data
from inscape.training.loop_record import IN_DATA, NOT_KEPT
from inscape.training.row_index import Content, DataIndex, RowIndex, content, same_ends, same_rows
from inscape.training.trajectory import fingerprint

#: Bytes of a transformed batch above which it is not kept.
SMALL = 2**22
#: Batches at the beginning, and every so many, all of whose rows are compared with the data; all
#: batches from the first on that has other values.
FIRST, EVERY = 8, 16


class BatchFinder:
    """Knows the training data, and turns what a loop tells into numbers of rows."""

    def __init__(
        self,
        data: tuple[Tensor, Tensor] | None,
        log: LoopLog,
        note: Callable[[str], None],
        room: int,
    ) -> None:
        self._data, self._log, self._note, self._room = data, log, note, room
        self._index: DataIndex | None = None
        self._own_rows = RowIndex()
        self._own_x: list[Tensor] = []
        self._own_y: list[Tensor] = []
        self._batches = 0
        self._always = False
        self.size: int | None = None
        self.fingerprint = ""

    def logged(self, batch: tuple[Any, ...], forward: Forward | None) -> LoggedBatch:
        """Return a batch as it is recorded.

        Args:
            batch: Numbers of rows; or inputs and targets.
            forward: The forward pass of it, if one was seen.
        """
        if len(batch) == 1 and isinstance(batch[0], tuple | list) and len(batch[0]) == 2:
            pair = batch[0]
            batch = tuple(pair) if all(isinstance(part, Tensor) for part in pair) else batch
        if len(batch) not in (1, 2):
            raise TypeError(
                f"run.step takes the numbers of rows, or inputs and targets, found {len(batch)} "
                "arguments: call run.step(indices) or run.step(xb, yb)."
            )
        self._batches += 1
        if forward is None and self._batches == 1:
            self._note(
                "the model was not called in training mode before run.step: random draws of "
                "dropout cannot be replayed. Pass the module that the loop calls."
            )
        entry = self._by_values(*batch, forward) if len(batch) == 2 else self._by_number(
            batch[0], forward)  # fmt: skip
        if forward is not None and forward.drew:
            entry.random = forward.state
            entry.bytes += forward.state.numel()
        if self.size is None:
            self.size = len(entry.rows)
        return entry

    def write(self, folder: Path) -> None:
        """Write the data that were collected where the loop gave none, as ``data.npz``."""
        if self._data is not None or not self._own_x:
            return
        x, y = torch.cat(self._own_x), torch.cat(self._own_y)
        self.fingerprint = fingerprint(x, y)
        with written(folder / "data.npz") as file:
            np.savez(file, allow_pickle=False, x=x.numpy(), y=y.numpy())

    def _by_number(self, indices: Any, forward: Forward | None) -> LoggedBatch:
        if self._data is None or isinstance(indices, Mapping):
            raise ValueError(
                "run.step(indices) needs the data that the numbers are of, found none: pass "
                "data=(x, y) to record_training, or call run.step(xb, yb)."
            )
        rows = rows_of_data(indices, len(self._data[0]))
        received = None if forward is None else forward.x
        if received is None or self._same(rows, received):
            return _in_data(rows)
        return self._transformed(rows, received, self._data[1][rows])

    def _by_values(self, x: Tensor, y: Tensor, forward: Forward | None) -> LoggedBatch:
        if len(x) != len(y):
            raise ValueError(
                f"run.step(xb, yb) needs one target for every input, found {len(x)} and {len(y)}: "
                "pass the batch as the loss took it."
            )
        if self._data is None:
            return self._collected(x, y)
        if self._index is None:
            self._index = DataIndex(*self._data)
        known = self._index.numbers_if_known(x, y, ends=not self._all_rows)
        numbers = self._index.numbers(x, y) if known is None else known
        received = None if forward is None else forward.x
        if received is None or received.data_ptr() == x.data_ptr():
            received = x
        if received is not x and not _equal(received, x):
            return self._transformed(numbers, received, y)
        unknown = numbers < 0
        if known is not None or not bool(unknown.any()):
            return _in_data(numbers)
        self._note(
            "some rows of batches are not in the data (an augmentation, or other values); they are "
            "kept in the recording where they are small."
        )
        if bool(unknown.all()):
            return self._transformed(numbers, x, y)
        entry = self._transformed(numbers[unknown], x[unknown], y[unknown])
        sources = torch.full_like(numbers, IN_DATA)
        assert entry.sources is not None
        sources[unknown] = entry.sources
        entry.rows, entry.sources = numbers, sources
        return entry

    def _collected(self, x: Tensor, y: Tensor) -> LoggedBatch:
        """Return a batch of a loop without data: rows are numbered as they come."""
        hashes = self._own_rows.hashes(x, y)
        known = len(self._own_rows)
        numbers = torch.tensor([self._own_rows.add(key) for key in hashes])
        first: dict[int, int] = {}
        for place, number in enumerate(numbers.tolist()):
            if number >= known:
                first.setdefault(number, place)
        new = list(first.values())
        if new:
            own_x, own_y = x.detach().cpu()[new], y.detach().cpu()[new]
            if self._log.shape is not None or self._own_x:
                self._check_shape(own_x)
            places = self._log.keep(own_x, own_y)
            assert int(places[0]) == known
            self._own_x.append(own_x)
            self._own_y.append(own_y)
        entry = _in_data(numbers)
        entry.sources = numbers.clone()
        entry.bytes += sum(part[new].numel() * part.element_size() for part in (x, y))
        return entry

    def _check_shape(self, x: Tensor) -> None:
        shape = self._own_x[0].shape[1:]
        if x.shape[1:] != shape:
            raise ValueError(
                f"rows of all batches must have one shape, found {tuple(x.shape[1:])} after "
                f"{tuple(shape)}: pad them to one length."
            )

    def _transformed(self, rows: Tensor, x: Tensor, y: Tensor) -> LoggedBatch:
        """Return a batch whose values are not those of the data: kept if small, else its hash."""
        self._always = True
        size = x.numel() * x.element_size()
        entry = _in_data(rows)
        if size <= SMALL and self._log.kept_bytes + size <= self._room:
            entry.sources = self._log.keep(x, y)
            entry.bytes += size
        if entry.sources is None or bool((entry.sources < 0).any()):
            entry.sources = torch.full_like(rows, NOT_KEPT)
            total = sum(self._own_rows.hashes(x, y)) & (2**63 - 1)
            entry.hash = total
            self._note(
                "transformed batches are too large to be kept: only their hashes are, and "
                "explanations are first order only."
            )
        return entry

    def _same(self, rows: Tensor, received: Tensor) -> bool:
        """Return whether the model received the rows of the data, not transformed ones."""
        assert self._data is not None
        x = self._data[0]
        if received.shape != (len(rows), *x.shape[1:]) or received.dtype != x.dtype:
            raise ValueError(
                f"data must be as the model receives them, {tuple(received.shape[1:])} in "
                f"{received.dtype} for a row and {len(received)} rows, found "
                f"{tuple(x.shape[1:])} in {x.dtype} and {len(rows)} numbers: pass data=(x, y) in "
                "that form."
            )
        compared = same_rows if self._all_rows else same_ends
        return compared(self._inputs, rows.numpy(), content(received))

    @property
    def _all_rows(self) -> bool:
        """Return whether all rows of this batch are compared with the data, or its ends alone."""
        return self._always or self._batches <= FIRST or self._batches % EVERY == 0

    @cached_property
    def _inputs(self) -> Content:
        assert self._data is not None
        return content(self._data[0])


def _in_data(rows: Tensor) -> LoggedBatch:
    return LoggedBatch(rows=rows, sources=None, random=None, hash=0, bytes=16 * len(rows))


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.cpu(), b.cpu())
