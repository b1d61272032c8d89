"""Networks of one input as the broken lines that they are."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor, nn

#: Slopes of neighbours that differ by less than this share of the steepest, or by less than their
#: rounding, are the same piece.
SAME = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A broken line: ``intercepts[i] + slopes[i] * x`` from ``knots[i]`` to ``knots[i + 1]``."""

    knots: Float64[Tensor, " knots"]
    values: Float64[Tensor, " knots"]
    slopes: Float64[Tensor, " pieces"]
    intercepts: Float64[Tensor, " pieces"]

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.slopes)

    def lists(self) -> dict[str, Any]:
        """Return all of it as plain numbers, for a record."""
        names = ("knots", "values", "slopes", "intercepts")
        return {name: getattr(self, name).tolist() for name in names}


def line(model: nn.Module, low: float, high: float) -> Line:
    """Return a network of one input and one output on an interval, cut wherever it bends.

    A unit that bends without a trace in the output (one that leads to dead ones) cuts nothing: the
    pieces are those of the function.
    """
    from inscape.piecewise import cut, export

    ends = torch.tensor([[low], [high]], dtype=torch.float64)
    found = cut(export(deepcopy(model).double().eval(), ends), ends[0], ends[1])
    return joined(low + (high - low) * found.t, found.values[:, 0])


def joined(knots: Float64[Tensor, " k"], values: Float64[Tensor, " k"]) -> Line:
    """Return the line through points, without the points at which it goes straight on."""
    gaps = torch.diff(knots)
    slopes = torch.diff(values) / gaps
    rounding = 8 * torch.finfo(values.dtype).eps * (1 + values.abs().max())
    unsure = SAME * slopes.abs().max() + rounding * (1 / gaps[:-1] + 1 / gaps[1:])
    inner = torch.diff(slopes).abs() > unsure
    keep = torch.cat([torch.ones(1, dtype=torch.bool), inner, torch.ones(1, dtype=torch.bool)])
    knots, values = knots[keep], values[keep]
    slopes = torch.diff(values) / torch.diff(knots)
    return Line(
        knots=knots, values=values, slopes=slopes, intercepts=values[:-1] - slopes * knots[:-1]
    )


def zeros(line: Line) -> Float64[Tensor, " zeros"]:
    """Return where the line crosses zero, from one sign to the other."""
    left, right = line.values[:-1], line.values[1:]
    crossing = left * right < 0
    share = left[crossing] / (left[crossing] - right[crossing])
    inside = torch.lerp(line.knots[:-1][crossing], line.knots[1:][crossing], share)
    signs = line.values.sign()
    touching = (signs[1:-1] == 0) & (signs[:-2] * signs[2:] < 0)
    return torch.cat([inside, line.knots[1:-1][touching]]).sort().values
