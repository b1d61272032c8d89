"""Gradients of outputs on the straight way between two states of the weights, for any module.

A training moves the weights by steps; along each the output changes by the integral of its gradient
times the step. Chains of linear maps have a way of their own, :mod:`inscape.kernels._chain`.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape.kernels._outers import WRITTEN
from inscape.kernels._tangents import Tangents, tangents

#: What makes the weights of outputs in a sum out of the outputs themselves.
Pull = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Places:
    """Where on the way gradients are taken: for each query a row of places and their weights."""

    t: Float[Tensor, "q m"]
    share: Float[Tensor, "q m"]


class WrittenAverage:
    """Averages that are written out."""

    def __init__(self, rows: Float[Tensor, "q c p"], step: Float[Tensor, " p"]) -> None:
        self._rows, self._step = rows, step

    def along(self) -> Float[Tensor, "q c"]:
        """Return their inner products with the step."""
        return self._rows @ self._step

    def write(self, into: Float[Tensor, "q c p"]) -> None:
        """Write them out."""
        into.copy_(self._rows)


class WrittenParts:
    """Gradients of samples that are written out: at once, or if they are large in pieces."""

    def __init__(
        self, write: Callable[[slice | Tensor], Tensor], samples: int, slices: Sequence[slice]
    ) -> None:
        self._write, self._slices = write, slices
        step = max(1, WRITTEN // (8 * max(1, slices[-1].stop)))
        self._pieces = [slice(k, k + step) for k in range(0, samples, step)]
        self._all = write(slice(None)) if len(self._pieces) == 1 else None

    def products(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "r n"]:
        """Return their inner products with some rows."""
        return torch.cat([rows @ some.T for some in self._some()], dim=1)

    def by_tensor(self, rows: Float[Tensor, "r p"]) -> Float[Tensor, "l r n"]:
        """Return the part of every parameter tensor in them."""
        parts = [
            torch.stack([rows[:, own] @ some[:, own].T for own in self._slices])
            for some in self._some()
        ]
        return torch.cat(parts, dim=2)

    def written(self, which: Int64[Tensor, " m"]) -> Float[Tensor, "m p"]:
        """Return some of the gradients."""
        return self._write(which) if self._all is None else self._all[which]

    def _some(self) -> Iterator[Float[Tensor, "m p"]]:
        return iter([self._all]) if self._all is not None else map(self._write, self._pieces)


class General:
    """Any module; all queries share their places on the way."""

    nodes = 3

    def __init__(self, model: nn.Module, trainable: Sequence[str]) -> None:
        self._trained = copy.deepcopy(model).eval()
        for name, parameter in self._trained.named_parameters():
            parameter.requires_grad_(name in trainable)
        self._model = copy.deepcopy(self._trained).double()
        self._slices: dict[str, slice] = {}
        at = 0
        for name in trainable:
            size = self._model.get_parameter(name).numel()
            self._slices[name] = slice(at, at + size)
            at += size
        self.parameters = at
        self.slices = tuple(self._slices.values())

    def values(self, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        """Return the outputs."""
        return self._values(self._model, weights, x)

    def samples(self, weights: Tensor, x: Tensor, pull: Pull) -> WrittenParts:
        """Return the gradient of a weighted sum of outputs at every point, as training found it."""
        cotangents = pull(self._values(self._trained, weights, x))

        def write(which: slice | Tensor) -> Tensor:
            self._stand_at(weights, self._trained)
            found = tangents(self._trained, x[which], cotangents[None, which])
            return self._flat(found)[0].double()

        return WrittenParts(write, len(x), self.slices)

    def cuts(self, start: Tensor, step: Tensor, x: Tensor) -> Float[Tensor, "q e"]:
        """Return 0 and 1 for each query: kinks are not looked for."""
        return torch.tensor([[0.0, 1.0]], dtype=start.dtype).expand(len(x), 2)

    def average(self, start: Tensor, step: Tensor, x: Tensor, places: Places) -> WrittenAverage:
        """Return the gradients of all outputs, averaged over the places, the same for all."""
        total: Tensor | None = None
        for t, share in zip(places.t[0].tolist(), places.share[0].tolist(), strict=True):
            self._stand_at(start + t * step, self._model)
            one = self._flat(tangents(self._model, x)).mul_(share)
            total = one if total is None else total.add_(one)
        assert total is not None
        return WrittenAverage(total.transpose(0, 1), step)

    def _values(self, model: nn.Module, weights: Tensor, x: Tensor) -> Float[Tensor, "n c"]:
        self._stand_at(weights, model)
        with torch.no_grad():
            y: Tensor = model(x.clone())
        return y.reshape(len(x), -1)

    def _stand_at(self, weights: Tensor, model: nn.Module) -> None:
        with torch.no_grad():
            for name, own in self._slices.items():
                parameter = model.get_parameter(name)
                parameter.copy_(weights[own].view_as(parameter))

    def _flat(self, found: Tangents) -> Float[Tensor, "r n p"]:
        flat = found.y.new_zeros(found.rows, len(found.y), self.parameters)
        for factor in found.factors:
            written, at = factor.written(), 0
            for own in (self._slices[name] for name in factor.names):
                size = own.stop - own.start
                flat[:, :, own] = written[:, :, at : at + size]
                at += size
        return flat
