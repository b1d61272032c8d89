"""The result of a path kernel, and the sums it is made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import Result, Row, Summary
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.kernels.tangent.linear_chain import Average, Parts

#: Relative to the change of an output, what rounding in float64 adds at most.
ROUNDED = 1e-10

#: In roundings of the training's numbers: what may be unclaimed of a sum that is exact, and what
#: its arithmetic may add to updates at most. More is no rounding.
CLOSED, LARGEST = 100, 10_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathKernel(Result):
    """What every training sample has added to the outputs at some queries.

    ``initial + samples.sum(1) + decay + penalty + rounding + residual = final`` for every query and
    output; of a recorded loop, ``unknown + statistics`` belong to the sum, too.

    Attributes:
        initial: Outputs before training.
        final: Outputs after it.
        samples: What every sample has added.
        decay: What weight decay has added.
        penalty: What penalties have added.
        rounding: What the training's own arithmetic has added: its updates as they were made, less
            those that the gradients it took of its samples make in float64. Far more than numbers
            of the training can round says that its updates were not those of its gradients.
        residual: What is left: what the gradients along the updates as they were made miss.
        steps: The part that the gradients of every update have added, then and through the
            optimizer's memory later, if asked for.
        layers: The part of every parameter tensor in ``samples``, if asked for.
        tensors: Names of these tensors.
        mode: ``"exact"`` or ``"first-order"``.
        optimizer: That of the training.
        passes: How often the recorded training was gone through; 0 if it was watched as it ran.
        bytes: What was carried from step to step, as estimated before the run.
        disk: Bytes of it that were in a temporary file.
        nodes: Most nodes on one part of a step.
        precision: The least step of the training's numbers from one to the next.
        unknown: What rows of batches have added that are not in the data, of a recorded loop.
        statistics: What the running statistics of the network have added by moving, of a recorded
            loop.
    """

    range: ClassVar[Range] = NONNEGATIVE

    initial: Float64[Tensor, "q c"]
    final: Float64[Tensor, "q c"]
    samples: Float64[Tensor, "q n c"]
    decay: Float64[Tensor, "q c"]
    penalty: Float64[Tensor, "q c"]
    rounding: Float64[Tensor, "q c"]
    residual: Float64[Tensor, "q c"]
    steps: Float64[Tensor, "q k c"] | None
    layers: Float64[Tensor, "q n l c"] | None = None
    tensors: tuple[str, ...] = ()
    mode: str
    optimizer: str
    passes: int
    bytes: int
    disk: int = 0
    nodes: int
    precision: float = torch.finfo(torch.float64).eps
    unknown: Float64[Tensor, "q c"] | None = None
    statistics: Float64[Tensor, "q c"] | None = None

    @property
    def relative_residual(self) -> float:
        """Return the largest residual, relative to the largest change of an output."""
        return self._relative(self.residual)

    @property
    def relative_rounding(self) -> float:
        """Return what rounding has added at most, relative to the largest change of an output."""
        return self._relative(self.rounding)

    @property
    def unclaimed(self) -> float:
        """Return what neither samples nor decay nor penalties have added, at most and relative."""
        return self._relative(self.rounding + self.residual)

    def by_class(self, labels: Int64[Tensor, " n"]) -> Float64[Tensor, "q k c"]:
        """Return what the samples of every class have added together."""
        n = self.samples.shape[1]
        if labels.is_floating_point() or labels.shape != (n,) or int(labels.min()) < 0:
            raise ValueError(
                f"labels must be {n} whole numbers from 0 on, one for each sample, found "
                f"{labels.dtype} of shape {tuple(labels.shape)}: pass the classes of the training."
            )
        k = int(labels.max()) + 1
        into = self.samples.new_zeros(len(self.samples), k, self.samples.shape[2])
        return into.index_add_(1, labels, self.samples)

    def rest(self, query: int, output: int) -> dict[str, float]:
        """Return by name what no sample has added to an output; the residual is always told.

        Rounding goes into it where it is that of float64.
        """
        parts = (self.decay, self.penalty, self.rounding, self.residual)
        decay, penalty, rounding, residual = (float(part[query, output]) for part in parts)
        if abs(rounding) <= ROUNDED * abs(float((self.final - self.initial)[query, output])):
            rounding, residual = 0.0, residual + rounding
        by_rounding = self.relative_rounding <= LARGEST * self.precision
        name = "rounding in training" if by_rounding else "updates that no gradient explains"
        found = {"weight decay": decay, "penalties": penalty}
        for words, part in (
            ("rows that are not in the data", self.unknown),
            ("running statistics", self.statistics),
        ):
            found[words] = 0.0 if part is None else float(part[query, output])
        found[name] = rounding
        return {name: part for name, part in found.items() if part} | {"residual": residual}

    def rows(self) -> Iterator[Row]:
        """Yield one row for each query, sample and output."""
        for q, sample in enumerate(self.samples.tolist()):
            for n, values in enumerate(sample):
                for c, value in enumerate(values):
                    yield {"query": q, "sample": n, "output": c, "added": value}

    def of_outputs(self, outputs: Sequence[int]) -> "PathKernel":
        """Return the parts of some outputs, in the order that they are named."""
        columns = list(outputs)
        parts: dict[str, Any] = {
            name: part[..., columns]
            for name, part in vars(self).items()
            if isinstance(part, Tensor)
        }
        return replace(self, **parts)

    def _relative(self, part: Float64[Tensor, "q c"]) -> float:
        change = float((self.final - self.initial).abs().max())
        return float(part.abs().max()) / change if change else 0.0

    def summary(self) -> Summary:
        """Return the share of samples that half of what was added comes from."""
        size = self.samples.abs().sum(2)
        ordered = size.sort(1, descending=True).values.cumsum(1)
        half = (ordered < ordered[:, -1:] / 2).sum(1) + 1
        basis = f"{len(size)} queries, unclaimed {self.unclaimed:.0e}"
        closes = self.mode == "exact" and self.unclaimed <= max(ROUNDED, CLOSED * self.precision)
        kind: Kind = "exact" if closes else "estimate"
        return Summary(value=float(half.double().mean()), kind=kind, basis=basis)


@dataclass(frozen=True)
class Choices:
    """What a path kernel was asked for."""

    mode: str
    decay: str
    by_step: bool
    by_layer: bool
    tolerance: float


class Sums:
    """What has been added up so far for some queries: rows are queries times outputs."""

    def __init__(self, rows: int, samples: int, *, steps: int = 0, tensors: int = 0) -> None:
        self.samples = torch.zeros(rows, samples, dtype=torch.float64)
        self.decay = torch.zeros(rows, dtype=torch.float64)
        self.penalty = torch.zeros(rows, dtype=torch.float64)
        self.moved = torch.zeros(rows, dtype=torch.float64)
        self.statistics = torch.zeros(rows, dtype=torch.float64)
        self.steps = torch.zeros(rows, steps, dtype=torch.float64)
        self.layers = torch.zeros(tensors, rows, samples, dtype=torch.float64)

    def move(self, average: Average, slopes: Float64[Tensor, "q c p"]) -> None:
        """Add what an update as it was made has done, and write the gradients along it."""
        average.write(slopes)
        self.moved += average.along().flatten()

    def add(
        self, which: slice | Tensor, gradients: Parts, push: Float64[Tensor, "r p"]
    ) -> Float64[Tensor, "r n"]:
        """Add what some samples have done, and return it."""
        if len(self.layers):
            own = gradients.by_tensor(push)
            _add(self.layers, which, own)
            parts = own.sum(0)
        else:
            parts = gradients.products(push)
        _add(self.samples, which, parts)
        return parts

    def add_rows(
        self,
        chunk: slice,
        rows: Float64[Tensor, "m p"],
        push: Float64[Tensor, "r p"],
        slices: Sequence[slice],
    ) -> None:
        """Add what some rows have done: those of samples, then that of decay, then of penalties."""
        n = self.samples.shape[1]
        parts = push @ rows.T
        last = min(chunk.stop, n)
        if chunk.start < last:
            self.samples[:, chunk.start : last] += parts[:, : last - chunk.start]
            for into, own in zip(self.layers, slices, strict=False):
                here = rows[: last - chunk.start, own]
                into[:, chunk.start : last] += push[:, own] @ here.T
        for place, into in ((n, self.decay), (n + 1, self.penalty)):
            if chunk.start <= place < chunk.stop:
                into += parts[:, place - chunk.start]


def _add(into: Tensor, which: slice | Tensor, parts: Tensor) -> None:
    if isinstance(which, slice):
        into[..., which] += parts
    else:
        into.index_add_(-1, which, parts)


def gathered(
    blocks: Sequence[Sums],
    initial: Float64[Tensor, "q c"],
    final: Float64[Tensor, "q c"],
    choices: Choices,
    *,
    tensors: tuple[str, ...],
    optimizer: str,
    passes: int,
    taken: int,
    disk: int,
    nodes: int,
    precision: float,
    loop: bool = False,
) -> PathKernel:
    """Return the result out of the sums for all queries.

    Those of a recorded loop have one sample more, for rows that are not in the data.
    """
    q, c = initial.shape

    def joined(parts: list[Tensor]) -> Tensor:
        return torch.cat(parts).view(q, c, *parts[0].shape[1:]).movedim(1, -1).contiguous()

    samples = joined([sums.samples for sums in blocks])
    decay = joined([sums.decay for sums in blocks])
    penalty = joined([sums.penalty for sums in blocks])
    moved = joined([sums.moved for sums in blocks])
    statistics = joined([sums.statistics for sums in blocks])
    unknown = torch.zeros_like(decay)
    if loop:
        samples, unknown = samples[:, :-1].contiguous(), samples[:, -1]
    layers = joined([sums.layers.permute(1, 2, 0) for sums in blocks]) if choices.by_layer else None
    return PathKernel(
        initial=initial,
        final=final,
        samples=samples,
        decay=decay,
        penalty=penalty,
        rounding=moved - samples.sum(1) - decay - penalty - unknown,
        residual=final - initial - moved - statistics,
        steps=joined([sums.steps for sums in blocks]) if choices.by_step else None,
        layers=None if layers is None else layers[:, : samples.shape[1]].contiguous(),
        tensors=tensors if choices.by_layer else (),
        mode=choices.mode,
        optimizer=optimizer,
        passes=passes,
        bytes=taken,
        disk=disk,
        nodes=nodes,
        precision=precision,
        unknown=unknown.contiguous() if loop else None,
        statistics=statistics if loop else None,
    )
