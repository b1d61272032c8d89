"""Directions in which a loss is constant for a known reason, counted by it."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape.landscape._dense_network import DenseLayer
from inscape.landscape._loss_function import LossFunction

#: Below this fraction of the largest singular value, inputs are linearly dependent.
DEPENDENT = 1e-12
#: Below this fraction of its length, a direction is a combination of the others.
REPEATED = 1e-8
CAUSES = ("dead units", "rescaling of units", "shift of all logits", "inputs dependent on the data")
#: Flat to second order only, and so no part of a proof.
IDLE = "active units without outgoing weights"


@dataclass(frozen=True, kw_only=True)
class FlatDirections:
    """An orthonormal basis of the known flat directions, with their number for each cause.

    ``least`` is the smallest singular value of the tangents themselves, which says how far the
    parameters may move before the tangents could become dependent.
    """

    basis: Float64[Tensor, "p k"]
    counts: dict[str, int]
    least: float


def flat_directions(problem: LossFunction, layers: list[DenseLayer]) -> FlatDirections:
    """Return the tangents of all symmetries of the loss, which hold around the parameters.

    With weight decay there are none.
    """
    places = _Places(problem)
    tangents: dict[str, list[Tensor]] = {cause: [] for cause in CAUSES}
    if problem.decay == 0.0:
        dead = [_dead(layer) for layer in layers]
        for number, layer in enumerate(layers[:-1]):
            follower = layers[number + 1]
            for unit in range(len(layer.weight)):
                if dead[number][unit]:
                    tangents[CAUSES[0]] += places.coordinates(layer, follower, unit)
                elif layer.kind in (nn.ReLU, nn.Identity):
                    tangents[CAUSES[1]].append(places.rescaling(layer, follower, unit))
        if problem.loss == "cross_entropy" and layers[-1].kind is nn.Identity:
            tangents[CAUSES[2]] = places.shifts(layers[-1])
        tangents[CAUSES[3]] = places.dependent(layers[0])
        constant = False
        for number, layer in enumerate(layers[1:], 1):  # behind a dead layer inputs are constant
            constant = constant or bool(dead[number - 1].all())
            if constant:
                tangents[CAUSES[3]] += places.dependent(layer)
    return _independent(tangents, problem.size)


@dataclass(frozen=True, kw_only=True)
class IdleUnits:
    """Active units whose outgoing weights are zero, with the largest of their cross terms.

    ``directions`` are those of their incoming weights, along which the loss is constant as long as
    the outgoing ones stay zero. ``worst`` is a direction of negative curvature where a cross term
    is not zero.
    """

    count: int
    cross: float
    directions: list[Tensor]
    worst: Tensor | None


def idle_units(
    problem: LossFunction, layers: list[DenseLayer], hessian: Float64[Tensor, "p p"]
) -> IdleUnits:
    """Return the active units without outgoing weights, tested through their cross terms."""
    places, count, cross, worst = _Places(problem), 0, 0.0, None
    directions: list[Tensor] = []
    for layer, follower in pairwise(layers):
        silent = (follower.weight == 0).all(0) & ~_dead(layer)
        for unit in silent.nonzero().flatten().tolist():
            incoming, outgoing = places.incoming(layer, unit), places.outgoing(follower, unit)
            block = hessian[incoming][:, outgoing]
            count += 1
            directions += [places.vector([place], torch.ones(1)) for place in incoming]
            largest = float(block.abs().max())
            if largest > cross:
                cross, worst = largest, _indefinite(hessian, incoming, outgoing)
    return IdleUnits(count=count, cross=cross, directions=directions, worst=worst)


def _indefinite(hessian: Tensor, incoming: list[int], outgoing: list[int]) -> Tensor:
    """Return the direction of least curvature among the weights of one unit."""
    places = incoming + outgoing
    _, vectors = torch.linalg.eigh(hessian[places][:, places])
    direction = torch.zeros(len(hessian), dtype=torch.float64)
    direction[places] = vectors[:, 0]
    return direction


def extended(flat: FlatDirections, directions: list[Tensor]) -> FlatDirections:
    """Return the flat directions with those of idle units, as a further cause."""
    basis, _ = _extended(flat.basis, directions)
    counts = {**flat.counts, IDLE: basis.shape[1] - flat.basis.shape[1]}
    return FlatDirections(basis=basis, counts=counts, least=flat.least)


def _dead(layer: DenseLayer) -> Tensor:
    """Return which ReLU units are off at all data."""
    if layer.kind is not nn.ReLU:
        return torch.zeros(len(layer.weight), dtype=torch.bool)
    return (layer.outputs < 0).all(0)


class _Places:
    """Where each parameter lies in the vector of all."""

    def __init__(self, problem: LossFunction) -> None:
        self.size, self.offsets, at = problem.size, {}, 0
        for name, tensor in zip(problem.names, problem.tensors, strict=True):
            self.offsets[name] = at
            at += tensor.numel()

    def incoming(self, layer: DenseLayer, unit: int) -> list[int]:
        """Return the places of a unit's incoming weights, and of its bias."""
        width = layer.weight.shape[1]
        first = self.offsets[layer.weight_name] + unit * width
        places = list(range(first, first + width))
        return places + ([self.offsets[layer.bias_name] + unit] if layer.bias_name else [])

    def outgoing(self, follower: DenseLayer, unit: int) -> list[int]:
        """Return the places of a unit's outgoing weights."""
        first, width = self.offsets[follower.weight_name], follower.weight.shape[1]
        return [first + row * width + unit for row in range(len(follower.weight))]

    def coordinates(self, layer: DenseLayer, follower: DenseLayer, unit: int) -> list[Tensor]:
        """Return all directions of a dead unit."""
        places = self.incoming(layer, unit) + self.outgoing(follower, unit)
        return [self.vector([place], torch.ones(1)) for place in places]

    def rescaling(self, layer: DenseLayer, follower: DenseLayer, unit: int) -> Tensor:
        """Return the direction that scales a unit up before and down after it."""
        places = self.incoming(layer, unit) + self.outgoing(follower, unit)
        parts = [layer.weight[unit]]
        parts += [layer.bias[unit : unit + 1]] if layer.bias is not None else []
        return self.vector(places, torch.cat([*parts, -follower.weight[:, unit]]))

    def shifts(self, layer: DenseLayer) -> list[Tensor]:
        """Return the directions that add the same number to all logits."""
        classes = torch.ones(len(layer.weight))
        columns = [self.outgoing(layer, unit) for unit in range(layer.weight.shape[1])]
        if layer.bias_name:
            first = self.offsets[layer.bias_name]
            columns.append(list(range(first, first + len(layer.weight))))
        return [self.vector(places, classes) for places in columns]

    def dependent(self, layer: DenseLayer) -> list[Tensor]:
        """Return the directions of a layer that no sample sees."""
        inputs = layer.extended_inputs()
        _, values, right = torch.linalg.svd(inputs, full_matrices=True)
        rank = int((values > DEPENDENT * float(values[0])).sum()) if len(values) else 0
        null = right[rank:]
        return [
            self.vector(self.incoming(layer, unit), row)
            for unit in range(len(layer.weight))
            for row in null
        ]

    def vector(self, places: list[int], values: Tensor) -> Tensor:
        """Return the vector that has these values at these places."""
        vector = torch.zeros(self.size, dtype=torch.float64)
        vector[places] = values.double()
        return vector


