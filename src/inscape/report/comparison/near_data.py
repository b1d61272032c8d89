"""Inputs near the data on which two networks disagree, found by a search from examples."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape.report.comparison.inputs import DisagreedInput, inputs_of, probabilities
from inscape.report.pictures import thumbnail
from inscape.report.sweeps.cells import Opened
from inscape.similarity import Disagreement

#: Examples that searches begin at, and inputs that are shown.
STARTS, SHOWN = 24, 4
#: How far from its example an input may go, relative to the distance of the nearest other one.
REACH = 0.25
#: Steps of a search, and how far all of them together could go, relative to the reach.
STEPS, LENGTH = 20, 2.5
#: Examples among which the nearest are looked for.
AMONG = 500


def near_inputs(
    first: Opened, second: Opened, result: Disagreement, *, count: int = SHOWN
) -> tuple[DisagreedInput, ...]:
    """Return inputs near examples of one class that are given two, the most different first.

    Of pictures alone, where both networks take the same numbers; a search begins at the examples
    to which both give the same class and whose probabilities differ most.
    """
    x = first.subject.x
    if thumbnail(x[0]) is None or not same_numbers(first, second):
        return ()
    agreed = result.classes == result.other_classes
    rows = [row for row in result.most(len(agreed)).tolist() if agreed[row]][:STARTS]
    reach = REACH * spacing(x[:AMONG])
    if not rows or reach == 0:
        return ()
    at = farthest(first, second, x[rows], result.classes[rows].to(x.device), reach)
    moved = (at - x[rows]).flatten(1).norm(dim=1).tolist()
    inputs = inputs_of(first, second, at, as_taken(second, at), rows, moved)
    differ = [shown for shown in inputs if shown.differ and shown.moved > 0]
    return tuple(sorted(differ, key=lambda shown: -shown.distance)[:count])


def same_numbers(first: Opened, second: Opened) -> bool:
    """Tell whether two networks take the same numbers, in some shape."""
    x, other = first.subject.x, second.subject.x
    if not x.is_floating_point() or x[0].numel() != other[0].numel():
        return False
    return bool((x.flatten(1) == other.flatten(1).to(x)).all())


def as_taken(opened: Opened, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n *e"]:
    """Return inputs in the shape and precision in which a network takes them."""
    own = opened.subject.x
    return x.reshape(len(x), *own.shape[1:]).to(own)


def spacing(x: Float[Tensor, "n *d"]) -> float:
    """Return the median distance of an example from the nearest one that is not the same."""
    flat = x.flatten(1).double()
    # By products of matrices an example would be a rounding error away from itself.
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    distances[distances == 0] = torch.inf
    nearest = distances.amin(1)
    nearest = nearest[nearest.isfinite()]
    return float(nearest.median()) if len(nearest) else 0.0


def farthest(
    first: Opened,
    second: Opened,
    begin: Float[Tensor, "n *d"],
    classes: Int64[Tensor, " n"],
    reach: float,
) -> Float[Tensor, "n *d"]:
    """Return, for each input, where within reach the probabilities differed most in a search.

    It climbs the difference of the logarithms of both probabilities of the common class, once for
    either network; inputs stay within the smallest and the largest number of the examples.
    """
    low, high = (float(end) for end in first.subject.x.aminmax())
    best, most = begin.clone(), torch.full((len(begin),), -1.0, dtype=torch.float64)
    for sign in (1, -1):
        at = begin.clone()
        for step in range(STEPS + 1):
            gradient, distances = _climbed(first, second, at, classes, sign)
            better = distances > most
            best[better], most[better] = at[better], distances[better]
            if gradient is None or step == STEPS:
                break
            at = at + LENGTH * reach / STEPS * _unit(gradient)
            at = _within(begin, at, reach).clamp(low, high)
    return best


def _climbed(
    first: Opened, second: Opened, at: Tensor, classes: Tensor, sign: int
) -> tuple[Tensor | None, Float[Tensor, " n"]]:
    """Return the gradient of what a search climbs, and how far the probabilities are apart."""
    with torch.enable_grad():
        at = at.detach().requires_grad_()
        sides = [
            probabilities(opened.subject.model, as_taken(opened, at)) for opened in (first, second)
        ]
        logs = [side.clamp_min(1e-30).log().gather(1, classes.cpu()[:, None]) for side in sides]
        climbed = sign * (logs[0] - logs[1]).sum()
        gradient: Tensor | None = None
        if climbed.requires_grad:
            (gradient,) = torch.autograd.grad(climbed, at, allow_unused=True)
    return gradient, (sides[0] - sides[1]).detach().abs().sum(1) / 2


def _unit(gradient: Tensor) -> Tensor:
    sizes: Tensor = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
    sizes = torch.where(sizes > 0, sizes, torch.ones_like(sizes))
    return gradient / sizes.reshape(-1, *[1] * (gradient.ndim - 1))


def _within(begin: Tensor, at: Tensor, reach: float) -> Tensor:
    """Return inputs moved back to at most some distance from where they began."""
    sizes = torch.linalg.vector_norm((at - begin).flatten(1), dim=1)
    sizes = sizes.clamp_min(torch.finfo(at.dtype).tiny)
    fractions = (reach / sizes).clamp(max=1).reshape(-1, *[1] * (at.ndim - 1))
    moved: Tensor = begin + fractions * (at - begin)
    return moved
