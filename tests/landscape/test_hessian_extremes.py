import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import BudgetError
from inscape.landscape import hessian_extremes, local_minimum
from inscape.landscape._curvature_rounding import (
    EPSILON,
    LEAST_ROUNDING,
    _products_of_terms,
    curvature_rounding,
    matrix_rounding,
)
from inscape.landscape._inertia import inertia_below
from inscape.landscape._lanczos import lanczos, unseen
from inscape.landscape._loss_function import loss_function_of
from oracles.curvature import gauss_newton, hessian

ORACLES = {"hessian": hessian, "gauss_newton": gauss_newton}


def classes(n=30, act=nn.ReLU):
    """Return a small classifier with data."""
    draw = torch.Generator().manual_seed(5)
    return dense(4, 10, 8, 3, act=act), points(n, 4), torch.randint(3, (n,), generator=draw)


@pytest.mark.parametrize("matrix", ORACLES)
@pytest.mark.parametrize("dense_up_to", [0, 200])
def test_both_ends_equal_those_of_the_whole_matrix(matrix, dense_up_to):
    model, x, y = classes()
    values = torch.linalg.eigvalsh(ORACLES[matrix](model, x, y, "cross_entropy"))
    result = hessian_extremes(
        model, x, y, matrix=matrix, dense=dense_up_to, tolerance=1e-9, memory=10**6
    )
    # the residual that was asked for bounds the error
    assert result.smallest == pytest.approx(float(values[0]), abs=1e-8)
    assert result.largest == pytest.approx(float(values[-1]))
    assert result.proof == ("inertia" if dense_up_to else "probability")
    assert result.negative == (float(values[0]) < -1e-8)


@pytest.mark.parametrize("size", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("dense_up_to", [0, 200])
def test_a_saturated_softmax_is_no_proof_of_negative_curvature(size, dense_up_to):
    """A linear model has a convex loss, whose curvature is a difference of terms of size one."""
    for seed in range(12):
        x = points(3 + seed, 4, seed=seed).to(torch.float32 if seed % 2 else torch.float64)
        x[:, -1] = x[:, 0]
        model, y = nn.Linear(4, 3).to(x.dtype).eval(), torch.arange(len(x)) % 3
        with torch.no_grad():
            model.weight.copy_(size * points(3, 4, seed=seed + 1))
        assert not hessian_extremes(model, x, y, dense=dense_up_to, seed=seed).negative
        assert local_minimum(model, x, y, dense=dense_up_to).verdict != "saddle"


def test_rounding_of_terms_is_that_of_each_matrix_written_out():
    model, x, y = classes()
    problem = loss_function_of(model, x, y)
    matrices = [products.matrix() for products in _products_of_terms(problem)]
    largest = max(float(torch.linalg.matrix_norm(matrix, 2)) for matrix in matrices)
    unit = LEAST_ROUNDING * EPSILON
    assert unit * largest <= matrix_rounding(problem) <= 2 * unit * largest
    v = torch.nn.functional.normalize(points(problem.size, 1).flatten(), dim=0)
    along = max(float(v @ matrix @ v) for matrix in matrices)
    assert curvature_rounding(problem, v) == pytest.approx(unit * along)
    # without signs there are the tangents alone, each of the size of its sample's logits
    both = (matrices[0] + matrices[1]) / 2
    names, tensors = zip(*model.named_parameters(), strict=True)
    jacobians = torch.func.jacrev(
        lambda flat: torch.func.functional_call(
            model,
            {
                name: part.reshape(tensor.shape)
                for name, part, tensor in zip(
                    names, flat.split([t.numel() for t in tensors]), tensors, strict=True
                )
            },
            (x,),
        )
    )(problem.vector())
    sizes = (1 + model(x).detach().abs().amax(1)) / len(x)
    expected = torch.einsum("n,ncp,ncq->pq", sizes, jacobians, jacobians)
    assert_close(both, expected)


def test_an_eigenvalue_lies_within_each_residual_also_when_stopped_early():
    model, x, y = classes()
    values = torch.linalg.eigvalsh(hessian(model, x, y, "cross_entropy"))
    for products in (2, 4, 8, 16):
        result = hessian_extremes(model, x, y, dense=0, products=products, tolerance=0.0)
        for end, residual in zip(
            (result.smallest, result.largest), result.residuals.tolist(), strict=True
        ):
            assert float((values - end).abs().min()) <= residual + result.rounding
        assert not result.converged
        assert result.status.startswith("unconverged: residuals")
        assert "unconverged" in result.summary().basis


def test_float32_residuals_hold_in_float64():
    model, x, y = classes()
    model, x = model.float(), x.float()
    values = torch.linalg.eigvalsh(
        hessian(copy.deepcopy(model).double(), x.double(), y, "cross_entropy")
    )
    result = hessian_extremes(model, x, y, dense=0)
    for end, residual in zip(
        (result.smallest, result.largest), result.residuals.tolist(), strict=True
    ):
        assert float((values - end).abs().min()) <= residual + result.rounding
    in_double = hessian_extremes(model, x, y, dense=0, double=True, tolerance=1e-9)
    assert in_double.smallest == pytest.approx(float(values[0]), abs=1e-10)


def test_thick_restarts_find_the_same_ends_in_less_memory():
    model, x, y = classes()
    size = sum(p.numel() for p in model.parameters())
    whole = hessian_extremes(model, x, y, dense=0, tolerance=1e-6)
    short = hessian_extremes(model, x, y, dense=0, tolerance=1e-6, memory=16 * size * 12)
    assert short.products > whole.products
    assert short.smallest == pytest.approx(whole.smallest, abs=1e-8)
    assert short.largest == pytest.approx(whole.largest, abs=1e-8)


def test_weight_decay_moves_all_eigenvalues_alike():
    model, x, y = classes()
    bare, decayed = (hessian_extremes(model, x, y, weight_decay=w) for w in (0.0, 0.25))
    assert decayed.smallest == pytest.approx(bare.smallest + 0.25)
    assert decayed.largest == pytest.approx(bare.largest + 0.25)


def test_the_order_of_units_does_not_matter():
    model, x, y = classes()
    other = copy.deepcopy(model)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        other[0].weight.copy_(model[0].weight[order])
        other[0].bias.copy_(model[0].bias[order])
        other[2].weight.copy_(model[2].weight[:, order])
    ours, theirs = (hessian_extremes(m, x, y) for m in (model, other))
    assert ours.smallest == pytest.approx(theirs.smallest)
    assert ours.largest == pytest.approx(theirs.largest)


def test_linear_model_has_the_second_moments_of_the_data():
    model, x = nn.Linear(3, 1, bias=False).double().eval(), points(20, 3)
    values = torch.linalg.eigvalsh(2 * x.T @ x / 20)
    result = hessian_extremes(model, x, points(20, 1, seed=2))
    assert result.smallest == pytest.approx(float(values[0]))
    assert result.largest == pytest.approx(float(values[-1]))
    assert result.summary().kind == "exact"


def test_one_layer_is_a_block():
    model, x, y = classes()
    block = hessian(model, x, y, "cross_entropy")[-27:, -27:]
    result = hessian_extremes(model, x, y, parameters=["4"])
    assert result.parameters == 27
    assert result.largest == pytest.approx(float(torch.linalg.eigvalsh(block)[-1]))


class Bowl(nn.Module):
    """A function of two parameters alone."""

    def __init__(self):
        super().__init__()
        self.at = nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))

    def forward(self, x):
        return x[:, :1] * self.at.sum()


