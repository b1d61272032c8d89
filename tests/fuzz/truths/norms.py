"""Norms of the weights and bounds on slopes: by matrices written out, and by autograd."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, at_most, equal
from fuzz.networks import PIECEWISE, SMOOTH
from fuzz.reference import Reference
from fuzz.truths.common import drawn, labels, points

ACTIVATIONS = (*(type(make()) for make in {**PIECEWISE, **SMOOTH}.values()), nn.MaxPool2d)


def weights_product(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    first, second = [m for m in f.module.modules() if isinstance(m, nn.Linear)]
    terms = first.weight.double().norm(dim=1) * second.weight.double().norm(dim=0)
    # points of several rows go through the layers row by row: as many copies of each unit
    terms = terms.repeat(math.prod(call.shape) // first.in_features)
    yield equal("terms", result.terms.double().sort().values, terms.sort().values)


def distance_from_init(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    start = call.settings["start"].state_dict()
    pairs = [
        (p.detach().double(), start[name].double())
        for name, p in call.network.module.named_parameters()
    ]
    total = sum(float((now - then).square().sum()) for now, then in pairs) ** 0.5
    yield equal("distances", result.distances, [(now - then).norm() for now, then in pairs])
    yield equal("after", result.after, [now.norm() for now, _ in pairs])
    yield equal("before", result.before, [then.norm() for _, then in pairs])
    yield equal("total", result.summary().value, total)


def fisher_rao_norm(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    y, names = labels(call), [name for name, _ in f.module.named_parameters()]
    theta = torch.cat([p.detach().flatten().double() for p in f.module.parameters()])
    squares, x = [], points(call)
    normalised = any(isinstance(m, nn.GroupNorm | nn.LayerNorm) for m in f.module.modules())
    if normalised and float(x.abs().max()) > 1e90:
        raise Unverifiable("third powers underflow inside of PyTorch's normalisation")
    for k in drawn(call).tolist():
        along = f.parameter_jacobian(x[k], names) @ theta
        slopes = list(_slopes(result, f.value(x[k]), y[k]))
        squares.append(sum(p * float((s * along).sum()) ** 2 for p, s in slopes))
    yield equal("squares", result.squares, squares)
    yield equal("norm", result.summary().value ** 2, sum(squares) / len(squares))


def _slopes(result: Any, outputs: Tensor, label: Tensor) -> Iterator[tuple[float, Tensor]]:
    """Yield labels' probabilities, and the derivative of the loss by the outputs for each."""
    if result.loss == "squared_error":
        if result.labels == "model":  # noise of variance one in every output: orthogonal parts
            for k in range(len(outputs)):
                yield 1.0, torch.eye(len(outputs), dtype=torch.float64)[k]
        else:
            target = label.double().reshape(-1)
            classes = not label.is_floating_point() and len(outputs) > 1
            if classes:
                target = torch.eye(len(outputs), dtype=torch.float64)[int(label)]
            yield 1.0, outputs - target
        return
    if result.loss == "bce_logits":
        p = float(outputs.sigmoid())
        table = {1: (p, outputs * 0 + p - 1), 0: (1 - p, outputs * 0 + p)}
    else:
        p_all = outputs.softmax(0)
        one_hot = torch.eye(len(outputs), dtype=torch.float64)
        table = {k: (float(p_all[k]), p_all - one_hot[k]) for k in range(len(outputs))}
    if result.labels == "data":
        yield 1.0, table[int(label)][1]
    else:
        yield from table.values()


def spectral_norm(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    largest = max(torch.linalg.matrix_norm(f.jacobian(point), 2) for point in points(call))
    yield at_least("a bound", result.summary().value, largest)
    if (
        type(call.network.module) is not nn.Sequential
        or call.network.wrap(f.module) is not f.module
    ):
        return
    norms, segment, value = [], [], torch.zeros(1, *call.shape, dtype=torch.float64)
    for layer in [*f.module, None]:
        if layer is not None and not isinstance(layer, ACTIVATIONS):
            segment.append(layer)
            continue
        if segment:
            norms.append(torch.linalg.matrix_norm(_matrix(nn.Sequential(*segment), value), 2))
        with torch.no_grad():
            value = nn.Sequential(*segment, *([] if layer is None else [layer]))(value)
        segment = []
    yield equal("norms", result.norms, norms)


@torch.no_grad()
def _matrix(affine: nn.Module, like: Tensor) -> Tensor:
    """Return the matrix of an affine map, column by column."""
    basis = torch.eye(like.numel(), dtype=torch.float64).reshape(-1, *like.shape[1:])
    return (affine(basis) - affine(torch.zeros_like(like))).flatten(1).T


def lipschitz(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x = points(call)
    a, b = result.pair.double()
    spread = float((x - x.mean(0)).abs().max()) + 1.0
    draw = torch.Generator().manual_seed(call.number)
    anywhere = x[:1] + 3 * spread * torch.randn(
        40, *x.shape[1:], generator=draw, dtype=torch.float64
    )
    slopes = torch.linalg.matrix_norm(f.jacobians(torch.cat([x, anywhere])), 2)
    if result.upper is not None:
        yield at_least("upper bound", result.upper, slopes.max())
        yield at_most("lower <= upper", result.lower, result.upper)
    yield at_least(
        "at least the steepest point that it starts from", result.lower, _starts(call, f)
    )
    distance = float((a - b).norm())
    if call.network.dtype is torch.float64 and distance > 1e-3 * spread:
        ratio = (f.value(a) - f.value(b)).norm() / distance
        size = float(f.values(torch.stack([a, b])).abs().max()) / distance
        yield equal("ratio of its chord", result.lower, ratio, scale=size)


def _starts(call: Call, f: Reference) -> Tensor:
    x = points(call)[drawn(call, 256)]
    return torch.stack([torch.linalg.matrix_norm(f.jacobian(p), 2) for p in x]).max() * 0.999
