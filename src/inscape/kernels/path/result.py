"""The result of a path kernel, and the contributions it is assembled from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import Result, Row, Summary
from inscape._core.result import NONNEGATIVE, Kind, Range
from inscape.kernels.path.linear_chain import Average, SampleGradients

#: Largest relative contribution of rounding in float64.
FLOAT64_ROUNDING = 1e-10

#: In machine epsilons of training: the largest unattributed part of an exact sum, and the largest
#: part of its updates that can be rounding.
EXACT_LIMIT, ROUNDING_LIMIT = 100, 10_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathKernel(Result):
    """Contributions of every training sample to the outputs at some queries.

    ``initial + samples.sum(1) + decay + penalty + rounding + residual = final`` for every query and
    output; of a recorded loop, ``unknown + statistics`` belong to the sum, too.

    Attributes:
        initial: Outputs before training.
        final: Outputs after it.
        samples: Contribution of every sample.
        decay: Contribution of weight decay.
        penalty: Contribution of penalties.
        rounding: Contribution of rounding in training: its actual updates, less those that the
            same gradients give in float64. A value far beyond the precision of training says that
            its updates were not those of its gradients.
        residual: What the quadrature along the actual updates misses.
        steps: Contribution of the gradients of every update, directly and through the optimiser
            state, with ``by_step``.
        layers: Contribution of every parameter tensor to ``samples``, with ``by_layer``.
        tensors: Names of these tensors.
        mode: ``"exact"`` or ``"first-order"``.
        optimizer: That of the training.
        passes: Number of passes over the recorded training; 0 for a :class:`PathWatch`.
        bytes: Bytes of the optimiser state, as estimated before the run.
        disk: Bytes of it in a temporary file.
        nodes: Largest number of quadrature nodes on one interval of a step.
        precision: Machine epsilon of the dtype of training.
        unknown: Contribution of samples that are not in the data, of a recorded loop.
        statistics: Contribution of changes of running statistics, of a recorded loop.
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
        """Return the largest rounding, relative to the largest change of an output."""
        return self._relative(self.rounding)

    @property
    def unattributed(self) -> float:
        """Return the largest sum of rounding and residual, relative to the largest change."""
        return self._relative(self.rounding + self.residual)

    def by_class(self, labels: Int64[Tensor, " n"]) -> Float64[Tensor, "q k c"]:
        """Return the summed contributions of the samples of every class."""
        n = self.samples.shape[1]
        if labels.is_floating_point() or labels.shape != (n,) or int(labels.min()) < 0:
            raise ValueError(
                f"labels must be {n} integers from 0 on, one for each sample, found "
                f"{labels.dtype} of shape {tuple(labels.shape)}: pass the classes of the training."
            )
        k = int(labels.max()) + 1
        totals = self.samples.new_zeros(len(self.samples), k, self.samples.shape[2])
        return totals.index_add_(1, labels, self.samples)

    def non_sample_contributions(self, query: int, output: int) -> dict[str, float]:
        """Return the nonzero contributions by name that are not of samples, and the residual.

        Rounding at the level of float64 is added to the residual.
        """
        parts = (self.decay, self.penalty, self.rounding, self.residual)
        decay, penalty, rounding, residual = (float(part[query, output]) for part in parts)
        if abs(rounding) <= FLOAT64_ROUNDING * abs(
            float((self.final - self.initial)[query, output])
        ):
            rounding, residual = 0.0, residual + rounding
        by_rounding = self.relative_rounding <= ROUNDING_LIMIT * self.precision
        label = "rounding in training" if by_rounding else "updates that no gradient explains"
        amounts = {"weight decay": decay, "penalties": penalty}
        for name, part in (
            ("samples that are not in the data", self.unknown),
            ("running statistics", self.statistics),
        ):
            amounts[name] = 0.0 if part is None else float(part[query, output])
        amounts[label] = rounding
        return {name: part for name, part in amounts.items() if part} | {"residual": residual}

    def rows(self) -> Iterator[Row]:
        """Yield one row for each query, sample and output."""
        for q, sample in enumerate(self.samples.tolist()):
            for n, values in enumerate(sample):
                for c, value in enumerate(values):
                    yield {"query": q, "sample": n, "output": c, "added": value}

    def of_outputs(self, outputs: Sequence[int]) -> "PathKernel":
        """Return the contributions to some outputs, in the given order."""
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
        """Return how many samples make up half of the absolute contributions, on average."""
        size = self.samples.abs().sum(2)
        ordered = size.sort(1, descending=True).values.cumsum(1)
        half = (ordered < ordered[:, -1:] / 2).sum(1) + 1
        basis = f"{len(size)} queries, unattributed {self.unattributed:.0e}"
        closes = self.mode == "exact" and self.unattributed <= max(
            FLOAT64_ROUNDING, EXACT_LIMIT * self.precision
        )
        kind: Kind = "exact" if closes else "estimate"
        return Summary(value=float(half.double().mean()), kind=kind, basis=basis)


