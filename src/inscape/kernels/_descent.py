"""A recorded training gone through backwards, with what later steps make of each gradient.

An update is linear in the gradients of all updates so far, once its denominators are known. So the
change of an output is a linear function of them, and its coefficients follow from the last step to
the first: they are carried for each query instead of the moments of each sample.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core.trajectory import Settings, Trajectory
from inscape.kernels._between import Chain, General, Places
from inscape.training.losses import Loss, loss_function
from inscape.training.penalties import Penalty
from inscape.training.replay import Stand, stands

#: Nodes of Gauss and Legendre on a part of a step, and how often their number may double.
NODES = 3
DOUBLINGS = 4

#: Adam's own constant in torch.optim.
EPSILON = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class Training:
    """A recorded training, ready to be gone through."""

    model: nn.Module
    x: Tensor
    y: Tensor
    trajectory: Trajectory
    loss: Loss | None
    penalties: Sequence[tuple[float, Penalty]]
    network: Chain | General

    @classmethod
    def of(
        cls,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        trajectory: Trajectory,
        loss: Loss | None,
        penalties: Sequence[tuple[float, Penalty]],
    ) -> "Training":
        """Read the network; the weights it was given do not matter."""
        body = copy.deepcopy(model)
        body.load_state_dict(trajectory.at(0))
        chain = Chain.of(body, trajectory.trainable)
        return cls(
            model=body,
            x=x,
            y=y,
            trajectory=trajectory,
            loss=loss,
            penalties=penalties,
            network=chain or General(body, trajectory.trainable),
        )

    def backwards(self) -> Iterator[tuple[Stand, Stand]]:
        """Yield the ends of all steps from the last to the first, replaying between checkpoints."""
        marks = self.trajectory.checkpoints.tolist()
        for first, last in reversed(list(itertools.pairwise(marks))):
            way = list(
                stands(
                    self.trajectory,
                    self.model,
                    self.x,
                    self.y,
                    first,
                    last,
                    loss=self.loss,
                    penalties=self.penalties,
                )
            )
            yield from reversed(list(itertools.pairwise(way)))

    def gradients(self, step: int, weights: Float64[Tensor, " p"]) -> Float64[Tensor, "b p"]:
        """Return the part of every sample of a batch in the gradient of its loss."""
        rows = self.trajectory.rows(step)
        x, y = self.x[rows].double(), self.y[rows]
        y = y.double() if y.is_floating_point() else y
        outputs = self.network.values(weights, x).detach().requires_grad_()
        criterion = loss_function(self.loss or self.trajectory.settings.loss)
        with torch.enable_grad():
            shape = self._shape(len(x))
            value = criterion(outputs.reshape(shape), y)
        (cotangents,) = torch.autograd.grad(value, outputs)
        return self.network.samples(weights, x, cotangents)

    def _shape(self, rows: int) -> tuple[int, ...]:
        """Return the shape in which the model gives its outputs."""
        if "shape" not in self.__dict__:
            with torch.no_grad():
                shape = tuple(self.model(self.x[:1].clone()).shape[1:])
            object.__setattr__(self, "shape", shape)
        return (rows, *self.__dict__["shape"])

    def penalty_gradient(self, step: int, weights: Float64[Tensor, " p"]) -> Tensor | None:
        """Return the gradient of all penalties, None if there are none."""
        if not self.penalties:
            return None
        body = copy.deepcopy(self.model).double()
        named = dict(body.named_parameters())
        chosen = [named[name] for name in self.trajectory.trainable]
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(weights, chosen)
        x = self.x[self.trajectory.rows(step)].double()
        with torch.enable_grad():
            total = sum(
                (coefficient * penalty(body, x) for coefficient, penalty in self.penalties),
                weights.new_zeros(()),
            )
        found = torch.autograd.grad(total, chosen, materialize_grads=True)
        return torch.cat([gradient.flatten() for gradient in found])


class Adjoint:
    """What later steps make of gradients and weights: one row for each query and output."""

    def __init__(self, settings: Settings, rows: int, parameters: int, *, weights: bool) -> None:
        self._settings, self._rows = settings, rows
        carries = settings.optimizer != "sgd" or settings.momentum > 0
        empty = torch.zeros(0, dtype=torch.float64)
        shape = (rows, parameters)
        self._memory = torch.zeros(shape, dtype=torch.float64) if carries else empty
        self._weights = torch.zeros(shape, dtype=torch.float64) if weights else None

    def back(
        self, slopes: Float64[Tensor, "r p"], rate: float, before: Stand, after: Stand
    ) -> tuple[Float64[Tensor, "r p"], Float64[Tensor, " r"]]:
        """Go back over one step; return what it and later ones make of its gradient and of decay.

        Args:
            slopes: Gradients of the outputs, averaged along the step; written over.
            rate: Learning rate of the step.
            before: Where the step began.
            after: Where it ended.
        """
        settings, decay = self._settings, self._settings.weight_decay
        if self._weights is not None:
            slopes.add_(self._weights)
        moved = torch.zeros(len(slopes), dtype=torch.float64)
        old = before.weights.double()
        if settings.optimizer == "adamw" and decay:
            moved = self._decayed(slopes, -rate * decay, old)
        if settings.optimizer == "sgd":
            gradient = self._sgd(slopes, rate)
        else:
            gradient = self._adam(slopes, rate, after)
        if settings.optimizer != "adamw" and decay:
            moved = self._decayed(gradient, decay, old)
        return gradient, moved

    def share_of_start(self, start: Float64[Tensor, " p"]) -> Float64[Tensor, " r"]:
        """Return what the initial weights have made through decay."""
        if self._weights is None:
            return torch.zeros(self._rows, dtype=torch.float64)
        return self._weights @ start

    def _decayed(self, slopes: Tensor, factor: float, old: Tensor) -> Tensor:
        if self._weights is None:
            return factor * (slopes @ old)
        self._weights.add_(slopes, alpha=factor)
        return torch.zeros(len(slopes), dtype=torch.float64)

    def _sgd(self, slopes: Tensor, rate: float) -> Tensor:
        momentum = self._settings.momentum
        if not momentum:
            return slopes.mul_(-rate)
        if self._settings.nesterov:
            self._memory.mul_(momentum).add_(slopes, alpha=-rate * momentum)
            return slopes.mul_(-rate).add_(self._memory)
        self._memory.mul_(momentum).add_(slopes, alpha=-rate)
        return self._memory.clone() if self._weights is not None else self._memory

    def _adam(self, slopes: Tensor, rate: float, after: Stand) -> Tensor:
        beta1, beta2 = self._settings.betas
        assert after.squares is not None
        root = after.squares.double().sqrt() / math.sqrt(1 - beta2**after.step)
        scale = rate / (1 - beta1**after.step) / (root + EPSILON)
        self._memory.mul_(beta1).addcmul_(slopes, scale, value=-1)
        return torch.mul(self._memory, 1 - beta1, out=slopes)


class Slopes:
    """Gradients of queries averaged along steps, with as many nodes as the change asks for."""

    def __init__(
        self, network: Chain | General, queries: Tensor, *, exact: bool, tolerance: float
    ) -> None:
        self._network, self._queries = network, queries
        self._exact, self._tolerance = exact, tolerance
        self.nodes = 0

    def along(
        self, start: Tensor, end: Tensor, change: Float64[Tensor, "q c"], size: float
    ) -> Float64[Tensor, "r p"]:
        """Return one row for each query and output, output after output."""
        step = end - start
        if not self._exact:
            zero = self._queries.new_zeros(len(self._queries), 1)
            return self._at(start, step, Places(t=zero, share=zero + 1))
        parts = self._parts(start, step)
        found, error, nodes = None, math.inf, NODES
        for _ in range(DOUBLINGS):
            new = self._at(start, step, _nodes(parts, nodes))
            missed = float((new @ step - change.T.reshape(-1)).abs().max())
            self.nodes = max(self.nodes, nodes)
            if missed > error / 2 and found is not None:
                return found
            found, error = new, missed
            if error <= self._tolerance * max(1.0, size):
                break
            nodes *= 2
        assert found is not None
        return found

    def _parts(self, start: Tensor, step: Tensor) -> list[list[float]]:
        if isinstance(self._network, Chain) and self._network.kinked:
            inner = self._network.kinks(start, step, self._queries)
            return [[0.0, *places, 1.0] for places in inner]
        return [[0.0, 1.0]] * len(self._queries)

    def _at(self, start: Tensor, step: Tensor, places: Places) -> Float64[Tensor, "r p"]:
        return self._network.integral(start, step, self._queries, places).flatten(0, 1)


def _nodes(parts: Sequence[Sequence[float]], nodes: int) -> Places:
    """Return the nodes of Gauss and Legendre on all parts of every query, filled up with zeros."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    most = max(len(cuts) for cuts in parts) - 1
    edges = np.ones((len(parts), most + 1))
    for row, cuts in zip(edges, parts, strict=True):
        row[: len(cuts)] = cuts
    low, length = edges[:, :-1, None], np.diff(edges, axis=1)[:, :, None]
    t = low + length * (at + 1) / 2
    share = length * weights / 2
    shape = (len(parts), most * nodes)
    return Places(
        t=torch.from_numpy(t.reshape(shape)), share=torch.from_numpy(share.reshape(shape))
    )
