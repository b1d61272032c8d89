"""Attributions and directions of gradients, from gradients of single points."""

from collections.abc import Iterator
from typing import Any

import torch

from fuzz.calls import Call
from fuzz.claims import Claim, at_least, equal
from fuzz.reference import Reference
from fuzz.truths.common import drawn, points


def saliency(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)[drawn(call, 50)]
    yield equal("points", result.points, x.flatten(1))
    outputs = f.values(x)
    size = float(outputs.abs().max())
    chosen = outputs.gather(1, result.outputs[:, None])[:, 0]
    if call.settings.get("output") is None:
        yield at_least("largest output", chosen, outputs.amax(1), scale=size)
    yield equal("values", result.values, chosen, scale=size)
    start = f.value(torch.zeros_like(x[0]))
    size = max(size, float(start.abs().max()))
    yield equal("baseline", result.baseline_values, start[result.outputs], scale=size)
    numbers = list(enumerate(result.outputs.tolist()))
    slopes = torch.stack([f.jacobian(x[k])[output] for k, output in numbers])
    yield equal("gradients", result.gradients, slopes)
    exact = result.exact
    gaps = (chosen - start[result.outputs])[exact]
    # each piece rounds, and so does each product with an input
    terms = max(size, float(result.integrated.abs().sum(1).max()))
    yield equal("completeness", result.integrated.sum(1)[exact], gaps, scale=terms)
