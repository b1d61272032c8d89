"""Kernels of modules that are not the usual ones: each was once wrong or refused."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels import PathWatch, path_kernel, tangent_kernel
from inscape.kernels.path import weight_segment
from inscape.kernels.path.module_network import ModuleNetwork
from inscape.kernels.tangent import kernel_block
from inscape.report.html import environment
from inscape.report.look.attribution import Attribution, Explained, Others, Prediction, Push
from inscape.report.look.attribution_page import attribution_part
from inscape.report.look.attribution_text import attribution_text
from inscape.training import fit

X, Y, Q = points(8, 2), points(8, 2, seed=4), points(3, 2, seed=9)


def brute(model, x):
    """Return the kernel from one call of automatic differentiation for each number."""
    weights = list(model.parameters())
    rows = [
        torch.cat(
            [
                g.flatten()
                for g in torch.autograd.grad(y, weights, retain_graph=True, materialize_grads=True)
            ]
        )
        for point in x
        for y in model(point[None])[0]
    ]
    j = torch.stack(rows).view(len(x), -1, len(rows[0]))
    return torch.einsum("nip,mjp->nmij", j, j)


class Scaled(nn.Module):
    """A parameter that is one number."""

    def __init__(self):
        super().__init__()
        self.inner, self.scale = dense(2, 4, 2, act=nn.Tanh), nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.inner(x) * self.scale


class Words(nn.Module):
    """A table of rows, numbered by rounded inputs."""

    def __init__(self, rows):
        super().__init__()
        self.table, self.last, self.rows = nn.Embedding(rows, 3), nn.Linear(3, 2), rows

    def forward(self, x):
        number = x.detach().abs().round().long().clamp(max=self.rows - 1)
        return self.last(self.table(number)).tanh().sum(1)


class Idle(nn.Module):
    """A parameter that nothing comes from, before one that something does."""

    def __init__(self):
        super().__init__()
        self.unused, self.inner = nn.Parameter(torch.ones(3)), nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x).tanh()


def shared():
    """Return a chain of which one map comes twice."""
    first, again, last = dense(2, 4, 4, 2, act=nn.Tanh)[::2]
    return nn.Sequential(first, nn.Tanh(), again, nn.Tanh(), again, nn.Tanh(), last)


def bent():
    """Return a convolution with kinks, which no chain knows."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 2)), nn.Conv1d(1, 3, 2, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(9, 2),
    ).double()  # fmt: skip


@pytest.mark.parametrize(("n", "outputs", "slopes"), [(2, 2, 1), (4, 4, 3), (3, 1, 1), (4, 2, 3)])
def test_slopes_that_are_learned(n, outputs, slopes):
    model = nn.Sequential(nn.Linear(2, 3), nn.PReLU(slopes), nn.Linear(3, outputs)).double()
    x = points(n, 2)
    assert_close(tangent_kernel(model.eval(), x).kernel, brute(model, x))


class Beside(nn.Module):
    """Adds a statistic that it holds in a list, where ``double()`` does not find it."""

    def __init__(self):
        super().__init__()
        self.inner, self.held = nn.Linear(2, 2), [nn.BatchNorm1d(2).eval()]

    def forward(self, x):
        return self.inner(self.held[0].eval()(x))


@pytest.mark.parametrize("mode", ["exact", "first-order"])
@pytest.mark.parametrize(("n", "outputs"), [(5, 2), (3, 3), (4, 1)])
def test_learned_slopes_of_several_queries(n, outputs, mode):
    torch.manual_seed(0)
    layers = [nn.Linear(2, 3), nn.GroupNorm(1, 3), nn.PReLU(), nn.Linear(3, outputs)]
    model, y = nn.Sequential(*layers).double(), points(8, outputs, seed=4)
    run = fit(model, X, y, lr=1e-3, epochs=2, record=1, progress=False)
    queries = points(n, 2, seed=9)
    settings = {"trajectory": run.trajectory, "mode": mode}
    found = path_kernel(model, X, y, queries=queries, **settings)
    alone = [path_kernel(model, X, y, queries=query[None], **settings) for query in queries]
    assert_close(found.samples, torch.cat([one.samples for one in alone]))
    assert mode == "first-order" or found.unattributed < 1e-12


