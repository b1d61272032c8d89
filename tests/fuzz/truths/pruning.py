"""Pruning: units and weights set to zero in a copy, and the loss of every choice."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, at_most, equal, holds
from fuzz.odd_networks import Hidden
from fuzz.reference import Reference
from fuzz.truths.common import labels, points

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d)


def _loss_and_score(call: Call, f: Reference, score: str) -> tuple[Tensor, Tensor]:
    """Return loss and score of a network at the data."""
    outputs, y = f.values(points(call)), labels(call)
    if not y.is_floating_point() and outputs.shape[1] > 1:
        right = (outputs.argmax(1) == y.long()).double().mean()
        return functional.cross_entropy(outputs, y.long()), right
    if not y.is_floating_point():
        truth = y.double().reshape(outputs.shape)
        loss = functional.binary_cross_entropy_with_logits(outputs, truth)
        return loss, ((outputs > 0) == (truth > 0.5)).double().mean()
    truth = y.double().reshape(outputs.shape)
    loss = (outputs - truth).square().mean()
    if score == "accuracy":  # two levels: on the right side of their middle
        middle = truth.unique().mean()
        return loss, ((outputs > middle) == (truth > middle)).double().mean()
    total = (truth - truth.mean(0)).square().sum()
    return loss, 1 - (outputs - truth).square().sum() / (total if total > 0 else 1.0)


def _curve(call: Call, result: Any, networks: list[Reference]) -> Iterator[Claim]:
    losses, scores = zip(*(_loss_and_score(call, f, result.score) for f in networks), strict=True)
    outputs = max(float(f.values(points(call)).abs().max()) for f in networks)
    size = 2 * outputs * float(torch.stack(losses).max()) ** 0.5  # of what a square is made from
    yield equal("losses", result.losses, torch.stack(losses), scale=size)
    yield equal(
        "scores",
        result.scores,
        torch.stack(scores),
        scale=float(torch.stack(scores).abs().max()) + 1,
    )
    good = [k for k, s in enumerate(result.scores.tolist()) if s >= result.scores[0] - result.slack]
    yield equal("chosen", result.chosen, good[-1])


def magnitude_pruning(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    fraction = call.settings.get("fraction", 0.2)
    body = _layers(f.module)
    alive = [layer.weight != 0 for layer in body]
    networks, sizes = [_clone(f)], [sum(int(mask.sum()) for mask in alive)]
    for _ in range(len(result.weights) - 1):
        every = (
            [(k,) for k in range(len(body))]
            if result.scope == "layer"
            else [tuple(range(len(body)))]
        )
        for group in every:
            _zero_smallest(body, alive, group, fraction)
        networks.append(_clone(f))
        sizes.append(sum(int(mask.sum()) for mask in alive))
    yield equal("weights", result.weights, sizes)
    yield from _curve(call, result, networks)


@torch.no_grad()
def _zero_smallest(
    body: list[Any], alive: list[Tensor], group: tuple[int, ...], fraction: float
) -> None:
    sizes = sorted(
        (float(body[k].weight.flatten()[i].abs()), k, i)
        for k in group
        for i in range(body[k].weight.numel())
        if alive[k].flatten()[i]
    )
    for _, k, i in sizes[: min(max(1, round(fraction * len(sizes))), len(sizes) - 1)]:
        alive[k].view(-1)[i] = False
        body[k].weight.view(-1)[i] = 0.0


def _layers(module: nn.Module) -> list[Any]:
    module = module.calls[0] if isinstance(module, Hidden) else module
    return [layer for layer in module.modules() if isinstance(layer, LAYERS)]


def _clone(f: Reference) -> Reference:
    return f.at(copy.deepcopy(f.module.state_dict()))


def unit_pruning(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    """Follow the removals that the result names; each must be the best that was left."""
    if int(call.settings.get("points", 1000)) < len(call.x):
        raise Unverifiable("a draw of points chooses the units")
    now, networks = _clone(f), [_clone(f)]
    left = {name: set(range(_width(f.module, name))) for name in result.layers}
    for step, removed in enumerate(result.removed[1:]):
        name, unit = removed.rsplit(": ", 1)
        candidates = [(n, u) for n, units in left.items() if len(units) > 1 for u in units]
        losses = [
            _loss_and_score(call, _without(now, n, u), result.score)[0] for n, u in candidates
        ]
        chosen = _without(now, name, int(unit))
        loss = _loss_and_score(call, chosen, result.score)[0]
        yield at_most(f"best of step {step + 1}", loss, min(losses), scale=float(max(losses)))
        left[name].remove(int(unit))
        now = chosen
        networks.append(now)
    yield equal("widths", result.widths[-1], [len(units) for units in left.values()])
    yield from _curve(call, result, networks)


def _width(module: nn.Module, name: str) -> int:
    return len(module.get_submodule(name).weight)


def _without(f: Reference, name: str, unit: int) -> Reference:
    """Return the network whose next layer does not read a unit."""
    if type(f.module) is not nn.Sequential:
        raise Unverifiable("which layer reads a unit")
    state = copy.deepcopy(f.module.state_dict())
    names = [n for n, layer in f.module.named_children() if isinstance(layer, LAYERS)]
    if name not in names:
        raise Unverifiable("which layer reads a unit")
    reader = names[names.index(name) + 1]
    weight = state[f"{reader}.weight"]
    width = _width(f.module, name)
    weight.view(len(weight), width, -1)[:, unit] = 0.0
    return f.at(state)


def exhaustive_pruning(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    start = _loss_and_score(call, f, result.score)[1]
    yield equal("start", result.start, start, scale=1.0)
    for k, size in enumerate(result.sizes.tolist()):
        if result.width > 5:
            raise Unverifiable("too many subsets")
        found = []
        for kept in itertools.combinations(range(result.width), size):
            part = f
            for unit in set(range(result.width)) - set(kept):
                part = _without(part, result.layer, unit)
            found.append(_loss_and_score(call, part, result.score))
        losses, scores = (torch.stack(part) for part in zip(*found, strict=True))
        yield equal(f"tried {size}", result.tried[k], len(found))
        yield equal(f"least loss {size}", result.losses[k], losses.min())
        yield equal(
            f"best score {size}",
            result.scores[k],
            scores.max(),
            scale=float(scores.abs().max()) + 1,
        )
    best = float(result.scores[-1])
    yield at_least("good", best, float(start) - result.slack, scale=1 + abs(best))
    yield holds("no smaller one is good", bool((result.good[:-1] == 0).all()))
