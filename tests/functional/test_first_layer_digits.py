"""Norms through a Gram matrix keep the digits of the product that they stand for."""

import pytest
import torch
from torch.testing import assert_close

from inscape.functional.first_layer import FirstLayer


@pytest.mark.parametrize("twist", [0.0, 1e-6, 1e-4, 1e-2, 1.0])
def test_float32_keeps_its_digits_where_the_weights_cancel(twist):
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 300, generator=draw) + twist * torch.randn(64, 300, generator=draw)
    weight *= 1e4  # the size of the weights must not matter
    a = torch.randn(50, 1, 64, generator=draw)
    a -= a.mean(2, keepdim=True)
    exact = (a.double() @ weight.double()).norm(dim=(1, 2))
    ours = FirstLayer(weight=weight).norm(a).double()
    plain = (a @ weight).norm(dim=(1, 2)).double()
    rounding = float((plain - exact).abs().max())
    # Twice the rounding of the plain product, or the default tolerance of float32.
    assert_close(ours, exact, rtol=1.3e-6, atol=2 * rounding)


def test_float32_keeps_its_digits_at_the_edge_of_trust():
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 784, generator=draw) + torch.randn(512, 784, generator=draw) / 3
    a = torch.randn(4000, 1, 512, generator=draw)
    a -= a.mean(2, keepdim=True)
    exact = (a.double() @ weight.double()).norm(dim=(1, 2))
    ours = FirstLayer(weight=weight).norm(a)
    assert_close(ours.double(), exact, rtol=1.3e-6, atol=0)


@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1e-20, 1e-15, 1e-10])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5, 1e10])
def test_float32_keeps_its_digits_where_slopes_are_tiny(scale, size):
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(1, 300, generator=draw) + 1e-3 * torch.randn(64, 300, generator=draw)
    weight *= size
    a = torch.randn(50, 1, 64, generator=draw)
    a = scale * (a - a.mean(2, keepdim=True))
    a[7] = 0
    exact = (a.double() @ weight.double()).norm(dim=(1, 2))
    ours = FirstLayer(weight=weight).norm(a).double()
    plain = torch.linalg.vector_norm(a @ weight, dim=(1, 2)).double()
    rounding = float((plain - exact).abs().max())
    assert_close(ours, exact, rtol=1.3e-6, atol=2 * rounding)
    assert ours[7] == 0
