"""Planes in parameter space: through random directions, a recorded training, or three networks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.functional.hessian_products import joined
from inscape.landscape._loss_function import LossFunction
from inscape.training.trajectory import Trajectory, chosen_steps

PlaneKind = Literal["random directions", "principal components", "three networks"]
Other = nn.Module | Mapping[str, Tensor]

#: How far the window reaches beyond the networks in it, as a fraction of its extent.
MARGIN = 0.3
#: A second direction is none if its length is below this fraction of the first one's.
COLLINEAR = 1e-6
#: Times that principal components are multiplied by the displacements, against rounding.
SWEEPS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterPlane:
    """A plane through the parameters of a network, with the networks that were put into it.

    A point of it is ``origin + a * axes[0] + b * axes[1]``. ``networks`` are coordinates of the
    projections of ``states``, which lie ``off`` the plane by so much; ``lengths`` are their
    distances from the origin. ``window`` is the range of each coordinate.
    """

    kind: PlaneKind
    origin: Float64[Tensor, " p"]
    axes: Float64[Tensor, "2 p"]
    window: tuple[tuple[float, float], tuple[float, float]]
    names: tuple[str, ...] = ()
    states: tuple[Mapping[str, Tensor], ...] = ()
    networks: Float64[Tensor, "k 2"]
    off: Float64[Tensor, " k"]
    lengths: Float64[Tensor, " k"]

    def at(self, place: Sequence[float]) -> Float64[Tensor, " p"]:
        """Return the parameters at two coordinates."""
        point: Tensor = self.origin + place[0] * self.axes[0] + place[1] * self.axes[1]
        return point

    @property
    def metric(self) -> Float64[Tensor, "2 2"]:
        """Return the inner products of both axes."""
        return self.axes @ self.axes.T

    def coordinates(self, displacement: Float64[Tensor, " p"]) -> Float64[Tensor, "2"]:
        """Return the coordinates of the point of the plane nearest to a displacement."""
        coordinates: Tensor = torch.linalg.solve(self.metric, self.axes @ displacement)
        return coordinates


def random_plane(
    problem: LossFunction, seed: int, reach: float, trajectory: Trajectory | None, steps: int
) -> ParameterPlane:
    """Return the plane of two random directions whose filters are as long as the network's.

    Of length one where such directions make no plane, as in a network of zeros.
    """
    rng = generator(seed)
    axes = torch.stack([_filter_normalised(problem, rng) for _ in range(2)])
    if float(torch.linalg.svdvals(axes)[1]) <= COLLINEAR * (float(problem.vector().norm()) or 1.0):
        axes = torch.linalg.qr(torch.randn(problem.size, 2, generator=rng).to(axes)).Q.T
    window = ((-reach, reach), (-reach, reach))
    states = () if trajectory is None else _checkpoints(problem, trajectory, steps)
    return _placed(problem, "random directions", axes, states, window)


def _filter_normalised(problem: LossFunction, rng: torch.Generator) -> Float64[Tensor, " p"]:
    """Return a random direction with each filter as long as that of the parameters.

    Biases and other vectors stay as they are, unless there is nothing else (Li et al. 2018).
    """
    matrices = any(tensor.ndim > 1 for tensor in problem.tensors)
    parts = []
    for tensor in problem.tensors:
        weights = tensor.detach().double()
        draw = torch.randn(weights.shape, generator=rng, dtype=torch.float64).to(weights.device)
        if tensor.ndim > 1:
            rows, lengths = draw.flatten(1), weights.flatten(1).norm(dim=1, keepdim=True)
            draw = (rows / rows.norm(dim=1, keepdim=True) * lengths).reshape(weights.shape)
        else:
            draw = torch.zeros_like(draw) if matrices else draw / draw.norm() * weights.norm()
        parts.append(draw)
    return joined(parts)


def trajectory_plane(
    problem: LossFunction, trajectory: Trajectory, steps: int, reach: float
) -> ParameterPlane:
    """Return the plane of the first two principal components of a training, seen from its end."""
    states = _checkpoints(problem, trajectory, steps)
    moved = [_displacement(problem, state) for _, state in states]
    axes = _principal(moved)
    return _placed(problem, "principal components", axes, states, None, reach)


def _principal(moved: list[Tensor]) -> Float64[Tensor, "2 p"]:
    """Return the first two right singular vectors of the displacements."""
    gram = torch.tensor([[float(a @ b) for a in moved] for b in moved], dtype=torch.float64)
    values, vectors = torch.linalg.eigh(gram)
    largest = float(values[-1])
    if len(values) < 2 or not float(values[-2]) > COLLINEAR**2 * largest:
        raise ValueError(
            "trajectory must move in two directions, found checkpoints on one line or in one "
            "place: record more of them, fit(..., record=50)."
        )
    axes = _combined(vectors[:, [-1, -2]].T, moved)
    for _ in range(SWEEPS):
        components = torch.stack([axes @ vector for vector in moved], dim=1)
        axes = _combined(components, moved)
    return axes


def _combined(weights: Float64[Tensor, "2 k"], moved: list[Tensor]) -> Float64[Tensor, "2 p"]:
    """Return two orthonormal combinations of vectors; each points where the most of them lie."""
    axes = torch.stack([sum(w * v for w, v in zip(row, moved, strict=True)) for row in weights])
    first = axes[0] / axes[0].norm()
    second = axes[1] - (axes[1] @ first) * first
    basis = torch.stack([first, second / second.norm()])
    signs = torch.stack([basis @ vector for vector in moved]).sum(0).sign()
    return basis * torch.where(signs == 0, 1.0, signs)[:, None]


def network_plane(problem: LossFunction, others: Sequence[Other], reach: float) -> ParameterPlane:
    """Return the plane through the network and two others."""
    pair = list(others)
    if len(pair) != 2:
        raise ValueError(
            f"others must be two networks, which with the model make a plane, found {len(pair)}: "
            "pass two modules or state_dicts."
        )
    own = {name: tensor.clone() for name, tensor in problem.model.state_dict().items()}
    states: list[tuple[str, Mapping[str, Tensor]]] = [("model", own)]
    for number, other in enumerate(pair, 1):
        state = other.state_dict() if isinstance(other, nn.Module) else other
        states.append((f"network {number + 1}", _checked(own, state, f"others[{number - 1}]")))
    first, second = (_displacement(problem, state) for _, state in states[1:])
    rest = second - (second @ first) / (first @ first).clamp(min=1e-300) * first
    longest = max(float(first.norm()), float(second.norm()))
    if not min(float(first.norm()), float(rest.norm())) > COLLINEAR * longest:
        raise ValueError(
            "the three networks must not lie on one line, found two of them alike or all on one: "
            "pass other networks, or measure the line by interpolation."
        )
    axes = torch.stack([first / first.norm(), rest / rest.norm()])
    return _placed(problem, "three networks", axes, tuple(states), None, reach)


def _checkpoints(
    problem: LossFunction, trajectory: Trajectory, steps: int
) -> tuple[tuple[str, Mapping[str, Tensor]], ...]:
    """Return so many checkpoints of a training with their names."""
    own = problem.model.state_dict()
    return tuple(
        (f"step {step}", _checked(own, trajectory.at(step), "trajectory"))
        for step in chosen_steps(trajectory, steps)
    )


def _checked(
    own: Mapping[str, Tensor], state: Mapping[str, Tensor], name: str
) -> Mapping[str, Tensor]:
    """Return a state dict if it is one of the model, or raise."""
    odd = sorted(own.keys() ^ state.keys())
    odd += sorted(k for k in own.keys() & state.keys() if own[k].shape != state[k].shape)
    if odd:
        raise ValueError(
            f"{name} must have the parameters of the model, found another {odd[0]!r}: pass what "
            "belongs to a network of the same architecture."
        )
    return {key: value.detach() for key, value in state.items()}


def _displacement(problem: LossFunction, state: Mapping[str, Tensor]) -> Float64[Tensor, " p"]:
    """Return how far the parameters of a state are from those of the model."""
    parts = [
        (state[name].to(tensor.device).double() - tensor.detach().double())
        for name, tensor in zip(problem.names, problem.tensors, strict=True)
    ]
    return joined(parts)


def _placed(
    problem: LossFunction,
    kind: PlaneKind,
    axes: Float64[Tensor, "2 p"],
    states: Sequence[tuple[str, Mapping[str, Tensor]]],
    window: tuple[tuple[float, float], tuple[float, float]] | None,
    reach: float = 1.0,
) -> ParameterPlane:
    """Return the plane with the networks projected to it, in a window that holds them."""
    empty = torch.zeros(0, dtype=torch.float64)
    plane = ParameterPlane(
        kind=kind, origin=problem.vector().double(), axes=axes, window=window or ((0, 0), (0, 0)),
        networks=empty.reshape(0, 2), off=empty, lengths=empty,
    )  # fmt: skip
    places, off, lengths = [], [], []
    for _, state in states:
        moved = _displacement(problem, state)
        place = plane.coordinates(moved)
        places.append(place)
        off.append(float((moved - place @ axes).norm()))
        lengths.append(float(moved.norm()))
    networks = torch.stack(places) if places else empty.reshape(0, 2)
    return ParameterPlane(
        kind=kind,
        origin=plane.origin,
        axes=axes,
        window=window or _around(networks, reach),
        names=tuple(name for name, _ in states),
        states=tuple(state for _, state in states),
        networks=networks,
        off=torch.tensor(off, dtype=torch.float64),
        lengths=torch.tensor(lengths, dtype=torch.float64),
    )


def _around(
    networks: Float64[Tensor, "k 2"], reach: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return a square window around all networks; ``reach`` scales its margin."""
    low, high = networks.min(0).values.clamp(max=0), networks.max(0).values.clamp(min=0)
    margin = MARGIN * reach * float((high - low).max())
    ends = [(float(a) - margin, float(b) + margin) for a, b in zip(low, high, strict=True)]
    return ends[0], ends[1]
