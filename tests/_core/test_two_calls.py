"""Graphs of models that torch.export cannot follow, from the operations of two calls."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import CASES
from inscape._core import UnsupportedModelError, instruments
from inscape.piecewise.graph import cache
from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.export import exported
from inscape.piecewise.graph.tracing import UnrecordableError
from inscape.piecewise.graph.two_calls import traced_twice
from inscape.regions import line_regions

#: Instruments that read the graph of a network: its layers, or its linear regions.
GRAPHS = (
    "lipschitz", "boundary", "closed_regions", "line_regions", "local_maps", "plane_regions",
    "region_at", "region_bounds", "region_evolution", "tropical", "weights_product",
    "spectral_norm", "slice_difference", "region_sharing", "saliency",
)  # fmt: skip


class Base(nn.Module):
    """A network of one hidden layer, called in the plain way."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


class FixedBatch(Base):
    def forward(self, x):
        hidden = torch.relu(self.first(x)).reshape(len(x), 2, 4)
        return self.last(hidden.reshape(int(hidden.shape[0]), 8))


class Scripted(Base):
    def __init__(self):
        super().__init__()
        self.script = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))

    def forward(self, x):
        return self.last(self.script(torch.relu(self.first(x))))


class Watched(Base):
    def __init__(self):
        super().__init__()
        self.seen = []
        self.first.register_forward_hook(lambda m, i, o: self.seen.append(o.detach().numpy().max()))


class NumberOfWeights(Base):
    def forward(self, x):
        return super().forward(x) * float(self.first.bias.abs().max().item())


class Mapped(Base):
    def forward(self, x):
        return torch.func.vmap(super().forward)(x)


class Stateful(Base):
    def forward(self, x):
        start = torch.zeros(len(x), 8)
        return self.last(torch.relu(self.first(x) + start))


class InPlace(Base):
    def forward(self, x):
        hidden = self.first(x.reshape(len(x), 4))
        hidden[:, :2] += 1.0
        return self.last(hidden.relu_())


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class OwnFunction(Base):
    def forward(self, x):
        return self.last(torch.relu(Doubled.apply(self.first(x.reshape(len(x), 4)))))


HARD = (FixedBatch, Scripted, Watched, NumberOfWeights, Mapped, Stateful, InPlace, OwnFunction)


def built(kind):
    torch.manual_seed(0)
    with torch.no_grad():
        return kind().double().eval(), torch.randn(12, 4, dtype=torch.float64)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("kind", HARD)
def test_the_exporter_fails_and_two_calls_do(kind):
    net, x = built(kind)
    try:
        shown = exported(net, x)
        assert not cache._gap(shown.program, (), net, x) < 1e-6
    except UnsupportedModelError:
        pass
    program = traced_twice(net, x)
    for rows in (1, 2, 12):
        (values,) = program.run({program.input: x[:rows]}, [program.output])
        assert_close(values, net(x[:rows]))


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("kind", [FixedBatch, NumberOfWeights, Mapped, Watched, Stateful])
def test_regions_are_those_of_the_plain_network(kind):
    net, x = built(kind)
    plain, _ = built(Base)
    found, expected = line_regions(net, x), line_regions(plain, x)
    assert found.summary() == expected.summary()


class Branching(Base):
    def forward(self, x):
        hidden = self.first(x)
        return self.last(hidden.relu()) if hidden.sum() > 0 else self.last(hidden)


class Listing(Base):
    def forward(self, x):
        return super().forward(x) * (2 if self.first(x).tolist()[0][0] > 0 else 1)


class RowByRow(Base):
    def forward(self, x):
        return torch.stack([self.last(torch.relu(self.first(row))) for row in x])


class Filling(Base):
    def forward(self, x):
        out = torch.zeros(len(x), 2, dtype=x.dtype)
        out[:, :] = super().forward(x)
        return out


class Copied(Base):
    def forward(self, x):
        return self.last(torch.relu(self.first(x.data + 0 * len(x))))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Branching, "makes a Python value of what depends on the input"),
        (Listing, "tolist reads values of what depends on the input"),
        (RowByRow, "the number of operations depends on the batch size"),
        (Filling, "writes into a tensor made beforehand"),
        (Copied, "reads values of what depends on the input"),
    ],
)
def test_what_depends_on_values_is_refused(kind, why):
    net, x = built(kind)
    with pytest.raises(UnrecordableError, match=why):
        traced_twice(net, x)


@pytest.mark.parametrize("kind", [Branching, Listing, RowByRow])
def test_the_refusal_is_that_of_the_exporter(kind):
    net, x = built(kind)
    with pytest.raises(UnsupportedModelError, match=r"readable by torch.export with any batch siz"):
        export(net, x)


def test_a_graph_that_differs_at_rows_of_the_call_is_refused(monkeypatch):
    net, x = built(FixedBatch)
    other, _ = built(FixedBatch)
    other.last.bias.data += 1
    monkeypatch.setattr(cache, "traced_twice", lambda f, rows: traced_twice(other, rows))
    with pytest.raises(UnsupportedModelError, match="the batch size became a fixed number"):
        export(net, x)


def test_graphs_of_two_calls_are_not_kept():
    net, x = built(NumberOfWeights)
    before = line_regions(net, x, maps=True).maps
    with torch.no_grad():
        net.first.bias *= 2
    after = line_regions(net, x, maps=True).maps
    assert not torch.equal(before, after[: len(before)]) or before.shape != after.shape
    program = export(net, x)
    assert_close(program.run({program.input: x}, [program.output])[0], net(x))


def test_random_draws_are_refused():
    class Noisy(Base):
        def forward(self, x):
            return super().forward(x.reshape(len(x), 4)) + torch.rand_like(x[:, :2])

    net, x = built(Noisy)
    with pytest.raises(UnsupportedModelError, match="draws at random"):
        traced_twice(net, x)


def test_hooks_are_put_back():
    net, x = built(Watched)
    traced_twice(net, x)
    assert len(net.first._forward_hooks) == 1


@pytest.mark.parametrize("name", [n for n, one in instruments().items() if n not in GRAPHS])
def test_instruments_that_need_no_graph_never_ask_for_one(monkeypatch, name):
    def never(*args):
        raise AssertionError("asked for a graph")

    monkeypatch.setattr(cache, "_export", never)
    model, x, y = CASES["two-layer"]()
    instruments()[name].measure(model, x, y)
