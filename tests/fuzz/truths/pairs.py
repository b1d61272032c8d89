"""Two networks side by side: outputs, local maps and slices, one point at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, equal
from fuzz.reference import Reference
from fuzz.truths.common import points
from inscape.piecewise.planes.frame import Frame


def second(call: Call, f: Reference) -> Reference:
    """Return the other network of a call as a reference."""
    other = call.settings["other"]
    state = getattr(other, "module", other).state_dict()
    wide = {k: v.double() if v.is_floating_point() else v for k, v in state.items()}
    return f.at(wide)


def disagreement(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    both = [net.values(points(call)) for net in (f, second(call, f))]
    for name, outputs, classes in zip(
        ("classes", "other classes"), both, (result.classes, result.other_classes), strict=True
    ):
        yield _largest(name, outputs, classes)
    if both[0].shape[1] == 1:
        both = [torch.cat([torch.zeros_like(side), side], 1) for side in both]
    p, q = (side.softmax(1) for side in both)
    yield equal("distances", result.distances, (p - q).abs().sum(1) / 2, scale=1.0)


def _largest(name: str, outputs: Tensor, classes: Tensor) -> Claim:
    """Claim that the outputs of these classes are the largest of their points, up to rounding."""
    if outputs.shape[1] == 1:
        outputs = torch.cat([torch.zeros_like(outputs), outputs], 1)
    reached = outputs.gather(1, classes.long()[:, None])[:, 0]
    return at_least(name, reached, outputs.amax(1), scale=float(outputs.abs().max()))


def output_cross_entropy(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    mine, theirs = (net.values(points(call)) for net in (f, second(call, f)))
    scale = float(torch.cat([mine, theirs]).abs().max())
    for name, found, logits in (
        ("cross-entropies", result.cross_entropies, theirs),
        ("entropies", result.entropies, mine),
    ):
        terms = torch.where(mine.softmax(1) > 0, mine.softmax(1) * logits.log_softmax(1), 0.0)
        yield equal(name, found, -terms.sum(1), scale=scale)


def _maps(net: Reference, x: Tensor) -> Tensor:
    slopes = torch.stack([net.jacobian(point) for point in x])
    intercepts = net.values(x) - torch.einsum("ncd,nd->nc", slopes, x.flatten(1))
    return torch.cat([slopes, intercepts.unsqueeze(2)], 2)


def map_distance(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    sides = [_maps(net, x) for net in (f, second(call, f))]
    absolute = call.settings.get("scale") == "absolute"
    largest = torch.stack([(side.abs() if absolute else side).max() for side in sides])
    yield equal("scales", result.scales, largest, scale=float(torch.cat(sides).abs().max()))
    scaled = [side / scale for side, scale in zip(sides, largest, strict=True)]
    gaps = (scaled[0] - scaled[1]).flatten(1).square().mean(1)
    sizes = torch.stack([side.flatten(1).square().mean(1) for side in scaled])
    yield equal("distances", result.distances, gaps, scale=float(sizes.max()))


def map_alignment(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    sides = [_maps(net, x) for net in (f, second(call, f))]
    for j, found in enumerate(result.biased.tolist()):
        moved = [side[:, j] - side[:, j].mean(0) for side in sides]
        kernels = [side @ side.T for side in moved]
        spread = [float(kernel.norm()) for kernel in kernels]
        sizes = [float(side[:, j].square().sum()) for side in sides]
        if any(s <= 1e-9 * size for s, size in zip(spread, sizes, strict=True)) or found != found:
            continue  # maps that vary by little more than rounding
        expected = float((kernels[0] * kernels[1]).sum()) / (spread[0] * spread[1])
        growth = max(size / s for s, size in zip(spread, sizes, strict=True))
        yield equal(f"alignment of output {j}", found, expected, scale=growth)


def map_transfer(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    both = [net.values(x) for net in (f, second(call, f))]
    for name, outputs, classes in zip(
        ("class", "other class"), both, (result.own, result.target), strict=True
    ):
        yield _largest(name, outputs, classes)
    sides = [_maps(net, x) for net in (f, second(call, f))]
    half, ridge = len(x) // 2, float(call.settings.get("ridge", 0.0))
    parts, residuals = [], []
    for own, training in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
        fits = [_transfer(*(side[training, j] for side in sides), ridge)
                for j in range(sides[0].shape[1])]  # fmt: skip
        residuals.append([residual for _, residual in fits])
        moved = torch.stack([sides[0][own, j] @ fit for j, (fit, _) in enumerate(fits)], 1)
        inputs = torch.cat([x.flatten(1), torch.ones(len(x), 1, dtype=x.dtype)], 1)[own]
        parts.append(torch.einsum("ncd,nd->nc", moved, inputs))
    yield equal(
        "residuals",
        result.residuals,
        torch.tensor(residuals, dtype=torch.float64).mean(0),
        scale=1.0,
    )
    if result.determined:
        yield _largest("transferred class", torch.cat(parts), result.transferred)


def _transfer(source: Tensor, target: Tensor, ridge: float) -> tuple[Tensor, float]:
    """Return the least-squares map between the maps of two networks, and its relative residual."""
    left, sizes, right = torch.linalg.svd(source, full_matrices=False)
    _clear(sizes)
    keep = sizes > 1e-9 * sizes[0]
    left, sizes, right = left[:, keep], sizes[keep], right[keep]
    fit = right.T @ ((sizes / (sizes.square() + ridge * len(source)))[:, None] * (left.T @ target))
    return fit, float((source @ fit - target).norm()) / (float(target.norm()) or 1.0)


def _clear(sizes: Tensor) -> None:
    """Raise unless every singular value is clearly above rounding, or clearly rounding."""
    shares = sizes / sizes[0]
    if not bool(sizes[0] > 0) or bool(((shares > 1e-14) & (shares < 1e-6)).any()):
        raise Unverifiable("singular values near the threshold of the rank")


def slice_difference(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    frame = Frame(origin=result.origin, axes=result.axes)
    shape = (-1, *call.shape)
    nets = (f, second(call, f))
    middles = frame.at(result.centroids).reshape(shape)
    for name, net, classes in zip(
        ("classes", "other classes"), nets, (result.classes, result.other_classes), strict=True
    ):
        yield _largest(name, net.many_values(middles), classes)
    corners = frame.at(result.places).reshape(shape)
    both = [net.many_values(corners) for net in nets]
    steep = max(float(net.jacobians(middles).abs().max()) for net in nets)
    reach = float(frame.at(result.domain).abs().max())  # places are rounded in their window
    scale = max(float(torch.cat(both).abs().max()), steep * reach)
    yield equal("differences", result.differences, (both[0] - both[1]).norm(dim=1), scale=scale)
    middle = result.domain - result.domain.mean(0)
    following = middle.roll(-1, 0)
    cross = middle[:, 0] * following[:, 1] - middle[:, 1] * following[:, 0]
    whole = float(cross.sum()) / 2 * frame.area
    if result.exact:
        yield equal("area", float(result.areas.sum()), whole)


def _outputs(call: Call, f: Reference) -> list[Tensor]:
    """Return the outputs of both networks without their mean; those of one that is constant: none.

    Every network has its outputs as the last of its layers.
    """
    both = [net.values(points(call)) for net in (f, second(call, f))]
    moved = [side - side.mean(0) for side in both]
    if any(float(m.norm()) <= 1e-6 * float(s.norm()) for m, s in zip(moved, both, strict=True)):
        raise Unverifiable("outputs that vary by little more than rounding")
    return moved


def layer_alignment(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    moved = _outputs(call, f)
    if result.kernel == "rbf":
        raise Unverifiable("kernels of distances, whose median may jump")
    kernels = [side @ side.T for side in moved]
    sizes = float(kernels[0].norm() * kernels[1].norm())
    expected = float((kernels[0] * kernels[1]).sum()) / sizes
    yield equal("alignment of the outputs", result.biased[-1, -1], expected, scale=1.0)
    traces = float(kernels[0].trace() * kernels[1].trace())
    permuted = traces / (len(kernels[0]) - 1) / sizes
    yield equal("permuted", result.baseline[-1, -1], permuted, scale=permuted)


def procrustes_distance(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    first, other = (side / side.norm() for side in _outputs(call, f))
    nuclear = float(torch.linalg.matrix_norm(first.T @ other, "nuc"))
    yield equal("squared distance", result.squares[-1, -1], 2 - 2 * nuclear, scale=2.0)


def canonical_correlation(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    variance = float(call.settings.get("variance", 0.99))
    sides = [_directions(side, variance) for side in _outputs(call, f)]
    found = float(result.values[-1, -1])
    if found == found:
        correlations = torch.linalg.svdvals(sides[0].T @ sides[1])
        yield equal("mean correlation of the outputs", found, correlations.mean(), scale=1.0)
        counts = [result.directions[-1], result.other_directions[-1]]
        yield equal("directions of the outputs", counts, [side.shape[1] for side in sides])


def _directions(moved: Tensor, variance: float) -> Tensor:
    """Return the directions of most variance that make up so much of it."""
    left, sizes, _ = torch.linalg.svd(moved, full_matrices=False)
    _clear(sizes)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    shares = sizes[:rank].square().cumsum(0) / sizes[:rank].square().sum()
    if variance < 1 and bool(((shares - variance).abs() < 1e-6).any()):
        raise Unverifiable("the variance of some directions is just what is wanted")
    short = int((shares < variance).sum()) if variance < 1 else rank
    return left[:, : min(rank, short + 1)]


def mutual_neighbours(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    counts = result.values * result.count * result.examples
    yield equal("numbers of shared neighbours", counts, counts.round(), scale=1.0)
    yield equal("mean of the examples", result.shared.mean(), result.summary().value, scale=1.0)
    n, count = result.examples, result.count
    fewest = max(0, 2 * count - (n - 1)) / count  # lists of so many among n - 1 share that
    yield at_least("shared", result.shared, torch.full_like(result.shared, fewest))
