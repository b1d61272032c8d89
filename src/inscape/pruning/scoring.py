"""How good a network is, before and after units are taken out of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, fx, nn

from inscape._core import checks
from inscape.errors import DataError
from inscape.functional.jacobians import probe
from inscape.functional.substitution import refuse_stale_copy
from inscape.pruning.cutting import cut_groups, inputs_of
from inscape.pruning.groups import LAYERS, Group, Structure
from inscape.training.losses import Loss, check_targets, loss_function

#: Points that go through the network at once.
CHUNK = 256

Measured = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Loss and score of outputs: the share of points that are right, or of variance explained."""

    loss: str | Loss
    score: str
    y: Tensor
    threshold: float = 0.0

    def on(self, y: Tensor) -> "Yardstick":
        """Return the same yardstick for other labels."""
        return Yardstick(self.loss, self.score, _shaped(y, self.y), self.threshold)

    def parts(self, prediction: Tensor, rows: slice) -> Float64[Tensor, " 2"]:
        """Return the sums over some rows from which loss and score are made."""
        y = self.y[rows]
        loss = loss_function(self.loss)(prediction, y).double() * len(y)
        if self.score == "r2":
            good = -(prediction - y).double().square().sum()
        elif y.is_floating_point():
            good = ((prediction > self.threshold) == (y > self._middle)).sum().double()
        else:
            good = (prediction.argmax(1) == y).sum().double()
        return torch.stack([loss, good])

    def whole(self, sums: Float64[Tensor, " 2"]) -> Measured:
        """Return loss and score from the sums over all rows."""
        loss, good = sums.tolist()
        if self.score != "r2":
            return loss / len(self.y), good / len(self.y)
        spread = float((self.y - self.y.mean(0)).double().square().sum())
        return loss / len(self.y), 1 + good / (spread or 1.0)

    @property
    def _middle(self) -> float:
        return 0.5 if self.loss == "bce_logits" else self.threshold


def yardstick(y: Tensor, output: Tensor, loss: str | Loss | None) -> Yardstick:
    """Choose loss and score by the labels and the shape of the outputs.

    Class numbers are judged by cross-entropy (by that of logits where there is one output) and by
    the share that is right; real labels by the squared error and by the share of their variance
    that is explained, or, where they take two values, by the share on the right side of the middle.
    """
    outputs = output[0].numel()
    if loss is None:
        loss = "mse" if y.is_floating_point() else "cross_entropy" if outputs > 1 else "bce_logits"
    loss_function(loss)
    classes = not y.is_floating_point() and loss != "mse"
    if loss == "bce_logits" or (classes and outputs == 1):
        y = _shaped(y.to(output.dtype), output)
        check_targets(loss, y, output)
        return Yardstick(loss, "accuracy", y)
    if classes:
        check_targets(loss, y, output)
        return Yardstick(loss, "accuracy", y.long())
    y = _shaped(y.to(output.dtype), output)
    levels = torch.unique(y) if loss == "mse" and outputs == 1 else y[:0]
    if len(levels) == 2:
        return Yardstick(loss, "accuracy", y, float(levels.mean()))
    return Yardstick(loss, "r2", y)


def tested(
    model: nn.Module, x: Float[Tensor, "n *d"], by: Yardstick, test: tuple[Tensor, Tensor] | None
) -> tuple[Float[Tensor, "m *d"], Yardstick]:
    """Return the points that a curve is measured at, and their yardstick, after a look at them."""
    if test is None:
        return x, by
    points, y = test
    checks.points(points, "the first part of test")
    checks.labels(y, points)
    with torch.no_grad():
        output = checks.call(model, points[:2].clone())
    other = by.on(y)
    check_targets(by.loss, other.y, output)
    return points, other


def _shaped(y: Tensor, output: Tensor) -> Tensor:
    """Return labels shaped as the outputs are, row by row."""
    if not y.is_floating_point() and output.is_floating_point():
        y = y.to(output.dtype)
    if not output.is_floating_point():
        return y.to(output.dtype)
    if y.numel() != len(y) * output[0].numel():
        raise DataError(
            f"y must have {output[0].numel()} numbers for each point, as the model gives them, "
            f"found shape {tuple(y.shape)}: reshape y, or pass class numbers."
        )
    return y.reshape(len(y), *output.shape[1:]).to(output.dtype)


@torch.no_grad()
def measured(model: nn.Module, x: Float[Tensor, "n *d"], by: Yardstick) -> Measured:
    """Return loss and score of a network."""
    sums = torch.zeros(2, dtype=torch.float64)
    for rows in _slices(len(x)):
        sums += by.parts(model(x[rows].clone()), rows).cpu()
    return by.whole(sums)


