"""Kernel drift against kernels written out at each step, scalings and a map that cannot drift."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.kernels import kernel_drift, tangent_features
from inscape.training import fit

X = points(10, 2)


def trained(*widths, epochs=20, lr=0.05):
    model = dense(*widths)
    y = points(10, widths[-1], seed=8)
    run = fit(model, X, y, lr=lr, epochs=epochs, record=5, progress=False)
    return model, run.trajectory


def test_each_number_is_that_of_kernels_written_out():
    model, way = trained(2, 6, 2)
    found = kernel_drift(model, X, trajectory=way)
    assert found.steps.tolist() == [0, 5, 10, 15, 20]
    kernels = []
    body = copy.deepcopy(model)
    for i, step in enumerate(found.steps.tolist()):
        body.load_state_dict(way.at(step))
        features = tangent_features(body, X)
        kernels.append((features @ features.T).numpy())
        length = torch.cat([p.detach().flatten() for p in body.parameters()]).norm()
        assert_close(found.parameter_norms[i], length)
    for i, kernel in enumerate(kernels):
        assert float(found.norms[i]) == pytest.approx(np.linalg.norm(kernel))
        for k, end in enumerate((kernels[0], kernels[-1])):
            change = np.linalg.norm(kernel - end) / np.linalg.norm(end)
            assert float(found.change[i, k]) == pytest.approx(change, abs=1e-14)
            expected = np.corrcoef(kernel.ravel(), end.ravel())[0, 1]
            assert float(found.correlation[i, k]) == pytest.approx(expected)
            cosine = (kernel * end).sum() / np.linalg.norm(kernel) / np.linalg.norm(end)
            assert float(found.cosine[i, k]) == pytest.approx(cosine)
            norms = np.linalg.norm(kernel), np.linalg.norm(end)
            expected = abs(norms[0] - norms[1]) / norms[1]
            assert float(found.norm_change[i, k]) == pytest.approx(expected, abs=1e-14)
            if change > 1e-9:
                (factor,), (left,), *_ = np.linalg.lstsq(end.reshape(-1, 1), kernel.ravel())
                assert float(found.factors[i, k]) == pytest.approx(factor)
                share = 1 - left / np.linalg.norm(kernel - end) ** 2
                assert float(found.rescaled[i, k]) == pytest.approx(share, abs=1e-9)
    assert found.summary().value == float(found.change[-1, 0]) > 0.01


def test_a_linear_map_does_not_drift():
    model, way = trained(2, 3)
    found = kernel_drift(model, X, trajectory=way)
    assert_close(found.change, torch.zeros(5, 2).double())
    assert_close(found.correlation, torch.ones(5, 2).double())


def test_wide_networks_drift_less():
    changes = []
    for width in (8, 512):
        model = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1)).double()
        draw = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=draw, dtype=p.dtype))
            model[2].weight /= width**0.5
        y = points(10, 1, seed=8)
        way = fit(model, X, y, lr=0.5 / width, epochs=50, record=50, progress=False).trajectory
        changes.append(kernel_drift(model, X, trajectory=way, normalised=True).summary().value)
    assert changes[1] < changes[0] / 3


def test_a_rescaled_kernel_keeps_its_correlation_and_cosine():
    model, way = trained(2, 6, 1, epochs=5)
    # biases at 0 and weights of the last layer doubled: gradients of ReLU chains scale
    states = {name: t.clone() for name, t in way.states.items()}
    for name, rows in states.items():
        rows[1] = 0 if "bias" in name else rows[0] * 2
        rows[0] *= "bias" not in name
    for p in (model[0].bias, model[2].bias):
        p.requires_grad_(False)
    doubled = copy.copy(way)
    object.__setattr__(doubled, "states", states)
    found = kernel_drift(model, X, trajectory=doubled)
    assert_close(found.change[1, 0], torch.tensor(3.0).double())
    assert_close(found.cosine[1, 0], torch.tensor(1.0).double())
    assert_close(found.correlation[1, 0], torch.tensor(1.0).double())
    assert_close(found.norm_change[1, 0], torch.tensor(3.0).double())
    assert_close(found.factors[1, 0], torch.tensor(4.0).double())
    assert_close(found.rescaled[1, 0], torch.tensor(1.0).double())
    one = kernel_drift(model, X, trajectory=doubled, normalised=True)
    assert_close(one.change[1, 0], torch.tensor(0.0).double())


def test_all_pairs_of_outputs_and_chosen_steps():
    model, way = trained(2, 6, 2)
    full = kernel_drift(model, X, trajectory=way, outputs="full", steps=[20, 5])
    assert full.steps.tolist() == [5, 20]
    body = copy.deepcopy(model)
    body.load_state_dict(way.at(5))
    both = torch.cat([tangent_features(body, X, output=k) for k in (0, 1)])
    assert_close(full.norms[0], (both @ both.T).norm())
    assert kernel_drift(model, X, trajectory=way, steps=2).steps.tolist() == [0, 20]


def test_one_point_has_no_correlation():
    model, way = trained(2, 6, 1)
    found = kernel_drift(model, X[:1], trajectory=way)
    assert found.correlation.isnan().all()
    assert found.cosine.isfinite().all()


def test_refusals_and_what_does_not_apply():
    model, way = trained(2, 6, 1)
    assert "it needs a recorded training" in kernel_drift(model, X).status
    with pytest.raises(ValueError, match=r"must hold at least one number, found none: pass"):
        kernel_drift(model, X, trajectory=way, steps=[])
    with pytest.raises(ValueError, match=r"step 3 is no checkpoint, the nearest before it is 0"):
        kernel_drift(model, X, trajectory=way, steps=[3])
    with pytest.raises(ValueError, match=r"steps must be at least 2, found 1: raise steps"):
        kernel_drift(model, X, trajectory=way, steps=1)
    with pytest.raises(
        ValueError, match=r"must be that of the model, found weights of other names"
    ):
        kernel_drift(dense(2, 7, 1), X, trajectory=way)
    frozen = model.requires_grad_(False)
    found = kernel_drift(frozen, X, trajectory=way)
    assert isinstance(found, NotApplicable)
    assert found.status == "not applicable: the model has no trainable parameters"
