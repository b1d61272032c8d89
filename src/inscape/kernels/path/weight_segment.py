"""A module along a segment of its weights, evaluated at many points of the segment at once.

Every pair of a query and a point of the segment has its own weights, evaluated by ``vmap``. The
breakpoints of piecewise-linear operations are roots of differences of their inputs.
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

#: Bytes of gradients per vmap, beyond those of one pair.
VMAP_BYTES = 2**25

#: Most breakpoints of one query in one step, rounds of the search, and iterations per root.
MOST_BREAKPOINTS, ROUNDS, ITERATIONS = 256, 8, 40

#: Tolerance of a root, relative to the largest input of its operation.
ROOT_TOLERANCE = 2e-15

#: Piecewise-linear operations with a kink at zero, and max-pools.
AT_ZERO = ("relu", "relu_", "leaky_relu", "leaky_relu_", "abs", "abs_")
POOLS = ("max_pool1d", "max_pool2d", "max_pool3d")


@dataclass(frozen=True, eq=False, kw_only=True)
class ActivationPattern:
    """Inputs of a piecewise-linear operation at points k, and the active input of each unit u.

    The active input is an index, or -1 for none: the zero of a ReLU.
    """

    inputs: Float[Tensor, "k i"]
    chosen: Int64[Tensor, "k u"]

    def margin(self, rows: Tensor, first: Tensor, second: Tensor) -> Float[Tensor, " j"]:
        """Return the difference of two inputs of a unit at some points."""
        return self._value(rows, first) - self._value(rows, second)

    def _value(self, rows: Tensor, choice: Tensor) -> Tensor:
        return self.inputs[rows, choice.clamp(min=0)] * (choice >= 0)


class Segment:
    """The outputs of a module at weights ``start + t * step``, for pairs of a query and a t."""

    def __init__(self, model: nn.Module, slices: Mapping[str, slice]) -> None:
        self._model, self._slices = model, slices
        self._shapes = {name: model.get_parameter(name).shape for name in slices}

    def derivatives(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Float[Tensor, "k c"]:
        """Return the derivatives of the outputs along the segment, by one JVP for each pair."""

        def derivative_of(query: Tensor, t_of_query: Tensor) -> Tensor:
            def outputs(s: Tensor) -> Tensor:
                return self._outputs(start + s * step, query)

            derivative: Tensor = torch.func.jvp(
                outputs, (t_of_query,), (torch.ones_like(t_of_query),)
            )[1]
            return derivative

        with _vmap_warnings_ignored():
            derivatives: Tensor = torch.func.vmap(derivative_of)(x, t)
        return derivatives.detach()

    def gradients(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> Iterator[Float[Tensor, "k c p"]]:
        """Yield the gradients of all outputs, some pairs at a time."""

        def jacobian(query: Tensor, t_of_query: Tensor) -> Tensor:
            gradient: Tensor = torch.func.jacrev(self._outputs)(start + t_of_query * step, query)
            return gradient

        outputs = self._outputs(start, x[0]).numel()
        batch = max(1, VMAP_BYTES // (8 * outputs * len(start)))
        for queries, nodes in zip(torch.split(x, batch), torch.split(t, batch), strict=True):
            with _vmap_warnings_ignored():
                yield torch.func.vmap(jacobian)(queries, nodes).detach()

    def total(
        self,
        start: Tensor,
        step: Tensor,
        query: Tensor,
        t: Float[Tensor, " k"],
        weights: Float[Tensor, " k"],
    ) -> Float[Tensor, "c p"]:
        """Return the weighted sum of the gradients of one query, with nodes as a batch."""
        batch = max(1, VMAP_BYTES // (8 * self._outputs(start, query).numel() * len(start)))
        total = torch.zeros(())
        for nodes, node_weights in zip(
            torch.split(t, batch), torch.split(weights, batch), strict=True
        ):
            weight_vectors = start + nodes[:, None] * step
            parameters = {
                name: weight_vectors[:, columns].view(-1, *self._shapes[name])
                for name, columns in self._slices.items()
            }
            parts = weighted_gradient(self._model, parameters, query, node_weights)
            total = total + torch.cat([parts[name] for name in self._slices], dim=1)
        return total

    def switches(
        self, start: Tensor, step: Tensor, x: Tensor, t: Float[Tensor, " k"]
    ) -> list[ActivationPattern]:
        """Return the activation patterns of all piecewise-linear operations."""

        def recorded(query: Tensor, t_of_query: Tensor) -> list[tuple[Tensor, Tensor]]:
            recorder = _PatternRecorder()
            with recorder:
                self._outputs(start + t_of_query * step, query)
            return recorder.patterns

        with torch.no_grad(), _vmap_warnings_ignored():
            patterns = torch.func.vmap(recorded)(x, t)
        return [ActivationPattern(inputs=inputs, chosen=chosen) for inputs, chosen in patterns]

    def _outputs(self, weights: Float[Tensor, " p"], query: Tensor) -> Float[Tensor, " c"]:
        values = {
            name: weights[columns].view(self._shapes[name])
            for name, columns in self._slices.items()
        }
        return outputs_with(self._model, values, query[None]).reshape(-1)


@contextmanager
def _vmap_warnings_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        # Forward-mode derivatives load scripted functions of torch itself when first used.
        warnings.filterwarnings("ignore", ".*torch.jit.script.* is deprecated", DeprecationWarning)
        yield


class _PatternRecorder(TorchFunctionMode):
    """Records the activation patterns of piecewise-linear operations in a call."""

    def __init__(self) -> None:
        super().__init__()
        self.patterns: list[tuple[Tensor, Tensor]] = []
        self._rectified: tuple[Tensor, Tensor] | None = None

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name, keywords = getattr(func, "__name__", ""), kwargs or {}
        if name in AT_ZERO:
            z = args[0].clone()
            out = func(*args, **keywords)
            indices = torch.arange(z.numel())
            self.patterns.append((z.flatten(), torch.where(z.flatten() > 0, indices, -1)))
            self._rectified = (out, z) if name.startswith("relu") else None
            return out
        if name in POOLS and not keywords.get("return_indices"):
            return self._pool(func, args, keywords)
        if name == "hardtanh" or name == "relu6":
            z = args[0].clone().flatten()
            low, high = (0.0, 6.0) if name == "relu6" else _bounds(args, keywords)
            indices = torch.arange(z.numel())
            for level in (low, high):
                self.patterns.append((z - level, torch.where(z > level, indices, -1)))
        return func(*args, **keywords)

    def _pool(self, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Record the maximum of each window; after a ReLU, whether it is above zero."""
        pool_input = args[0]
        out, index = func(*args, **{**keywords, "return_indices": True})
        planes = index.flatten(2).shape[1]
        size = pool_input.flatten(2).shape[2]
        chosen = index.flatten(2) + size * torch.arange(planes)[:, None]
        inputs = pool_input
        if self._rectified is not None and self._rectified[0] is pool_input:
            self.patterns.pop()
            inputs = self._rectified[1]
            chosen = torch.where(out.flatten(2) > 0, chosen, -1)
        self.patterns.append((inputs.flatten(), chosen.flatten()))
        return out


