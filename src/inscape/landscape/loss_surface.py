"""Loss surface: the loss on a plane of parameters, and how much of the training the plane shows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import BudgetError, NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.inference import no_grad
from inscape._core.result import PROPORTION, Kind, Range
from inscape.landscape._ends import EndSearch, SpectrumEnds, extreme_ends
from inscape.landscape._loss_function import GRAPHS, LossFunction, ModuleLoss, loss_function_of
from inscape.landscape._parameter_planes import (
    Other,
    ParameterPlane,
    network_plane,
    random_plane,
    trajectory_plane,
)
from inscape.landscape._plane_minimum import (
    BatchNorm,
    PlaneLoss,
    PlaneMinimum,
    plane_minimum,
    recompute_statistics,
)
from inscape.landscape.hessian_extremes import NO_PARAMETERS
from inscape.runtime.progress import progress
from inscape.training import Loss
from inscape.training.trajectory import Trajectory

#: Reason where there is no second direction.
FEW = "one parameter makes no plane"
PLANES = ("random", "trajectory", "networks")
Statistics = Literal["kept", "recomputed"]
#: A minimum is one if a Newton step would lower the loss by less than this fraction of it.
STATIONARY = 1e-6


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LossSurface(Result):
    """The loss on a plane, ``losses[row, column]`` at ``(columns[column], rows_at[row])``.

    The model is at (0, 0). ``networks`` are the coordinates of the checkpoints of a training or of
    three networks, which lie ``off`` the plane by a distance and have ``own_losses``, beside
    ``shown_losses`` at the points of the plane that are nearest. ``minimum`` is the lowest point of
    the window, optimised. ``plane_curvatures`` are both principal curvatures of the plane at the
    model, ``curvatures`` the smallest and largest of all directions, with ``residuals``;
    ``alignment`` is how much of the sharpest direction (squared) lies in the plane.
    """

    range: ClassVar[Range] = PROPORTION
    nonfinite: ClassVar[Mapping[str, str]] = {
        "losses": "infinite where the outputs overflow",
        "shown_losses": "infinite where the outputs overflow",
        "minimum_gradient": "NaN where running statistics are recomputed at every point",
        "minimum_curvatures": "NaN where running statistics are recomputed at every point",
    }

    kind: str
    columns: Float64[Tensor, " columns"]
    rows_at: Float64[Tensor, " rows"]
    losses: Float64[Tensor, "rows columns"]
    loss_at_model: float
    minimum: Float64[Tensor, "2"]
    minimum_loss: float
    minimum_gradient: float
    minimum_curvatures: Float64[Tensor, "2"]
    at_edge: bool
    plane_curvatures: Float64[Tensor, "2"]
    curvatures: Float64[Tensor, "2"]
    residuals: Float64[Tensor, "2"]
    proved: bool
    alignment: float
    names: tuple[str, ...]
    networks: Float64[Tensor, "networks 2"]
    off: Float64[Tensor, " networks"]
    off_fraction: float
    own_losses: Float64[Tensor, " networks"]
    shown_losses: Float64[Tensor, " networks"]
    statistics: str
    products: int
    loss: str
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each point of the grid."""
        for row, b in enumerate(self.rows_at.tolist()):
            for column, a in enumerate(self.columns.tolist()):
                yield {"first": a, "second": b, "loss": float(self.losses[row, column])}

    @property
    def shown(self) -> float:
        """Return the largest curvature of the plane over the largest of all, whatever the sign."""
        largest = float(self.curvatures.abs().max())
        in_plane = float(self.plane_curvatures.abs().max())
        return min(1.0, in_plane / largest) if largest > 0 else 1.0

    def summary(self) -> Summary:
        """Return which fraction of the sharpest curvature the plane shows."""
        kind: Kind = "exact" if self.proved else "upper bound"
        lowest = f"minimum in it {self.minimum_loss:.4g}, model {self.loss_at_model:.4g}"
        basis = f"{self.kind}; {lowest}"
        if len(self.off):
            basis += f"; {self.off_fraction:.1%} of the networks' distance is off the plane"
        return Summary(value=self.shown, kind=kind, basis=basis)

    @property
    def is_minimum(self) -> bool:
        """Tell whether the lowest point is a minimum of the plane, in so far as gradients tell."""
        low, gradient = float(self.minimum_curvatures[0]), self.minimum_gradient
        gain = gradient**2 / (2 * low) if low > 0 else float("inf")
        return not self.at_edge and gain <= STATIONARY * abs(self.minimum_loss)

    @property
    def status(self) -> str:
        """Return ``"ok"``, or why the lowest point is not known to be a minimum."""
        if self.at_edge:
            return "no minimum in the window: the lowest point is at its edge; raise reach"
        if self.statistics == "recomputed" or self.is_minimum:
            return "ok"
        return (
            f"the lowest point is at a kink or in a flat valley: gradient "
            f"{self.minimum_gradient:.2g}, smallest curvature {self.minimum_curvatures[0]:.2g}"
        )


