"""Every kind of tensor is measured as a plain one would be, or refused by a text of ours."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from cases import dense, points
from inscape._core import NotApplicable, UnsupportedModelError, checks, generator, instruments
from inscape._core.sampling import draw_rows
from inscape.boolean import boolean_function
from inscape.controls import lipschitz
from inscape.extrapolation import extrapolation
from inscape.functional.jacobians import probe
from inscape.landscape import interpolation
from inscape.pruning import exhaustive_pruning
from inscape.regions import closed_regions, region_at
from inscape.robustness import robustness
from inscape.smoothness import (
    effective_length_scale,
    gradient_norm,
    path_length,
    rugosity,
    total_variation,
)
from inscape.spectra import fisher_rao_norm
from inscape.training.losses import loss_function

X = points(5, 3)
NET = dense(3, 4, 2)


@pytest.mark.parametrize("name", instruments())
def test_meta_tensors_are_refused(unchecked, name):
    with pytest.raises(ValueError, match="x must hold values, found a tensor on the meta device"):
        instruments()[name].function(
            NET, *([X.to("meta")] + [X] * instruments()[name].wants_labels)
        )


@pytest.mark.parametrize("name", instruments())
def test_no_rows_are_refused_or_do_not_apply(unchecked, name):
    entry = instruments()[name]

    def answer():
        try:
            return entry.function(NET, *[X[:0]] * (1 + entry.wants_labels))
        except ValueError as error:
            return str(error)

    result = answer()
    applies = not isinstance(result, NotApplicable) and entry.least_rows > 0
    assert not applies or "at least" in str(result)


@pytest.mark.parametrize("sparse", [X.to_sparse(), pytest.param(None, id="csr")])
def test_sparse_tensors_are_refused(unchecked, sparse):
    if sparse is None:
        with warnings.catch_warnings(action="ignore"):  # beta, said once in a process
            sparse = X.to_sparse_csr()
    with pytest.raises(ValueError, match=r"x must be a dense tensor, found .* use x.to_dense\(\)"):
        gradient_norm(NET, sparse)


@pytest.mark.parametrize(
    ("y", "error", "text"),
    [
        (X.to("meta"), ValueError, "y must hold values, found a tensor on the meta device"),
        (X.to_sparse(), ValueError, "y must be a dense tensor, found the layout torch.sparse_coo"),
        (X.to(torch.complex64), TypeError, "y must hold real numbers, found torch.complex64"),
    ],
)
def test_labels_without_real_values_are_refused(unchecked, y, error, text):
    with pytest.raises(error, match=text):
        checks.labels(y, X)


def test_model_without_outputs_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"at least one output .* shape \(3, 0\)"):
        probe(lambda x: x[:, :0], X)


def test_model_with_sparse_outputs_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"return a dense tensor, found the layout"):
        checks.call(lambda x: x.to_sparse(), X)


@pytest.mark.parametrize("seed", [-1, 1.5, float("nan"), "0", None, 2**64, [1]])
def test_seed_that_is_no_whole_number_is_refused(unchecked, seed):
    with pytest.raises(
        ValueError, match=r"seed must be a whole number from 0 to 2\*\*64 - 1, foun"
    ):
        generator(seed)
    with pytest.raises(ValueError, match=r"seed must be a whole number"):
        draw_rows(X, 1000, seed=seed)  # even where nothing is drawn


def test_seed_of_numpy_draws_what_a_plain_one_does(unchecked):
    assert torch.equal(
        torch.rand(3, generator=generator(np.int64(7))), torch.rand(3, generator=generator(7))
    )


@pytest.mark.parametrize("count", [2.5, "4", None, [3], float("nan")])
def test_count_that_is_no_whole_number_is_refused(unchecked, count):
    with pytest.raises(ValueError, match=r"points must be a whole number, found .* use int"):
        gradient_norm(NET, X, points=count)


@pytest.mark.parametrize("value", ["1", [1.0], None])
def test_setting_that_is_no_number_is_refused(unchecked, value):
    with pytest.raises(TypeError, match=r"step must be a number, found .* pass an int or a float"):
        rugosity(NET, X, step=value)
    with pytest.raises(TypeError, match="slack must be a number"):
        checks.at_least(0, slack=value)


def test_setting_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="level must be finite, found inf: choose another number"):
        closed_regions(NET, X, level=float("inf"))
    with pytest.raises(ValueError, match="high must be finite, found nan"):
        total_variation(dense(1, 3, 1), X[:, :1], high=float("nan"))


@pytest.mark.parametrize("name", ["gradient_norm", "path_length", "plane_regions", "spectral_norm"])
@pytest.mark.parametrize("kind", ["requires_grad", "in a graph", "parameter", "inference"])
def test_tensors_of_any_mode_are_measured_as_plain_ones(name, kind):
    x = X.clone()
    if kind == "inference":
        with torch.inference_mode():
            x = X.clone()
    elif kind == "parameter":
        x = nn.Parameter(x)
    else:
        x.requires_grad_()
        x = x if kind == "requires_grad" else 1 * x
    entry = instruments()[name]
    assert repr(entry.function(NET, x)) == repr(entry.function(NET, X))
    assert kind == "in a graph" or x.grad is None


@pytest.mark.parametrize("name", ["gradient_norm", "distance_from_init", "weights_product"])
def test_inference_mode_of_the_caller_changes_nothing(name):
    entry, net = instruments()[name], dense(3, 4, 1)
    with torch.inference_mode():
        inside = entry.function(net, X)
    assert repr(inside) == repr(entry.function(net, X))


def test_fisher_rao_norm_in_inference_mode():
    with torch.inference_mode():
        inside = fisher_rao_norm(NET, X, X[:, :2])
    assert torch.equal(inside.squares, fisher_rao_norm(NET, X, X[:, :2]).squares)


class Flat(nn.Module):
    """Returns one number for each point, without a second axis."""

    def __init__(self):
        super().__init__()
        self.inner = dense(3, 4, 1)

    def forward(self, x):
        return self.inner(x)[:, 0]


def test_outputs_of_shape_n_are_measured_as_one_column():
    flat = Flat().eval()
    assert lipschitz(flat, X).lower == lipschitz(flat.inner, X).lower
    assert boolean_function(flat, X).number == boolean_function(flat.inner, X).number
    assert torch.equal(path_length(flat, X).lengths, path_length(flat.inner, X).lengths)


def test_fewer_points_than_folds_are_refused():
    with pytest.raises(ValueError, match="points must be at least 4 for 3 folds, found 2: raise"):
        extrapolation(NET, X, NET(X).detach(), points=2, folds=3)


def test_function_is_refused_where_a_module_is_needed(unchecked):
    for name in ("distance_from_init", "kernel_drift", "tangent_kernel", "region_evolution"):
        with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, found builtin_func"):
            instruments()[name].function(torch.sin, X)


def test_class_numbers_beyond_the_outputs_are_refused_by_interpolation():
    labels = torch.tensor([0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="class numbers must lie between 0 and 0, found 0 to 1"):
        interpolation(dense(3, 4, 1), X, labels, other=dense(3, 4, 1, seed=1))


def test_loss_that_is_neither_name_nor_function_is_refused(unchecked):
    with pytest.raises(TypeError, match=r"loss must be a name or a function, found 3: pass e\.g"):
        loss_function(3)


def test_budgets_of_robustness_are_found_in_half_precision():
    net, x = dense(3, 4, 2).to(torch.bfloat16), X.to(torch.bfloat16)
    with pytest.warns(UserWarning, match="measured as a copy in float32"):
        found = robustness(net, x, torch.tensor([0, 1, 0, 1, 1]), points=2, sanity=False)
    assert found.rival > 0


def test_points_too_far_away_for_their_region_are_refused():
    with pytest.raises(ValueError, match=r"coordinates of at most 1e\+09, found .* scale the data"):
        region_at(NET, 1e30 * X)


def test_index_that_is_no_whole_number_is_refused(unchecked):
    with pytest.raises(ValueError, match="index must be a whole number, found '1'"):
        region_at(NET, X, index="1")


def test_interval_of_a_length_scale_leaves_out_resamples_without_lines():
    x = torch.tensor([[0.0], [0.0], [0.0], [1.0]], dtype=torch.float64)
    found = effective_length_scale(torch.sin, x, lines=2, resamples=50, process=False, seed=3)
    assert found.interval.isfinite().all()


def test_units_far_larger_than_what_is_left_are_taken_out_exactly():
    net = dense(3, 3, 1)
    with torch.no_grad():
        net[0].weight[0] *= 1e30
        net[0].bias[0] = 1e30
    y = torch.zeros(5, 1, dtype=torch.float64)
    found = exhaustive_pruning(net, X, y, slack=1e80)
    best = min(float(_only(net, unit)(X).detach().square().mean()) for unit in range(3))
    assert float(found.losses[0]) == pytest.approx(best)


def _only(net, unit):
    net = copy.deepcopy(net)
    for other in {0, 1, 2} - {unit}:
        net[2].weight.data[:, other] = 0.0
    return net
