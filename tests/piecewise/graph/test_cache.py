"""A graph is exported once for each structure, and whatever changes the function is seen."""

import gc
import threading
import weakref
from argparse import Namespace
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.piecewise import export
from inscape.piecewise.graph import cache
from inscape.piecewise.graph.structure import structure
from inscape.regions import plane_regions

SCALE = 2.0


def kinked(x):
    return torch.relu(x)


class Net(nn.Module):
    """One layer with everything beside it that a forward may read."""

    factor = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.other = nn.Linear(2, 3), nn.Linear(2, 3)
        self.register_buffer("shift", torch.zeros(3))
        self.offset = torch.zeros(3, dtype=torch.float64)
        self.beside = [nn.Linear(2, 3).double()]
        self.activation = torch.relu
        self.most, self.depth = 1e6, 1
        self.settings = Namespace(slope=0.0)
        self.double().eval()

    def forward(self, x):
        y = self.activation(self.layer(x) + self.other(x) + self.beside[0](x))
        for _ in range(self.depth):
            y = (self.factor * SCALE * y + self.shift + self.offset).clamp(max=self.most)
        return kinked(y) + self.settings.slope * y


@pytest.fixture
def exports(monkeypatch):
    """Count the exports of a test that starts with no graph."""
    cache._GRAPHS.clear()
    calls = []
    monkeypatch.setattr(cache, "exported", lambda f, x: calls.append(1) or EXPORTED(f, x))
    return calls


EXPORTED = cache.exported


def same(net, x=None):
    """Hold the graph of a function against the function, far beyond the rows that are compared."""
    x = points(5, 2) if x is None else x
    far = torch.cat([x, 1e7 * points(20, 2).to(x.dtype)])
    program = export(net, x)
    with torch.no_grad():
        (values,) = program.run({program.input: far}, [program.output])
        assert_close(values, net(far))


def in_place(net):
    with torch.no_grad():
        net.layer.weight.mul_(-1)
    net.layer.bias.data.add_(1)  # which no version counter tells of
    net.other.bias.detach().numpy()[:] = 3.0


WEIGHTS = {
    "in place": in_place,
    "parameter": lambda net: setattr(net.layer, "weight", nn.Parameter(-net.layer.weight.detach())),
    "buffer": lambda net: net.shift.fill_(2.0),
    "another buffer": lambda net: setattr(net, "shift", torch.ones(3, dtype=torch.float64)),
    "state": lambda net: net.load_state_dict(Net().state_dict()),
}


@pytest.mark.parametrize("change", WEIGHTS.values(), ids=WEIGHTS)
def test_changed_weights_are_read_without_a_new_export(change, exports):
    net = Net()
    same(net)
    change(net)
    same(net)
    assert len(exports) == 1


def patched(net):
    net.forward = lambda x: net.layer(x).abs()


def patched_with_a_closure(net):
    limit, before = 5e6, type(net).forward
    net.forward = lambda x: before(net, x).clamp(max=limit)


def clamped(module, args, y):
    return y.clamp(min=-4e6)


