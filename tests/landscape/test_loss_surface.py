import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape.figures import draw
from inscape.landscape import loss_surface
from inscape.landscape._loss_function import loss_function_of
from inscape.landscape._parameter_planes import random_plane, trajectory_plane
from inscape.training import fit
from oracles.curvature import hessian, loss_of


def case(*widths, act=nn.Tanh):
    model, x = dense(*(widths or (3, 5, 2)), act=act), points(15, 3)
    return model, x, points(15, 2, seed=5)


def trained(model, x, y, epochs=12):
    """Return the trajectory of a short training."""
    return fit(model, x, y, lr=0.1, epochs=epochs, record=1, progress=False).trajectory


def least_squares():
    """Return a linear model, whose loss is quadratic, off its minimum."""
    return nn.Linear(3, 2).double().eval(), points(20, 3), points(20, 2, seed=3)


def test_grid_is_the_loss_of_the_moved_network():
    model, x, y = case()
    result = loss_surface(model, x, y, grid=5, reach=0.5, seed=3)
    loss, flat = loss_of(model, x, y, "mse")
    axes = random_plane(loss_function_of(model, x, y), 3, 0.5, None, 2).axes
    expected = [
        [float(loss(flat + a * axes[0] + b * axes[1])) for a in result.columns.tolist()]
        for b in result.rows_at.tolist()
    ]
    assert_close(result.losses, torch.tensor(expected, dtype=torch.float64))
    assert float(result.losses[2, 2]) == pytest.approx(result.loss_at_model)
    assert [row["loss"] for row in result.rows()] == result.losses.flatten().tolist()


def test_random_directions_have_the_filters_of_the_network():
    model, x, y = case()
    problem = loss_function_of(model, x, y)
    axes = random_plane(problem, 0, 1.0, None, 2).axes
    for axis in axes:
        for part, weights in zip(problem.products().split(axis), problem.tensors, strict=True):
            if weights.ndim > 1:
                assert_close(part.norm(dim=1), weights.detach().norm(dim=1))
            else:
                assert not part.any()  # biases stay


def test_rescaled_layers_have_the_same_surface():
    model, x, y = case(act=nn.ReLU)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight *= 4
        other[0].bias *= 4
        other[2].weight /= 4
    ours, theirs = (loss_surface(m, x, y, grid=4) for m in (model, other))
    assert_close(ours.losses, theirs.losses)
    assert not torch.isclose(ours.curvatures[1], theirs.curvatures[1], rtol=0.1)


def test_curvatures_and_alignment_are_those_of_the_whole_matrix():
    model, x, y = case()
    result = loss_surface(model, x, y, grid=3)
    matrix = hessian(model, x, y, "mse")
    basis = torch.linalg.qr(random_plane(loss_function_of(model, x, y), 0, 1.0, None, 2).axes.T).Q
    assert_close(result.plane_curvatures, torch.linalg.eigvalsh(basis.T @ matrix @ basis))
    values, vectors = torch.linalg.eigh(matrix)
    assert_close(result.curvatures, values[[0, -1]])
    sharpest = vectors[:, values.abs().argmax()]
    assert result.alignment == pytest.approx(float((basis.T @ sharpest).square().sum()))
    assert result.proved
    assert result.summary().kind == "exact"
    largest = float(result.plane_curvatures.abs().max() / values.abs().max())
    assert result.summary().value == pytest.approx(largest)


def test_minimum_of_a_quadratic_is_that_of_two_normal_equations():
    model, x, y = least_squares()
    problem = loss_function_of(model, x, y)
    axes = random_plane(problem, 0, 3.0, None, 2).axes
    result = loss_surface(model, x, y, grid=4, reach=3.0)
    matrix, slope = hessian(model, x, y, "mse"), problem.gradient()
    place = -torch.linalg.solve(axes @ matrix @ axes.T, axes @ slope)
    assert float(place.abs().max()) < 3  # inside the window
    assert_close(result.minimum, place)
    lowest = problem.value() + float(place @ (axes @ slope)) / 2
    assert result.minimum_loss == pytest.approx(lowest)
    assert result.minimum_loss < float(result.losses.min())
    assert result.is_minimum
    assert result.status == "ok"
    assert_close(result.minimum_curvatures, result.plane_curvatures)


def test_no_minimum_in_the_window_is_said():
    model, x, y = least_squares()
    result = loss_surface(model, x, y, grid=3, reach=1e-2)
    assert result.at_edge
    assert result.status.startswith("no minimum in the window: the lowest point is at its edge")
    assert result.minimum_loss <= float(result.losses.min())


def test_principal_components_are_those_of_a_singular_value_decomposition():
    model, x, y = case()
    path = trained(model, x, y)
    problem = loss_function_of(model, x, y)
    vectors = torch.stack(
        [torch.cat([path.at(s)[n].flatten() for n in problem.names]) for s in range(13)]
    )
    moved = vectors - problem.vector()
    _, values, right = torch.linalg.svd(moved, full_matrices=False)
    axes = trajectory_plane(problem, path, 40, 1.0).axes
    assert_close(axes.T @ axes, right[:2].T @ right[:2])
    result = loss_surface(model, x, y, trajectory=path, grid=3)
    left_over = float(values[2:].square().sum() / values.square().sum())
    assert result.off_fraction == pytest.approx(left_over)
    assert_close(result.off, (moved - moved @ axes.T @ axes).norm(dim=1))
    assert result.names[-1] == "step 12"
    assert_close(result.networks[-1], torch.zeros(2, dtype=torch.float64))
    own = [nn.functional.mse_loss(_at(model, path, s)(x), y) for s in range(13)]
    assert_close(result.own_losses, torch.stack(own).detach())
    assert result.shown_losses[-1] == pytest.approx(result.loss_at_model)


