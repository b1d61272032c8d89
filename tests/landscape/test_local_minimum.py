import copy

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.landscape import (
    affine_embedding,
    dead_network,
    deepened,
    local_minimum,
    reduced_rank_regression,
    softmax_regression,
)
from inscape.landscape._dense_network import ball_bounds, dense_layers
from inscape.landscape._flat_directions import IDLE, flat_directions
from inscape.landscape._loss_function import loss_function_of
from inscape.models import mlp
from inscape.training import fit
from oracles.curvature import hessian

AFFINE = "proved, affine on the data"
MODULO = "proved modulo known flat directions"


def regression(n=30, d=3, c=2):
    """Return points and labels that no affine map fits."""
    x = points(n, d)
    return x, x[:, :c] + points(n, c, seed=4)


def polished(model, x, y, **settings):
    """Return the model at the end of damped Newton steps: the oracle of where training leads."""
    problem = loss_function_of(copy.deepcopy(model), x, y, double=True, **settings)
    damping = 1e-2
    for _ in range(100):
        gradient, matrix, start = problem.gradient(), problem.products().matrix(), problem.vector()
        if float(gradient.norm()) < 1e-14:
            break
        shift = damping + max(0.0, -float(torch.linalg.eigvalsh(matrix)[0]))
        step = torch.linalg.solve(matrix + shift * torch.eye(len(matrix)).double(), gradient)
        before = problem.value()
        problem.place(start - step)
        lower = problem.value() <= before
        damping = damping / 4 if lower else 4 * damping
        if not lower:
            problem.place(start)
    return problem.model


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_lemma_1_is_proved_by_theorem_1(loss):
    x, y = regression()
    if loss == "mse":
        weight, bias = reduced_rank_regression(x, y, rank=2)
    else:
        y = (y[:, 0] > 0).long()
        weight, bias = softmax_regression(x, y)
    network, _ = affine_embedding(dense(3, 6, 5, 2), x, weight, bias)
    result = local_minimum(network, x, y)
    assert result.verdict == AFFINE
    assert 0 < float(result.radius) < 1e-8
    assert result.is_proved
    assert "theorem 1" in result.reasons[0]


def test_deep_linear_network_has_the_same_point_as_its_global_minimum():
    x, y = regression()
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 6, 5, 2), x, weight, bias)
    linear = nn.Sequential(*[m if isinstance(m, nn.Linear) else nn.Identity() for m in network])
    assert local_minimum(linear.eval(), x, y).verdict == AFFINE
    torch.testing.assert_close(
        hessian(network, x, y, "mse"), hessian(linear, x, y, "mse")
    )  # and yet the ReLU network has lower points:
    lower = mlp(3, 6, 5, 2, seed=1, dtype=torch.float64)
    fit(lower, x, y, optimizer="adam", lr=0.02, epochs=150, progress=False)
    best = float(nn.functional.mse_loss(linear(x), y).detach())
    assert float(nn.functional.mse_loss(lower(x), y).detach()) < 0.9 * best
    other = polished(nn.Sequential(*linear, nn.Identity()).eval(), x, y)
    assert float(nn.functional.mse_loss(other(x), y).detach()) >= best - 1e-12


def test_affine_point_off_its_minimum_is_not_stationary():
    x, y = regression()
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 6, 5, 2), x, 1.01 * weight, bias)
    result = local_minimum(network, x, y)
    assert result.verdict == "not stationary"
    assert result.summary().value > 1e-6
    assert float(result.step) > 0


def test_a_solver_that_stops_early_leaves_the_point_not_proved():
    x, y = regression()
    labels = (y[:, 0] > 0).long()
    weight, bias = softmax_regression(x, labels, gradient=4e-3)
    network, _ = affine_embedding(dense(3, 6, 5, 2), x, weight, bias)
    assert not local_minimum(network, x, labels).is_proved


def test_weight_decay_moves_the_lemma_1_point_and_both_losses_are_judged():
    x, y = regression()
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 6, 5, 2), x, weight, bias, margin=5.0)
    result = local_minimum(network, x, y, weight_decay=5e-4)
    assert result.verdicts == (AFFINE, "not stationary")
    assert [row["regulariser"] for row in result.rows()] == [False, True]


def test_wrong_singular_vectors_are_a_saddle():
    x, y = regression(c=3)
    weight, bias = reduced_rank_regression(x, y, rank=2, choice=[0, 2])
    network, _ = affine_embedding(dense(3, 6, 2, 3), x, weight, bias)
    result = local_minimum(network, x, y)
    assert result.verdict == "saddle"
    assert float(result.smallest) < 0 < float(result.lowered)


def test_best_map_of_limited_rank_is_told_from_it():
    x, y = regression(c=3)
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 6, 2, 3), x, weight, bias)
    result = local_minimum(network, x, y)
    assert result.verdict == "undecided"
    assert "above the least of all maps of rank 2" in result.reasons[0]


