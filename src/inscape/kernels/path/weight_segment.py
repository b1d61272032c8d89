"""A module along a straight segment of its weights, evaluated at many places at once.

Every pair of a query and a place on the segment has weights of its own: they are mapped over
together. Where piecewise-linear operations are in the module, the places where units of a query
switch are found from the inputs of these operations.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from inscape.functional.substitution import outputs_with
from inscape.kernels.path.weight_batch import weighted_gradient

#: Bytes of gradients that are mapped over at once, beyond those of one pair.
MAPPED = 2**25

#: Switches of one query in one step at most, rounds of the search, and steps towards one of them.
MOST, ROUNDS, STEPS = 256, 8, 40

#: What is zero for a unit, relative to the largest input of its operation.
ZERO = 2e-15

#: Piecewise-linear operations by name, and where their kinks are.
AT_ZERO = ("relu", "relu_", "leaky_relu", "leaky_relu_", "abs", "abs_")
POOLS = ("max_pool1d", "max_pool2d", "max_pool3d")


@dataclass(frozen=True, eq=False, kw_only=True)
class Switches:
    """Inputs of a piecewise-linear operation at places k, and which of them its units u choose.

    A unit chooses one of its inputs by number, or none (-1): the zero of a ReLU.
    """

    inputs: Float[Tensor, "k i"]
    chosen: Int64[Tensor, "k u"]

    def margin(self, row: Tensor, one: Tensor, two: Tensor) -> Float[Tensor, " j"]:
        """Return how far one choice is above another at some places."""
        return self._value(row, one) - self._value(row, two)

    def _value(self, row: Tensor, choice: Tensor) -> Tensor:
        return self.inputs[row, choice.clamp(min=0)] * (choice >= 0)


class Segment:
    """The outputs of a module at weights ``start + t * step``, for pairs of a query and a t."""

    def __init__(self, model: nn.Module, slices: Mapping[str, slice]) -> None:
        self._model, self._slices = model, slices
        self._shapes = {name: model.get_parameter(name).shape for name in slices}

    def slopes(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Float[Tensor, "k c"]:
        """Return how fast the outputs change along the segment, by one JVP for each pair."""

        def along(point: Tensor, at: Tensor) -> Tensor:
            def outputs(s: Tensor) -> Tensor:
                return self._outputs(start + s * step, point)

            slope: Tensor = torch.func.jvp(outputs, (at,), (torch.ones_like(at),))[1]
            return slope

        with _mapping():
            slopes: Tensor = torch.func.vmap(along)(x, t)
        return slopes.detach()

    def gradients(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "k c p"]]:
        """Yield the gradients of all outputs, some pairs at a time."""

        def jacobian(point: Tensor, at: Tensor) -> Tensor:
            found: Tensor = torch.func.jacrev(self._outputs)(start + at * step, point)
            return found

        outputs = self._outputs(start, x[0]).numel()
        count = max(1, MAPPED // (8 * outputs * len(start)))
        for points, places in zip(torch.split(x, count), torch.split(t, count), strict=True):
            with _mapping():
                yield torch.func.vmap(jacobian)(points, places).detach()

    def total(
        self,
        start: Tensor,
        step: Tensor,
        query: Tensor,
        t: Float[Tensor, " k"],
        shares: Float[Tensor, " k"],
    ) -> Float[Tensor, "c p"]:
        """Return the weighted sum of the gradients of one query, with places as a batch."""
        count = max(1, MAPPED // (8 * self._outputs(start, query).numel() * len(start)))
        total = torch.zeros(())
        for places, weights in zip(torch.split(t, count), torch.split(shares, count), strict=True):
            moved = start + places[:, None] * step
            values = {
                name: moved[:, own].view(-1, *self._shapes[name])
                for name, own in self._slices.items()
            }
            parts = weighted_gradient(self._model, values, query, weights)
            total = total + torch.cat([parts[name] for name in self._slices], dim=1)
        return total

    def switches(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> list[Switches]:
        """Return the inputs and choices of all piecewise-linear operations."""

        def watched(point: Tensor, at: Tensor) -> list[tuple[Tensor, Tensor]]:
            choices = _Choices()
            with choices:
                self._outputs(start + at * step, point)
            return choices.seen

        with torch.no_grad(), _mapping():
            seen = torch.func.vmap(watched)(x, t)
        return [Switches(inputs=inputs, chosen=chosen) for inputs, chosen in seen]

    def _outputs(self, weights: Float[Tensor, " p"], point: Tensor) -> Float[Tensor, " c"]:
        values = {name: weights[own].view(self._shapes[name]) for name, own in self._slices.items()}
        return outputs_with(self._model, values, point[None]).reshape(-1)


@contextmanager
def _mapping() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        # Forward-mode derivatives load scripted functions of torch itself when first used.
        warnings.filterwarnings("ignore", ".*torch.jit.script.* is deprecated", DeprecationWarning)
        yield


class _Choices(TorchFunctionMode):
    """Watches a call for piecewise-linear operations."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor]] = []
        self._rectified: tuple[Tensor, Tensor] | None = None

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name, given = getattr(func, "__name__", ""), kwargs or {}
        if name in AT_ZERO:
            z = args[0].clone()
            out = func(*args, **given)
            own = torch.arange(z.numel())
            self.seen.append((z.flatten(), torch.where(z.flatten() > 0, own, -1)))
            self._rectified = (out, z) if name.startswith("relu") else None
            return out
        if name in POOLS and not given.get("return_indices"):
            return self._pool(func, args, given)
        if name == "hardtanh" or name == "relu6":
            z = args[0].clone().flatten()
            low, high = (0.0, 6.0) if name == "relu6" else _bounds(args, given)
            own = torch.arange(z.numel())
            for level in (low, high):
                self.seen.append((z - level, torch.where(z > level, own, -1)))
        return func(*args, **given)

    def _pool(self, func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """See which input each window takes; of rectified ones, whether it is above zero."""
        a = args[0]
        out, index = func(*args, **{**given, "return_indices": True})
        planes = index.flatten(2).shape[1]
        size = a.flatten(2).shape[2]
        chosen = index.flatten(2) + size * torch.arange(planes)[:, None]
        inputs = a
        if self._rectified is not None and self._rectified[0] is a:
            self.seen.pop()
            inputs = self._rectified[1]
            chosen = torch.where(out.flatten(2) > 0, chosen, -1)
        self.seen.append((inputs.flatten(), chosen.flatten()))
        return out


def _bounds(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[float, float]:
    low = args[1] if len(args) > 1 else given.get("min_val", -1.0)
    high = args[2] if len(args) > 2 else given.get("max_val", 1.0)
    return float(low), float(high)


def switch_places(segment: Segment, start: Tensor, step: Tensor, query: Tensor) -> list[float]:
    """Return the places strictly inside the segment where units of one query switch.

    Units whose choices differ between two neighbouring samples have a root between them; all roots
    are sought together. Then the middle of every part is a new sample, until nothing new is found.
    """

    def at(t: Tensor) -> list[Switches]:
        return segment.switches(start, step, query.expand(len(t), *query.shape), t)

    samples = torch.tensor([0.0, 1.0], dtype=torch.float64)
    known: dict[tuple[int, int], list[float]] = {}
    for _ in range(ROUNDS):
        searched = _searched(at(samples), samples, known)
        if not searched or len(searched) > MOST:
            break
        for _ in range(ROUNDS):
            roots, searched = _roots(at, searched)
            for operation, unit, place in roots:
                known.setdefault((operation, unit), []).append(place)
            if not searched:
                break
        edges = torch.tensor([0.0, *sorted(_flat(known)), 1.0], dtype=torch.float64)
        samples = torch.cat([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    return [place for place in sorted(_flat(known)) if 0 < place < 1]


def _flat(known: dict[tuple[int, int], list[float]]) -> list[float]:
    return [place for places in known.values() for place in places]


#: Operation, unit, choice before and after, and the ends of where it switches.
Sought = tuple[int, int, int, int, float, float]


def _searched(
    seen: list[Switches], samples: Tensor, known: dict[tuple[int, int], list[float]]
) -> list[Sought]:
    """Return the units that switch between neighbouring samples where no root is known yet."""
    sought: list[Sought] = []
    for operation, switches in enumerate(seen):
        changed = switches.chosen[1:] != switches.chosen[:-1]
        for part, unit in changed.nonzero().tolist():
            low, high = float(samples[part]), float(samples[part + 1])
            if any(low <= place <= high for place in known.get((operation, unit), ())):
                continue
            before, after = switches.chosen[part : part + 2, unit].tolist()
            sought.append((operation, unit, before, after, low, high))
    return sought


def _roots(at: Any, sought: list[Sought]) -> tuple[list[tuple[int, int, float]], list[Sought]]:
    """Return where the margins between two choices vanish, by false position (Illinois).

    A unit that makes a third choice between the two (another input of its window) switches twice:
    both of these switches are returned as sought.
    """
    columns = list(zip(*sought, strict=True))
    operation, unit, first, then = (torch.tensor(columns[k]) for k in range(4))
    low, high = (torch.tensor(columns[k], dtype=torch.float64) for k in (4, 5))

    def margin(t: Tensor, which: Tensor) -> tuple[Tensor, Tensor, list[Switches]]:
        seen = at(t)
        values, chosen = torch.empty_like(t), torch.empty_like(which)
        for number in sorted(set(operation[which].tolist())):
            own = (operation[which] == number).nonzero().flatten()
            ids = which[own]
            values[own] = seen[number].margin(own, first[ids], then[ids])
            chosen[own] = seen[number].chosen[own, unit[ids]]
        return values, chosen, seen

    every = torch.arange(len(sought))
    ends, _, seen = margin(torch.cat([low, high]), every.repeat(2))
    a, b = ends.chunk(2)
    zero = ZERO * torch.stack([switches.inputs[0].abs().max() for switches in seen])[operation]
    place, active, before = low.clone(), every, torch.full_like(every, -1)
    halves: list[Sought] = []
    split = torch.zeros(len(sought), dtype=torch.bool)
    for _ in range(STEPS):
        left, right, fa, fb = low[active], high[active], a[active], b[active]
        middle = (left * fb - right * fa) / (fb - fa)
        middle = torch.where((middle > left) & (middle < right), middle, (left + right) / 2)
        value, chosen, _ = margin(middle, active)
        third = (chosen != first[active]) & (chosen != then[active])
        for row in third.nonzero().flatten().tolist():
            number, t, other = int(active[row]), float(middle[row]), int(chosen[row])
            where, one, two = sought[number][:2], *sought[number][2:4]
            halves.append((*where, one, other, float(left[row]), t))
            halves.append((*where, other, two, t, float(right[row])))
        split[active[third]] = True
        place[active] = middle
        before_root = value * fa > 0
        low[active] = torch.where(before_root, middle, left)
        high[active] = torch.where(before_root, right, middle)
        # An end that stays twice counts half, so that it does not stay for ever.
        kept = torch.where(before_root.long() == before[active], 0.5, 1.0)
        a[active] = torch.where(before_root, value, fa * kept)
        b[active] = torch.where(before_root, fb * kept, value)
        before[active] = before_root.long()
        active = active[(value.abs() > zero[active]) & ~third]
        if not len(active):
            break
    whole = (~split).nonzero().flatten().tolist()
    return [(*sought[k][:2], float(place[k])) for k in whole], halves
