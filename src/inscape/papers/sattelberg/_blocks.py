"""Blocks of a matrix of networks: means over the pairs of two groups, and contrasts of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.quantities import Mean
from inscape.lab.records import Record

Array = npt.NDArray[np.float64]
FAMILIES = {"conv": ("simple", "complex"), "curved": ("dense", "simple", "complex")}


@dataclass(frozen=True)
class Group:
    """Networks of some architectures, by one optimizer or by any."""

    nets: tuple[str, ...]
    optimizer: str = ""

    def __contains__(self, name: object) -> bool:
        """Tell whether a network belongs to the group, by its name."""
        net, *_, optimizer = str(name).split()
        return net in self.nets and self.optimizer in ("", optimizer)


def group(net: str, optimizer: str = "") -> Group:
    """Return a group by the name of an architecture or a family."""
    return Group(FAMILIES.get(net, (net,)), optimizer)


SGD, ADAMW = "SGD", "AdamW"
#: Groups with one optimizer each, and with any.
CONV, DENSE, CURVED, LINEAR = (group(name) for name in ("conv", "dense", "curved", "linear"))
PRETRAINED = group("mobilenet")
OWN = Group(("linear", "dense", "simple", "complex"))


def by(optimizer: str, of: Group) -> Group:
    """Return the networks of a group that an optimizer trained."""
    return replace(of, optimizer=optimizer)


@dataclass(frozen=True)
class Block:
    """Pairs of two groups, row first; without ``others``, of different networks of one group."""

    rows: Group
    others: Group | None = None
    without: tuple[Group, ...] = ()

    def cells(self, names: list[str]) -> list[tuple[int, int]]:
        """Return the places of the pairs; no network is beside itself."""
        columns = self.rows if self.others is None else self.others
        return [
            (i, j)
            for i, row in enumerate(names)
            for j, column in enumerate(names)
            if i != j
            and row in self.rows
            and column in columns
            and not any(row in each and column in each for each in self.without)
        ]

    def mask(self, names: list[str]) -> Any:
        """Return an index of the pairs in a matrix."""
        cells = self.cells(names)
        return [i for i, _ in cells], [j for _, j in cells]


def matrix(record: Record, of: str) -> Array:
    """Return a matrix of a record; NaN where a measure is not defined."""
    return np.array(record.values[of], dtype=float)


def mean(record: Record, of: str, *blocks: Block) -> float:
    """Return the mean of a matrix over the pairs of blocks; NaN without any."""
    names, values = record.values["names"], matrix(record, of)
    numbers = np.array([values[cell] for block in blocks for cell in block.cells(names)])
    numbers = numbers[np.isfinite(numbers)]
    return float(numbers.mean()) if len(numbers) else float("nan")


def average(records: Iterable[Record], of: str) -> Array:
    """Return the mean of matrices; NaN where a measure is not defined for one of them."""
    averaged: Array = np.array([matrix(record, of) for record in records]).mean(0)
    return averaged


Blocks = tuple[Block, ...]
Reader = Callable[[Record], float | None]


def finite(read: Callable[[Record], float]) -> Reader:
    """Return a reader that gives nothing where a record has no such networks."""

    def reading(record: Record) -> float | None:
        value = read(record)
        return value if np.isfinite(value) else None

    return reading


def contrast(of: str, first: Blocks, second: Blocks, *, log: bool = False) -> Mean:
    """Return how much the first blocks exceed the second: a difference, or decades."""

    def read(record: Record) -> float:
        a, b = (mean(record, of, *blocks) for blocks in (first, second))
        return float(np.log10(a / b)) if log else a - b

    return Mean(finite(read))


def above_all(record: Record, of: str, first: Iterable[str], others: Iterable[str]) -> float:
    """Return the decades by which the largest row mean of some networks exceeds that of others."""
    names, values = record.values["names"], matrix(record, of)
    rows = {
        name: float(np.mean([values[i, j] for j in range(len(names)) if j != i]))
        for i, name in enumerate(names)
    }
    largest = [max((rows[name] for name in some), default=np.nan) for some in (first, others)]
    return float(np.log10(largest[0] / largest[1]))


def separation(record: Record, of: str, far: Group, near: Group) -> float:
    """Return the chance that a pair with one far network lies farther apart than a near pair."""
    names, values = record.values["names"], matrix(record, of)
    one = np.array([values[cell] for cell in Block(far, near).cells(names)])
    two = np.array([values[cell] for cell in Block(near).cells(names)])
    if not len(one) or not len(two):
        return float("nan")
    return float((one[:, None] > two).mean() + 0.5 * (one[:, None] == two).mean())


def draw_matrix(ax: Any, names: list[str], values: Array, *, top: float, low: float = 0.0) -> Any:
    """Draw a matrix of networks, sets averaged; what is not defined stays empty."""
    image = ax.imshow(values, vmin=low, vmax=top, cmap="cividis")
    ticks = range(len(names))
    ax.set_xticks(ticks, names, rotation=90, fontsize=6)
    ax.set_yticks(ticks, names, fontsize=6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image