CHANGES = {
    "a number": lambda net: setattr(net, "most", 3.0),
    "a number that no probe sees": lambda net: setattr(net, "most", 1e5),
    "an activation": lambda net: setattr(net, "activation", torch.abs),
    "a function in Python": lambda net: setattr(net, "activation", functional.leaky_relu),
    "a partial": lambda net: setattr(net, "activation", partial(torch.clamp, max=2e6)),
    "a loop": lambda net: setattr(net, "depth", 2),
    "a namespace": lambda net: setattr(net.settings, "slope", 0.5),
    "a constant": lambda net: setattr(net, "offset", torch.ones(3, dtype=torch.float64)),
    "a constant in place": lambda net: net.offset.numpy().fill(3.0),
    "a layer in a list": lambda net: net.beside[0].weight.data.mul_(3),
    "a tied layer": lambda net: setattr(net, "other", net.layer),
    "a forward": patched,
    "a closure": patched_with_a_closure,
    "a hook": lambda net: net.layer.register_forward_hook(clamped),
    "a hook before": lambda net: net.layer.register_forward_pre_hook(lambda m, x: 2 * x[0]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_function_is_exported_anew(change, exports):
    net = Net()
    same(net)
    change(net)
    same(net)
    assert len(exports) == 2
    same(net)
    assert len(exports) == 2


def halved(x):
    return x / 2


PATCHES = {
    "a global number": (f"{__name__}.SCALE", 3.0),
    "a global function": (f"{__name__}.kinked", halved),
    "a number of the class": (f"{__name__}.Net.factor", 5.0),
    "a forward of the class": (f"{__name__}.Net.forward", lambda self, x: self.layer(x)),
    "a forward of torch": ("torch.nn.Linear.forward", lambda self, x: x @ self.weight.T),
    "a function of torch": ("torch.relu", torch.abs),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_and_its_end_are_seen(name, exports, monkeypatch):
    net = Net()
    same(net)
    with monkeypatch.context() as patch:
        patch.setattr(*PATCHES[name])
        same(net)
        assert len(exports) == 2
    same(net)
    assert len(exports) == 2  # the first graph is still known


def test_a_hook_that_is_removed_is_gone(exports):
    net = Net()
    same(net)
    handle = net.layer.register_forward_hook(clamped)
    same(net)
    handle.remove()
    same(net)
    assert len(exports) == 2


def test_mode_precision_and_shape_have_graphs_of_their_own(exports):
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double().eval()
    x = points(5, 2)
    same(net, x)
    before = deepcopy(net.state_dict())
    graphs = {export(net, x).nodes, export(net.train(), x).nodes}
    assert_close(net.state_dict(), before)  # training mode would count batches
    same(net.eval().float(), x.float())
    same(net.double(), x[:, None][:, 0])
    assert len(graphs) == 2
    assert len(exports) == 3
    images = nn.ReLU()
    for shape in ((4, 2), (4, 3), (4, 2, 3)):
        export(images, points(*shape))
    assert len(exports) == 6


def test_what_the_structure_does_not_tell_is_seen_at_the_rows(exports, monkeypatch):
    net = Net()
    known = structure(net)
    monkeypatch.setattr(cache, "structure", lambda f: known)
    same(net)
    net.activation = torch.abs
    same(net)
    assert len(exports) == 2
    net.forward = lambda x: net.layer(x)[:, :2]
    same(net)
    assert len(exports) == 3


def test_a_known_graph_is_compared_at_one_row(exports, monkeypatch):
    rows, called = [], cache._called
    monkeypatch.setattr(cache, "_called", lambda *a: rows.append(len(a[2])) or called(*a))
    net, x = Net(), points(5, 2)
    for data in (x, x, x.flip(0)):
        export(net, data)
    assert (rows, len(exports)) == ([3, 1, 1], 1)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double().train()
    for _ in range(2):
        export(net, x)
    assert rows[3:] == [3, 1, 3]  # which refuses to train on one row


def test_an_object_that_cannot_be_read_is_exported_each_time(exports):
    net = Net()
    net.draws = torch.Generator()
    assert structure(net) is None
    same(net)
    same(net)
    assert len(exports) == 2


def test_functions_and_closures_are_exported_once(exports):
    net = dense(2, 4, 1)
    x = points(5, 2)
    for _ in range(2):
        same(lambda x: net(x) * 2, x)
    assert len(exports) == 1
    with torch.no_grad():
        net[0].weight.mul_(2)
    same(lambda x: net(x) * 3, x)
    assert len(exports) == 2


def test_copies_and_models_of_one_structure_share_a_graph(exports):
    nets = [dense(2, 4, 1, seed=seed) for seed in range(3)]
    for net in (*nets, deepcopy(nets[0])):
        same(net)
    assert len(exports) == 1
    same(dense(2, 5, 1))
    assert len(exports) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_second_instrument_costs_no_export(dtype, exports):
    net = Net().to(dtype)
    net.offset, net.beside = 0.0, [lambda x: 0.0]
    corners = points(3, 2).to(dtype)
    first = plane_regions(net, corners)
    again = plane_regions(net, corners)
    assert len(exports) == 1
    assert len(first.patterns) == len(again.patterns) > 1


def test_a_model_that_is_gone_is_freed(exports):
    net, x = Net(), points(5, 2)
    export(net, x)
    export(lambda x: net(x) + 1, x)
    weights = [weakref.ref(tensor) for tensor in (net, net.layer.weight, net.shift, net.offset)]
    assert len(cache._GRAPHS) == 2
    del net
    gc.collect()
    assert [reference() for reference in weights] == [None] * 4


def test_graphs_are_few_and_those_dropped_are_freed(exports, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 2)
    x = points(5, 2)
    graphs = []
    for width in (2, 3, 4):
        program = export(dense(2, width, 1), x)
        mode = program.input.meta["val"].fake_mode
        graphs.append([weakref.ref(referent) for referent in (program.input, mode, mode.shape_env)])
    del program, mode
    gc.collect()
    assert len(cache._GRAPHS) == 2
    assert [any(reference() for reference in graph) for graph in graphs] == [False, True, True]
    export(dense(2, 3, 1), x)  # in use, so that the next one drops the other
    export(dense(2, 5, 1), x)
    export(dense(2, 3, 1), x)
    assert len(exports) == 4


def shape_environments():
    """Count what exports leave in memory; other tests may have left some of theirs."""
    gc.collect()
    return sum(type(o).__name__ == "ShapeEnv" and bool(vars(o)) for o in gc.get_objects())


def test_an_export_that_fails_leaves_nothing():
    def branches(x):
        return x if x.sum() > 0 else -x

    before = shape_environments()
    for _ in range(3):
        with pytest.raises(UnsupportedModelError, match="must be readable by"):
            export(branches, points(5, 2))
    assert shape_environments() <= before


def test_threads_share_graphs(exports):
    nets = [dense(2, width, 1, seed=width) for width in (3, 4)] * 4
    errors = []

    def work(net):
        try:
            same(net)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for net in nets:
        same(net)
    assert len(cache._GRAPHS) == 2


def test_a_trace_of_something_else_is_refused():
    def draws(x):
        return torch.relu(x) * np.random.default_rng().normal()

    with pytest.raises(UnsupportedModelError) as error:
        export(draws, points(5, 2))
    assert "torch.export traces must compute what the model computes" in str(error.value)
    assert "they differ by" in str(error.value)
    assert "take out of its forward what differs from call to call" in str(error.value)


def test_what_is_told_to_the_exporter_alone_is_not_believed():
    def pretends(x):
        return torch.relu(x) if torch.compiler.is_compiling() else torch.abs(x)

    x = points(5, 2)
    program = export(pretends, x)
    assert torch.equal(program.run({program.input: x}, [program.output])[0], x.abs())


def test_rows_that_the_model_refuses_are_named():
    def strict(x):
        if not torch.compiler.is_compiling() and bool((x > 0).any()):
            raise RuntimeError("no positive numbers")
        return torch.relu(x)

    with pytest.raises(UnsupportedModelError, match="it raised RuntimeError: no positive numbers"):
        export(strict, points(5, 2))