def _independent(tangents: dict[str, list[Tensor]], size: int) -> FlatDirections:
    """Return a basis of tangents, each counted for the first cause that it has."""
    basis = torch.zeros(size, 0, dtype=torch.float64)
    counts: dict[str, int] = {}
    chosen: list[Tensor] = []
    for cause, vectors in tangents.items():
        before = basis.shape[1]
        basis, added = _extended(basis, vectors)
        chosen += added
        counts[cause] = basis.shape[1] - before
    least = float(torch.linalg.svdvals(torch.stack(chosen))[-1]) if chosen else 1.0
    return FlatDirections(basis=basis, counts={**counts, IDLE: 0}, least=least)


def _extended(
    basis: Float64[Tensor, "p k"], vectors: list[Tensor]
) -> tuple[Float64[Tensor, "p m"], list[Tensor]]:
    """Return the basis with further vectors, and those that were independent of it."""
    chosen: list[Tensor] = []
    for vector in vectors:
        rest = vector - basis @ (basis.T @ vector)
        rest = rest - basis @ (basis.T @ rest)
        length = float(rest.norm())
        if length > REPEATED * float(vector.norm()):
            basis = torch.cat([basis, (rest / length)[:, None]], dim=1)
            chosen.append(vector)
    return basis, chosen
