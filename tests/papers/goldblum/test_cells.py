"""The parts that cells are made of: training, beginnings, kernels' images and quantities."""

import numpy as np
import pytest
import torch
from torch import nn

from inscape.errors import DataError
from inscape.lab.published import printed
from inscape.lab.records import Record, Records
from inscape.models import mlp
from inscape.papers.goldblum import _data, _starts, ranks, regularisers, table_1, tangent_kernels
from inscape.papers.goldblum._training import (
    Attack,
    Bfloat16WhileTraining,
    Recipe,
    accuracy,
    attacked,
    batches,
    cropped_and_flipped,
    mean_loss,
    norm_of,
    train,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def record(settings, values):
    nothing = {"claims": {}, "provenance": {}, "data": "", "key": ""}
    return Record(experiment="", scale="laptop", settings=settings, values=values, **nothing)


def test_images_have_three_channels_and_are_normalised_by_channel():
    given = _data.images("digits:n=50", side=4)
    assert given.x.shape == (50, 3, 4, 4)
    spread, mean = torch.std_mean(given.x, (0, 2, 3))
    torch.testing.assert_close(mean, torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(spread, torch.ones(3))
    plain = _data.images("digits:n=50", normalised=False)
    assert plain.x.shape == (50, 3, 32, 32)
    assert 0 <= float(plain.x.min()) < float(plain.x.max()) <= 1
    with pytest.raises(DataError, match="needs files that are not here"):
        _data.raw("digits:n=99999")


def test_crops_and_flips_are_windows_of_the_padded_image():
    x = torch.rand(40, 2, 6, 5, generator=rng())
    moved = cropped_and_flipped(x, rng(1))
    wide = nn.functional.pad(x, (4, 4, 4, 4))
    mirrored = 0
    for image, own in zip(wide, moved, strict=True):
        windows = image.unfold(1, 6, 1).unfold(2, 5, 1).permute(1, 2, 0, 3, 4).flatten(0, 1)
        plain = bool((windows == own).flatten(1).all(1).any())
        turned = bool((windows.flip(-1) == own).flatten(1).all(1).any())
        assert plain or turned
        mirrored += not plain
    assert 5 < mirrored < 35


def test_batches_are_whole_and_of_different_rows():
    rows = list(batches(10, 4, rng()))
    assert [len(part) for part in rows] == [4, 4]
    assert len(set(torch.cat(rows).tolist())) == 8
    assert [len(part) for part in batches(3, 4, rng())] == [3]


def test_an_attack_stays_in_its_ball_and_raises_the_loss():
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).eval()
    x, y = torch.rand(8, 3, 2, 2, generator=rng()), torch.arange(8) % 3
    attack = Attack(budget=0.1, step=0.03)
    moved = attacked(net, x, y, attack, rng())
    assert float((moved - x).abs().max()) <= 0.1 + 1e-6
    assert 0 <= float(moved.min()) <= float(moved.max()) <= 1
    assert mean_loss(net, moved, y) > mean_loss(net, x, y)
    assert all(p.grad is None for p in net.parameters())


def test_training_is_that_of_torch_with_drops_of_the_rate():
    x, y = torch.randn(8, 3, generator=rng()), torch.arange(8) % 3
    nets = [mlp(3, 5, 3, seed=0) for _ in range(2)]
    recipe = Recipe(
        epochs=4, lr=0.1, drops=(0.5, 0.75), factor=0.5, momentum=0.9, weight_decay=0.01, batch=8
    )
    seen = []
    train(nets[0], x, y, recipe, seed=0, after_epoch=seen.append)
    optimizer = torch.optim.SGD(nets[1].parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    for rate in (0.1, 0.1, 0.05, 0.025):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        nn.functional.cross_entropy(nets[1](x), y).backward()
        optimizer.step()
    assert seen == [1, 2, 3, 4]
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert 0 <= accuracy(nets[0], x, y) <= 100


def test_bfloat16_is_for_training_alone():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)).eval()
    x = torch.rand(5, 3, 4, 4, generator=rng())
    exact, wrapped = net(x).detach(), Bfloat16WhileTraining(net)
    rounded = wrapped.train()(x)
    rounded.square().mean().backward()
    assert {p.grad.dtype for p in net.parameters()} == {rounded.dtype} == {torch.float32}
    change = (rounded.detach() - exact).norm() / exact.norm()
    assert 1e-5 < float(change) < 2e-2
    torch.testing.assert_close(wrapped.eval()(x).detach(), exact)