def test_zero_weights_are_a_saddle():
    x, y = regression()
    network = dense(3, 4, 2, act=nn.Tanh)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network[2].bias.copy_(y.mean(0))
    assert local_minimum(network, x, y).verdict == "saddle"


@pytest.mark.parametrize("act", [nn.Tanh, nn.Sigmoid])
def test_smooth_network_after_newton_steps_is_proved(act):
    x, y = regression(d=2, c=1)
    network = polished(dense(2, 2, 1, act=act, seed=3), x, y, weight_decay=0.01)
    result = local_minimum(network, x, y, weight_decay=0.01)
    assert result.verdict == MODULO
    values = torch.linalg.eigvalsh(hessian(network, x, y, "mse")) + 0.01
    assert 0 < float(result.smallest[1]) <= float(values[0])
    assert float(result.radius[1]) < 1e-6


def relu_minimum():
    """Return a ReLU network at a minimum with a dead unit, found by Newton steps."""
    x, model = points(30, 2), dense(2, 3, 1, seed=2)
    with torch.no_grad():
        model[0].bias[0] = -20.0
        y = model(x) + 0.05 * points(30, 1, seed=4)
    return polished(model, x, y), x, y


def test_relu_network_is_proved_modulo_its_symmetries():
    network, x, y = relu_minimum()
    result = local_minimum(network, x, y)
    assert result.verdict == MODULO, result.reasons
    counts = dict(zip(result.causes, result.flat[0].int().tolist(), strict=True))
    assert counts["dead units"] == 4  # two weights, a bias, an outgoing weight
    assert counts["rescaling of units"] == 2
    zeros = torch.linalg.eigvalsh(hessian(network, x, y, "mse")).abs() < 1e-10
    assert int(zeros.sum()) == 6
    assert int(result.unexplained) == 0


def test_rescaled_network_is_proved_as_well():
    network, x, y = relu_minimum()
    with torch.no_grad():
        network[0].weight[1] *= 4
        network[0].bias[1] *= 4
        network[2].weight[:, 1] /= 4
    assert local_minimum(network, x, y).verdict == MODULO


def test_dead_network_is_proved():
    x, y = regression()
    network = dead_network(dense(3, 4, 3, 2), x, y.mean(0))
    result = local_minimum(network, x, y)
    assert result.verdict == MODULO
    assert "dead units" in result.causes


def test_deepened_network_is_proved_where_the_shallow_one_is():
    x, y = regression()
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 5, 2), x, weight, bias)
    deeper = deepened(network, 2)
    assert torch.equal(deeper(x), network(x))
    assert local_minimum(deeper, x, y).verdict == AFFINE


