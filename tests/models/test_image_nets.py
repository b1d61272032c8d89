"""The networks for images of section 6.1, by what the text says of them."""

import pytest
import torch
from torch import nn

from inscape.models.image_nets import IMAGE_NETS, image_net


@pytest.mark.parametrize(
    ("name", "order", "weights"),
    [
        ("linear", [], 10 * 3072 + 10),
        ("dense", ["ReLU"], 128 * 3072 + 128 + 10 * 128 + 10),
        ("simple", ["MaxPool2d", "ReLU"] * 2, 896 + 9248 + 10 * 2048 + 10),
        ("complex", ["ReLU", "MaxPool2d"] * 3, 896 + 2 * 9248 + 10 * 512 + 10),
    ],
)
def test_layers_and_weights(name: str, order: list[str], weights: int):
    model = image_net(name)
    found = [type(part).__name__ for part in model if isinstance(part, nn.ReLU | nn.MaxPool2d)]
    assert found == order
    assert sum(p.numel() for p in model.parameters()) == weights
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert not model.training


def test_seed_decides_and_the_global_state_is_left_alone():
    before = torch.get_rng_state()
    first, again, other = (image_net("simple", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", list(IMAGE_NETS))
def test_other_sizes(name: str):
    model = image_net(name, channels=1, side=8, classes=3)
    assert model(torch.zeros(5, 1, 8, 8)).shape == (5, 3)


def test_refusals():
    with pytest.raises(ValueError, match=r"side must be a multiple of 8 for 'complex', whose 3"):
        image_net("complex", side=28)
    with pytest.raises(ValueError, match="name"):
        image_net("resnet")
