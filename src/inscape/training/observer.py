"""The protocol of an observer of a training."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from inscape.training.settings import FitSettings
from inscape.training.update import Update


@runtime_checkable
class Watcher(Protocol):
    """An observer that is called at the start of a training and after each update.

    It must not change the training.

    :class:`inscape.kernels.PathWatch` is one.
    """

    def begin(self, update: Update, x: Tensor, y: Tensor, settings: FitSettings) -> None:
        """Observe the training before its first update."""
        ...

    def step(self, rows: slice | Tensor, rate: float) -> None:
        """Observe an update, made with the samples ``rows`` of the data and a learning rate."""
        ...
