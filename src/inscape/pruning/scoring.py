"""Loss and score of a network, and of the network without some units."""

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
from inscape.pruning.groups import LAYERS, Group, Structure
from inscape.pruning.unit_removal import cut_groups, inputs_of
from inscape.training.losses import Loss, check_targets, loss_function

#: Points that go through the network at once.
CHUNK = 256

Measured = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Criterion:
    """Loss and score of outputs: accuracy, or fraction of variance explained."""

    loss: str | Loss
    score: str
    y: Tensor
    threshold: float = 0.0

    def on(self, y: Tensor) -> "Criterion":
        """Return the same criterion for other labels."""
        return Criterion(self.loss, self.score, _shaped(y, self.y), self.threshold)

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

    def from_sums(self, sums: Float64[Tensor, " 2"]) -> Measured:
        """Return loss and score from the sums over all rows."""
        loss, good = sums.tolist()
        if self.score != "r2":
            return loss / len(self.y), good / len(self.y)
        total_squares = float((self.y - self.y.mean(0)).double().square().sum())
        return loss / len(self.y), 1 + good / (total_squares or 1.0)

    @property
    def _middle(self) -> float:
        return 0.5 if self.loss == "bce_logits" else self.threshold


def criterion_for(y: Tensor, output: Tensor, loss: str | Loss | None) -> Criterion:
    """Return loss and score for labels and shape of the outputs.

    Cross-entropy (of one logit where there is one output) and accuracy for class numbers; squared
    error and fraction of variance explained for real labels, or accuracy where they have two
    values.
    """
    outputs = output[0].numel()
    if loss is None:
        loss = "mse" if y.is_floating_point() else "cross_entropy" if outputs > 1 else "bce_logits"
    loss_function(loss)
    classes = not y.is_floating_point() and loss != "mse"
    if loss == "bce_logits" or (classes and outputs == 1):
        y = _shaped(y.to(output.dtype), output)
        check_targets(loss, y, output)
        return Criterion(loss, "accuracy", y)
    if classes:
        check_targets(loss, y, output)
        return Criterion(loss, "accuracy", y.long())
    y = _shaped(y.to(output.dtype), output)
    levels = torch.unique(y) if loss == "mse" and outputs == 1 else y[:0]
    if len(levels) == 2:
        return Criterion(loss, "accuracy", y, float(levels.mean()))
    return Criterion(loss, "r2", y)


def tested(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    criterion: Criterion,
    test: tuple[Tensor, Tensor] | None,
) -> tuple[Float[Tensor, "m *d"], Criterion]:
    """Return the points at which a curve is measured, and their criterion, after checks."""
    if test is None:
        return x, criterion
    points, y = test
    checks.points(points, "the first part of test")
    checks.labels(y, points)
    with torch.no_grad():
        output = checks.call(model, points[:2].clone())
    other = criterion.on(y)
    check_targets(criterion.loss, other.y, output)
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
def measured(model: nn.Module, x: Float[Tensor, "n *d"], criterion: Criterion) -> Measured:
    """Return loss and score of a network."""
    sums = torch.zeros(2, dtype=torch.float64)
    for rows in _slices(len(x)):
        sums += criterion.parts(model(x[rows].clone()), rows).cpu()
    return criterion.from_sums(sums)