@instrument(
    reads="parameters",
    better="neither",
    larger="a plane that shows more of the sharpest direction",
    cost="minutes",
    work=lambda n, c: 1500 * n,
    meaning="The plane shows the fraction {value} of the sharpest curvature that there is.",
    cites="li2018visualizing; goodfellow2015qualitatively; garipov2018loss",
    by_default=False,
    of_training=True,
)
@no_grad
def loss_surface(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    trajectory: Trajectory | None = None,
    others: Sequence[Other] | None = None,
    plane: Literal["random", "trajectory", "networks"] | None = None,
    grid: int = 21,
    reach: float = 1.0,
    steps: int = 40,
    statistics: Statistics = "kept",
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    weight_decay: float = 0.0,
    products: int = 60,
    seed: int = 0,
    memory: int = 2 * GRAPHS,
) -> LossSurface | NotApplicable:
    r"""Measure the loss on a plane of parameters, and how much of the landscape the plane shows.

    .. math:: L(\theta + a d_1 + b d_2), \qquad \max_{v \in \langle d_1, d_2 \rangle}
              \frac{|v \cdot H v|}{\lVert v \rVert^2 \lVert H \rVert_2}, \qquad
              \frac{\sum_k \lVert \theta_k - P \theta_k \rVert^2}
              {\sum_k \lVert \theta_k - \theta \rVert^2}

    Exact at the points of the grid; the minimum is optimised from its lowest points, with gradients
    and Newton steps in float64. Costs ``grid ** 2`` passes, and ``products`` double backward ones.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        trajectory: A recorded training of the model, ``fit(..., record=...).trajectory``.
        others: Two more networks of the same architecture, or their ``state_dict``s.
        plane: Of ``"random"`` directions, filters as long as the network's; of the ``"trajectory"``
            (two principal components); or the three ``"networks"``. By default what is passed.
        grid: Points along each side.
        reach: Half the side of a random plane, in lengths of filters; else times the usual margin.
        steps: Checkpoints of the trajectory that are used, evenly spaced.
        statistics: Those of batch norm, ``"kept"`` as in the model or ``"recomputed"`` everywhere.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        weight_decay: As in ``fit``.
        products: Most Hessian-vector products for the sharpest curvature.
        seed: Seed of the directions, and of the start of these products.
        memory: Bytes that the vectors and graphs may take.
    """
    chosen = _plane_name(plane, trajectory, others)
    checks.one_of(("kept", "recomputed"), statistics=statistics)
    _check_window(grid, reach, steps)
    search = EndSearch(products=products, seed=seed, memory=memory)
    problem = loss_function_of(
        model, x, y, loss=loss, module_loss=module_loss, weight_decay=weight_decay, memory=memory
    )
    if problem is None or problem.size < 2:
        return NotApplicable(what="loss_surface", reason=NO_PARAMETERS if problem is None else FEW)
    surface = _surface_plane(problem, chosen, trajectory, others, (seed, reach, steps))
    return _measured(problem, surface, search, grid, _statistics(model, statistics))


def _surface_plane(
    problem: LossFunction,
    chosen: str,
    trajectory: Trajectory | None,
    others: Sequence[Other] | None,
    settings: tuple[int, float, int],
) -> ParameterPlane:
    """Return the plane that is chosen, for a seed, a reach and a number of checkpoints."""
    seed, reach, steps = settings
    if chosen == "random":
        return random_plane(problem, seed, reach, trajectory, steps)
    if chosen == "trajectory":
        assert trajectory is not None
        return trajectory_plane(problem, trajectory, steps, reach)
    assert others is not None
    return network_plane(problem, others, reach)


def _check_window(grid: int, reach: float, steps: int) -> None:
    """Raise for a grid without an inside, a window without a size, a path of one checkpoint."""
    checks.whole(3, grid=grid)
    checks.whole(2, steps=steps)
    checks.number(reach=reach)
    if not reach > 0:
        raise ValueError(f"reach must be above 0, found {reach}: raise it.")


def _plane_name(
    plane: str | None, trajectory: Trajectory | None, others: Sequence[Other] | None
) -> str:
    """Return which plane is meant, or raise if what it needs is missing."""
    if plane is None:
        if trajectory is not None and others is not None:
            raise ValueError(
                "plane must be named where both trajectory and others are passed, found None: "
                "pass plane='trajectory' or plane='networks'."
            )
        return "trajectory" if trajectory is not None else "networks" if others else "random"
    checks.one_of(PLANES, plane=plane)
    needed = {"trajectory": trajectory, "networks": others}
    if plane in needed and needed[plane] is None:
        name = "trajectory" if plane == "trajectory" else "others"
        raise ValueError(f"plane={plane!r} needs {name}, found None: pass {name}=...")
    return plane


