"""Upper bounds of a Lipschitz constant, each proved, from the linear maps of a network."""

from math import inf, isfinite

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.controls._linear_maps import Graph
from inscape.runtime.progress import Bar, progress

#: Units whose slopes are all tried, and rows of such a trial at most.
UNITS, ROWS = 12, 2**17
#: Activations up to which all pairs of them are looked at.
PAIRS = 16


@torch.no_grad()
def upper_bounds(graph: Graph) -> dict[str, float]:
    """Return all bounds that apply, by name; without those whose norm did not converge."""
    ends = len(graph.activations) + 1
    is_elementwise = (
        all(activation.elementwise for activation in graph.activations)
        and len(graph.activations) <= PAIRS
    )
    centred = is_elementwise and len(graph.activations) > 0 and _is_small(graph)
    with progress((1 + centred) * ends * (ends + 1) // 2, label="norms of maps") as bar:
        bounds = {"product of norms": chained(graph, middle=False, bar=bar)}
        if centred:
            bounds["slopes around their middle"] = chained(graph, middle=True, bar=bar)
    if is_elementwise:
        bounds |= {"every pattern of slopes": inf if (p := patterns(graph)) is None else p}
        bounds |= {"hull of the gradients": inf if (h := hull(graph)) is None else h}
    return {name: value for name, value in bounds.items() if isfinite(value)}


def _is_small(graph: Graph) -> bool:
    nodes = [activation.node for activation in graph.activations]
    return all(graph.size(node) <= 4096 for node in (graph.input, graph.output, *nodes))


def chained(graph: Graph, *, middle: bool, bar: Bar) -> float:
    r"""Return a bound by the largest contribution of each activation.

    .. math:: B_n = \lVert M_{n,0} \rVert + \sum_k r_k \lVert M_{n,k} \rVert B_k

    M is the linear network in which all activations have the slope c (the middle of their slopes,
    or zero), M_{n,k} its map from activation k to node n, r the largest distance from c, and B_k
    the bound before activation k. With c = 0 and a chain of layers this is the product of their
    norms; residual sums and other graphs need no rule of their own.
    """
    slopes = [(a.low + a.high) / 2 if middle and a.elementwise else 0.0 for a in graph.activations]
    sizes = [
        a.radius if middle and a.elementwise else max(abs(a.low), abs(a.high))
        for a in graph.activations
    ]
    before: list[float] = []
    for end in [*(a.before for a in graph.activations), graph.output]:
        total = graph.norm(graph.input, end, slopes)
        bar.advance()
        for k, bound in enumerate(before):
            if sizes[k] and bound:
                total += sizes[k] * graph.norm(graph.activations[k].node, end, slopes) * bound
            bar.advance()
        before.append(total)
    return before[-1]


def patterns(graph: Graph) -> float | None:
    """Return the largest norm of the Jacobian over all slopes of all units, if they are few.

    The Jacobian is affine in the slope of each unit, so that its norm is largest where every slope
    is least or largest; that some patterns occur nowhere only makes the bound larger.
    """
    sizes = [graph.size(a.node) for a in graph.activations]
    units, d = sum(sizes), graph.size(graph.input)
    if not 0 < units <= UNITS or 2**units * (d + 1) > ROWS:
        return None
    like = graph._like
    bits = torch.arange(2**units)[:, None] >> torch.arange(units) & 1
    repeated = bits.to(like).repeat_interleave(d + 1, 0)
    slopes: list[float | Tensor] = []
    for activation, chosen in zip(graph.activations, torch.split(repeated, sizes, 1), strict=True):
        slopes.append(activation.low + (activation.high - activation.low) * chosen)
    basis = torch.cat([like.new_zeros(1, d), torch.eye(d).to(like)]).repeat(2**units, 1)
    values = graph.run(graph.input, basis, graph.output, slopes).reshape(2**units, d + 1, -1)
    jacobians = values[:, 1:] - values[:, :1]
    return float(torch.linalg.matrix_norm(jacobians, 2).max())


def hull(graph: Graph) -> float | None:
    """Return the longest vector in the hull of all gradients, if that is a polygon.

    So it is for one layer of activations, one output and at most two inputs: the gradient is a sum
    of units' own, each times a slope between its bounds, which fills a zonotope.
    """
    d = graph.size(graph.input)
    if len(graph.activations) != 1 or graph.size(graph.output) != 1 or d > 2:
        return None
    activation = graph.activations[0]
    first = graph.matrix(graph.input, activation.before, [0.0])
    last = graph.matrix(activation.node, graph.output, [0.0])
    straight = graph.matrix(graph.input, graph.output, [0.0])
    if first is None or last is None or straight is None or len(first) != last.shape[1]:
        return None
    units = last[0][:, None] * first
    centre = straight[0] + (activation.low + activation.high) / 2 * units.sum(0)
    return longest(centre, activation.radius * units)


def longest(centre: Float64[Tensor, " d"], generators: Float64[Tensor, "m d"]) -> float:
    """Return the length of the longest of all ``centre`` plus or minus each generator, d <= 2.

    In the plane the corners are met one after the other as a direction turns: at the one where it
    is at a right angle to a generator, that generator changes its sign.
    """
    if len(centre) == 1:
        return float(centre.abs().sum() + generators.abs().sum())
    generators = generators[generators.norm(dim=1) > 0]
    half = torch.where(generators[:, :1] < 0, -generators, generators)
    half = half[torch.atan2(half[:, 1], half[:, 0]).argsort()]
    corners = half.sum(0) - 2 * torch.cat([half.new_zeros(1, 2), half.cumsum(0)])
    both = torch.cat([centre + corners, centre - corners])
    return float(both.norm(dim=1).max())
