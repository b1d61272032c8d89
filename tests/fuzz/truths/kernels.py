"""Tangent kernels from gradients written out, one output of one point at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from fuzz.calls import Call
from fuzz.claims import Claim, at_most, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import labels, points


def _trainable(call: Call) -> list[str]:
    return [name for name, p in call.network.module.named_parameters() if p.requires_grad]


def _gradients(call: Call, f: Reference) -> Tensor:
    """Return the gradients of all outputs at all points, of shape (n, c, p)."""
    names = _trainable(call)
    return torch.stack([f.parameter_jacobian(point, names) for point in points(call)])


def _kernel(gradients: Tensor, outputs: str, normalised: bool) -> Tensor:
    full = torch.einsum("nip,mjp->nmij", gradients, gradients)
    diagonal = full.diagonal(dim1=2, dim2=3)
    kernel = {"full": full, "diagonal": diagonal, "trace": diagonal.sum(2)}[outputs]
    if not normalised:
        return kernel
    if outputs == "trace":
        own = gradients.flatten(1).norm(dim=1)
        return (kernel / (own[:, None] * own)).nan_to_num(0.0, 0.0, 0.0)
    own = gradients.norm(dim=2)
    if outputs == "full":
        scale = own[:, None, :, None] * own[None, :, None, :]
    else:
        scale = own[:, None] * own[None]
    return (kernel / scale).nan_to_num(0.0, 0.0, 0.0)


def _choices(call: Call, outputs: str) -> tuple[str, bool]:
    return call.settings.get("outputs", outputs), call.settings.get("normalised", False)


def tangent_kernel(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    gradients = _gradients(call, f)
    yield equal("kernel", result.kernel, _kernel(gradients, *_choices(call, "full")))
    yield equal("lengths", result.gradient_norms, gradients.flatten(1).norm(dim=1))


def neighbours(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    cosines = _kernel(_gradients(call, f), "trace", True)
    distances = torch.stack([(x - point).flatten(1).norm(dim=1) for point in x])
    count, own = result.by_kernel.shape[1], torch.eye(len(x), dtype=torch.bool)
    largest = cosines.masked_fill(own, -torch.inf).sort(descending=True).values[:, :count]
    least = distances.masked_fill(own, torch.inf).sort().values[:, :count]
    size = float(x.abs().max())
    yield equal("cosines", result.cosines, largest, scale=1.0)
    yield equal("cosines of those", cosines.gather(1, result.by_kernel), largest, scale=1.0)
    yield equal("distances", result.distances, least, scale=size)
    yield equal("distances of those", distances.gather(1, result.by_distance), least, scale=size)
    shared = [
        len(set(a) & set(b)) / count
        for a, b in zip(result.by_kernel.tolist(), result.by_distance.tolist(), strict=True)
    ]
    yield equal("agreement", result.agreement, shared)
    yield at_most("correlation", result.correlation.abs().max(), 1.0)


def kernel_drift(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    trajectory, kernels = call.settings["trajectory"], []
    for step in result.steps.tolist():
        gradients = _gradients(call, f.at(trajectory.at(step)))
        kernels.append(_kernel(gradients, *_choices(call, "trace")).flatten())
    yield equal("norms", result.norms, [kernel.norm() for kernel in kernels])
    for column, end in ((0, kernels[0]), (1, kernels[-1])):
        if float(end.norm()) > 0:
            change = [(kernel - end).norm() / end.norm() for kernel in kernels]
            yield equal(f"change {column}", result.change[:, column], change, scale=1.0)
            cosine = [kernel @ end / (kernel.norm() * end.norm()) for kernel in kernels]
            yield equal(f"cosine {column}", result.cosine[:, column], cosine, scale=1.0)


def path_kernel(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    trajectory, queries = call.settings["trajectory"], points(call)[:8]
    first, last = f.at(trajectory.at(0)), f.at(trajectory.at(trajectory.steps))
    initial, final = first.values(queries), last.values(queries)
    size = float(torch.cat([initial, final]).abs().max())
    yield equal("initial", result.initial, initial)
    yield equal("final", result.final, final)
    total = result.initial + result.samples.sum(1) + result.decay + result.penalty
    yield equal("sum", total + result.rounding + result.residual, result.final, scale=size)
    if result.mode == "first-order":
        yield equal(
            "samples",
            result.samples,
            _first_order(call, f, queries),
            scale=_training_size(call, size),
        )
    else:
        moved = float((final - initial).abs().max())
        yield holds("closes", float(result.residual.abs().max()) <= 1e-3 * moved + 1e-6 * size)


def _training_size(call: Call, size: float) -> float:
    """Return the size of errors that updates in the training's own precision may make."""
    eps = torch.finfo(call.network.dtype).eps
    return size * eps / torch.finfo(torch.float64).eps


def _first_order(call: Call, f: Reference, queries: Tensor) -> Tensor:
    """Return what every sample adds to every query, update by update of gradient descent."""
    trajectory, names = call.settings["trajectory"], list(call.settings["trajectory"].trainable)
    x, y = points(call), labels(call).double()
    added = torch.zeros(len(queries), len(x), y.shape[1], dtype=torch.float64)
    for step in range(trajectory.steps):
        at = f.at(trajectory.at(step))
        rows = torch.arange(len(x))[trajectory.rows(step)].tolist()
        asked = [at.parameter_jacobian(query, names) for query in queries]
        for row in rows:
            pull = 2 * (at.value(x[row]) - y[row]) / (len(rows) * y.shape[1])
            update = -float(trajectory.rates[step]) * pull @ at.parameter_jacobian(x[row], names)
            for k, jacobian in enumerate(asked):
                added[k, row] += jacobian @ update
    return added
