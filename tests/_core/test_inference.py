"""Instruments in inference mode, where torch refuses gradients, give what they give outside."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core.inference import outside_inference
from inscape.regions import line_regions, local_maps, region_at, tropical
from inscape.smoothness import gradient_path_length, path_length

CALLS = {
    "local_maps": lambda f, x: local_maps(f, x).jacobians,
    "line_regions": lambda f, x: line_regions(f, x, to=1 + x, maps=True).maps,
    "region_at": lambda f, x: region_at(f, x).distances,
    "tropical": lambda f, x: tropical(f, x).plus_slopes,
    "path_length": lambda f, x: path_length(f, x, pairs=5, exact=True).lengths,
    "gradient_path_length": lambda f, x: gradient_path_length(f, x, pairs=5, knots=5).lengths,
    "gradient_path_length, exact": lambda f, x: (
        gradient_path_length(f, x, pairs=5, exact=True).lengths
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_inference_mode_changes_nothing(call):
    expected = call(dense(2, 6, 4, 2), points(8, 2))
    with torch.inference_mode():
        found = call(dense(2, 6, 4, 2), points(8, 2))  # weights and data of that mode too
        assert torch.is_inference_mode_enabled()
    assert not found.is_inference()
    assert not found.requires_grad
    assert_close(found, expected)
    with torch.inference_mode():
        x = points(8, 2)
    assert_close(call(dense(2, 6, 4, 2), x), expected)


def test_only_what_autograd_would_refuse_is_copied():
    given = outside_inference(lambda *args, **kwargs: (*args, *kwargs.values()))
    own = (nn.Linear(2, 2), torch.zeros(3), 5)
    assert all(a is b for a, b in zip(given(*own[:2], n=own[2]), own, strict=True))
    with torch.inference_mode():
        other = (nn.Linear(2, 2), torch.zeros(3))
    module, x = given(other[0], x=other[1])
    assert not x.is_inference()
    assert not module.weight.is_inference()
    assert torch.equal(module.weight, other[0].weight)


def test_gradients_stay_as_the_caller_has_them():
    mode = outside_inference(lambda: (torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    assert mode() == (True, False)
    with torch.no_grad():
        assert mode() == (False, False)
    with torch.inference_mode():
        assert mode() == (False, False)
