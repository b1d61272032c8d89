"""What a training loop of the user's did at every update, beside its checkpoints: pure data.

:class:`LoopRecord` is a part of a :class:`~inscape.training.trajectory.Trajectory` that
:func:`inscape.training.record_training` has recorded. An update has one batch, or several whose
gradients were accumulated. A row of a batch is known by its number in the data, and its values are
those of the data, or kept here where they were others (an augmentation, or data nobody knows).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float64, Int64, UInt8
from torch import Tensor

from inscape.training.trajectory_form import loop_forms_fit

#: Sources of a row: the data themselves, or values that nobody has kept.
IN_DATA, NOT_KEPT = -1, -2
#: Number of a row that is not in the data.
UNKNOWN = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """The rows of one forward pass, and the random state before it, if it drew any numbers."""

    rows: Int64[Tensor, " n"]
    sources: Int64[Tensor, " n"]
    random: UInt8[Tensor, " bytes"] | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LoopRecord:
    """Batches, hyper-parameters and random states of all updates of a loop.

    Attributes:
        rows: Number of every row in the data, -1 if unknown; of all batches, one after the other.
        sources: -1 if the row is that of the data, else its place in ``kept_x``; -2 if not kept.
        sizes: Rows of every batch.
        counts: Batches of every update; 0 for one that the loop did not tell.
        options: Hyper-parameters of every update and parameter group.
        norms: Norm of the gradient that every update used; NaN where it is that of the batch.
        scales: What the loss was multiplied by (GradScaler); NaN if by nothing.
        random: Random states before forward passes that drew numbers.
        random_of: Which of them belongs to every batch; -1 for none.
        hashes: Hash of every batch whose rows were not kept; 0 for the others.
        kept_x: Inputs of rows that are not those of the data.
        kept_y: Their targets.
        option_names: Names of the hyper-parameters; ``betas.0`` is the first of a tuple.
        option_kinds: ``"float"`` or ``"bool"`` for each; NaN stands for None.
        groups: Names of the parameters in every group.
        evaluated: Names of modules that were in eval mode while the network was trained.
        autocast: Type of numbers under ``torch.autocast``, if the loop used it.
        accumulate: What a batch's loss was divided by.
        largest: Largest entry of a gradient where entries were clipped to it, else None.
        replayable: Whether updates can be made again from what is here.
        verdict: What replaying some updates at the end of the recording has shown.
        notes: What a reader should know: what was not recorded, and why.
    """

    rows: Int64[Tensor, " rows"]
    sources: Int64[Tensor, " rows"]
    sizes: Int64[Tensor, " batches"]
    counts: Int64[Tensor, " steps"]
    options: Float64[Tensor, "steps groups options"]
    norms: Float64[Tensor, " steps"]
    scales: Float64[Tensor, " steps"]
    random: UInt8[Tensor, "states bytes"]
    random_of: Int64[Tensor, " batches"]
    hashes: Int64[Tensor, " batches"]
    kept_x: Tensor | None = None
    kept_y: Tensor | None = None
    option_names: tuple[str, ...]
    option_kinds: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    evaluated: tuple[str, ...] = ()
    autocast: str | None = None
    accumulate: int = 1
    largest: float | None = None
    replayable: bool = True
    verdict: str = "not verified"
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Number of updates."""
        return len(self.counts)

    @cached_property
    def _first_batch(self) -> list[int]:
        return [0, *self.counts.cumsum(0).tolist()]

    @cached_property
    def _first_row(self) -> list[int]:
        return [0, *self.sizes.cumsum(0).tolist()]

    def batches(self, step: int) -> Iterator[Batch]:
        """Yield the batches of an update, in order."""
        for batch in range(self._first_batch[step], self._first_batch[step + 1]):
            own = slice(self._first_row[batch], self._first_row[batch + 1])
            state = int(self.random_of[batch])
            yield Batch(
                rows=self.rows[own],
                sources=self.sources[own],
                random=None if state < 0 else self.random[state],
            )

    def rows_of(self, step: int) -> Int64[Tensor, " batch"]:
        """Return the numbers of all rows of an update."""
        first, last = self._first_batch[step], self._first_batch[step + 1]
        return self.rows[self._first_row[first] : self._first_row[last]]

    def known(self, first: int, last: int) -> bool:
        """Return whether every update between two steps can be made again from what is here."""
        complete = bool((self.counts[first:last] > 0).all())
        own = slice(self._first_row[self._first_batch[first]], self._first_row[
            self._first_batch[last]])  # fmt: skip
        return self.replayable and complete and not bool((self.sources[own] == NOT_KEPT).any())

    @property
    def reason(self) -> str:
        """Return why updates cannot be made again, in a few words."""
        if not self.replayable:
            return self.verdict
        if bool((self.counts > 0).all()):
            return "their transformed batches were not kept"
        return "the loop did not tell them"

    def inputs(self, batch: Batch, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of a batch; rows that were not kept are those of the data."""
        if bool((batch.sources < 0).all()):
            rows = batch.rows.clamp(min=0)
            return x[rows], y[rows]
        assert self.kept_x is not None
        assert self.kept_y is not None
        pairs = list(zip(batch.rows.tolist(), batch.sources.tolist(), strict=True))
        return (
            torch.stack([self.kept_x[s] if s >= 0 else x[max(r, 0)] for r, s in pairs]),
            torch.stack([self.kept_y[s] if s >= 0 else y[max(r, 0)] for r, s in pairs]),
        )

    def cut(self, steps: int) -> "LoopRecord":
        """Return the record of the first updates."""
        batches = self._first_batch[steps]
        rows = self._first_row[batches]
        return replace(
            self,
            rows=self.rows[:rows],
            sources=self.sources[:rows],
            sizes=self.sizes[:batches],
            random_of=self.random_of[:batches],
            hashes=self.hashes[:batches],
            **{name: getattr(self, name)[:steps] for name in PER_STEP},
        )

    def arrays(self) -> dict[str, Tensor]:
        """Return the tensors, by name."""
        named = ((name, getattr(self, name)) for name in TENSORS)
        return {name: tensor for name, tensor in named if tensor is not None}

    def about(self) -> dict[str, Any]:
        """Return everything else, as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in TENSORS}

    @classmethod
    def of(cls, about: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> "LoopRecord":
        """Return the record that :meth:`arrays` and :meth:`about` describe, checked."""
        values: dict[str, Any] = {**about, "groups": tuple(map(tuple, about["groups"]))}
        for name in ("option_names", "option_kinds", "evaluated", "notes"):
            values[name] = tuple(values[name])
        values |= {name: arrays[name] for name in TENSORS if name in arrays}
        record = cls(**values)
        record._check()
        return record

    def _check(self) -> None:
        """Refuse arrays that do not fit each other."""
        stored = 0 if self.kept_x is None else len(self.kept_x)
        fits = loop_forms_fit(self) and (
            int(self.counts.sum()) == len(self.sizes) == len(self.random_of) == len(self.hashes)
            and int(self.sizes.sum()) == len(self.rows) == len(self.sources)
            and len(self.options) == len(self.norms) == len(self.scales) == self.steps
            and self.options.shape[1:] == (len(self.groups), len(self.option_names))
            and int(self.counts.min() if self.steps else 0) >= 0
            and int(self.sizes.min() if len(self.sizes) else 0) >= 0
            and (not len(self.sources) or int(self.sources.max()) < stored)
            and (not len(self.random_of) or int(self.random_of.max()) < len(self.random))
        )
        if not fits:
            raise ValueError("the arrays of the recorded loop do not fit each other")


TENSORS = (
    "rows", "sources", "sizes", "counts", "options", "norms", "scales", "random", "random_of",
    "hashes", "kept_x", "kept_y",
)  # fmt: skip
PER_STEP = ("counts", "options", "norms", "scales")


def joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the arrays of records that follow each other as those of one."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: torch.cat([part[name] for part in parts if name in part]) for name in names}
