"""Attributions and directions of gradients, from gradients of single points."""

from collections.abc import Iterator
from typing import Any

import torch

from fuzz.calls import Call
from fuzz.claims import Claim, at_least, at_most, equal
from fuzz.reference import Reference
from fuzz.truths.common import drawn, points
from inscape._core.sampling import draw_numbers


def active_subspace(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    held = int(result.held_out.sum())
    numbers = draw_numbers(len(call.x), len(result.held_out), seed=call.settings.get("seed", 0))
    x = points(call)[numbers][: len(numbers) - held]
    jacobians = torch.stack([f.jacobian(point) for point in x])
    for j, output in enumerate(result.outputs):
        if output >= 0:
            own = jacobians[:, output]
        else:
            own = jacobians[torch.arange(len(x)), f.values(x).argmax(1)]
        covariance = own.T @ own / len(x)
        size, eigenvalues = float(covariance.trace()), torch.linalg.eigvalsh(covariance).flip(0)
        found, missed = result.eigenvalues[j], result.missed[j]
        expected = eigenvalues[: len(found)]
        yield equal(f"energy of output {j}", result.energies[j], size)
        yield at_least(f"eigenvalues of output {j}", found + missed, expected, scale=size)
        yield at_most(f"eigenvalues of output {j}", found, expected, scale=size)
        directions = result.directions[j]
        along = torch.einsum("kd,de,ke->k", directions, covariance, directions)
        yield equal(f"energy along the directions of output {j}", along, found, scale=size)


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
