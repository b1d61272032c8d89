"""The loss on a plane of parameters: its values, its true minimum, its curvature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape.landscape._loss_function import LossFunction
from inscape.landscape._parameter_planes import ParameterPlane

BatchNorm = nn.modules.batchnorm._BatchNorm
#: Local minima of the grid from which the minimum is searched for.
STARTS = 3
#: Newton steps at most, once the gradient method has come near.
NEWTON = 8
#: Tolerance of the search without gradients, as a fraction of the window.
NEAR = 1e-6


@dataclass(frozen=True, kw_only=True)
class PlaneMinimum:
    """The lowest point of a window: coordinates, loss, gradient and curvatures in the plane."""

    place: tuple[float, float]
    loss: float
    gradient: float
    curvatures: tuple[float, float]
    at_edge: bool


class PlaneLoss:
    """The loss as a function of two coordinates.

    With ``recomputed`` the running statistics of batch norm are those of the data at each point,
    averaged over the mini-batches; else they stay as they are at the model.
    """

    def __init__(self, problem: LossFunction, plane: ParameterPlane, *, recomputed: bool) -> None:
        self.problem, self.plane, self.recomputed = problem, plane, recomputed

    def value(self, place: Sequence[float]) -> float:
        """Return the loss at two coordinates, infinity where it overflows."""
        self.problem.place(self.plane.at(place))
        if self.recomputed:
            recompute_statistics(self.problem)
        value = self.problem.value()
        return value if math.isfinite(value) else math.inf

    def slope(self, place: Sequence[float]) -> Float64[Tensor, "2"]:
        """Return the derivatives by both coordinates."""
        self.problem.place(self.plane.at(place))
        return self.plane.axes @ self.problem.gradient().double()

    def hessian(self, place: Sequence[float]) -> Float64[Tensor, "2 2"]:
        """Return the second derivatives by both coordinates."""
        self.problem.place(self.plane.at(place))
        product = self.problem.products()
        rows = torch.stack([product(axis).double() for axis in self.plane.axes])
        second = rows @ self.plane.axes.T
        return (second + second.T) / 2

    def curvatures(self, place: Sequence[float]) -> Float64[Tensor, "2"]:
        """Return both principal curvatures of the plane, by lengths in parameter space."""
        root = torch.linalg.cholesky(self.plane.metric)
        half = torch.linalg.solve_triangular(root, self.hessian(place), upper=False)
        scaled = torch.linalg.solve_triangular(root, half.T, upper=False)
        values: Tensor = torch.linalg.eigvalsh((scaled + scaled.T) / 2)
        return values


@torch.no_grad()
def recompute_statistics(problem: LossFunction) -> None:
    """Set the running statistics of batch norm to those of the data, by one pass over them."""
    norms = [module for module in problem.model.modules() if isinstance(module, BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
        norm.train()
    for span in problem.spans():
        problem.outputs(span)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        norm.eval()


def plane_minimum(
    loss: PlaneLoss, positions: tuple[Tensor, Tensor], losses: Float64[Tensor, "rows columns"]
) -> PlaneMinimum:
    """Return the minimum in the window, searched for from the lowest local minima of the grid."""
    starts = _grid_minima(positions, losses)
    if loss.recomputed:
        place, value = _simplex(loss, starts[0])
        return PlaneMinimum(
            place=(float(place[0]), float(place[1])),
            loss=value,
            gradient=math.nan,
            curvatures=(math.nan, math.nan),
            at_edge=_at_edge(loss, place),
        )
    ends = [_descended(loss, start) for start in starts]
    place, value = min(ends, key=lambda end: end[1])
    place, value = _newton(loss, place, value)
    low, high = loss.curvatures(place.tolist()).tolist()
    slope = torch.linalg.solve_triangular(
        torch.linalg.cholesky(loss.plane.metric), loss.slope(place.tolist())[:, None], upper=False
    )
    return PlaneMinimum(
        place=(float(place[0]), float(place[1])),
        loss=value,
        gradient=float(slope.norm()),
        curvatures=(low, high),
        at_edge=_at_edge(loss, place),
    )


def _grid_minima(
    positions: tuple[Tensor, Tensor], losses: Float64[Tensor, "rows columns"]
) -> list[NDArray[np.float64]]:
    """Return the lowest points of the grid that are no higher than their neighbours."""
    capped = torch.where(losses.isfinite(), losses, torch.finfo(torch.float64).max)
    lowest = -nn.functional.max_pool2d(-capped[None], 3, stride=1, padding=1)[0]
    places = (capped <= lowest).nonzero()
    order = capped[places[:, 0], places[:, 1]].argsort()[:STARTS]
    return [
        np.array([float(positions[0][column]), float(positions[1][row])])
        for row, column in places[order].tolist()
    ]


def _descended(loss: PlaneLoss, start: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return where a quasi-Newton method ends in the window, and the loss there."""
    from scipy.optimize import minimize

    def both(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        place = at.tolist()
        value = loss.value(place)
        return min(value, 1e300), np.nan_to_num(loss.slope(place).cpu().numpy())

    settings: Any = {"maxiter": 60, "ftol": 1e-15, "gtol": 0.0}
    end = minimize(
        both, start, jac=True, method="L-BFGS-B", bounds=loss.plane.window, options=settings
    )
    first = loss.value(start.tolist())
    return (end.x, float(end.fun)) if end.fun <= first else (start, first)


def _simplex(loss: PlaneLoss, start: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the lowest point in the window by a simplex, where there is no gradient."""
    from scipy.optimize import minimize

    ends = np.array(loss.plane.window)
    first = start + np.array([[0, 0], [0.05, 0], [0, 0.05]]) * (ends[:, 1] - ends[:, 0])
    settings: Any = {
        "xatol": NEAR * float((ends[:, 1] - ends[:, 0]).max()),
        "fatol": 0.0,
        "maxfev": 300,
        "initial_simplex": np.clip(first, ends[:, 0], ends[:, 1]),
    }

    def value(at: NDArray[np.float64]) -> float:
        return min(loss.value(at.tolist()), 1e300)

    end = minimize(
        value,
        start,
        method="Nelder-Mead",
        bounds=loss.plane.window,
        options=settings,
    )
    return end.x, float(end.fun)


def _newton(
    loss: PlaneLoss, place: NDArray[np.float64], value: float
) -> tuple[NDArray[np.float64], float]:
    """Return the end of Newton steps that stay in the window and do not raise the loss."""
    ends = np.array(loss.plane.window)
    for _ in range(NEWTON):
        hessian = loss.hessian(place.tolist())
        if not float(torch.linalg.eigvalsh(hessian)[0]) > 0:
            break
        step = torch.linalg.solve(hessian, loss.slope(place.tolist())).cpu().numpy()
        following = place - step
        if not ((ends[:, 0] <= following) & (following <= ends[:, 1])).all():
            break
        lower = loss.value(following.tolist())
        if lower > value or np.array_equal(following, place):
            break
        place, value = following, lower
    return place, value


def _at_edge(loss: PlaneLoss, place: NDArray[np.float64]) -> bool:
    """Tell whether a point lies at the edge of the window."""
    ends = np.array(loss.plane.window)
    near = NEAR * (ends[:, 1] - ends[:, 0])
    return bool(((place - ends[:, 0] <= near) | (ends[:, 1] - place <= near)).any())
