"""Error maps: squared errors of a function on a grid of the plane."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import Result, Row, Summary, checks
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.extrapolation.profile import log_errors
from inscape.functional.jacobians import MEMORY, chunks, probe


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ErrorMap(Result):
    """Squared errors on a grid of the plane: rows from low to high second coordinate."""

    range: ClassVar[Range] = NONNEGATIVE

    errors: Float64[Tensor, "h w"]
    across: tuple[float, float]
    up: tuple[float, float]

    @property
    def brightness(self) -> Float64[Tensor, "h w"]:
        """Return negative logarithms of the squared errors, as the paper's maps show (K8)."""
        return -log_errors(self.errors)

    def rows(self) -> Iterator[Row]:
        """Yield one row for each grid point."""
        h, w = self.errors.shape
        xs, ys = torch.linspace(*self.across, w).tolist(), torch.linspace(*self.up, h).tolist()
        for j, second in enumerate(ys):
            for i, first in enumerate(xs):
                yield {"x1": first, "x2": second, "error": float(self.errors[j, i])}

    def summary(self) -> Summary:
        """Return the mean of the squared error over the grid."""
        h, w = self.errors.shape
        basis = f"{h} x {w} places, median {float(self.errors.median()):.2g}"
        return Summary(value=float(self.errors.mean()), kind="exact", basis=basis)


@torch.no_grad()
def error_map(
    f: Function,
    target: Function,
    *,
    across: tuple[float, float] = (-1.5, 1.5),
    up: tuple[float, float] = (-1.5, 1.5),
    size: int = 256,
    dtype: torch.dtype = torch.float32,
    memory: int = MEMORY,
) -> ErrorMap:
    r"""Return the squared error of ``f`` on a grid of a rectangle of the plane.

    .. math:: e(x) = \lVert f(x) - y(x) \rVert^2 / c

    Args:
        f: Function of two inputs.
        target: The true function.
        across: Range of the first coordinate.
        up: Range of the second coordinate.
        size: Grid points in each direction; Klindt uses 512.
        dtype: Precision in which ``f`` is evaluated; differences are float64.
        memory: Bytes that the working set may take.
    """
    checks.whole(2, size=size)
    for name, ends in (("across", across), ("up", up)):
        if not ends[0] < ends[1]:
            raise ValueError(f"{name} must rise, found {ends}: swap its ends.")
    first, second = (torch.linspace(*ends, size, dtype=torch.float64) for ends in (across, up))
    grid = torch.stack(torch.meshgrid(first, second, indexing="xy"), dim=-1).flatten(0, 1).to(dtype)
    probed = probe(f, grid[:2])
    errors = []
    for batch in chunks(grid, probed.rows(memory)):
        y, expected = (g(batch).double().reshape(len(batch), -1) for g in (probed.f, target))
        if y.shape != expected.shape:
            raise ValueError(
                f"target must have as many outputs as f, found {expected.shape[1]} and "
                f"{y.shape[1]}: reshape one of them."
            )
        errors.append((y - expected).square().mean(1))
    return ErrorMap(errors=torch.cat(errors).reshape(size, size), across=across, up=up)
