"""The short way through a wide first layer gives the numbers of the long way."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from cases import dense, points
from inscape.functional.first_layer import JacobianFactors
from inscape.functional.jacobians import jacobians
from inscape.smoothness import gradient_norm, gradient_path_length
from oracles.smoothness import jacobian

MANY = 10**6  # rows: a Gram matrix always pays


class Wrapped(nn.Module):
    """A network called in some way of its own."""

    def __init__(self, inner, forward):
        super().__init__()
        self.inner, self.way = inner, forward

    def forward(self, x):
        return self.way(self.inner, x)


def wrapped(forward, *widths):
    return Wrapped(dense(*(widths or (12, 5, 6, 2))), forward).eval()


def convolved():
    layers = [
        nn.Flatten(),
        nn.Linear(12, 8),
        nn.Unflatten(1, (2, 4)),
        nn.Conv1d(2, 3, 3),
        nn.Tanh(),
    ]
    return nn.Sequential(*layers).double().eval()


def mixed():
    """Return a map of every token alone, then of all tokens together."""
    layers = [nn.Linear(6, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3)]
    return nn.Sequential(*layers).double().eval()


def hooked():
    model = dense(12, 5, 2)
    model[0].register_forward_pre_hook(lambda module, given: (given[0].view(-1, 12),))
    model[0].register_forward_hook(lambda module, given, out: torch.tanh(3 * out))
    return model


def frozen():
    model = dense(12, 5, 1)
    model[1] = nn.ReLU(inplace=True)
    return model.requires_grad_(False).eval()


def normed():
    model = dense(12, 5, 2)
    parametrizations.weight_norm(model[0])
    return model.eval()


def exported():
    model = nn.Sequential(nn.Flatten(), dense(12, 5, 2)).eval()
    batch = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(model, (points(4, 3, 4),), dynamic_shapes=(batch,))
    return program.module()


SPLIT = {
    "dense": (lambda: dense(12, 5, 1), (12,)),
    "deep, several outputs": (lambda: dense(12, 6, 6, 3), (12,)),
    "smooth": (lambda: dense(12, 6, 2, act=nn.Tanh), (12,)),
    "only a linear map": (lambda: nn.Linear(12, 3).double().eval(), (12,)),
    "flattened first": (lambda: nn.Sequential(nn.Flatten(), dense(12, 5, 2)).eval(), (3, 4)),
    "convolution after": (convolved, (3, 4)),
    "tokens": (mixed, (2, 6)),
    "hooks of its own": (hooked, (12,)),
    "frozen weights, activation in place": (frozen, (12,)),
    "weights made of others": (normed, (12,)),
    "functional": (
        lambda: wrapped(lambda net, x: functional.linear(x, net[0].weight).relu().sum(1)),
        (12,),
    ),
    "linear map again, of other input": (
        lambda: wrapped(lambda net, x: net[0](net[0](x) @ net[0].weight).sin()),
        (12,),
    ),
    "values of the input as a switch": (
        lambda: wrapped(lambda net, x: net(x) * (x[:, :1] > 0)),
        (12,),
    ),
    "copy of the input": (
        lambda: wrapped(lambda net, x: net(x.clone()[:, None].squeeze(1))),
        (12,),
    ),
    "rows cut in two": (
        lambda: wrapped(lambda net, x: net(x.view(-1, 12)).view(len(x), -1)),
        (24,),
    ),
    "matrix product": (lambda: wrapped(lambda net, x: (x @ net[0].weight.T).tanh()), (12,)),
    "sum and product in one": (
        lambda: wrapped(lambda net, x: torch.addmm(net[0].bias, x, net[0].weight.T).tanh()),
        (12,),
    ),
    "recomputed in the backward pass": (
        lambda: wrapped(lambda net, x: checkpoint(net, x, use_reentrant=False)),
        (12,),
    ),
    "recomputed from a view": (
        lambda: wrapped(lambda net, x: checkpoint(net, x.flatten(1), use_reentrant=False)),
        (3, 4),
    ),
    "gradients of its own": (lambda: wrapped(lambda net, x: force(net, x), 12, 5, 1), (12,)),
    "mapped over rows": (lambda: wrapped(lambda net, x: torch.vmap(net)(x)), (12,)),
    "written over in part": (lambda: wrapped(lambda net, x: partly(net[0](x)).tanh()), (12,)),
    "sparse gradients": (
        lambda: wrapped(lambda net, x: torch.gather(net[0](x), 1, firsts(x), sparse_grad=True)),
        (12,),
    ),
    "exported": (exported, (3, 4)),
}

WHOLE = {
    "skip connection": (lambda: wrapped(lambda net, x: net(x) + x[:, :2] ** 2), (12,)),
    "linear map twice": (lambda: wrapped(lambda net, x: net(x) * net[0](x)[:, :2]), (12,)),
    "weights made of the input": (
        lambda: wrapped(lambda net, x: functional.linear(x, x[:5].sin()).tanh()),
        (12,),
    ),
    "scaled first": (lambda: wrapped(lambda net, x: net(3 * x)), (12,)),
    "part of the input": (lambda: wrapped(lambda net, x: net(x[:, :12])), (15,)),
    "sparse weights": (
        lambda: wrapped(lambda net, x: torch.mm(x, net[0].weight.detach().T.to_sparse()).tanh()),
        (12,),
    ),
    "sparse weights by rows": (
        lambda: wrapped(lambda net, x: (x @ net[0].weight.detach().T.to_sparse_csr()).tanh()),
        (12,),
    ),
    "leaf of another": (lambda: wrapped(lambda net, x: net(Kept.apply(x))), (12,)),
    "twice the product": (
        lambda: wrapped(
            lambda net, x: torch.addmm(net[0].bias, x, net[0].weight.T, alpha=2).tanh()
        ),
        (12,),
    ),
    "matrix on the left": (lambda: wrapped(lambda net, x: (net[0].weight @ x.T).T.tanh()), (12,)),
    "map hidden in a function of its own": (
        lambda: wrapped(lambda net, x: Own.apply(x, net[0].weight).tanh()),
        (12,),
    ),
    "gradients of its own, and the input": (
        lambda: wrapped(lambda net, x: force(net, x) * x, 12, 5, 1),
        (12,),
    ),
    "transposed first": (
        lambda: wrapped(lambda net, x: net(x.transpose(1, 2).flatten(1))),
        (3, 4),
    ),
    "no gradient through the map": (
        lambda: wrapped(lambda net, x: net(x.detach()) * x.sum(1, keepdim=True)),
        (12,),
    ),
    "map without gradients": (
        lambda: wrapped(lambda net, x: no_gradient(net, x) * x.sum(1, keepdim=True)),
        (12,),
    ),
    "input handed on": (lambda: wrapped(lambda net, x: x.flatten(1)), (3, 4)),
    "input itself": (lambda: wrapped(lambda net, x: x), (12,)),
    "first layer not narrower": (lambda: dense(4, 9, 2), (4,)),
}


@torch.no_grad()
def no_gradient(net, x):
    return net(x)


def force(net, x):
    """Return the gradient of the network's squared output, as models of energies do."""
    (slope,) = torch.autograd.grad(net(x).tanh().square().sum(), x, create_graph=True)
    return slope


