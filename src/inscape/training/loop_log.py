"""Log of the updates of a loop since it was last written to disk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inscape.training.loop_record import IN_DATA, NOT_KEPT


@dataclass(eq=False, kw_only=True)
class LoggedBatch:
    """A batch of the loop: numbers of its rows, and where their values are; None: in the data."""

    rows: Tensor
    sources: Tensor | None
    random: Tensor | None
    hash: int
    bytes: int


@dataclass(eq=False, kw_only=True)
class LoggedUpdate:
    """An update of the optimizer: hyper-parameters, norm of its gradient, loss scale."""

    options: list[list[float]]
    norm: Tensor
    scale: float


@dataclass(eq=False)
class LoopLog:
    """Updates since the last flush, and counters over all flushes."""

    steps: int = 0
    first: int = 0
    states: int = 0
    bytes: int = 0
    kept_rows: int = 0
    kept_bytes: int = 0
    shape: object = None
    _batches: list[LoggedBatch] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)
    _updates: list[LoggedUpdate] = field(default_factory=list)
    _kept_x: list[Tensor] = field(default_factory=list)
    _kept_y: list[Tensor] = field(default_factory=list)

    def add(self, update: LoggedUpdate, batches: Sequence[LoggedBatch]) -> None:
        """Keep an update and its batches; none if the loop did not tell them."""
        self._updates.append(update)
        self._batches += batches
        self._counts.append(len(batches))
        self.steps += 1
        self.bytes += sum(batch.bytes for batch in batches) + 8 * (len(update.options) * 16 + 4)

    def keep(self, x: Tensor, y: Tensor) -> Tensor:
        """Keep the values of some rows, and return their places; -2 for rows of another shape."""
        shape = (x.shape[1:], y.shape[1:], x.dtype, y.dtype)
        if self.shape not in (None, shape):
            return torch.full((len(x),), NOT_KEPT, dtype=torch.int64)
        self.shape = shape
        self._kept_x.append(x.detach().to("cpu", copy=True))
        self._kept_y.append(y.detach().to("cpu", copy=True))
        self.kept_rows += len(x)
        self.kept_bytes += x.numel() * x.element_size() + y.numel() * y.element_size()
        return torch.arange(self.kept_rows - len(x), self.kept_rows)

    def flush(self, groups: int, options: int) -> dict[str, Tensor]:
        """Return everything since the last flush as arrays, and forget it."""
        random: list[Tensor] = []
        random_of: list[int] = []
        for batch in self._batches:
            random_of.append(-1 if batch.random is None else self.states + len(random))
            if batch.random is not None:
                random.append(batch.random)
        empty = torch.zeros(0, dtype=torch.int64)
        arrays = {
            "rows": torch.cat([empty, *(batch.rows for batch in self._batches)]),
            "sources": torch.cat([empty, *map(_sources, self._batches)]),
            "sizes": torch.tensor([len(b.rows) for b in self._batches], dtype=torch.int64),
            "counts": torch.tensor(self._counts, dtype=torch.int64),
            "options": torch.tensor([u.options for u in self._updates], dtype=torch.float64).view(
                -1, groups, options
            ),
            "norms": torch.tensor([float(u.norm) for u in self._updates], dtype=torch.float64),
            "scales": torch.tensor([u.scale for u in self._updates], dtype=torch.float64),
            "random_of": torch.tensor(random_of, dtype=torch.int64),
            "hashes": torch.tensor([b.hash for b in self._batches], dtype=torch.int64),
        }
        if random:
            arrays["random"] = torch.stack(random)
        elif not self.first:
            arrays["random"] = torch.zeros(0, 0, dtype=torch.uint8)
        if self._kept_x:
            arrays |= {"kept_x": torch.cat(self._kept_x), "kept_y": torch.cat(self._kept_y)}
        self.states += len(random)
        self.first, self.bytes = self.steps, 0
        for pending in (self._batches, self._counts, self._updates, self._kept_x, self._kept_y):
            pending.clear()
        return arrays


def _sources(batch: LoggedBatch) -> Tensor:
    return torch.full_like(batch.rows, IN_DATA) if batch.sources is None else batch.sources


def rows_of_data(indices: Any, n: int) -> Tensor:
    """Return numbers of rows as a tensor; refuse those that the data do not have."""
    rows = torch.as_tensor(indices, device="cpu")
    if rows.dtype is not torch.int64 or rows.ndim != 1:
        rows = _flat_integers(rows)
    numbers = rows.tolist()  # quicker than tensors at the size of a batch
    if numbers and not (min(numbers) >= 0 and max(numbers) < n):
        raise ValueError(
            f"numbers of rows must lie between 0 and {n - 1}, found {min(numbers)} to "
            f"{max(numbers)}: pass numbers of rows of data=(x, y)."
        )
    return rows


def _flat_integers(rows: Tensor) -> Tensor:
    """Return numbers of rows, or the places where a mask is true, as one row of integers."""
    if rows.dtype is torch.bool:
        rows = rows.flatten().nonzero()
    if rows.is_floating_point() or rows.is_complex():
        raise TypeError(
            f"run.step(indices) needs the numbers of rows, found {rows.dtype}: pass integers, or "
            "the batch itself as run.step(xb, yb)."
        )
    return rows.flatten().long()


def plain_options(group: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Return the hyper-parameters of a parameter group as kinds and numbers; NaN is None."""
    options: dict[str, tuple[str, float]] = {}
    for key, value in group.items():
        if key in ("params", "param_names", "initial_lr"):
            continue
        entries = {key: value}
        if isinstance(value, tuple):
            entries = {f"{key}.{place}": entry for place, entry in enumerate(value)}
        for name, entry in entries.items():
            if entry is None:
                options[name] = ("bool", math.nan)
            elif isinstance(entry, bool | int | float | Tensor):
                options[name] = ("bool" if isinstance(entry, bool) else "float", float(entry))
    return options


def option_values(group: dict[str, Any], names: Sequence[tuple[str, int | None]]) -> list[float]:
    """Return the hyper-parameters of a group by name, as numbers."""
    values = []
    for key, place in names:
        value = group[key] if place is None else group[key][place]
        values.append(math.nan if value is None else float(value))
    return values


def split_names(names: Sequence[str]) -> list[tuple[str, int | None]]:
    """Return the key of every hyper-parameter, and its place if it is part of a tuple."""
    parts = (name.partition(".") for name in names)
    return [(key, int(place) if dot else None) for key, dot, place in parts]