def _statistics(model: nn.Module, statistics: Statistics) -> str:
    """Return what is done with running statistics, ``"none"`` if there are none."""
    return statistics if any(isinstance(m, BatchNorm) for m in model.modules()) else "none"


def _measured(
    problem: LossFunction, plane: ParameterPlane, search: EndSearch, grid: int, statistics: str
) -> LossSurface:
    """Return everything about the loss on a plane."""
    recomputed = statistics == "recomputed"
    columns, rows = (
        torch.linspace(low, high, grid, dtype=torch.float64) for low, high in plane.window
    )
    with _kept_state(problem):
        fast = PlaneLoss(problem, plane, recomputed=recomputed)
        losses = _grid_losses(fast, columns, rows)
        shown = [fast.value(place) for place in plane.networks.tolist()]
        own = [_own_loss(problem, state, recomputed=recomputed) for state in plane.states]
    double = problem.in_double()
    with _kept_state(double):
        exact = PlaneLoss(double, plane, recomputed=recomputed)
        lowest = plane_minimum(exact, (columns, rows), losses)
        at_model = exact.value((0.0, 0.0))
    curvatures = PlaneLoss(double, plane, recomputed=False).curvatures((0.0, 0.0))
    *_, ends = extreme_ends(problem, search)
    return LossSurface(
        kind=plane.kind,
        columns=columns,
        rows_at=rows,
        losses=losses,
        loss_at_model=at_model,
        **_lowest(lowest),
        plane_curvatures=curvatures,
        curvatures=torch.tensor([ends.smallest, ends.largest], dtype=torch.float64),
        residuals=torch.tensor(ends.residuals, dtype=torch.float64),
        proved=ends.proof == "inertia",
        alignment=_alignment(plane, ends),
        names=plane.names,
        networks=plane.networks,
        off=plane.off,
        off_fraction=_off_fraction(plane),
        own_losses=torch.tensor(own, dtype=torch.float64),
        shown_losses=torch.tensor(shown, dtype=torch.float64),
        statistics=statistics,
        products=ends.products,
        loss=problem.loss_name,
        seed=search.seed,
    )


def _grid_losses(loss: PlaneLoss, columns: Tensor, rows: Tensor) -> Float64[Tensor, "rows columns"]:
    """Return the losses on a grid."""
    losses = torch.zeros(len(rows), len(columns), dtype=torch.float64)
    with progress(losses.numel(), label="loss surface") as bar:
        for row, b in enumerate(rows.tolist()):
            for column, a in enumerate(columns.tolist()):
                losses[row, column] = loss.value((a, b))
                bar.advance()
    if not bool(losses.isfinite().any()):
        raise BudgetError(
            "the loss must be finite at a point of the grid, found none: lower reach."
        )
    return losses


@contextmanager
def _kept_state(problem: LossFunction) -> Iterator[None]:
    """Put parameters and buffers of the copy back where they were, once the block ends."""
    state = {name: tensor.clone() for name, tensor in problem.model.state_dict().items()}
    try:
        yield
    finally:
        problem.model.load_state_dict(state)


def _own_loss(problem: LossFunction, state: Mapping[str, Tensor], *, recomputed: bool) -> float:
    """Return the loss of a network itself, with its own buffers."""
    problem.model.load_state_dict(dict(state))
    if recomputed:
        recompute_statistics(problem)
    return problem.value()


def _lowest(minimum: PlaneMinimum) -> dict[str, Any]:
    """Return the fields of the lowest point."""
    return {
        "minimum": torch.tensor(minimum.place, dtype=torch.float64),
        "minimum_loss": minimum.loss,
        "minimum_gradient": minimum.gradient,
        "minimum_curvatures": torch.tensor(minimum.curvatures, dtype=torch.float64),
        "at_edge": minimum.at_edge,
    }


def _alignment(plane: ParameterPlane, ends: SpectrumEnds) -> float:
    """Return the squared length of the projection of the sharpest direction to the plane."""
    assert ends.vectors is not None
    sharpest = ends.vectors[0 if abs(ends.smallest) > abs(ends.largest) else 1]
    inner = plane.axes @ sharpest
    return min(1.0, float(inner @ plane.coordinates(sharpest)))


def _off_fraction(plane: ParameterPlane) -> float:
    """Return which fraction of the squared distances from the model lies off the plane."""
    total = float(plane.lengths.square().sum())
    return min(1.0, float(plane.off.square().sum()) / total) if total > 0 else 0.0