def firsts(x):
    return torch.zeros(len(x), 2, dtype=torch.long)


def partly(z):
    z[:, 0] = 3 * z[:, 1]
    return z


class Kept(torch.autograd.Function):
    """A step of autograd that looks like a leaf, and doubles the input."""

    @staticmethod
    def forward(ctx, x):
        ctx.variable = x
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Own(torch.autograd.Function):
    """A linear map that autograd knows nothing of."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.saved_tensors[0], None


@pytest.mark.parametrize("case", SPLIT)
def test_split_finds_the_front_and_gives_the_norms_of_the_whole(case):
    make, shape = SPLIT[case]
    f, x = make(), points(9, *shape)
    rows, first_layer = JacobianFactors(f, rows=MANY).at(x)
    assert first_layer is not None
    expected = jacobians(f, x)
    assert_close(torch.matmul(rows, first_layer.weight).reshape(expected.shape), expected)
    assert_close(first_layer.norm(rows), expected.norm(dim=(1, 2)))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("case", WHOLE)
def test_anything_else_gives_the_jacobian_itself(case):
    make, shape = WHOLE[case]
    f, x = make(), points(9, *shape)
    rows, first_layer = JacobianFactors(f, rows=MANY).at(x)
    assert first_layer is None
    assert_close(rows, jacobians(f, x))


@pytest.mark.parametrize("case", ["dense", "convolution after", "tokens", "hooks of its own"])
def test_norms_equal_plain_autograd_point_by_point(case):
    make, shape = SPLIT[case]
    f, x = make(), points(9, *shape)
    expected = torch.stack([jacobian(f, point).norm() for point in x])
    assert_close(JacobianFactors(f, rows=MANY).norms(x), expected.detach())


def the_long_way(f):
    """Return the same function in a form that hides its front."""
    return lambda x: f(x + 0)


@pytest.mark.parametrize("case", SPLIT)
def test_measures_do_not_depend_on_the_way(case):
    make, shape = SPLIT[case]
    f, x = make(), points(40, *shape)
    long = the_long_way(f)
    assert JacobianFactors(long, rows=MANY).at(x)[1] is None
    assert_close(gradient_norm(f, x).norms, gradient_norm(long, x).norms)
    short = gradient_path_length(f, x, pairs=20, knots=15)
    assert_close(short.lengths, gradient_path_length(long, x, pairs=20, knots=15).lengths)


def test_a_slope_that_does_not_change_has_a_path_of_exactly_zero():
    f = nn.Sequential(nn.Linear(12, 5), nn.Linear(5, 2)).eval()
    x = torch.rand(20, 12, generator=torch.Generator().manual_seed(0))
    assert JacobianFactors(f, rows=MANY).at(x)[1] is not None
    assert gradient_path_length(f, x, pairs=50).lengths.max().item() == 0.0


def test_few_rows_do_not_pay_for_a_gram_matrix():
    f, x = dense(12, 5, 1), points(3, 12)
    # 2 x 5 x 12 products for the matrix, against 7 saved at each row
    assert JacobianFactors(f, rows=17).at(x)[1] is None
    assert JacobianFactors(f, rows=18).at(x)[1] is not None


@pytest.mark.parametrize("scale", [0.0, 1e-25, 1e25])
def test_weights_whose_squares_leave_the_range_are_multiplied_out(scale):
    f = dense(12, 5, 2).float()
    with torch.no_grad():
        f[0].weight[0] *= scale
        f[2].weight[:, 0] *= min(1e20, 1 / scale) if scale else 1
    x = points(9, 12).float()
    assert JacobianFactors(f, rows=MANY).at(x)[1] is not None
    expected = jacobians(f, x).norm(dim=(1, 2))
    assert_close(JacobianFactors(f, rows=MANY).norms(x), expected, rtol=1e-6, atol=0)


def test_weights_that_change_from_batch_to_batch_get_their_own_matrix():
    one, two = dense(12, 5, 1), dense(12, 5, 1, seed=3)
    x = points(9, 12)
    slopes = JacobianFactors(lambda x: (one if x[0, 0] > 0 else two)(x), rows=MANY)
    for f, batch in ((one, x.abs()), (two, -x.abs()), (one, x.abs())):
        assert_close(slopes.norms(batch), jacobians(f, batch).norm(dim=(1, 2)))


def test_weights_written_over_from_batch_to_batch_get_their_own_matrix():
    one, two = dense(12, 5, 1), dense(12, 5, 1, seed=3)
    x, weight = points(9, 12), torch.empty(5, 12, dtype=torch.float64)

    def f(x):
        weight.copy_((one if x[0, 0] > 0 else two)[0].weight.detach())
        return functional.linear(x, weight).tanh()

    slopes = JacobianFactors(f, rows=MANY)
    for batch in (x.abs(), -x.abs(), x.abs()):
        assert_close(slopes.norms(batch), jacobians(f, batch).norm(dim=(1, 2)))


def test_a_model_that_raises_leaves_nothing_behind():
    def broken(net, x):
        net(x)
        raise RuntimeError("no luck")

    f, x = wrapped(broken), points(4, 12)
    with pytest.raises(RuntimeError, match="no luck"):
        JacobianFactors(f, rows=MANY).at(x)
    assert torch.overrides._get_current_function_mode() is None
    assert all(vars(m).get("forward") is None and not m._forward_hooks for m in f.modules())
    assert f.inner(x).grad_fn.name() == "AddmmBackward0"
    assert_close(
        jacobians(f.inner, x), JacobianFactors(f.inner, rows=MANY).at(x)[0] @ f.inner[0].weight
    )


def test_threads_that_measure_one_model_do_not_meet():
    f, found = dense(12, 5, 2), {}
    batches = {k: points(30, 12, seed=k) for k in range(4)}

    def measure(k):
        slopes = JacobianFactors(f, rows=MANY)
        found[k] = torch.stack([slopes.norms(batches[k]) for _ in range(20)])

    threads = [threading.Thread(target=measure, args=(k,)) for k in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in batches.items():
        assert_close(found[k], jacobians(f, x).norm(dim=(1, 2)).expand(20, 30))


def test_constant_functions_have_no_slope_behind_their_front():
    f = wrapped(lambda net, x: torch.cat([0 * net(x).detach() + 1, net(x)[:, :1]], dim=1))
    x = points(5, 12)
    assert_close(JacobianFactors(f, rows=MANY).norms(x), jacobians(f, x).norm(dim=(1, 2)))
    still = wrapped(lambda net, x: net(x).detach())
    assert JacobianFactors(still, rows=MANY).norms(x).max().item() == 0.0