def test_any_function_of_the_module_serves_as_the_loss():
    def residual(model):  # 3 a^2 - b^2: curvatures 6 and -2
        return 3 * model.at[0] ** 2 - model.at[1] ** 2

    result = hessian_extremes(Bowl().eval(), points(4, 1), module_loss=residual)
    assert (result.smallest, result.largest) == (-2.0, 6.0)
    assert result.loss == "residual"
    assert result.negative


def test_residual_of_a_differential_equation_is_a_loss():
    model, at = dense(1, 6, 1, act=nn.Tanh), torch.linspace(0, 1, 7, dtype=torch.float64)[:, None]

    def equation(net):
        t = at.clone().requires_grad_()
        (slope,) = torch.autograd.grad(net(t).sum(), t, create_graph=True)
        return (slope + net(t)).square().mean()

    result = hessian_extremes(model, at, module_loss=equation, dense=0, tolerance=1e-8)
    whole = hessian_extremes(model, at, module_loss=equation)
    assert result.largest == pytest.approx(whole.largest)
    assert result.smallest == pytest.approx(whole.smallest, abs=1e-7)


def test_one_parameter_is_enough_and_none_does_not_apply():
    model = nn.Linear(1, 1, bias=False).double().eval()
    x = torch.tensor([[3.0]], dtype=torch.float64)
    for most in (0, 10):
        result = hessian_extremes(model, x, x, dense=most, products=50)
        assert result.smallest == result.largest == 18.0
    result = hessian_extremes(nn.ReLU().eval(), x, x)
    assert result.status == "not applicable: the model has no parameters"


@pytest.mark.parametrize("size", [1e139, 1e-140])
def test_curvatures_whose_squares_overflow_or_underflow_are_bounded(size):
    model, x, y = nn.Linear(3, 1).double().eval(), size * points(6, 3), points(6, 1, seed=2)
    result = hessian_extremes(model, x, y)
    largest = torch.linalg.eigvalsh(2 * x.T @ x / 6 / size**2)[-1]
    assert result.largest == pytest.approx(float(largest) * size**2 + 2 * (size < 1), rel=1e-6)
    assert result.below <= result.smallest <= result.largest <= result.above < math.inf


