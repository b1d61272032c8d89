import gc
import weakref

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.sampling import draw_pairs, draw_rows
from inscape.errors import UnsupportedModelError
from inscape.functional.jacobians import (
    ROWS,
    Probe,
    cached_probes,
    chunks,
    differentiable_jacobians,
    jacobians,
    probe,
)
from inscape.smoothness import gradient_norm


def test_jacobians_equal_torch_func():
    f, x = dense(3, 6, 2, act=torch.nn.Tanh), points(5, 3)
    expected = torch.func.vmap(torch.func.jacrev(lambda p: f(p[None])[0]))(x)
    assert_close(jacobians(f, x), expected.detach())
    assert_close(differentiable_jacobians(f, x), expected)


def test_live_jacobians_carry_gradients_and_the_others_do_not():
    f, x = dense(3, 6, 2), points(5, 3)
    assert differentiable_jacobians(f, x).requires_grad
    assert not jacobians(f, x).requires_grad


def test_outputs_that_ignore_the_input_have_zero_gradient():
    jacobian = jacobians(
        lambda x: torch.stack([x[:, 0], torch.ones(len(x))], dim=1), torch.rand(2, 3)
    )
    assert_close(jacobian, torch.tensor([[1.0, 0, 0], [0, 0, 0]]).expand(2, 2, 3))


def test_probe_counts_outputs_and_memory_grows_with_width():
    narrow, wide = probe(dense(3, 4, 2), points(1, 3)), probe(dense(3, 400, 2), points(1, 3))
    assert narrow.outputs == wide.outputs == 2
    assert wide.row_bytes > narrow.row_bytes + 400 * 8


def test_rows_keep_to_the_budget():
    found = Probe(f=torch.sin, outputs=1, row_bytes=100)
    assert found.rows(1) == 1
    assert found.rows(1000) == 10
    assert found.rows(10**12) == ROWS


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_chunks_are_even_and_complete(rows):
    x = torch.arange(10.0)[:, None]
    parts = list(chunks(x, rows))
    assert_close(torch.cat(parts), x)
    assert max(map(len, parts)) <= rows
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_pairs_are_rows_of_the_data_and_follow_the_seed():
    x = points(7, 2)
    a, b = draw_pairs(x, 500, seed=5)
    again, _ = draw_pairs(x, 500, seed=5)
    assert torch.equal(a, again)
    assert not torch.equal(a, draw_pairs(x, 500, seed=6)[0])
    for ends in (a, b):
        assert {tuple(row.tolist()) for row in ends} == {tuple(row.tolist()) for row in x}
    same = (a == b).all(1).double().mean().item()
    # A point meets itself in one of seven draws: five standard errors of 500 draws.
    assert abs(same - 1 / 7) < 5 * (6 / 49 / 500) ** 0.5


def test_rows_are_distinct_and_all_where_there_are_no_more():
    x = torch.arange(9.0)[:, None]
    assert len(draw_rows(x, 4, seed=0).unique()) == 4
    assert draw_rows(x, 9, seed=0) is x


def test_function_that_writes_over_its_input_gets_a_copy():
    x = points(5, 3)
    kept = x.clone()
    found = probe(torch.relu_, x)
    assert_close(found.f(x), kept.relu())
    assert_close(jacobians(found.f, x), torch.diag_embed((kept > 0).double()))
    assert torch.equal(x, kept)


def test_function_that_does_not_is_left_as_it_is():
    assert probe(torch.relu, points(5, 3)).f is torch.relu


def test_a_trial_leaves_nothing_behind():
    seen = []

    def f(x):
        seen.append(weakref.ref(x.untyped_storage()))
        y = x.exp()  # keeps its own output for the backward pass
        seen.append(weakref.ref(y.untyped_storage()))
        return y

    probe(f, points(5, 3))
    gc.collect()
    assert seen
    assert all(ref() is None for ref in seen)


