"""Two points as far apart in their outputs, beside their own distance, as can be found."""

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import generator
from inscape._core.checks import Function
from inscape._core.functional import chunks, jacobians

#: Pairs that are followed, and steps that they take.
PAIRS, STEPS = 8, 60
#: Points that are drawn around the data.
WIDE = 256
#: Distances of the last pairs, beside the spread of the data.
NEAR = (1e-2, 1e-4)


def steepest_pair(
    f: Function, x: Float[Tensor, "n *d"], *, rows: int, seed: int
) -> tuple[float, Float[Tensor, "2 *d"]]:
    """Return the largest ratio of distances that was found, and where.

    Starts at the points where the Jacobian's norm is largest, among the data and points drawn three
    times as wide; then both ends of a short chord climb.
    """
    centre, spread = x.mean(0), float(x.std(0, correction=0).norm()) or 1.0
    shape = (WIDE, *x.shape[1:])
    dice = torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(x)
    wide = centre + 3 * dice * (x - centre).square().mean(0).sqrt()
    starts, along = _steep(f, torch.cat([x, wide]), rows)
    pairs = [_around(starts, along, near * spread) for near in NEAR]
    climbed = _climbed(f, pairs[0], spread)
    starts, along = _steep(f, climbed.mean(0), rows)
    pairs += [climbed, *(_around(starts, along, near * spread) for near in NEAR)]
    every = torch.cat(pairs, 1)
    found = _ratio(f, every)
    best = int(found.argmax())
    return float(found[best]), every[:, best].clone()


def _steep(f: Function, x: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Return the points with the largest Jacobians and the directions in which they stretch."""
    norms, directions = [], []
    for part in chunks(x, rows):
        _, values, right = torch.linalg.svd(jacobians(f, part).detach(), full_matrices=False)
        norms.append(values[:, 0])
        directions.append(right[:, 0])
    order = torch.cat(norms).argsort(descending=True)[:PAIRS]
    return x[order], torch.cat(directions)[order].reshape(len(order), *x.shape[1:])


def _around(x: Tensor, along: Tensor, distance: float) -> Tensor:
    """Return chords around points, first all beginnings, then all ends."""
    return torch.stack([x - distance / 2 * along, x + distance / 2 * along])


@torch.no_grad()
def _ratio(f: Function, pairs: Tensor) -> Tensor:
    """Return the distance of outputs over that of inputs; 0 where the inputs are one."""
    apart = (pairs[1] - pairs[0]).flatten(1).norm(dim=1)
    outputs = (f(pairs[1]) - f(pairs[0])).flatten(1).norm(dim=1)
    return torch.where(apart > 0, outputs / apart.clamp(min=1e-300), 0.0)


def _climbed(f: Function, pairs: Tensor, spread: float) -> Tensor:
    """Let both ends climb the ratio by steps of one length that shrinks; return the best seen."""
    best, at = _ratio(f, pairs), pairs.clone()
    kept = at.clone()
    for step in range(STEPS):
        with torch.enable_grad():
            at = at.detach().requires_grad_()
            apart = (at[1] - at[0]).flatten(1).norm(dim=1)
            outputs = (f(at[1]) - f(at[0])).flatten(1).norm(dim=1)
            value = (outputs.clamp(min=1e-300).log() - apart.log()).sum()
            (slope,) = torch.autograd.grad(value, at)
        length = slope.flatten(2).norm(dim=(0, 2)).clamp(min=1e-300)
        pace = 0.1 * spread * (1 - step / STEPS)
        at = at.detach() + pace * slope / length.view(1, -1, *[1] * (at.ndim - 2))
        found = _ratio(f, at)
        better = found > best
        best = torch.where(better, found, best)
        kept[:, better] = at[:, better]
    return kept
