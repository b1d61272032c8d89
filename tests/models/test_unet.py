"""The U-Net against one written out by hand, and by what its scales must do."""

import pytest
import torch
from torch import nn

from inscape.models import unet
from inscape.models.unet import UNet


def by_hand(model: UNet, x: torch.Tensor) -> torch.Tensor:
    """Two scales with one convolution each, written out with functions."""

    def block(part: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
        return part[1](nn.functional.conv2d(x, part[0].weight, padding=1)).relu()

    top = block(model.down[0], x)
    bottom = block(model.down[1], nn.functional.max_pool2d(top, 2))
    lift = model.lift[0]
    high = nn.functional.conv_transpose2d(bottom, lift.weight, lift.bias, stride=2)
    joined = block(model.up[0], torch.cat([top, high], 1))
    return nn.functional.conv2d(joined, model.last.weight, model.last.bias)


def test_two_scales_are_what_they_should_be():
    model = unet(2, 3, channels=(4, 5), convolutions=1, seed=3).double()
    x = torch.randn(3, 2, 8, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(model(x), by_hand(model, x))


def test_six_scales_see_the_whole_image():
    """The value of one corner depends on the opposite one, which three scales cannot see."""
    for channels, sees in (((2,) * 6, True), ((2,) * 3, False)):
        model = unet(channels=channels, seed=1).double()
        for parameter in model.parameters():
            parameter.data.abs_()  # so that no unit is off
        rng = torch.Generator().manual_seed(0)
        x = torch.rand(1, 1, 64, 64, generator=rng, dtype=torch.float64).requires_grad_()
        (slope,) = torch.autograd.grad(model(x)[0, 0, 0, 0], x)
        assert bool(slope[0, 0, 32:, 32:].abs().sum() > 0) == sees


def test_sizes_and_seeds():
    before = torch.get_rng_state()
    first, again, other = (unet(channels=(2, 3, 4), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.last.weight, again.last.weight)
    assert not torch.equal(first.last.weight, other.last.weight)
    assert not first.training
    assert first(torch.zeros(2, 1, 8, 12)).shape == (2, 1, 8, 12)
    # down 1-2-2, 2-3-3, 3-4-4; lifts 4-3, 3-2; up 6-3-3, 4-2-2; norms; last
    convolutions = 9 * (2 + 4 + 6 + 9 + 12 + 16 + 18 + 9 + 8 + 4)
    others = (4 * 4 * 3 + 3) + (4 * 3 * 2 + 2) + 2 * 2 * (2 + 3 + 4 + 3 + 2) + 3
    assert sum(p.numel() for p in first.parameters()) == convolutions + others


def test_errors_say_what_to_do():
    text = r"3 scales needs images whose sides are multiples of 4, found 8 x 10: pad or scale"
    with pytest.raises(ValueError, match=text):
        unet(channels=(2, 2, 2))(torch.zeros(1, 1, 8, 10))
    with pytest.raises(ValueError, match=r"channels must be at least 1, found 0"):
        unet(channels=())
    with pytest.raises(ValueError, match=r"convolutions must be at least 1, found 0"):
        unet(convolutions=0)