MIXING = {
    "mean of the batch": lambda x: x - x.mean(0),
    "sum so far": lambda x: x.cumsum(0),
    "sum from here on": lambda x: x.flip(0).cumsum(0).flip(0),
    "first row": lambda x: x - x[:1],
    "last row": lambda x: x * x[-1:],
    "row before": lambda x: x + x.roll(1, 0),
    "row after": lambda x: x + x.roll(-1, 0),
    "number of rows": lambda x: x / len(x),
    "place in the batch": lambda x: x * torch.arange(1, len(x) + 1)[:, None],
    "only the first one mixed": lambda x: torch.cat([x[:1] + x.sum(0), x[1:]]),
    "only the last one mixed": lambda x: torch.cat([x[:-1], x[-1:] + x.sum(0)]),
    "pairs of rows": lambda x: x.reshape(-1, 2, x.shape[1]).cumsum(1).reshape(x.shape),
    "statistics of the batch": lambda x: nn.functional.batch_norm(x, None, None, training=True),
}


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("case", MIXING)
def test_functions_that_mix_rows_are_refused(case, rows):
    with pytest.raises(ValueError, match="must act on each sample independently"):
        probe(MIXING[case], points(rows, 3))


def test_mixing_is_seen_where_rows_are_equal_or_outputs_small():
    norm = nn.BatchNorm1d(3, track_running_stats=False).double().eval()
    with pytest.raises(ValueError, match="must act on each sample independently"):
        probe(lambda x: norm(x).sum(1), points(1, 3).expand(9, 3))
    with pytest.raises(ValueError, match="must act on each sample independently"):
        probe(lambda x: 1e-16 * norm(x), points(9, 3))


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 9])
def test_functions_that_draw_are_refused(rows):
    with pytest.raises(ValueError, match="two calls with the same batch differ"):
        probe(lambda x: x + torch.rand_like(x), points(rows, 3))


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 9])
def test_outputs_that_nearly_cancel_are_not_taken_for_mixed(rows):
    far = nn.Sequential(nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1)).eval()
    x = points(rows, 300).float()
    with torch.no_grad():
        far[2].bias -= far(x)[min(1, rows - 1)] - 1e-7  # nought but for rounding
    assert probe(far, x).outputs == 1


class Force(nn.Module):
    """A model of energies, whose output is a gradient that it takes itself."""

    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()

    def forward(self, x):
        (slope,) = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
        return -slope


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_functions_that_take_gradients_do_so_without_ours(rows):
    f, x = Force().eval(), points(rows, 3)
    found = probe(f, x)
    expected = f(x.clone().requires_grad_()).detach()
    with torch.no_grad():
        assert_close(found.f(x), expected)
    assert not found.f(x).requires_grad
    assert_close(jacobians(found.f, x), jacobians(f, x))


def test_models_of_torch_func_are_measured():
    net, x = dense(3, 5, 1, act=nn.Tanh), points(9, 3)
    slope = torch.vmap(torch.func.grad(lambda row: net(row)[0]))
    found = probe(slope, x)
    assert found.outputs == 3
    assert found.rows(2**20) < ROWS
    assert_close(found.f(x), slope(x))


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_that_do_not_reach_the_input_are_no_slope_of_zero(frozen):
    net, x = dense(3, 5, 2).requires_grad_(not frozen), points(9, 3)
    with pytest.raises(UnsupportedModelError, match="must let gradients reach its input"):
        gradient_norm(lambda x: net(x.detach()), x)


def test_exported_modules_need_no_mode():
    x = points(9, 3)
    batch = {0: torch.export.Dim.DYNAMIC}
    module = torch.export.export(dense(3, 5, 2), (x,), dynamic_shapes=(batch,)).module()
    assert probe(module, x).outputs == 2
    other = dense(3, 5, 2).train()
    other.eval = lambda: other
    with pytest.raises(ValueError, match="must be in eval mode, found the model"):
        probe(other, x)


def test_functions_that_fail_without_gradients_and_with_them_are_named():
    calls = []

    def f(x):
        calls.append(x)
        if len(calls) > 1:
            raise RuntimeError("no luck")
        return x

    with pytest.raises(UnsupportedModelError, match="it raised RuntimeError: no luck"):
        probe(f, points(9, 3))


def test_a_function_is_probed_once_where_that_is_kept():
    calls = []
    f = lambda x: (calls.append(len(x)), x)[1]  # noqa: E731
    x = points(5, 2)
    with cached_probes():
        first, second = probe(f, x), probe(f, x[:3])
        assert first is second
        assert sum(calls) == 7
        probe(f, points(4, 3))  # rows of another kind are tried
        assert sum(calls) == 14
        with pytest.raises(ValueError, match="must be finite"):
            probe(f, x * torch.inf)
    probe(f, x)
    assert sum(calls) == 21