@dataclass(frozen=True)
class PathOptions:
    """Options of a path kernel."""

    mode: str
    decay: str
    by_step: bool
    by_layer: bool
    tolerance: float


class Contributions:
    """Contributions accumulated for some queries; rows are queries times outputs."""

    def __init__(self, rows: int, samples: int, *, steps: int = 0, tensors: int = 0) -> None:
        self.samples = torch.zeros(rows, samples, dtype=torch.float64)
        self.decay = torch.zeros(rows, dtype=torch.float64)
        self.penalty = torch.zeros(rows, dtype=torch.float64)
        self.moved = torch.zeros(rows, dtype=torch.float64)
        self.statistics = torch.zeros(rows, dtype=torch.float64)
        self.steps = torch.zeros(rows, steps, dtype=torch.float64)
        self.layers = torch.zeros(tensors, rows, samples, dtype=torch.float64)

    def move(self, average: Average, gradients_along: Float64[Tensor, "q c p"]) -> None:
        """Add the change by an update, and write the gradients along it."""
        average.write(gradients_along)
        self.moved += average.directional_derivatives().flatten()

    def add(
        self,
        samples: slice | Tensor,
        gradients: SampleGradients,
        coefficients: Float64[Tensor, "r p"],
    ) -> Float64[Tensor, "r n"]:
        """Add the contributions of some samples, and return them."""
        if len(self.layers):
            by_tensor = gradients.by_tensor(coefficients)
            _add(self.layers, samples, by_tensor)
            parts = by_tensor.sum(0)
        else:
            parts = gradients.products(coefficients)
        _add(self.samples, samples, parts)
        return parts

    def add_rows(
        self,
        chunk: slice,
        rows: Float64[Tensor, "m p"],
        coefficients: Float64[Tensor, "r p"],
        slices: Sequence[slice],
    ) -> None:
        """Add the contributions of rows of samples, then of decay, then of penalties."""
        n = self.samples.shape[1]
        parts = coefficients @ rows.T
        last = min(chunk.stop, n)
        if chunk.start < last:
            self.samples[:, chunk.start : last] += parts[:, : last - chunk.start]
            for target, columns in zip(self.layers, slices, strict=False):
                chunk_rows = rows[: last - chunk.start, columns]
                target[:, chunk.start : last] += coefficients[:, columns] @ chunk_rows.T
        for row, target in ((n, self.decay), (n + 1, self.penalty)):
            if chunk.start <= row < chunk.stop:
                target += parts[:, row - chunk.start]


def _add(target: Tensor, samples: slice | Tensor, parts: Tensor) -> None:
    if isinstance(samples, slice):
        target[..., samples] += parts
    else:
        target.index_add_(-1, samples, parts)


def path_kernel_result(
    blocks: Sequence[Contributions],
    initial: Float64[Tensor, "q c"],
    final: Float64[Tensor, "q c"],
    options: PathOptions,
    *,
    tensors: tuple[str, ...],
    optimizer: str,
    passes: int,
    state_bytes: int,
    disk: int,
    nodes: int,
    precision: float,
    loop: bool = False,
) -> PathKernel:
    """Return the result from the contributions to all queries.

    Those of a recorded loop have one more sample, for samples that are not in the data.
    """
    q, c = initial.shape

    def concatenated(parts: list[Tensor]) -> Tensor:
        return torch.cat(parts).view(q, c, *parts[0].shape[1:]).movedim(1, -1).contiguous()

    samples = concatenated([sums.samples for sums in blocks])
    decay = concatenated([sums.decay for sums in blocks])
    penalty = concatenated([sums.penalty for sums in blocks])
    moved = concatenated([sums.moved for sums in blocks])
    statistics = concatenated([sums.statistics for sums in blocks])
    unknown = torch.zeros_like(decay)
    if loop:
        samples, unknown = samples[:, :-1].contiguous(), samples[:, -1]
    layers = (
        concatenated([sums.layers.permute(1, 2, 0) for sums in blocks])
        if options.by_layer
        else None
    )
    return PathKernel(
        initial=initial,
        final=final,
        samples=samples,
        decay=decay,
        penalty=penalty,
        rounding=moved - samples.sum(1) - decay - penalty - unknown,
        residual=final - initial - moved - statistics,
        steps=concatenated([sums.steps for sums in blocks]) if options.by_step else None,
        layers=None if layers is None else layers[:, : samples.shape[1]].contiguous(),
        tensors=tensors if options.by_layer else (),
        mode=options.mode,
        optimizer=optimizer,
        passes=passes,
        bytes=state_bytes,
        disk=disk,
        nodes=nodes,
        precision=precision,
        unknown=unknown.contiguous() if loop else None,
        statistics=statistics if loop else None,
    )
