"""Details of a cell under the pointer, and of a point that was clicked."""

from collections.abc import Generator
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape._core import NotApplicable
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredNetwork, ExploredSubject
from inscape.kernels import neighbours
from inscape.regions import PlaneRegions

#: Points of a cell at which its map is compared with the network.
SAMPLES = 64
#: Outputs that are named, the largest first.
NAMED = 5
#: Nearest examples that are named.
NEAREST = 5
#: Seconds that looking for similar gradients may take.
SEARCH = 0.4

Facts = dict[str, Any]


def cell_details(
    subject: ExploredSubject, network: ExploredNetwork, regions: PlaneRegions, cell: int
) -> Facts:
    """Return area, map, activation pattern and the error of the map of one cell.

    The error is the largest difference of the map and the network at the corners, drawn a little
    inwards, and at random points of the cell; in float64 and in the network's own precision.
    """
    if not 0 <= cell < regions.cells:
        raise ValueError(f"the cell must be one of {regions.cells}, found {cell}: point at one.")
    at, mapped = cell_samples(regions, cell)
    x = regions.frame.at(at)
    units = sum(regions.units)
    patterns = [regions.pattern(op)[cell] for op in range(len(regions.ops))]
    values = regions.values(torch.tensor([cell]), regions.centroids[cell : cell + 1])[0]
    order = values.argsort(descending=True)[:NAMED].tolist()
    return {
        "cell": cell,
        "region": int(regions.merged[cell]),
        "area": float(regions.areas[cell]),
        "corners": int(regions.first[cell + 1] - regions.first[cell]),
        "error": float((network.outputs(x, double=True) - mapped).abs().max()),
        "ownError": float((network.outputs(x) - mapped).abs().max()),
        "precision": str(network.dtype).removeprefix("torch."),
        "samples": len(at),
        "units": units,
        "layers": [
            {"name": name, "on": int((row != 0).sum()), "units": len(row), "states": states,
             "pattern": _short_pattern(row)}
            for name, row, states in zip(regions.ops, patterns, regions.states, strict=True)
        ],
        "map": [
            {"output": subject.class_name(k), "value": float(values[k]),
             "slopes": regions.slopes[cell, k].tolist()}
            for k in order
        ],
        "answer": _answer(subject, values[None]),
    }  # fmt: skip


def _short_pattern(row: Tensor) -> str:
    digits = "".join(str(min(9, int(state))) for state in row[:64].tolist())
    return digits + ("…" if len(row) > 64 else "")


def _answer(subject: ExploredSubject, values: Float64[Tensor, "1 c"]) -> Facts:
    if not subject.is_competing:
        return {"text": f"{float(values[0, 0]):.4g}"}
    number = int(subject.scores(values)[0].argmax())
    confidence = float(subject.confidence(values)[0])
    return {"class": number, "text": subject.class_name(number), "confidence": confidence}


def cell_samples(
    regions: PlaneRegions, cell: int
) -> tuple[Float64[Tensor, "n 2"], Float64[Tensor, "n c"]]:
    """Return points of a cell, and the values of its map there."""
    corners, middle = regions.polygon(cell), regions.centroids[cell]
    draw = torch.Generator().manual_seed(0)
    weights = torch.rand(SAMPLES, len(corners), generator=draw, dtype=torch.float64)
    weights = weights / weights.sum(1, keepdim=True)
    inner = middle + 0.999 * (corners - middle)
    at = torch.cat([middle[None], inner, weights @ inner])
    return at, regions.values(torch.full((len(at),), cell), at)


def point_details(
    subject: ExploredSubject, network: ExploredNetwork, plane: ExploredPlane, u: float, v: float
) -> Generator[None, None, Facts]:
    """Return what a network answers at a point of a plane, and what is near it.

    The saliency is the gradient of the answer's score; the distance to the boundary is that of the
    map around the point, exact where its region reaches so far.
    """
    x = plane.frame.at(torch.tensor([[u, v]], dtype=torch.float64))
    outputs = network.outputs(x, double=True)
    yield
    scores = subject.scores(outputs)[0]
    answer, rivals = _answer(subject, outputs), scores.argsort(descending=True)[:NAMED].tolist()
    gradients = score_gradients(subject, network, x, rivals)
    yield
    saliency = gradients[0].flatten()
    facts: Facts = {
        "u": u,
        "v": v,
        "answer": answer,
        "scores": [{"name": subject.class_name(k), "value": float(scores[k])} for k in rivals],
        "saliency": saliency.tolist() if len(saliency) <= 4096 else None,
        "gradientNorm": float(saliency.norm()),
        "input": x.flatten().tolist() if x.numel() <= 4096 else None,
        "nearest": nearest_examples(subject, x),
    }
    if subject.is_competing:
        leads = [float(scores[rivals[0]] - scores[k]) for k in rivals[1:]]
        slopes = [float((gradients[0] - g).norm()) for g in gradients[1:]]
        near = [lead / slope for lead, slope in zip(leads, slopes, strict=True) if slope > 0]
        facts["boundaryEstimate"] = min(near, default=None)
    return facts


def score_gradients(
    subject: ExploredSubject,
    network: ExploredNetwork,
    x: Float64[Tensor, "1 *d"],
    chosen: list[int],
) -> list[Tensor]:
    """Return the gradients of some scores with respect to the input, in float64 where possible."""
    with torch.enable_grad():
        if network.net is not None:
            point = x.clone().requires_grad_()
            outputs = network.net.traced(point)
        else:
            point = x.to(network.dtype).requires_grad_()
            outputs = network.f(point).reshape(1, -1).double()
        scores = subject.scores(outputs)[0]
        return [
            torch.autograd.grad(scores[k], point, retain_graph=True)[0].detach().double()
            for k in chosen
        ]


def nearest_examples(subject: ExploredSubject, x: Float64[Tensor, "1 *d"]) -> list[Facts]:
    """Return the examples at the least distance."""
    far = (subject.flat - x.flatten()).norm(dim=1)
    count = min(NEAREST, len(far))
    return [
        {"row": row, "distance": float(far[row]), "label": subject.label(row)}
        for row in far.argsort()[:count].tolist()
    ]


def similar_gradients(
    subject: ExploredSubject, plane: ExploredPlane, u: float, v: float
) -> Generator[None, None, Facts]:
    """Return the training examples with the most similar gradients, of as many as there is time."""
    train, own = subject.subject.x_train, subject.subject
    passes = 3 * own.probe.outputs
    rows = min(len(train), 1000, int(SEARCH / (passes * max(own.pace, 1e-9))))
    yield
    if rows < NEAREST:
        return {"similar": None}
    x = plane.frame.at(torch.tensor([[u, v]], dtype=torch.float64))
    try:
        query = x.to(device=train.device, dtype=train.dtype)
        result = neighbours(own.model, train[:rows], queries=query, count=NEAREST)
    except (ValueError, RuntimeError):  # a model without parameters, or without gradients
        return {"similar": None}
    if isinstance(result, NotApplicable):
        return {"similar": None}
    pairs = zip(result.by_kernel[0].tolist(), result.cosines[0].tolist(), strict=True)
    named = [{"row": row, "cosine": cosine} for row, cosine in pairs]
    return {"similar": named, "searched": rows}
