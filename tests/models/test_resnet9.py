"""ResNet9 against one written out by hand, and by its published number of parameters."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from inscape.models import resnet9
from inscape.models.resnet9 import Residual


def by_hand(model: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
    """The whole network, from its parameters in their order, with functions alone."""
    left = list(model.parameters())

    def block(x: torch.Tensor) -> torch.Tensor:
        weight, gain, shift = (left.pop(0) for _ in range(3))
        x = functional.conv2d(x, weight, padding=1) / (1 + 1e-5) ** 0.5  # statistics 0 and 1
        return torch.tanh(x * gain[:, None, None] + shift[:, None, None])

    def pool(x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(x, 2)

    x = pool(block(block(x)))
    x = x + block(block(x))
    x = pool(block(pool(block(x))))
    x = x + block(block(x))
    return functional.linear(x.amax((2, 3)), *left)


def test_is_what_it_should_be():
    model = resnet9(2, 3, width=2, activation="tanh", seed=3).double()
    rng = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.normal_(generator=rng)
    x = torch.randn(3, 2, 16, 8, generator=rng, dtype=torch.float64)
    torch.testing.assert_close(model(x), by_hand(model, x))


@pytest.mark.parametrize(
    ("norm", "norms", "weights"),
    [("batch", 8, 6_573_130), ("none", 0, 6_573_130 - 4480 + 2240)],  # biases for gain and shift
)
def test_layers_and_weights(norm: str, norms: int, weights: int):
    model = resnet9(norm=norm)
    kinds = [type(part) for part in model.modules()]
    assert (kinds.count(nn.Conv2d), kinds.count(nn.Linear)) == (8, 1)
    assert (kinds.count(nn.BatchNorm2d), kinds.count(Residual)) == (norms, 2)
    assert sum(p.numel() for p in model.parameters()) == weights
    assert not model.training


def test_seed_decides_and_the_global_state_is_left_alone():
    before = torch.get_rng_state()
    first, again, other = (resnet9(1, 4, width=1, norm="none", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    x = torch.ones(2, 1, 32, 32)
    assert first(x).shape == (2, 4)
    assert torch.equal(first(x), again(x))
    assert not torch.equal(first(x), other(x))


def test_refusals():
    with pytest.raises(ValueError, match=r"width must be at least 1, found 0"):
        resnet9(width=0)
    with pytest.raises(ValueError, match="norm"):
        resnet9(norm="layer")
    with pytest.raises(ValueError, match="activation"):
        resnet9(activation="sine")