def _bounds(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[float, float]:
    low = args[1] if len(args) > 1 else keywords.get("min_val", -1.0)
    high = args[2] if len(args) > 2 else keywords.get("max_val", 1.0)
    return float(low), float(high)


def breakpoints(segment: Segment, start: Tensor, step: Tensor, query: Tensor) -> list[float]:
    """Return the points strictly inside the segment where units of one query switch.

    Units whose activation differs between two neighbouring points have a root between them; all
    roots are refined together. The midpoints between roots are the next points, until no new root
    appears.
    """

    def patterns_at(t: Tensor) -> list[ActivationPattern]:
        return segment.switches(start, step, query.expand(len(t), *query.shape), t)

    points = torch.tensor([0.0, 1.0], dtype=torch.float64)
    roots_of_unit: dict[tuple[int, int], list[float]] = {}
    for _ in range(ROUNDS):
        brackets = _brackets(patterns_at(points), points, roots_of_unit)
        if not brackets or len(brackets) > MOST_BREAKPOINTS:
            break
        for _ in range(ROUNDS):
            roots, brackets = _roots(patterns_at, brackets)
            for operation, unit, root in roots:
                roots_of_unit.setdefault((operation, unit), []).append(root)
            if not brackets:
                break
        edges = torch.tensor([0.0, *sorted(_flat(roots_of_unit)), 1.0], dtype=torch.float64)
        points = torch.cat([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    return [root for root in sorted(_flat(roots_of_unit)) if 0 < root < 1]


def _flat(roots_of_unit: dict[tuple[int, int], list[float]]) -> list[float]:
    return [root for roots in roots_of_unit.values() for root in roots]


#: Operation, unit, active input before and after, and the interval that encloses the switch.
Bracket = tuple[int, int, int, int, float, float]


def _brackets(
    patterns: list[ActivationPattern],
    points: Tensor,
    roots_of_unit: dict[tuple[int, int], list[float]],
) -> list[Bracket]:
    """Return brackets of units that switch between neighbouring points without a known root."""
    brackets: list[Bracket] = []
    for operation, pattern in enumerate(patterns):
        changed = pattern.chosen[1:] != pattern.chosen[:-1]
        for interval, unit in changed.nonzero().tolist():
            low, high = float(points[interval]), float(points[interval + 1])
            if any(low <= root <= high for root in roots_of_unit.get((operation, unit), ())):
                continue
            before, after = pattern.chosen[interval : interval + 2, unit].tolist()
            brackets.append((operation, unit, before, after, low, high))
    return brackets


def _roots(
    patterns_at: Any, brackets: list[Bracket]
) -> tuple[list[tuple[int, int, float]], list[Bracket]]:
    """Return roots of the margin between two inputs, by false position (Illinois).

    A unit with a third active input in between (another input of its window) switches twice: both
    switches are returned as new brackets.
    """
    columns = list(zip(*brackets, strict=True))
    operation, unit, first, second = (torch.tensor(columns[k]) for k in range(4))
    low, high = (torch.tensor(columns[k], dtype=torch.float64) for k in (4, 5))

    def margin(t: Tensor, active_rows: Tensor) -> tuple[Tensor, Tensor, list[ActivationPattern]]:
        patterns = patterns_at(t)
        values, chosen = torch.empty_like(t), torch.empty_like(active_rows)
        for index in sorted(set(operation[active_rows].tolist())):
            rows = (operation[active_rows] == index).nonzero().flatten()
            ids = active_rows[rows]
            values[rows] = patterns[index].margin(rows, first[ids], second[ids])
            chosen[rows] = patterns[index].chosen[rows, unit[ids]]
        return values, chosen, patterns

    indices = torch.arange(len(brackets))
    ends, _, patterns = margin(torch.cat([low, high]), indices.repeat(2))
    a, b = ends.chunk(2)
    zero = (
        ROOT_TOLERANCE
        * torch.stack([switches.inputs[0].abs().max() for switches in patterns])[operation]
    )
    roots, active, side = low.clone(), indices, torch.full_like(indices, -1)
    split_brackets: list[Bracket] = []
    split = torch.zeros(len(brackets), dtype=torch.bool)
    for _ in range(ITERATIONS):
        low_t, high_t, fa, fb = low[active], high[active], a[active], b[active]
        middle = (low_t * fb - high_t * fa) / (fb - fa)
        middle = torch.where((middle > low_t) & (middle < high_t), middle, (low_t + high_t) / 2)
        value, chosen, _ = margin(middle, active)
        third = (chosen != first[active]) & (chosen != second[active])
        for row in third.nonzero().flatten().tolist():
            index, t, third_choice = int(active[row]), float(middle[row]), int(chosen[row])
            op_and_unit, choice_before, choice_after = brackets[index][:2], *brackets[index][2:4]
            split_brackets.append((*op_and_unit, choice_before, third_choice, float(low_t[row]), t))
            split_brackets.append((*op_and_unit, third_choice, choice_after, t, float(high_t[row])))
        split[active[third]] = True
        roots[active] = middle
        before_root = value * fa > 0
        low[active] = torch.where(before_root, middle, low_t)
        high[active] = torch.where(before_root, high_t, middle)
        # Illinois: halve the value at an end that stays twice.
        factor = torch.where(before_root.long() == side[active], 0.5, 1.0)
        a[active] = torch.where(before_root, value, fa * factor)
        b[active] = torch.where(before_root, fb * factor, value)
        side[active] = before_root.long()
        active = active[(value.abs() > zero[active]) & ~third]
        if not len(active):
            break
    unsplit = (~split).nonzero().flatten().tolist()
    return [(*brackets[k][:2], float(roots[k])) for k in unsplit], split_brackets
