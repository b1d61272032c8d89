"""Writes checkpoints and updates of a recording, within the bytes that it may take on disk."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from inscape.training.loop_log import LoopLog
from inscape.training.recording_folder import RecordingFolder

#: Bytes of updates in memory above which they are written without a checkpoint.
PENDING = 2**25


class DiskBudgetError(OSError):
    """Another file would exceed the bytes that the recording may take."""


class RecordingWriter:
    """Writes what a log holds, thins out checkpoints where the disk budget is reached.

    Attributes:
        folder: The folder that is written.
        every: Updates between two checkpoints; twice as many each time they are thinned out.
    """

    def __init__(
        self, path: Path, log: LoopLog, *, every: int, disk: int, note: Callable[[str], None]
    ) -> None:
        self.folder, self._log = RecordingFolder(path), log
        self.every, self._disk, self._note = every, disk, note

    @property
    def last(self) -> int | None:
        """Return the step of the last checkpoint."""
        return max(self.folder.checkpoints, default=None)

    def flush(self, shape: tuple[int, int]) -> None:
        """Write the updates since the last flush, if there are any.

        Args:
            shape: Numbers of parameter groups and of hyper-parameters.
        """
        if self._log.first == self._log.steps:
            return
        first = self._log.first
        arrays = self._log.flush(*shape)
        self._make_room(arrays)
        self.folder.steps(first, arrays)

    def flush_if_large(self, shape: tuple[int, int]) -> None:
        """Write the updates since the last flush where they take much memory."""
        if self._log.bytes > PENDING:
            self.flush(shape)

    def checkpoint(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor]
    ) -> None:
        """Write weights and optimiser state as they are now."""
        arrays = {f"states/{k}": _copy(t) for k, t in model.state_dict().items()}
        for number, parameter in enumerate(parameters):
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor | int | float):
                    arrays[f"memory/{number}.{key}"] = _copy(torch.as_tensor(value))
        self._make_room(arrays)
        self.folder.checkpoint(self._log.steps, arrays)

    def _make_room(self, arrays: Mapping[str, Tensor]) -> None:
        """Thin out checkpoints until these arrays fit; raise where that does not help."""
        size = sum(t.numel() * t.element_size() for t in arrays.values())
        while self.folder.bytes + size > self._disk:
            if len(self.folder.checkpoints) < 2:
                raise DiskBudgetError(f"{size:,} bytes more would exceed disk={self._disk:,} bytes")
            self.folder.thin()
            self.every *= 2
            self._note(
                f"disk={self._disk:,} bytes were reached: every other checkpoint is deleted, and "
                "the next ones are twice as far apart."
            )


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)
