"""Losses between networks, errors away from the data, and attacks: by loops and invariants."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, at_most, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import labels, points


def interpolation(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x, y = points(call), labels(call)
    ends = call.network.module.state_dict(), call.settings["other"].state_dict()
    losses = []
    for at in result.at.tolist():
        state = {
            name: value + at * (ends[1][name] - value) if value.is_floating_point() else value
            for name, value in (
                (n, v.double()) if v.is_floating_point() else (n, v) for n, v in ends[0].items()
            )
        }
        losses.append(_loss(result.loss, f.at(state).values(x), y))
    yield equal("losses", result.losses, losses)
    first, last = losses[0], losses[-1]
    line = [first + at * (last - first) for at in result.at.tolist()]
    barrier = max(float(a) - float(b) for a, b in zip(losses, line, strict=True))
    yield equal("barrier", result.summary().value, barrier, scale=float(max(losses)))


def _loss(name: str, outputs: Tensor, y: Tensor) -> Tensor:
    if name == "mse":
        return (outputs - y.double().reshape(outputs.shape)).square().mean()
    if name == "cross_entropy":
        return functional.cross_entropy(outputs, y.long())
    raise Unverifiable(name)


def extrapolation(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x, y = points(call), labels(call)
    errors = result.errors
    yield holds("errors are not negative", bool((errors >= 0).all()))
    yield holds("distances are not negative", bool((result.distances >= 0).all()))
    outputs = f.values(x)
    if result.classes:
        if outputs.shape[1] < 2:
            raise Unverifiable("a threshold that depends on the last layer")
        wrong = (outputs.argmax(1) != y).double()
    else:
        wrong = (outputs - y.double().reshape(outputs.shape)).square().mean(1)
    # queries come in an order of the folds: the errors of the network are the same numbers
    mine, theirs = wrong.sort().values, errors[:, 0].sort().values
    if len(mine) == len(theirs):
        yield equal("errors", theirs, mine)
    else:
        yield at_most("largest error", theirs.max(), mine.max())
        yield at_least("least error", theirs.min(), mine.min())
    apart = torch.stack([(x - point).flatten(1).norm(dim=1) for point in x])
    nearest = (apart + torch.diag(torch.full((len(x),), torch.inf, dtype=torch.float64))).min()
    yield at_least("nearest", result.distances.min(), nearest, scale=float(x.abs().max()))
    yield at_most("farthest", result.distances.max(), apart.max(), scale=float(x.abs().max()))


def robustness(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    x, y = points(call), labels(call).long()
    accuracy = result.accuracy
    yield holds("accuracies", bool(((accuracy >= 0) & (accuracy <= 1)).all()))
    if result.carry and result.attack != "noise":
        yield holds("accuracy falls", bool((accuracy.diff() <= 1e-12).all()))
    right = _right(f, x, y)
    if len(result.lengths) == len(x):
        yield equal("clean accuracy", accuracy[0], right.double().mean())
    if result.attack == "noise":
        return
    order = 2.0 if result.norm == "l2" else torch.inf
    for k, index in enumerate(result.examples.tolist()):
        step = (result.after[k].double() - result.before[k].double()).flatten()
        yield equal(f"before {k}", result.before[k], x[index])
        if len(result.lengths) == len(x):
            yield equal(
                f"length {k}",
                result.lengths[index],
                torch.linalg.vector_norm(step, order),
                scale=float(x[index].abs().max()),
            )
        yield holds(f"broken {k}", not _clearly_right(call, f, result.after[k].double(), y[index]))


def _scores(outputs: Tensor) -> Tensor:
    return torch.stack([-outputs[0], outputs[0]]) if len(outputs) == 1 else outputs


def _right(f: Reference, x: Tensor, y: Tensor) -> Tensor:
    found = []
    for point, label in zip(x, y, strict=True):
        outputs = f.value(point)
        if len(outputs) == 1:
            found.append(int(outputs[0] > 0) == int(label))
        else:
            found.append(int(outputs.argmax()) == int(label))
    return torch.tensor(found)


def _clearly_right(call: Call, f: Reference, point: Tensor, label: Tensor) -> bool:
    scores = _scores(f.value(point))
    others = torch.cat([scores[:label], scores[label + 1 :]])
    slack = 1e3 * torch.finfo(call.network.dtype).eps * float(scores.abs().max())
    return bool(scores[label] > others.max() + slack)
