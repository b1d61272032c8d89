"""The folder of a recorded training: written piece by piece, each whole or not at all.

``about.json`` says what was trained; ``checkpoint-*.npz`` hold weights and optimiser state after
so many updates; ``steps-*.npz`` what the updates from that one on did. Whatever interrupts the
writing, what is there opens as a shorter training.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.errors import DataError
from inscape.files.archives import declared_size, read_npz
from inscape.files.atomic import write, written
from inscape.files.size_limits import check_size
from inscape.training.loop_record import LoopRecord, joined

ABOUT = "about.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,15})\.npz")
_STEPS = re.compile(r"steps-(\d{1,15})\.npz")
#: Bytes that the description of a training may take: names of parameters and modules.
_LARGEST_ABOUT = 1 << 26


class RecordingFolder:
    """Writes a recorded training, and counts the bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._checkpoints: dict[int, int] = {}

    @property
    def checkpoints(self) -> list[int]:
        """Return the steps of the checkpoints there are."""
        return sorted(self._checkpoints)

    def describe(self, about: Mapping[str, Any]) -> None:
        """Write what was trained."""
        write(self.path / ABOUT, json.dumps(about).encode())

    def checkpoint(self, step: int, arrays: Mapping[str, Tensor]) -> None:
        """Write weights and optimiser state after so many updates."""
        size = self._write(f"checkpoint-{step:09d}.npz", arrays)
        self._checkpoints[step] = size

    def steps(self, first: int, arrays: Mapping[str, Tensor]) -> None:
        """Write what the updates from one on did."""
        self._write(f"steps-{first:09d}.npz", arrays)

    def thin(self) -> None:
        """Delete every other checkpoint; the first one stays."""
        for step in self.checkpoints[1::2]:
            (self.path / f"checkpoint-{step:09d}.npz").unlink(missing_ok=True)
            self.bytes -= self._checkpoints.pop(step)

    def _write(self, name: str, arrays: Mapping[str, Tensor]) -> int:
        path = self.path / name
        with written(path) as file:
            np.savez(file, allow_pickle=False, **{k: t.numpy() for k, t in arrays.items()})
        size = path.stat().st_size
        self.bytes += size
        return size


def is_recording(path: Path) -> bool:
    """Return whether a path is the folder of a recorded training."""
    return path.is_dir() and (path / ABOUT).is_file()


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse a folder in use; a recording that is there only where it may be deleted."""
    if is_recording(path):
        if not overwrite:
            raise ValueError(
                f"to must be a new folder, found a recording in {path}: choose another name, "
                "or pass overwrite=True to delete it."
            )
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            f"to must be a new or empty folder, found {path} in use (no {ABOUT} in it): "
            "choose another name."
        )


def read_about(path: Path) -> dict[str, Any]:
    """Return what was trained, as it is described in a folder."""
    file = path / ABOUT
    if not file.is_file():
        raise DataError(
            f"{path} must be the folder of a recorded training, found no {ABOUT} in it: name the "
            "folder that inscape.record_training wrote."
        )
    check_size(file, file.stat().st_size, max_size=_LARGEST_ABOUT)
    about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return about


def read_checkpoints(
    path: Path,
    last: int,
    *,
    only: Sequence[int] | None = None,
    max_size: int | None = None,
) -> tuple[list[int], dict[str, Tensor], dict[str, Tensor]]:
    """Return the steps of the checkpoints up to one, and weights and optimiser state, stacked.

    Args:
        path: The folder.
        last: The last checkpoint to read.
        only: The checkpoints to read, if not all.
        max_size: Bytes that they may take.
    """
    files = {step: file for step, file in _numbered(path, _CHECKPOINT).items() if step <= last}
    if 0 not in files:
        raise DataError(
            f"{path} must hold the checkpoint before the first update, found none: the recording "
            "ended before it began; train again."
        )
    if only is not None:
        files = {step: file for step, file in files.items() if step in only}
    check_size(path, sum(map(declared_size, files.values())), max_size=max_size)
    shelves: dict[str, list[Tensor]] = {}
    for number, file in enumerate(files[step] for step in sorted(files)):
        arrays = _read(file, max_size)
        for name, array in arrays.items():
            shelf = shelves.setdefault(name, [])
            late = name.startswith("states/") and len(shelf) != number
            if late or (shelf and not _alike(shelf[0], array)):
                raise DataError(f"{file} has other weights than the checkpoints before it.")
            shelf.append(array)
    stacked = {name: torch.stack(shelf) for name, shelf in shelves.items()}
    return sorted(files), _under("states/", stacked), _under("memory/", stacked)


def read_steps(path: Path, *, max_size: int | None = None) -> dict[str, Tensor]:
    """Return what the updates did, up to the first that is missing; empty if there are none."""
    parts: list[dict[str, Tensor]] = []
    files = _numbered(path, _STEPS)
    check_size(path, sum(map(declared_size, files.values())), max_size=max_size)
    step = 0
    for first in sorted(files):
        if first != step:
            break
        parts.append(_read(files[first], max_size))
        step += len(parts[-1]["counts"])
    return joined(parts)


def last_whole(path: Path, steps: int) -> int:
    """Return the last checkpoint whose updates before it are all known."""
    return max((step for step in _numbered(path, _CHECKPOINT) if step <= steps), default=0)


def loop_of(about: Mapping[str, Any], arrays: Mapping[str, Tensor], last: int) -> LoopRecord:
    """Return the updates up to a checkpoint."""
    return LoopRecord.of(about, arrays).cut(last)


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype is other.dtype


def _numbered(path: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    named: Sequence[tuple[re.Match[str] | None, Path]] = [
        (pattern.fullmatch(file.name), file) for file in path.iterdir()
    ]
    return {int(match[1]): file for match, file in named if match and file.is_file()}


def _read(file: Path, max_size: int | None) -> dict[str, Tensor]:
    with file.open("rb") as opened:
        arrays = read_npz(opened, name=file, max_size=max_size)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