def test_a_model_that_does_not_run_in_float64_is_refused_with_the_cure():
    model, (x, y) = Beside(), (X.float(), Y.float())
    run = fit(model, x, y, lr=0.01, epochs=1, record=1, progress=False)
    text = "computes in float64, but in float64 the model raised .* register all tensors"
    with pytest.raises(UnsupportedModelError, match=text):
        path_kernel(model.eval(), x, y, trajectory=run.trajectory)


def test_gradients_too_large_to_be_mapped_over_together(monkeypatch):
    model = bent()
    run = fit(model, X, Y, lr=0.1, epochs=1, record=1, progress=False)
    expected = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q)
    monkeypatch.setattr(weight_segment, "VMAP_BYTES", 1)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q)
    assert_close(found.samples, expected.samples)


@pytest.mark.parametrize(("rows", "way"), [(5, "dense gradient"), (40, "sum over positions")])
def test_tables_are_written_out_where_that_is_cheaper(rows, way, monkeypatch):
    monkeypatch.setattr(kernel_block, "TILE", 64)  # less than all points of a row of the kernel
    model = Words(rows).double().eval()
    found = tangent_kernel(model, 4 * points(5, 6))
    assert dict(found.layers)["table.weight"] == way
    assert_close(found.kernel, brute(model, 4 * points(5, 6)))


def test_a_parameter_that_is_one_number():
    model = Scaled().double().eval()
    assert_close(tangent_kernel(model, Q).kernel, brute(model, Q))


@pytest.mark.parametrize(("optimizer", "record"), [("adam", 1), ("adamw", 3)])
def test_parameters_that_get_no_gradient(optimizer, record):
    watch, settings = PathWatch(Q), {"optimizer": optimizer, "weight_decay": 0.1, "lr": 0.02}
    model = Idle().double()
    run = fit(model, X, Y, epochs=3, record=record, progress=False, watch=watch, **settings)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q)
    assert found.unattributed < 1e-12
    assert_close(watch.result().samples, found.samples)


def test_a_map_that_comes_twice():
    model = shared()
    run = fit(model, X, Y, lr=0.05, epochs=2, record=2, progress=False)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q)
    assert_close(found.final, model(Q).detach())
    assert found.unattributed < 1e-12


def test_steps_are_cut_at_kinks_of_any_module(monkeypatch):
    model, x = bent(), 2 * X
    run = fit(model, x, Y, lr=0.2, epochs=2, record=2, progress=False)
    found = path_kernel(model, x, Y, trajectory=run.trajectory, queries=Q)
    assert found.unattributed < 1e-12
    assert found.summary().kind == "exact"
    ends = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    monkeypatch.setattr(
        ModuleNetwork, "breakpoints", lambda self, start, step, x: ends.expand(len(x), 2)
    )
    unseen = path_kernel(model, x, Y, trajectory=run.trajectory, queries=Q)
    assert unseen.unattributed < 1e-12  # cut where the change is missed
    loose = path_kernel(model, x, Y, trajectory=run.trajectory, queries=Q, tolerance=1.0)
    assert loose.relative_residual > 1e-4  # there are kinks
    assert loose.summary().kind == "estimate"


def test_cuts_of_any_module_are_those_of_a_chain():
    found = []
    for wrap in (nn.Sequential, lambda net: nn.Sequential(net, nn.Unflatten(1, (2,)))):
        model = wrap(dense(2, 8, 2))
        run = fit(model, 2 * X, Y, lr=0.2, epochs=2, record=2, progress=False)
        found.append(path_kernel(model, 2 * X, Y, trajectory=run.trajectory, queries=Q))
    assert_close(found[0].samples, found[1].samples)
    assert found[1].unattributed < 1e-12


def test_first_order_is_an_estimate():
    model = dense(2, 3, 2, act=nn.Tanh)
    run = fit(model, X, Y, lr=1e-7, epochs=2, record=1, progress=False)
    found = path_kernel(model, X, Y, trajectory=run.trajectory, queries=Q, mode="first-order")
    assert found.relative_residual < 1e-5
    assert found.summary().kind == "estimate"