def test_beginnings_change_biases_alone():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2, 3))
    weights = [p.clone() for n, p in net.named_parameters() if n.endswith("weight")]
    before = [p.clone() for p in _starts.biases(net)]
    assert len(before) == 3
    _starts.begin(net, "bias+20", seed=0)
    for old, new in zip(before, _starts.biases(net), strict=True):
        torch.testing.assert_close(new.detach(), old + 20)
    _starts.begin(net, "bias-50, momentum 0.9", seed=0)
    drawn = torch.cat([p.detach() for p in _starts.biases(net)])
    assert 20 < float(drawn.abs().max()) <= 50
    kept = [p for n, p in net.named_parameters() if n.endswith("weight")]
    assert all(torch.equal(old, new) for old, new in zip(weights, kept, strict=True))
    _starts.begin(net, "default", seed=0)
    assert norm_of(net) > 1
    _starts.begin(net, "zero", seed=0)
    assert norm_of(net) == 0


def test_the_least_pre_activation_is_that_of_hidden_layers():
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1))
    for layer, bias in ((net[0], 2.0), (net[2], -9.0)):
        nn.init.ones_(layer.weight)
        nn.init.constant_(layer.bias, bias)
    assert table_1._least_pre_activation(net, torch.tensor([[-1.5], [1.0]])) == 0.5


def test_norm_bias_is_scaled_with_the_norm_at_the_start():
    whole = norm_of(regularisers.network("fixup", 16, 3)) ** 2
    assert regularisers.squared_target("fixup", whole / 2, 3) == pytest.approx(500)
    assert regularisers.squared_target("mlp", 7.0, 0) == 14


def test_kernel_images_of_the_code_are_of_the_lowest_classes():
    given = _data.images("digits:n=200")
    shown = tangent_kernels.kernel_images(given, "sorted", 0)
    assert len(shown) == 25
    lowest = torch.sort(given.y[:128]).values[:25]
    rows = [int((given.x[:128] == image).flatten(1).all(1).nonzero()[0, 0]) for image in shown]
    assert given.y[rows].tolist() == lowest.tolist()
    random = [tangent_kernels.kernel_images(given, "random", seed) for seed in (0, 0, 1)]
    assert torch.equal(random[0], random[1])
    assert not torch.equal(random[0], random[2])


def curve(correlation, measured=(0, 1, 10)):
    return {"epochs measured": list(measured), "random": {"correlation": list(correlation)}}


def test_early_is_the_share_of_the_fall_in_a_tenth_of_the_epochs():
    early = tangent_kernels.early
    assert early(record({}, curve([1.0, 0.8, 0.6]))) == pytest.approx(0.5)
    assert early(record({}, curve([1.0, 1.0, 1.0]))) is None
    assert early(record({}, curve([1.0, 0.8, 0.6], measured=(0, 2, 10)))) is None


def test_a_drop_is_of_the_widest_network_against_the_best():
    heights = {1: 0.2, 2: 0.8, 3: 0.5}
    records = Records(
        record({"net": "conv", "width": width, "seed": seed}, curve([1, 1, height + 0.01 * seed]))
        for width, height in heights.items()
        for seed in range(3)
    )
    found = tangent_kernels.drop(records, "conv")
    assert found is not None
    assert found.value == pytest.approx(-0.3)
    assert tangent_kernels.drop(records.where(width=1), "conv") is None


def test_ranks_are_of_the_convolutions_in_blocks():
    from inscape.models import resnet18

    assert len(ranks.block_convolutions(resnet18(width=2))) == 16
    rows = {row["method"].replace(" ", "-").lower() for row in printed("goldblum", "table-5")}
    assert rows == set(ranks.ROWS.values())


def test_ratios_of_ranks_pair_seeds():
    def one(training, seed, rank):
        values = {"plain": {"ranks": [rank, rank]}}
        return record({"training": training, "seed": seed}, values)

    rows = [one("natural", 0, 2.0), one("natural", 1, 4.0)]
    rows += [one("adversarial", 0, 3.0), one("adversarial", 1, 4.0)]
    found = ranks.over_natural(Records(rows))
    assert found is not None
    assert found.value == pytest.approx(np.mean([1.5, 1.0]))
    assert ranks.over_natural(Records(rows[:2])) is None
