"""Each measure beside a slow and obvious one: what applies, and the largest difference."""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from inscape._core.sampling import draw_pairs
from inscape.errors import UnsupportedModelError
from inscape.regions import LocalMaps, local_maps
from inscape.smoothness import gradient_norm, path_length

#: Outputs that are measured; of more, so many evenly spaced ones.
OUTPUTS = 8
#: Numbers of an input up to which exact local maps are computed.
EXACT = 4096
#: Rows of which gradients are compared, and chords, each of so many knots.
GRADIENTS, CHORDS, KNOTS = 2, 3, 8
#: The largest difference, as a fraction of the largest value, that rounding explains in float64.
ROUNDING = 1e-9


class Outcome(NamedTuple):
    """What one measure did: its name, and the difference, or why it does not apply."""

    measure: str
    difference: float
    reason: str = ""


class Spaced(nn.Module):
    """A model with a few of its outputs, flat."""

    def __init__(self, model: nn.Module, places: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("places", places)
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        """Return the chosen outputs."""
        made = self.model(x)
        return made.flatten(1)[:, self.places] if made.ndim > 1 else made[:, None]


def of_few_outputs(model: nn.Module, x: Tensor, most: int = OUTPUTS) -> nn.Module:
    """Return a model with at most a few flat outputs."""
    with torch.no_grad():
        made = model(x[:1])
    count = made[0].numel()
    if count <= most and made.ndim == 2:
        return model
    return Spaced(model, torch.linspace(0, count - 1, min(most, count)).round().long())


def compared(
    model: nn.Module, x: Tensor, *, light: bool = False, integers: bool = False
) -> list[Outcome]:
    """Return the outcome of each measure."""
    f = of_few_outputs(model, x, 1 if light else OUTPUTS)
    checks = {"path_length": _paths, "gradient_norm": _gradients, "local_maps": _maps}
    checks = {"path_length": _paths} if integers else checks
    outcomes = []
    for name, check in checks.items():
        try:
            outcomes.append(check(name, f, x))
        except UnsupportedModelError as error:
            outcomes.append(Outcome(name, math.nan, str(error)))
    return outcomes


def _relative(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference as a fraction of the largest value; infinite if all are 0."""
    largest = float(theirs.abs().max())
    return float((ours - theirs).abs().max()) / largest if largest > 0 else math.inf


@torch.no_grad()
def _paths(name: str, f: nn.Module, x: Tensor) -> Outcome:
    ours = path_length(f, x, pairs=CHORDS, knots=KNOTS).lengths
    theirs = []
    for a, b in zip(*draw_pairs(x, CHORDS, seed=0), strict=True):
        values = [f((a + k / (KNOTS - 1) * (b - a))[None])[0] for k in range(KNOTS)]
        theirs.append(sum(float((v - u).norm()) for u, v in pairwise(values)))
    return Outcome(name, _relative(ours.double(), torch.tensor(theirs, dtype=torch.float64)))


def _jacobian(f: nn.Module, row: Tensor) -> Tensor:
    """Return the Jacobian at one row, one backward pass for each output."""
    x = row[None].clone().requires_grad_()
    outputs = f(x)[0].flatten()
    slopes = []
    for output in outputs:
        (slope,) = torch.autograd.grad(output, x, retain_graph=True, allow_unused=True)
        slopes.append(torch.zeros_like(x) if slope is None else slope)
    return torch.cat(slopes).flatten(1)


def _gradients(name: str, f: nn.Module, x: Tensor) -> Outcome:
    ours = gradient_norm(f, x[:GRADIENTS]).norms
    theirs = torch.stack([_jacobian(f, row).norm() for row in x[:GRADIENTS]])
    return Outcome(name, _relative(ours.double(), theirs.detach()))


def _maps(name: str, f: nn.Module, x: Tensor) -> Outcome:
    if x[0].numel() > EXACT:
        return Outcome(name, math.nan, f"an input of more than {EXACT} numbers")
    maps = local_maps(f, x[:1])
    if not isinstance(maps, LocalMaps):
        return Outcome(name, math.nan, str(maps))
    if maps.patterns is None:
        return Outcome(name, math.nan, maps.note)
    with torch.no_grad():
        values = _relative(maps.values[0], f(x[:1])[0])
    slopes = _jacobian(f, x[0])
    if not slopes.any() and not maps.jacobians[0].any():  # constant around this point
        return Outcome(name, values)
    return Outcome(name, max(values, _relative(maps.jacobians[0], slopes)))