def test_bounds_of_a_random_start_hold_nearly_always():
    values = torch.linspace(-1, 1, 60, dtype=torch.float64) ** 3
    missed = 0
    for seed in range(100):
        start = points(60, seed=seed)
        *_, pairs = lanczos(lambda v: values * v, start, columns=60, products=9)
        fraction = unseen(60, 9, 0.2)
        missed += float(pairs.values[0]) > -1 + fraction * 2
    assert fraction < 1
    assert missed <= 0.2 * 100
    assert unseen(10**6, 50, 1e-3) == pytest.approx((math.log(1.648 * 1000 / 1e-3) / 99) ** 2)


def test_inertia_counts_eigenvalues_below_a_shift():
    matrix = torch.diag(torch.tensor([-3.0, -1.0, 0.5, 2.0, 2.0], dtype=torch.float64))
    turn = torch.linalg.qr(points(5, 5)).Q
    matrix = turn @ matrix @ turn.T
    matrix = (matrix + matrix.T) / 2
    counts = [inertia_below(matrix, shift)[0] for shift in (-4, -2, 0, 1, 3)]
    assert counts == [0, 1, 2, 3, 5]
    swap = torch.tensor([[0.0, 1], [1, 0]], dtype=torch.float64)  # one pivot of two rows
    assert inertia_below(swap, 0.0) == (1, 0.0)


def test_more_starts_narrow_the_bound():
    model, x, y = classes()
    single = hessian_extremes(model, x, y, dense=0, products=15)
    several = hessian_extremes(model, x, y, dense=0, products=15, starts=4)
    assert several.below > single.below
    assert several.smallest <= single.smallest + 1e-9


def test_batches_do_not_change_the_numbers():
    model, x, y = classes(n=50)
    whole = hessian_extremes(model, x, y, dense=0, tolerance=1e-8)
    size = sum(p.numel() for p in model.parameters())
    short = hessian_extremes(model, x, y, dense=0, tolerance=1e-8, memory=16 * size * 40)
    assert short.smallest == pytest.approx(whole.smallest, abs=1e-9)
    assert short.largest == pytest.approx(whole.largest)


def test_bad_settings_are_named(unchecked):
    model, x, y = classes()
    with pytest.raises(ValueError, match="products must be at least 1, found 0"):
        hessian_extremes(model, x, y, products=0)
    with pytest.raises(ValueError, match="matrix must be one of 'hessian', 'gauss_newton', found"):
        hessian_extremes(model, x, y, matrix="fisher")
    with pytest.raises(ValueError, match=r"parameters must name parameters or modules .* '9': ch"):
        hessian_extremes(model, x, y, parameters=["9"])
    with pytest.raises(ValueError, match=r"the loss needs labels, found y=None: pass y, or a fun"):
        hessian_extremes(model, x)


def test_budget_too_small_says_what_it_needs():
    model, x, y = classes()
    with pytest.raises(BudgetError, match=r"three vectors of 165 param.*, 7,920 bytes, found 100:"):
        hessian_extremes(model, x, y, dense=0, memory=100)


def test_loss_that_is_no_mean_is_refused():
    model, x, y = classes()
    total = nn.CrossEntropyLoss(reduction="sum")
    with pytest.raises(ValueError, match=r"must be a mean over samples, found .* average over the"):
        hessian_extremes(model, x, y, loss=total)
    each = nn.CrossEntropyLoss(reduction="none")
    with pytest.raises(ValueError, match=r"must return one number, found shape \(4,\): take its m"):
        hessian_extremes(model, x, y, loss=each)
    mean = hessian_extremes(model, x, y, loss=nn.CrossEntropyLoss())
    assert mean.largest == pytest.approx(hessian_extremes(model, x, y).largest)


def test_batch_norm_in_training_mode_nan_and_wrong_data_are_refused():
    model, x, y = classes()
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).double()
    with pytest.raises(ValueError, match="must be in eval mode"):
        hessian_extremes(net, x, y)
    assert hessian_extremes(net.eval(), x, y).converged
    with pytest.raises(ValueError, match="class numbers must lie between 0 and 2, found 0 to 7"):
        hessian_extremes(model, x, torch.full_like(y, 7).index_fill(0, torch.tensor([0]), 0))
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"weights must be finite, .* in '0\.weight'"):
        hessian_extremes(model, x, y)


def test_gauss_newton_of_a_loss_of_ones_own_is_by_autograd():
    model, x = dense(3, 4, 2, act=nn.Tanh), points(7, 3)
    y = points(7, 2, seed=4)

    def squares(a, b):
        return (a - b).square().mean()

    own = hessian_extremes(model, x, y, loss=squares, matrix="gauss_newton")
    named = hessian_extremes(model, x, y, matrix="gauss_newton")
    assert_close(
        torch.tensor([own.smallest, own.largest]), torch.tensor([named.smallest, named.largest])
    )
