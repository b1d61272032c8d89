"""The networks of Goldblum et al.: parameter counts, forward passes by hand, real weights."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from inscape.models import (
    conv_net,
    densenet40,
    image_mlp,
    mobilenet_v2,
    resnet18,
    resnet20_fixup,
    wide_resnet16,
)


def count(model):
    return sum(p.numel() for p in model.parameters())


def wide_count(k):
    """Return the weights of WideResNet-16-k: convolutions, shortcuts, norms and linear layer."""
    w1, w2, w3 = 16 * k, 32 * k, 64 * k
    convolutions = 9 * (3 * 16 + 16 * w1 + 3 * w1**2 + w1 * w2 + 3 * w2**2 + w2 * w3 + 3 * w3**2)
    shortcuts = w1 * w2 + w2 * w3 + (16 * w1 if k > 1 else 0)
    norms = 2 * ((16 + w1) + 2 * w1 + (w1 + w2) + 2 * w2 + (w2 + w3) + 2 * w3 + w3)
    return convolutions + shortcuts + norms + 10 * w3 + 10


@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (resnet18, 11_173_962),  # published
        (lambda: resnet18(width=16), 701_466),
        (densenet40, 180_082),  # the released code's 528 features
        (lambda: densenet40(pool="global"), 176_122),  # 3 x 132 x 10 fewer
        (mobilenet_v2, 3_504_872),  # published
        (lambda: mobilenet_v2("cifar"), 2_296_922),
        # 27 x 16 + 9 (6 x 16^2 + 16 x 32 + 5 x 32^2 + 32 x 64 + 5 x 64^2) + 9 x 5 + 2 + 650
        (resnet20_fixup, 268_393),
        (lambda: wide_resnet16(width=1), wide_count(1)),
        (lambda: wide_resnet16(width=4), wide_count(4)),
        (lambda: wide_resnet16(width=8), 10_961_370),  # published
        (lambda: conv_net(width=2), 2 * 28 + 4 * 19 + 4 * 37 + 8 * 37 + 8 * 73 + 730),
        (lambda: image_mlp(5, 4), 3073 * 5 + 6 * 4 + 5 * 10),
    ],
)
def test_parameter_counts(make, weights):
    model = make()
    assert count(model) == weights
    assert not model.training


SMALL = {
    "resnet18": lambda seed: resnet18(width=2, seed=seed),
    "densenet40": lambda seed: densenet40(growth=2, seed=seed),
    "mobilenet_v2": lambda seed: mobilenet_v2("cifar", seed=seed),
    "resnet20_fixup": lambda seed: resnet20_fixup(width=2, seed=seed),
    "wide_resnet16": lambda seed: wide_resnet16(seed=seed),
    "conv_net": lambda seed: conv_net(width=2, seed=seed),
    "image_mlp": lambda seed: image_mlp(4, 3, seed=seed),
}


@pytest.mark.parametrize("name", SMALL)
def test_one_seed_is_one_network_of_ten_outputs_and_no_other_random_state(name):
    state = torch.get_rng_state()
    one, two, other = SMALL[name](3), SMALL[name](3), SMALL[name](4)
    assert torch.equal(state, torch.get_rng_state())
    pairs = list(zip(one.parameters(), two.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert one(x).shape == (2, 10)
    assert bool(one(x).isfinite().all())


def noisy(model):
    """Return the model with all weights and statistics drawn anew, in double precision."""
    draw = torch.Generator().manual_seed(1)
    for name, tensor in model.double().state_dict().items():
        if tensor.is_floating_point():
            tensor.normal_(generator=draw).mul_(0.3)
            if name.endswith("running_var"):
                tensor.abs_().add_(0.5)
    return model


class Weights:
    """The tensors of a network in their order, and the operations that use them up."""

    def __init__(self, model):
        self.left = [t for t in model.state_dict().values() if t.is_floating_point()]

    def take(self, number=1):
        tensors = [self.left.pop(0) for _ in range(number)]
        return tensors if number > 1 else tensors[0]

    def norm(self, x):
        gain, shift, mean, var = (t[:, None, None] for t in self.take(4))
        return (x - mean) / (var + 1e-5).sqrt() * gain + shift

    def conv(self, x, **options):
        weight = self.take()
        return functional.conv2d(x, weight, padding=weight.shape[-1] // 2, **options)


X = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_resnet18_by_hand():
    model = noisy(resnet18(width=2))
    w = Weights(model)
    x = torch.relu(w.norm(w.conv(X)))
    for stride in (1, 1, 2, 1, 2, 1, 2, 1):
        inner = torch.relu(w.norm(w.conv(x, stride=stride)))
        inner = w.norm(w.conv(inner))
        x = torch.relu(inner + (w.norm(w.conv(x, stride=2)) if stride == 2 else x))
    assert_close(model(X), functional.linear(x.mean((2, 3)), *w.take(2)))


def test_wide_resnet_by_hand():
    model = noisy(wide_resnet16(width=2))
    w = Weights(model)
    x = w.conv(X)
    for stride, changes in ((1, True), (1, False), (2, True), (1, False), (2, True), (1, False)):
        inner = w.conv(torch.relu(w.norm(x)), stride=stride)
        inner = w.conv(torch.relu(w.norm(inner)))
        x = inner + (w.conv(x, stride=stride) if changes else x)
    x = torch.relu(w.norm(x)).mean((2, 3))
    assert_close(model(X), functional.linear(x, *w.take(2)))


def test_the_released_wide_resnet_has_biases_and_its_stride_in_the_second_convolution():
    model = wide_resnet16(width=2, released=True)
    block = model[3]
    assert [block.body[k].stride for k in (2, 5)] == [(1, 1), (2, 2)]
    assert all(m.bias is not None for m in model.modules() if isinstance(m, nn.Conv2d))


@pytest.mark.parametrize("pool", ["4x4", "global"])
def test_densenet_by_hand(pool):
    model = noisy(densenet40(growth=2, pool=pool))
    w = Weights(model)
    x = w.conv(X)
    for block in range(3):
        for _ in range(6):
            inner = w.conv(torch.relu(w.norm(x)))
            x = torch.cat([w.conv(torch.relu(w.norm(inner))), x], 1)
        x = torch.relu(w.norm(x))
        if block < 2:
            x = functional.avg_pool2d(w.conv(x), 2)
    x = functional.avg_pool2d(x, 4 if pool == "4x4" else 8).flatten(1)
    assert_close(model(X), functional.linear(x, *w.take(2)))


def mobile_by_hand(model, x, *, cifar):
    w, act = Weights(model), torch.relu if cifar else functional.relu6
    stages = [(1, 16, 1, 1), (6, 24, 2, 1 if cifar else 2), (6, 32, 3, 2), (6, 64, 4, 2)]
    stages += [(6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    x = act(w.norm(w.conv(x, stride=1 if cifar else 2)))
    for widen, after, blocks, first in stages:
        for k in range(blocks):
            stride, before = first if k == 0 else 1, x.shape[1]
            inner = act(w.norm(w.conv(x))) if widen > 1 or cifar else x
            inner = act(w.norm(w.conv(inner, stride=stride, groups=inner.shape[1])))
            inner = w.norm(w.conv(inner))
            if stride == 1 and before == after:
                x = inner + x
            elif stride == 1 and cifar:
                x = inner + w.norm(w.conv(x))
            else:
                x = inner
    x = act(w.norm(w.conv(x))).mean((2, 3))
    return functional.linear(x, *w.take(2))


def test_mobilenet_for_cifar_by_hand():
    model = noisy(mobilenet_v2("cifar"))
    assert_close(model(X[:1]), mobile_by_hand(model, X[:1], cifar=True))


@pytest.mark.data
def test_a_narrow_mobilenet_has_the_parameters_that_its_channels_ask_for():
    # Channels 8, 8, 8, 8, 16, 24, 40, 80 in place of 32, 16, 24, 32, 64, 96, 160, 320.
    count, before = 3 * 8 * 9 + 16, 8
    stages = [(1, 8, 1), (6, 8, 2), (6, 8, 3), (6, 16, 4), (6, 24, 3), (6, 40, 3), (6, 80, 1)]
    for stage, (widen, after, blocks) in enumerate(stages):
        for k in range(blocks):
            inner = before * widen
            count += before * inner + 2 * inner + 9 * inner + 2 * inner + inner * after + 2 * after
            if before != after and k == 0 and stage in (4, 6):  # the stages of stride 1
                count += before * after + 2 * after
            before = after
    count += 80 * 1280 + 2 * 1280 + 1280 * 10 + 10
    narrow = mobilenet_v2("cifar", width=0.25)
    assert sum(p.numel() for p in narrow.parameters()) == count
    assert narrow(torch.ones(1, 3, 8, 8)).shape == (1, 10)


def test_mobilenet_takes_the_usual_weights_and_computes_what_they_say(data_dir):
    path = Path(data_dir).parent / "weights" / "mobilenet_v2-b0353104.pth"
    if not path.exists():
        pytest.skip(f"real weights not found: {path}")
    model = mobilenet_v2()
    model.load_state_dict(torch.load(path))
    image = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        # single precision through 53 layers
        assert_close(model(image), mobile_by_hand(model, image, cifar=False), atol=1e-3, rtol=1e-3)


def test_fixup_by_hand_and_at_its_start():
    start = resnet20_fixup(width=2)
    assert torch.equal(start(X.float()), torch.zeros(2, 10))  # the linear layer is zero
    assert all(block.gain.item() == 1.0 for block in start.blocks)
    assert all(not block.second.weight.any() for block in start.blocks)
    wide = resnet20_fixup(width=64).blocks[4].first.weight
    assert wide.std().item() == pytest.approx((2 / (9 * 128)) ** 0.5 / 3, rel=0.02)
    model = noisy(start)
    x = torch.relu(functional.conv2d(X, model.first.weight, padding=1) + model.biases[0])
    for block in model.blocks:
        b = list(block.biases)
        stride = 2 if block.added else 1
        inner = functional.conv2d(x + b[0], block.first.weight, padding=1, stride=stride) + b[1]
        inner = functional.conv2d(torch.relu(inner) + b[2], block.second.weight, padding=1)
        if stride == 2:
            half = functional.avg_pool2d(x + b[0], 1, 2)
            x = torch.cat([half, torch.zeros_like(half)], 1)
        x = torch.relu(inner * block.gain + b[3] + x)
    expected = functional.linear(x.mean((2, 3)) + model.biases[1], *model.head.parameters())
    assert_close(model(X), expected)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: resnet18(width=0), "width must be at least 1"),
        (lambda: mobilenet_v2("cifar10"), "form must be one of 'imagenet', 'cifar'"),
        (lambda: densenet40(pool="2x2"), "pool must be one of '4x4', 'global'"),
        (lambda: conv_net(side=8), "side must be at least 9"),
        (lambda: image_mlp(0), "hidden must be at least 1"),
    ],
)
def test_what_cannot_be_built_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()
