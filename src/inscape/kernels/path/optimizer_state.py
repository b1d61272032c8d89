"""Optimiser state split by sample: first moments, and contributions to the weights.

An update is linear in the gradients of all samples so far, once its denominators are known. So each
sample has its own first moment with the same recursion, and these sum to the moment of the batch.
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
from inscape.kernels.path.linear_chain import SampleGradients
from inscape.training.settings import FitSettings

#: Bytes of a chunk of rows, beyond one row.
CHUNK = 2**24

#: Rows beside those of samples: weight decay (or the initial weights), and penalties.
EXTRA_ROWS = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class UpdateGradients:
    """The gradients of one update: of its samples, of penalties, and the weights before it.

    ``which`` are the indices of the samples in its batch, and ``rows`` selects them.
    """

    rows: slice | Int64[Tensor, " b"]
    which: Int64[Tensor, " b"]
    gradients: SampleGradients
    penalty: Float64[Tensor, " p"] | None
    old: Float64[Tensor, " p"]


class SampleMoments:
    """First moments of each sample, of decay and of penalties, and their parts of the weights.

    Stored in memory, or in an unnamed temporary file that is deleted with this object.
    """

    def __init__(
        self,
        settings: FitSettings,
        samples: int,
        start: Float64[Tensor, " p"],
        *,
        shared: bool,
        disk: Path | None,
    ) -> None:
        self._settings, self._samples, self._parameters = settings, samples, len(start)
        self._sgd = settings.optimizer == "sgd"
        memory = not self._sgd or settings.momentum > 0
        shape = (samples + EXTRA_ROWS, len(start))
        self._moments = _zeros(shape, disk) if memory else None
        self._weights = _zeros(shape, disk) if shared else None
        if self._weights is not None:
            self._weights[samples] = start

    def chunks(self) -> Iterator[slice]:
        """Yield slices of all rows."""
        rows = rows_at_once(self._parameters)
        for first in range(0, self._samples + EXTRA_ROWS, rows):
            yield slice(first, min(first + rows, self._samples + EXTRA_ROWS))

    def advance(self, step: UpdateGradients) -> None:
        """Update the moments with the gradients of an update."""
        if self._moments is None:
            return
        settings = self._settings
        decay = settings.momentum if self._sgd else settings.betas[0]
        weight = 1.0 if self._sgd else 1 - decay
        for chunk in self.chunks():
            self._moments[chunk].mul_(decay).add_(self._gradients(step, chunk), alpha=weight)

    def used(self, step: UpdateGradients, chunk: slice) -> Float64[Tensor, "m p"]:
        """Return the direction of the update for some rows."""
        if self._moments is None:
            return self._gradients(step, chunk)
        if not self._settings.nesterov:
            return self._moments[chunk]
        return self._gradients(step, chunk).add_(
            self._moments[chunk], alpha=self._settings.momentum
        )

    def weights(self, chunk: slice) -> Float64[Tensor, "m p"] | None:
        """Return the parts of some rows in the weights before the update, if they are stored."""
        return None if self._weights is None else self._weights[chunk]

    def move(self, step: UpdateGradients, scale: float | Tensor, shrink: float) -> None:
        """Apply the update to the parts of the weights: minus ``scale`` times the direction."""
        if self._weights is None:
            return
        for chunk in self.chunks():
            steps = self.used(step, chunk) * scale
            self._weights[chunk].mul_(shrink).sub_(steps)

    def _gradients(self, step: UpdateGradients, chunk: slice) -> Float64[Tensor, "m p"]:
        """Return the terms of some rows in the gradient of the update."""
        gradients = step.old.new_zeros(chunk.stop - chunk.start, self._parameters)
        in_chunk = ((step.which >= chunk.start) & (step.which < chunk.stop)).nonzero().flatten()
        if len(in_chunk):
            gradients[step.which[in_chunk] - chunk.start] = step.gradients.dense(in_chunk)
        decay = 0.0 if self._settings.optimizer == "adamw" else self._settings.weight_decay
        if decay and self._weights is not None:
            gradients.add_(self._weights[chunk], alpha=decay)
        elif decay and chunk.start <= self._samples < chunk.stop:
            gradients[self._samples - chunk.start] = decay * step.old
        if step.penalty is not None and chunk.start <= self._samples + 1 < chunk.stop:
            gradients[self._samples + 1 - chunk.start] += step.penalty
        return gradients


def rows_at_once(parameters: int) -> int:
    """Return the number of rows of a chunk."""
    return max(1, CHUNK // (8 * parameters))


def _zeros(shape: tuple[int, int], disk: Path | None) -> Float64[Tensor, "n p"]:
    if disk is None:
        return torch.zeros(shape, dtype=torch.float64)
    with tempfile.TemporaryFile(dir=disk) as file:
        return torch.from_numpy(np.memmap(file, dtype=np.float64, mode="w+", shape=shape))


def refuse_full(disk: Path, needed: int) -> None:
    """Raise if a folder has no space for the temporary file."""
    free = shutil.disk_usage(disk).free
    if needed > free:
        raise BudgetError(
            f"the moments of all samples take {needed:,} bytes on disk, found {free:,} free in "
            f"{disk}: choose another folder, or use path_kernel on a recorded training."
        )