class Removals:
    """What a network gives without some units of one group, from kept activations.

    All values of the graph are computed once for a batch of points. Without some units, the layers
    that read them give what they gave, less the units' contribution, which costs as many products
    as those units have; only what comes after is computed anew.
    """

    def __init__(self, found: Structure, x: Float[Tensor, "n *d"], by: Yardstick) -> None:
        self.found, self.x, self.by = found, x, by

    @torch.no_grad()
    def measured(self, cases: Sequence[tuple[Group, Sequence[int]]]) -> list[Measured]:
        """Return loss and score without those units, for each case."""
        sums = torch.zeros(len(cases), 2, dtype=torch.float64)
        after = {group.name: list(self._after(group)) for group, _ in cases}
        walk = _Walk(self.found.graph)
        for rows in _slices(len(self.x)):
            walk.all_values(self.x[rows].clone())
            if rows.start == 0 and not self._faithful(walk, rows):
                return [self._cut(group, units) for group, units in cases]
            for k, (group, units) in enumerate(cases):
                output = walk.without(group, torch.tensor(units).long(), after[group.name])
                sums[k] += self.by.parts(output, rows).cpu()
        return [self.by.whole(one) for one in sums]

    def _faithful(self, walk: "_Walk", rows: slice) -> bool:
        """Tell whether kept values are those of the network, which may write over what it reads."""
        return torch.allclose(walk.answer(), self.found.model(self.x[rows].clone()), equal_nan=True)

    def _cut(self, group: Group, units: Sequence[int]) -> Measured:
        """Return loss and score of the network that is left, the slow way."""
        kept = sorted(set(range(group.units)) - set(units))
        return measured(cut_groups(self.found.model, [(group, kept)]), self.x, self.by)

    def _after(self, group: Group) -> Iterator[fx.Node]:
        """Yield the group's readers and all that comes after them, in their order."""
        names = {name for name, _ in group.readers}
        moved: set[fx.Node] = set()
        for node in self.found.graph.graph.nodes:
            reads = node.op == "call_module" and node.target in names
            if reads or any(arg in moved for arg in node.all_input_nodes):
                moved.add(node)
                yield node


def contribution(layer: nn.Module, x: Float[Tensor, "n *d"], inputs: Int64[Tensor, " k"]) -> Tensor:
    """Return what some inputs add to the output of a dense layer or a convolution."""
    some = x.index_select(1, inputs)
    if isinstance(layer, nn.Linear):
        return nn.functional.linear(some, layer.weight.index_select(1, inputs))
    assert isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    weight = layer.weight.index_select(1, inputs)
    found: Tensor = layer._conv_forward(some, weight, None)
    return found


def less(
    layer: nn.Module, x: Float[Tensor, "n *d"], inputs: Int64[Tensor, " k"], y: Tensor
) -> Tensor:
    """Return what a layer gives without some inputs, from what it gives with them.

    By a difference, unless that cancels nearly all digits of some row: then by the layer itself.
    """
    left = y - contribution(layer, x, inputs)
    digits = torch.finfo(y.dtype).eps ** 0.5
    if bool((_largest(left) >= digits * _largest(y)).all()):
        return left
    found: Tensor = layer(x.index_fill(1, inputs, 0.0))
    return found


def _largest(x: Float[Tensor, "n *d"]) -> Float[Tensor, " n"]:
    return x.flatten(1).abs().amax(1)


class _Walk(fx.Interpreter):
    """Runs a graph and keeps every value; nothing is overwritten by operations in place."""

    def all_values(self, x: Tensor) -> None:
        """Run the whole graph."""
        self.env = {}
        for node in self.graph.nodes:
            self.env[node] = x if node.op == "placeholder" else self.run_node(node)
        self.kept = dict(self.env)

    def without(self, group: Group, units: Int64[Tensor, " k"], nodes: Sequence[fx.Node]) -> Tensor:
        """Run the nodes after a group anew, without some of its units; return the output."""
        readers, moved = dict(group.readers), set(nodes)
        self.env = dict(self.kept)
        for node in nodes:
            (source, *_) = node.all_input_nodes
            reads = node.op == "call_module" and node.target in readers
            if not reads or source in moved:
                self.env[node] = self.run_node(node)
            if reads:
                given = self.env[source]
                inputs = inputs_of(units, readers[str(node.target)]).to(given.device)
                layer = self.submodules[str(node.target)]
                self.env[node] = less(layer, given, inputs, self.env[node])
        return self.answer()

    def answer(self) -> Tensor:
        """Return what the graph gives."""
        found: Tensor = self.env[next(reversed(self.graph.nodes))]
        return found

    def fetch_args_kwargs_from_env(self, n: fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Hand out copies to operations that may write over them."""
        args, kwargs = super().fetch_args_kwargs_from_env(n)
        if n.op == "call_module" and isinstance(self.submodules[str(n.target)], LAYERS):
            return args, kwargs
        return tuple(a.clone() if isinstance(a, Tensor) else a for a in args), kwargs


def _slices(n: int) -> Iterator[slice]:
    for start in range(0, n, CHUNK):
        yield slice(start, min(n, start + CHUNK))


def checked(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Check model and data, and return the outputs of two rows."""
    checks.module(model)
    probe(model, x)
    refuse_stale_copy(model, x)
    checks.labels(y, x)
    with torch.no_grad():
        output: Tensor = model(x[:2].clone())
    return output
