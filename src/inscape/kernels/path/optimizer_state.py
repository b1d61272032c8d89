"""What a training carries for each of its samples: moments, and shares of the weights.

An update is linear in the gradients of all samples so far, once its denominators are known. So each
sample has a first moment of its own, which obeys the rule of the whole one, and they add up to it.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape.errors import BudgetError
from inscape.kernels.tangent.linear_chain import Parts
from inscape.training.trajectory import Settings

#: Bytes of rows that are worked on at once, beyond one row.
CHUNK = 2**24

#: Rows beside those of samples: weight decay (or the initial weights), and penalties.
OTHERS = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """One update, as far as the parts of samples in its gradient go.

    ``which`` are the numbers of the samples in its batch, and ``rows`` an index of them.
    """

    rows: slice | Int64[Tensor, " b"]
    which: Int64[Tensor, " b"]
    gradients: Parts
    penalty: Float64[Tensor, " p"] | None
    old: Float64[Tensor, " p"]


class Carried:
    """One row of moments for each sample, one for decay and one for penalties, and so for weights.

    Rows are in memory or in a temporary file, which has no name and is gone with this object.
    """

    def __init__(
        self,
        settings: Settings,
        samples: int,
        start: Float64[Tensor, " p"],
        *,
        shared: bool,
        disk: Path | None,
    ) -> None:
        self._settings, self._samples, self._parameters = settings, samples, len(start)
        self._by_sgd = settings.optimizer == "sgd"
        memory = not self._by_sgd or settings.momentum > 0
        shape = (samples + OTHERS, len(start))
        self._moments = _zeros(shape, disk) if memory else None
        self._weights = _zeros(shape, disk) if shared else None
        if self._weights is not None:
            self._weights[samples] = start

    def chunks(self) -> Iterator[slice]:
        """Yield all rows, some at a time."""
        rows = rows_at_once(self._parameters)
        for first in range(0, self._samples + OTHERS, rows):
            yield slice(first, min(first + rows, self._samples + OTHERS))

    def advance(self, step: Step) -> None:
        """Put the gradients of an update into the moments."""
        if self._moments is None:
            return
        settings = self._settings
        kept = settings.momentum if self._by_sgd else settings.betas[0]
        taken = 1.0 if self._by_sgd else 1 - kept
        for chunk in self.chunks():
            self._moments[chunk].mul_(kept).add_(self._own(step, chunk), alpha=taken)

    def used(self, step: Step, chunk: slice) -> Float64[Tensor, "m p"]:
        """Return what the update makes its step of, some rows of it."""
        if self._moments is None:
            return self._own(step, chunk)
        if not self._settings.nesterov:
            return self._moments[chunk]
        return self._own(step, chunk).add_(self._moments[chunk], alpha=self._settings.momentum)

    def weights(self, chunk: slice) -> Float64[Tensor, "m p"] | None:
        """Return the shares of some rows in the weights before the update, if they are carried."""
        return None if self._weights is None else self._weights[chunk]

    def move(self, step: Step, scale: float | Tensor, shrink: float) -> None:
        """Make the step for the shares in the weights: minus ``scale`` times what is used."""
        if self._weights is None:
            return
        for chunk in self.chunks():
            moved = self.used(step, chunk) * scale
            self._weights[chunk].mul_(shrink).sub_(moved)

    def _own(self, step: Step, chunk: slice) -> Float64[Tensor, "m p"]:
        """Return the parts of some rows in the gradient of the update."""
        found = step.old.new_zeros(chunk.stop - chunk.start, self._parameters)
        inside = ((step.which >= chunk.start) & (step.which < chunk.stop)).nonzero().flatten()
        if len(inside):
            found[step.which[inside] - chunk.start] = step.gradients.written(inside)
        decay = 0.0 if self._settings.optimizer == "adamw" else self._settings.weight_decay
        if decay and self._weights is not None:
            found.add_(self._weights[chunk], alpha=decay)
        elif decay and chunk.start <= self._samples < chunk.stop:
            found[self._samples - chunk.start] = decay * step.old
        if step.penalty is not None and chunk.start <= self._samples + 1 < chunk.stop:
            found[self._samples + 1 - chunk.start] += step.penalty
        return found


def rows_at_once(parameters: int) -> int:
    """Return how many rows are worked on at once."""
    return max(1, CHUNK // (8 * parameters))


def _zeros(shape: tuple[int, int], disk: Path | None) -> Float64[Tensor, "n p"]:
    if disk is None:
        return torch.zeros(shape, dtype=torch.float64)
    with tempfile.TemporaryFile(dir=disk) as file:
        return torch.from_numpy(np.memmap(file, dtype=np.float64, mode="w+", shape=shape))


def refuse_full(disk: Path, needed: int) -> None:
    """Refuse a folder that has no room for a temporary file."""
    free = shutil.disk_usage(disk).free
    if needed > free:
        raise BudgetError(
            f"the moments of all samples take {needed:,} bytes on disk, found {free:,} free in "
            f"{disk}: choose another folder, or use path_kernel on a recorded training."
        )