@pytest.mark.parametrize(("residual", "rounded"), [(1e-12, True), (1e-3, False)])
def test_only_rounding_is_called_so(residual, rounded):
    says = Prediction(
        row=0, why="asked for", says="1", truth=None, right=None, probability=None, output=0,
        value=3.0,
    )  # fmt: skip
    one = Explained(
        prediction=says, initial=1.0, up=(Push(row=3, label=None, amount=2 - residual),), down=(),
        others=Others(rows=0, up=0.0, down=0.0), rest={"residual": residual}, final=3.0,
    )  # fmt: skip
    found = Attribution(rows="test rows", training_rows=4, explained=(one,))
    printed = attribution_text(found)
    part = attribution_part(found, 10) | {"csv": "", "pictures": {"query 0": None}}
    page = environment().get_template("attribution.html.j2").render(part=part, citation="")
    assert ("by rounding" in printed) == ("by rounding" in page) == rounded
    assert f"of at most {residual:.0e}" in " ".join(printed.split())


def ridge(model, x):
    return sum(p.square().sum() for p in model.parameters())


def heavy(prediction, target):
    return (prediction - target).pow(4).mean()


def cubic(prediction, target):
    return (prediction - target).abs().pow(3).mean()


@pytest.mark.parametrize("record", [1, 3])
def test_another_training_is_refused_however_it_was_recorded(record):
    def ran(**settings):
        model = dense(2, 3, 2)
        return model, fit(model, X, Y, epochs=3, record=record, progress=False, **settings)

    model, run = ran(penalties=[(0.1, ridge)])
    for penalties in ([], [(0.2, ridge)]):
        with pytest.raises(ValueError, match="needs the penalties of the training"):
            path_kernel(model, X, Y, trajectory=run.trajectory, penalties=penalties)
    model, run = ran()
    with pytest.raises(ValueError, match="needs the loss of the training, 'mse', found a function"):
        path_kernel(model, X, Y, trajectory=run.trajectory, loss=heavy)
    model, run = ran(loss=heavy)
    with pytest.raises(ValueError, match=r"'own:heavy', found none: pass loss=\.\.\."):
        path_kernel(model, X, Y, trajectory=run.trajectory)
    with pytest.raises(ValueError, match=r"'own:heavy', found 'own:cubic': pass loss=\.\.\."):
        path_kernel(model, X, Y, trajectory=run.trajectory, loss=cubic)
    assert path_kernel(model, X, Y, trajectory=run.trajectory, loss=heavy).unattributed < 1e-12


def test_queries_of_another_shape_are_refused():
    model = dense(2, 3, 2)
    run = fit(model, X, Y, epochs=2, record=1, progress=False)
    text = r"queries must have the shape of the training's points, \(2,\) each, found \(3,\)"
    with pytest.raises(ValueError, match=text):
        path_kernel(model, X, Y, trajectory=run.trajectory, queries=points(4, 3))
    with pytest.raises(ValueError, match=text):
        fit(dense(2, 3, 2), X, Y, epochs=1, progress=False, watch=PathWatch(points(4, 3)))


def test_one_point_takes_the_memory_of_one():
    model = dense(2, 3, 2)
    with pytest.raises(BudgetError, match=r"gradients of 1 sample take .* raise memory") as error:
        tangent_kernel(model, X[:1], memory=1)
    least = int(str(error.value).split(" bytes")[0].split()[-1].replace(",", ""))
    assert_close(tangent_kernel(model, X[:1], memory=least).kernel, brute(model, X[:1]))
    with pytest.raises(BudgetError, match=f"gradients of 2 samples take {2 * least:,} bytes"):
        tangent_kernel(model, X, memory=least)


def test_batch_norm_kept_in_eval_mode_as_the_refusal_offers():
    x = points(8, 3)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1)).double()
    offered = r"layer\.eval\(\); layer\.train = lambda mode=True: layer"
    with pytest.raises(UnsupportedModelError, match=offered):
        fit(net, x, x[:, :1], lr=0.1, epochs=1, watch=PathWatch(x[:2]))
    layer = net[1].eval()
    layer.train = lambda mode=True: layer
    run = fit(net, x, x[:, :1], lr=0.1, epochs=3, record=2)
    found = path_kernel(net, x, x[:, :1], trajectory=run.trajectory, queries=x[:2])
    assert found.unattributed < 1e-12
