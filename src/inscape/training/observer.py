"""Something that looks on at a training while it runs."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from inscape.training.trajectory import Settings
from inscape.training.update import Update


@runtime_checkable
class Watcher(Protocol):
    """Told of the start of a training and of each of its updates; it must change nothing.

    :class:`inscape.kernels.PathWatch` is one.
    """

    def begin(self, update: Update, x: Tensor, y: Tensor, settings: Settings) -> None:
        """Look at the training before its first update."""
        ...

    def step(self, rows: slice | Tensor, rate: float) -> None:
        """Look at it after an update with some rows of the data and a learning rate."""
        ...