class Removals:
    """Outputs of a network without some units of one group, from stored activations.

    All values of the graph are computed once for a batch of points. Without some units, the layers
    that read them give what they gave, less the units' contribution, which costs as many products
    as those units have; only what comes after is computed anew.
    """

    def __init__(self, groups: Structure, x: Float[Tensor, "n *d"], criterion: Criterion) -> None:
        self.groups, self.x, self.criterion = groups, x, criterion

    @torch.no_grad()
    def measured(self, cases: Sequence[tuple[Group, Sequence[int]]]) -> list[Measured]:
        """Return loss and score without those units, for each case."""
        sums = torch.zeros(len(cases), 2, dtype=torch.float64)
        after = {group.name: list(self._after(group)) for group, _ in cases}
        walk = _GraphValues(self.groups.graph)
        for rows in _slices(len(self.x)):
            walk.all_values(self.x[rows].clone())
            if rows.start == 0 and not self._faithful(walk, rows):
                return [self._cut(group, units) for group, units in cases]
            for k, (group, units) in enumerate(cases):
                output = walk.without(group, torch.tensor(units).long(), after[group.name])
                sums[k] += self.criterion.parts(output, rows).cpu()
        return [self.criterion.from_sums(case_sums) for case_sums in sums]

    def _faithful(self, walk: "_GraphValues", rows: slice) -> bool:
        """Tell whether kept values are those of the network, which may write over what it reads."""
        return torch.allclose(
            walk.answer(), self.groups.model(self.x[rows].clone()), equal_nan=True
        )

    def _cut(self, group: Group, units: Sequence[int]) -> Measured:
        """Return loss and score of the smaller network itself, which is slower."""
        remaining = sorted(set(range(group.units)) - set(units))
        return measured(cut_groups(self.groups.model, [(group, remaining)]), self.x, self.criterion)

    def _after(self, group: Group) -> Iterator[fx.Node]:
        """Yield the group's readers and all that comes after them, in their order."""
        names = {name for name, _ in group.readers}
        moved: set[fx.Node] = set()
        for node in self.groups.graph.graph.nodes:
            reads = node.op == "call_module" and node.target in names
            if reads or any(arg in moved for arg in node.all_input_nodes):
                moved.add(node)
                yield node


def contribution(layer: nn.Module, x: Float[Tensor, "n *d"], inputs: Int64[Tensor, " k"]) -> Tensor:
    """Return the contribution of some inputs to the output of a dense layer or a convolution."""
    selected = x.index_select(1, inputs)
    if isinstance(layer, nn.Linear):
        return nn.functional.linear(selected, layer.weight.index_select(1, inputs))
    assert isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    weight = layer.weight.index_select(1, inputs)
    output: Tensor = layer._conv_forward(selected, weight, None)
    return output


def without_inputs(
    layer: nn.Module, x: Float[Tensor, "n *d"], inputs: Int64[Tensor, " k"], y: Tensor
) -> Tensor:
    """Return the output of a layer without some inputs, from that with them.

    By a difference, unless that cancels for some sample: then by the layer itself.
    """
    difference = y - contribution(layer, x, inputs)
    tolerance = torch.finfo(y.dtype).eps ** 0.5
    if bool((_largest(difference) >= tolerance * _largest(y)).all()):
        return difference
    recomputed: Tensor = layer(x.index_fill(1, inputs, 0.0))
    return recomputed


def _largest(x: Float[Tensor, "n *d"]) -> Float[Tensor, " n"]:
    return x.flatten(1).abs().amax(1)


class _GraphValues(fx.Interpreter):
    """Runs a graph and keeps every value; nothing is overwritten by operations in place."""

    def all_values(self, x: Tensor) -> None:
        """Run the whole graph."""
        self.env = {}
        for node in self.graph.nodes:
            self.env[node] = x if node.op == "placeholder" else self.run_node(node)
        self.stored = dict(self.env)

    def without(self, group: Group, units: Int64[Tensor, " k"], nodes: Sequence[fx.Node]) -> Tensor:
        """Run the nodes after a group anew, without some of its units; return the output."""
        readers, moved = dict(group.readers), set(nodes)
        self.env = dict(self.stored)
        for node in nodes:
            (source, *_) = node.all_input_nodes
            reads = node.op == "call_module" and node.target in readers
            if not reads or source in moved:
                self.env[node] = self.run_node(node)
            if reads:
                inputs_of_layer = self.env[source]
                inputs = inputs_of(units, readers[str(node.target)]).to(inputs_of_layer.device)
                layer = self.submodules[str(node.target)]
                self.env[node] = without_inputs(layer, inputs_of_layer, inputs, self.env[node])
        return self.answer()

    def answer(self) -> Tensor:
        """Return the output of the graph."""
        output: Tensor = self.env[next(reversed(self.graph.nodes))]
        return output

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