def _at(model, path, step):
    moved = copy.deepcopy(model)
    moved.load_state_dict(path.at(step))
    return moved


def test_random_plane_hides_nearly_all_of_a_training():
    model, x, y = case()
    path = trained(model, x, y)
    hidden = loss_surface(model, x, y, trajectory=path, plane="random", grid=3)
    shown = loss_surface(model, x, y, trajectory=path, grid=3)
    assert hidden.kind == "random directions"
    assert hidden.off_fraction > 0.5 > shown.off_fraction


def test_plane_of_three_networks_holds_all_three():
    model, x, y = case()
    others = [dense(3, 5, 2, act=nn.Tanh, seed=seed) for seed in (1, 2)]
    result = loss_surface(model, x, y, others=others, grid=3)
    assert float(result.off.max()) < 1e-12
    assert_close(result.own_losses, result.shown_losses)
    flat = [nn.utils.parameters_to_vector(m.parameters()).detach() for m in (model, *others)]
    assert_close(result.networks.norm(dim=1), torch.stack([(f - flat[0]).norm() for f in flat]))
    # state dicts serve as well
    states = loss_surface(model, x, y, others=[m.state_dict() for m in others], grid=3)
    assert torch.equal(states.losses, result.losses)


def normed(x):
    """Return a network with batch norm whose running statistics are not those of the data."""
    draw = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).double()
    for tensor in net.parameters():
        tensor.data.normal_(generator=draw)
    net(3 * x)
    return net.eval()


@torch.no_grad()
def test_running_statistics_are_kept_or_recomputed():
    x, y = points(15, 3), points(15, 2, seed=5)
    model = normed(x)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    kept, fresh = (loss_surface(model, x, y, grid=3, statistics=s) for s in ("kept", "recomputed"))
    assert (kept.statistics, fresh.statistics) == ("kept", "recomputed")
    assert kept.loss_at_model == pytest.approx(float(nn.functional.mse_loss(model(x), y)))
    h = model[0](x)
    scaled = (h - h.mean(0)) / (h.var(0) + model[1].eps).sqrt()
    own = model[3](model[2](scaled * model[1].weight + model[1].bias))
    assert fresh.loss_at_model == pytest.approx(float(nn.functional.mse_loss(own, y)))
    assert math.isnan(fresh.minimum_gradient)
    assert fresh.minimum_loss <= float(fresh.losses.min()) + 1e-12
    assert_close(kept.plane_curvatures, fresh.plane_curvatures)  # at the model as it is
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_other_functions_of_the_module_and_weight_decay():
    model, x, y = case()
    bare, decayed = (loss_surface(model, x, y, weight_decay=w, grid=3) for w in (0.0, 0.1))
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    assert decayed.loss_at_model == pytest.approx(bare.loss_at_model + 0.05 * float(flat @ flat))
    assert_close(decayed.curvatures, bare.curvatures + 0.1)
    own = loss_surface(model, x, module_loss=lambda m: (m(x) - y).square().mean(), grid=3)
    assert_close(own.losses, bare.losses)


def test_overflow_is_infinite_and_drawn():
    model, x = nn.Linear(2, 1, bias=False).float().eval(), 1e18 * torch.eye(2)
    result = loss_surface(model, x, torch.zeros(2, 1), grid=3, reach=1e3)
    assert bool(result.losses.isinf().any())
    assert draw(result).get_xlabel() == "first direction (filter norms)"


@pytest.mark.parametrize("plane", [{}, {"trajectory": True}, {"others": True}])
def test_picture_names_the_curvature_that_it_hides(plane):
    model, x, y = case()
    if "trajectory" in plane:
        plane = {"trajectory": trained(model, x, y)}
    if "others" in plane:
        plane = {"others": [dense(3, 5, 2, act=nn.Tanh, seed=seed) for seed in (1, 2)]}
    ax = draw(loss_surface(model, x, y, grid=4, **plane))
    assert "in all" in ax.get_legend().get_title().get_text()


def test_bad_input_is_named(unchecked):
    model, x, y = case()
    path = trained(model, x, y, epochs=1)
    with pytest.raises(ValueError, match="must move in two directions, found checkpoints on one"):
        loss_surface(model, x, y, trajectory=path)
    with pytest.raises(ValueError, match=r"others must be two networks, .* found 1: pass two mod"):
        loss_surface(model, x, y, others=[model])
    with pytest.raises(ValueError, match="three networks must not lie on one line, found two of"):
        loss_surface(model, x, y, others=[model, dense(3, 5, 2, act=nn.Tanh, seed=1)])
    with pytest.raises(ValueError, match=r"others\[1\] must have the parameters of the model, fou"):
        loss_surface(model, x, y, others=[dense(3, 5, 2, seed=1), dense(3, 6, 2)])
    with pytest.raises(ValueError, match="plane='networks' needs others, found None: pass others="):
        loss_surface(model, x, y, plane="networks")
    with pytest.raises(ValueError, match="plane must be named where both trajectory and others"):
        loss_surface(model, x, y, trajectory=path, others=[model, model])
    with pytest.raises(ValueError, match=r"reach must be above 0, found -1: raise it"):
        loss_surface(model, x, y, reach=-1)
    with pytest.raises(ValueError, match="grid must be at least 3, found 2"):
        loss_surface(model, x, y, grid=2)
    with pytest.raises(ValueError, match="must be in eval mode"):
        loss_surface(normed(x).train(), x, y)
    single = nn.Linear(1, 1, bias=False).double().eval()
    answer = loss_surface(single, points(3, 1), points(3, 1))
    assert answer.status == "not applicable: one parameter makes no plane"