class Disguise(nn.Module):
    """A network whose loss against zeros is a^2 + b^3 near its parameters, and more."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.b = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x):
        return (self.a * x + self.b**3 + 1.0) if x.shape[1] == 1 else x


def test_square_plus_cube_is_never_proved():
    def square_plus_cube(model):
        return model.a.square().sum() + model.b.pow(3).sum() + 1.0

    x = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    result = local_minimum(Disguise().eval(), x, module_loss=square_plus_cube)
    assert result.verdict == "undecided"
    assert "flat directions without a known cause: 1" in result.reasons[0]
    hidden = local_minimum(Disguise().eval(), x, torch.zeros(2, 1).double())  # 1 + a^2 + 2 b^3
    assert hidden.verdict == "undecided"


def test_a_fit_that_is_exact_up_to_rounding_is_a_minimum():
    """The least loss is 1e-31 there, of which a step still takes off the half."""
    for seed in range(8):
        x = points(40, 4, seed=seed)
        y = x @ points(4, 2, seed=seed + 100)
        design = torch.cat([x, torch.ones(40, 1).double()], dim=1)
        best = torch.linalg.lstsq(design, y).solution.T
        model = nn.Linear(4, 2).double().eval()
        with torch.no_grad():
            model.weight.copy_(best[:, :4])
            model.bias.copy_(best[:, 4])
        assert local_minimum(model, x, y).verdict == MODULO
        with torch.no_grad():
            model.bias.add_(1e-9)  # a loss of 1e-18 is no rounding
        assert local_minimum(model, x, y).verdict == "not stationary"


@pytest.mark.parametrize(
    ("start", "function"),
    [(0.0, lambda w: (w - w.square()).sum()), (1e6, lambda w: (1 + w.square()).sqrt().sum())],
)
def test_a_slope_is_walked_down_whatever_its_curvature(start, function):
    """It is negative at a start without length, and so small that its own step is far too long."""
    model, x = nn.Linear(1, 1, bias=False).double().eval(), torch.zeros(1, 1).double()
    nn.init.constant_(model.weight, start)
    result = local_minimum(model, x, module_loss=lambda module: function(module.weight))
    assert result.verdict == "not stationary"


def test_square_plus_cube_in_a_chain_of_layers_is_never_proved():
    # tanh(w x) v against zero labels: the loss is v^2 tanh(w x)^2, flat to fourth order
    network, x = (
        nn.Sequential(nn.Linear(1, 1), nn.Tanh(), nn.Linear(1, 1)).double().eval(),
        points(5, 1),
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    result = local_minimum(network, x, torch.zeros(5, 1).double())
    assert result.verdict == "undecided"


def test_active_unit_without_outgoing_weights_is_a_saddle_by_its_cross_terms():
    x, y = regression()
    weight, bias = reduced_rank_regression(x, y, rank=2)
    network, _ = affine_embedding(dense(3, 6, 2), x, weight, bias)
    with torch.no_grad():  # the last unit becomes active on some of the data only
        network[0].weight[5] = torch.tensor([1.0, 0.5, -0.5])
        network[0].bias[5] = 0.1
    features = network[1](network[0](x)).detach()
    design = torch.cat([features[:, :5], torch.ones(len(x), 1).double()], dim=1)
    residual = y - design @ torch.linalg.lstsq(design, y, driver="gelsd").solution
    on = (features[:, 5] > 0).double()[:, None]
    assert float((residual.T @ (on * x)).abs().max()) > 1e-2  # the cross terms
    assert local_minimum(network, x, y).verdict in ("saddle", "not stationary")


def test_idle_units_are_counted_and_never_part_of_a_proof():
    network, x, y = relu_minimum()
    with torch.no_grad():  # the dead unit comes alive, without outgoing weights
        network[0].weight[0].zero_()
        network[0].bias[0] = 1.0
        network[2].weight[:, 0] = 0.0
    result = local_minimum(network, x, y)
    # a constant unit: its cross terms are the residuals' means, which vanish at the minimum
    assert result.verdict in ("undecided", "saddle")
    if result.verdict == "undecided":
        assert "active units have no outgoing weights" in result.reasons[0]
        assert IDLE in result.causes


def test_kink_on_the_data_is_said():
    x = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double().eval()
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), (1.0, 0.0, 1.0, 0.0), strict=True):
            parameter.fill_(value)
    y = x.relu() + torch.tensor([[0.1], [0.0], [0.0]], dtype=torch.float64)
    y[1] -= 0.1
    result = local_minimum(network, x, y)
    assert result.verdict == "undecided"
    assert "kink" in result.reasons[0]


def test_large_network_is_undecided_with_a_ritz_value_or_a_saddle():
    network, x, y = relu_minimum()
    result = local_minimum(network, x, y, dense=0)
    assert result.verdict == "undecided"
    assert "too many parameters for inertia (13)" in result.reasons[0]
    x, y = regression(c=3)
    weight, bias = reduced_rank_regression(x, y, rank=2, choice=[0, 2])
    network, _ = affine_embedding(dense(3, 6, 2, 3), x, weight, bias)
    assert local_minimum(network, x, y, dense=0).verdict == "saddle"


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh, nn.Sigmoid])
def test_ball_bounds_hold_at_random_parameters_of_the_ball(act):
    x, y = regression(n=8)
    network, radius = dense(3, 4, 3, 2, act=act), 1e-3
    problem = loss_function_of(network, x, y, double=True)
    bounds = ball_bounds(problem, dense_layers(problem), radius)
    start, before = problem.vector(), problem.products().matrix()
    for seed in range(5):
        step = points(problem.size, seed=seed)
        step = radius * step / step.norm()
        problem.place(start + step)
        change = torch.linalg.matrix_norm(problem.products().matrix() - before, 2)
        if bounds.free_of_kinks:
            assert float(change) <= bounds.lipschitz * radius
    problem.place(start)
    assert float(problem.gradient().norm()) <= bounds.gradient


def test_flat_directions_have_no_curvature():
    x = torch.cat([points(6, 2), torch.full((6, 1), 3.0).double()], dim=1)  # a constant input
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    network = dense(3, 4, 3)
    problem = loss_function_of(network, x, y, double=True)
    flat = flat_directions(problem, dense_layers(problem))
    start, before = problem.vector(), problem.value()
    alive = int((network[0](x) > 0).any(0).sum())
    assert flat.counts["dead units"] == (4 - alive) * (3 + 1 + 3)
    assert flat.counts["rescaling of units"] == alive
    assert flat.counts["shift of all logits"] == alive + 1
    assert flat.counts["inputs dependent on the data"] == alive
    for column in flat.basis.T[:: max(1, flat.basis.shape[1] // 6)]:
        problem.place(start + 1e-4 * column)
        # a rescaling is flat to first order along a straight line; its second order is 1e-8
        assert problem.value() == pytest.approx(before, abs=1e-7)
        problem.place(start)


def test_network_without_parameters_and_bad_settings(unchecked):
    x, y = regression()
    assert (
        local_minimum(nn.ReLU().eval(), x, x).status
        == "not applicable: the model has no parameters"
    )
    with pytest.raises(ValueError, match=r"dense must be at least 0, found -1"):
        local_minimum(dense(3, 4, 2), x, y, dense=-1)
    with pytest.raises(ValueError, match=r"tolerance must be at least 0\.0, found -1"):
        local_minimum(dense(3, 4, 2), x, y, tolerance=-1)
