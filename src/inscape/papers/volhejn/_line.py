"""Networks of one input, as the broken lines that they are.

With one input a two-layer ReLU network is a broken line whose knots are known, so its value and
slope at a hundred thousand points cost a search among the knots each. The numbers are those of the
instruments (a test compares them), in a hundredth of the time.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from inscape._core.sampling import draw_pairs

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Line:
    """A broken line: ``offsets[i] + slopes[i] * x`` between ``knots[i - 1]`` and ``knots[i]``."""

    knots: Array
    slopes: Array
    offsets: Array
    weights_product: float

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Return values and slopes at ``x``."""
        piece = np.searchsorted(self.knots, x)
        return self.offsets[piece] + self.slopes[piece] * x, self.slopes[piece]


def line(model: nn.Sequential) -> Line:
    """Return the line of a network made by ``two_layer(1, hidden)``."""
    w, b, a, offset = (p.detach().double().numpy() for p in model.parameters())
    w, a = w[:, 0], a[0]
    moving = w != 0
    still = float(a[~moving] @ np.maximum(b[~moving], 0))
    w, b, a = w[moving], b[moving], a[moving]
    knots = -b / w
    order = np.argsort(knots, kind="stable")
    knots, bends = knots[order], (a * np.abs(w))[order]  # a unit that goes off bends as it does on
    falling = w < 0  # these are on at the far left
    slope, value = float(a[falling] @ w[falling]), float(a[falling] @ b[falling])
    return Line(
        knots=knots,
        slopes=np.concatenate([[slope], slope + np.cumsum(bends)]),
        offsets=offset + still + np.concatenate([[value], value - np.cumsum(bends * knots)]),
        weights_product=float(np.abs(a) @ np.abs(w)),
    )


def measured(model: nn.Sequential, x: Tensor, *, seed: int = 0) -> dict[str, float]:
    """Return the four measures on test points, with the thesis' 1000 pairs and 100 knots."""
    own = line(model)
    _, slopes = own(x.double().numpy()[:, 0])
    a, b = (end.double().numpy() for end in draw_pairs(x, 1000, seed=seed))
    walk = a + (b - a) * torch.linspace(0, 1, 100, dtype=torch.float64).numpy()
    heights, steepness = own(walk)
    return {
        "GN": float(np.abs(slopes).mean()),
        "PL0": float(np.abs(np.diff(heights, axis=1)).sum(1).mean()),
        "PL1": float(np.abs(np.diff(steepness, axis=1)).sum(1).mean()),
        "WP": own.weights_product,
    }


def polynomial(x: Tensor, y: Tensor, at: Tensor) -> nn.Sequential:
    """Return the network that follows the polynomial through the points, straight between ``at``.

    The thesis' comparison: the polynomial of degree ``len(x) - 1``, and then the ReLU network that
    agrees with it at the test points; one unit for each of them but the last.
    """
    from numpy.polynomial import Polynomial

    knots = at.double().numpy()[:, 0]
    curve = Polynomial.fit(x.double().numpy()[:, 0], y.double().numpy()[:, 0], len(x) - 1)
    heights = curve(knots)
    slopes = np.diff(heights) / np.diff(knots)
    bends = np.diff(slopes, prepend=0.0)
    first, last = nn.Linear(1, len(bends)).double(), nn.Linear(len(bends), 1).double()
    with torch.no_grad():
        first.weight.fill_(1.0)
        first.bias.copy_(torch.from_numpy(-knots[:-1]))
        last.weight.copy_(torch.from_numpy(bends)[None])
        last.bias.fill_(heights[0])
    return nn.Sequential(first, nn.ReLU(), last).eval()
