"""Networks of section 6.4 and chapter 7: kept weights, local maps, and what compares them."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.errors import DataError
from inscape.lab.records import Record, Records
from inscape.models.image_nets import image_net
from inscape.papers.sattelberg import (
    _clusters,
    _network_claims,
    _networks,
    _pairs,
    _pretrained,
    _switches,
    _transfer,
    figure_7_6,
    network_directions,
)
from inscape.papers.sattelberg._blocks import (
    CONV,
    CURVED,
    DENSE,
    PRETRAINED,
    SGD,
    Block,
    above_all,
    by,
    contrast,
    mean,
    separation,
)
from inscape.papers.sattelberg._maps import Maps
from inscape.similarity import (
    disagreement,
    map_alignment,
    map_distance,
    map_transfer,
    output_cross_entropy,
)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n, seed=0, side=8):
    return torch.rand(n, 3, side, side, generator=rng(seed))


def net(name, seed=0):
    return image_net(name, side=8, classes=3, seed=seed)


def three():
    return [net("linear"), net("dense", 1), net("simple", 2)]


def record(names, **matrices):
    nothing = {"claims": {}, "provenance": {}, "data": "", "key": "", "settings": {}}
    values = {"names": names, **{of: np.asarray(m).tolist() for of, m in matrices.items()}}
    return Record(experiment="", scale="laptop", values=values, **nothing)


def test_sets_have_the_networks_of_the_table_and_other_copies():
    names = [member.name for member in _networks.members()]
    assert names[:4] == ["linear SGD", "dense 1 SGD", "dense 2 SGD", "simple 1 SGD"]
    assert (len(names), len(set(names))) == (14, 14)
    assert [m.name for m in _networks.members(64)][14:] == ["mobilenet SGD", "mobilenet AdamW"]
    copies = [(m.net, m.optimizer, m.copy(s)) for s in (1, 2, 3) for m in _networks.members()]
    assert len(set(copies)) == len(copies)


def test_weights_are_kept_and_damaged_ones_are_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_networks, "folder", lambda: tmp_path / "networks")
    monkeypatch.setattr(_networks, "NOT_KEPT", 0)
    about = ("dense", "adamw", "digits:n=32", 1, 2)
    first = _networks.kept(*about)
    (path,) = (tmp_path / "networks").iterdir()
    monkeypatch.setattr("inscape.papers.sattelberg._images.trained", None)  # it is only read
    again = _networks.kept(*about)
    assert_close(list(again.parameters()), list(first.parameters()), rtol=0, atol=0)
    path.write_bytes(b"half a file")
    with pytest.raises(TypeError, match="not callable"):  # it would be trained
        _networks.kept(*about)


def test_maps_give_the_outputs_and_grey_ones_too():
    grey = images(4)[:, :1].expand(-1, 3, -1, -1)
    for model in three():
        for each in (Maps(model, grey), Maps(model, grey, grey=True)):
            for output in range(3):
                values = (each.of(output) * each.inputs()).sum(1)
                assert_close(values, each.outputs[:, output])
    whole, summed = Maps(model, grey).slopes(1), Maps(model, grey, grey=True).slopes(1)
    assert_close(whole.reshape(4, 3, 64).sum(1), summed)


@pytest.mark.parametrize("name", ["simple", "complex"])
@pytest.mark.parametrize("grey", [False, True])
def test_switches_give_the_outputs_and_gradients_of_pytorch(name, grey):
    model, x = net(name, 3).double(), images(2 * _switches.ROWS + 1).double()
    if grey:
        x = x[:, :1].expand(-1, 3, -1, -1)
    at = x.clone().requires_grad_()
    expected = model(at)
    switched = _switches.Switched(model, grey=grey)
    outputs, switches = switched.forward(x)
    assert_close(outputs, expected.detach())
    vectors = torch.randn(expected.shape, generator=rng(4), dtype=torch.float64)
    (gradient,) = torch.autograd.grad(expected, at, vectors)
    gradient = gradient.sum(1, keepdim=True) if grey else gradient
    assert_close(switched.backward(vectors, switches), gradient)
    own = x[:, : gradient.shape[1]].clone().requires_grad_()
    values = _switches.as_function(model, grey=grey)(own)
    assert_close(torch.autograd.grad(values, own, vectors)[0], gradient)


def test_dead_units_and_ties_have_pytorchs_gradient():
    """Where all pixels of a pool are equal, or none is positive."""
    for name in ("simple", "complex"):
        model = net(name, 5).double()
        for x in (torch.zeros(2, 3, 8, 8), torch.full((2, 3, 8, 8), -3.0)):
            at = x.double().requires_grad_()
            (gradient,) = torch.autograd.grad(model(at)[:, 1].sum(), at)
            assert_close(Maps(model, x).slopes(1), gradient.flatten(1))


def test_all_pairs_at_once_are_what_the_instruments_give():
    x = images(12, 1)
    found = _pairs.measured([Maps(model, x) for model in three()])
    f, g = (model.double() for model in three()[1:])
    inputs = x.double()
    for of, scale in (("distance", "signed"), ("absolute distance", "absolute")):
        theirs = map_distance(f, inputs, other=g, scale=scale).summary().value
        assert found[of][1][2] == pytest.approx(theirs)
    alignment = map_alignment(f, inputs, other=g)
    for of in ("biased", "debiased", "uncentred"):
        assert found[of][1][2] == pytest.approx(float(getattr(alignment, of).mean()))
        assert found[of][2][1] == pytest.approx(found[of][1][2])
    assert found["biased"][1][1] == pytest.approx(1)
    entropy = output_cross_entropy(f, inputs, other=g).summary().value
    assert found["cross-entropy"][1][2] == pytest.approx(entropy)
    differ = disagreement(f, inputs, other=g).summary().value
    assert found["disagreement"][1][2] == pytest.approx(differ)


def printed_alignment(first, second):
    """Eq. 7.7 as it stands."""
    x, y = (maps - maps.mean(0) for maps in (first, second))
    return float((y.T @ x).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm()))


def test_the_alignment_of_linear_networks_is_rounding():
    x = images(40, 2)
    model, other = net("linear", 3), net("dense", 4)
    maps = Maps(model, x).of(0)
    exact = maps[:1].expand_as(maps)
    assert (maps - exact).abs().max() < 1e-13
    found = _pairs.aligned([maps, Maps(other, x).of(0)])
    assert found[:2, 0].isnan().all()  # S31
    assert found[2].isfinite().all()
    # The same network with its pixels in another order has other rounding, and another number.
    numbers = []
    for seed in range(6):
        order = torch.randperm(maps.shape[1] - 1, generator=rng(seed))
        weight, pixels = maps[0, :-1][order], x.flatten(1).double()[:, order]
        outputs = pixels @ weight + 0.1
        intercepts = outputs - (pixels * weight).sum(1)
        rounded = torch.cat([weight.expand(len(x), -1), intercepts[:, None]], 1)
        numbers.append(printed_alignment(rounded, Maps(other, x).of(0)))
    assert max(numbers) - min(numbers) > 0.01


def test_mapping_all_pairs_is_the_transfer_of_each():
    train, test = images(60, 3, side=4), images(9, 4, side=4)
    models = [image_net("dense", side=4, classes=2, seed=seed) for seed in (1, 2)]
    training, testing = ([Maps(model, x) for model in models] for x in (train, test))
    found = _transfer.mapped_outputs(training, testing)
    for output in range(2):  # each output has a penalty of its own
        maps = training[0].of(output)
        ridge = _transfer.RIDGE * float((maps.T @ maps).diagonal().mean()) / len(train)
        theirs = map_transfer(
            models[0].double(), test.double(), other=models[1].double(), fit_on=train.double(),
            ridge=ridge,
        )  # fmt: skip
        mapped = _transfer.mapped_maps((training[0], training[1]), testing[0], output)
        assert_close((mapped * testing[0].inputs()).sum(1), found[0, 1, :, output])
        target = training[1].of(output)
        fit = maps @ _transfer.solved(maps, maps.T @ target)
        error = float((fit - target).norm() / target.norm())
        assert error == pytest.approx(float(theirs.residuals[output]), rel=1e-4)


def test_from_a_linear_network_all_maps_become_the_mean():
    train, test = images(30, 5, side=4), images(6, 6, side=4)
    models = [image_net(name, side=4, classes=2, seed=3) for name in ("linear", "simple")]
    training, testing = ([Maps(model, x) for model in models] for x in (train, test))
    found = _transfer.mapped_outputs(training, testing)[0, 1]
    for output in range(2):
        centre = _clusters.centres(training[1].of(output), 1, seed=0)
        assert_close(found[:, output], testing[0].inputs() @ centre[0], rtol=1e-5, atol=1e-7)


def test_clusters_of_points_that_lie_in_heaps():
    heaps = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]]).double()
    points = heaps.repeat_interleave(5, 0) + 0.1 * torch.randn(15, 2, generator=rng()).double()
    found = _clusters.centres(points, 3, seed=1)
    assert_close(found.sort(0).values, heaps.sort(0).values, atol=0.2, rtol=0)
    assert_close(_clusters.centres(points, 1, seed=1)[0], points.mean(0))
    nearest = _clusters.assigned(points, found)
    assert_close(nearest, (points[:, None] - found).square().sum(2).argmin(1))
    assert len(_clusters.centres(points[:1].repeat(4, 1), 3, seed=0)) == 1  # no more than differ


def test_examples_share_a_region_if_their_maps_are_equal():
    assert _clusters.shared(torch.tensor([1.0, 2.0, 1.0, 3.0]).double()) == 0.5
    x = images(8, 7)
    x[5] = x[2]
    maps = Maps(net("dense"), x).slopes(0)
    numbers = maps @ torch.rand(maps.shape[1], generator=rng()).double()
    patterns = net("dense")[1](x.flatten(1)) > 0
    equal = (patterns[:, None] == patterns).all(2).sum(1) > 1
    assert _clusters.shared(numbers) == float(equal.double().mean()) >= 0.25


def test_directions_of_grey_images_are_those_of_the_summed_channels():
    model = net("dense", 5)
    grey = images(6, 8)[:, :1]
    alone = _switches.as_function(model, grey=True)
    assert_close(alone(grey.double()), model.double()(grey.double().expand(-1, 3, -1, -1)))
    values = torch.tensor([[4.0, 2.0, 0.04], [1.0, 0.0, 0.0]])
    assert_close(network_directions.fall(values), torch.tensor([-0.30103, -9.0]))


def test_blocks_and_contrasts():
    names = ["linear SGD", "dense 1 SGD", "dense 2 SGD", "simple 1 SGD", "complex 1 AdamW"]
    values = np.arange(25.0).reshape(5, 5)
    given = record(names, a=values)
    assert mean(given, "a", Block(DENSE)) == np.mean([values[1, 2], values[2, 1]])
    assert mean(given, "a", Block(by(SGD, CONV), DENSE)) == np.mean(values[3, 1:3])
    assert np.isnan(mean(given, "a", Block(PRETRAINED)))
    estimate = contrast("a", (Block(DENSE),), (Block(by(SGD, CONV), DENSE),))(Records([given]))
    assert estimate.value == 9.0 - 16.5
    assert contrast("a", (Block(PRETRAINED),), (Block(DENSE),))(Records([given])) is None
    far = record([*names[1:3], "mobilenet SGD"], a=[[0, 1, 5], [1, 0, 5], [5, 5, 0]])
    assert separation(far, "a", PRETRAINED, CURVED) == 1.0
    assert above_all(far, "a", ["mobilenet SGD"], names[1:3]) == pytest.approx(np.log10(5 / 3))


def test_a_mapping_by_the_identity_jumps_nowhere_and_another_does():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 1))
    source = figure_7_6.on_grid(network, 41)
    assert_close((source["maps"] * source["points"]).sum(1), source["values"])
    assert figure_7_6.largest_jump(source, source["maps"], 41) < 1e-12
    turned = source["maps"] @ np.diag([1.0, 1.0, 2.0])
    assert figure_7_6.largest_jump(source, turned, 41) > 1e-3


def test_only_usable_cells_of_our_networks_are_claims():
    cells = list(_network_claims.usable_cells())
    assert len(cells) == 125
    assert ("linear SGD", "dense 1 SGD", 30.17) in cells
    assert not any(source == "simple 2 AdamW" for source, _, _ in cells)  # a copied row


def test_absent_weights_are_named_and_do_not_stop_other_cells(monkeypatch, tmp_path):
    monkeypatch.setattr("inscape.data.places.roots", lambda: (tmp_path,))
    _pretrained.weights.cache_clear()
    with pytest.raises(DataError, match=r"needs mobilenet_v2-b0353104.pth.*put it into"):
        _pretrained.weights()
    settings = {"data": "digits:n=32", "mobilenet": 64}
    assert _networks.hash_of(settings).endswith("-absent")
    assert not _networks.hash_of(settings | {"mobilenet": 0}).endswith("-absent")
    (tmp_path / _pretrained.FILE).write_bytes(b"no weights")
    with pytest.raises(DataError, match="SHA-256 that begins with b0353104, found"):
        _pretrained.weights()
    _pretrained.weights.cache_clear()


def test_the_pretrained_network_sees_the_upsampled_image():
    x, mean, spread = torch.rand(2, 3, 8, 8, generator=rng()), torch.rand(3), torch.rand(3) + 0.5
    body = nn.Conv2d(3, 4, 3)
    model = _pretrained.Pretrained(body, nn.Linear(4, 2), mean, spread, 16)
    whole = x * spread[:, None, None] + mean[:, None, None]
    wide = nn.functional.interpolate(whole, size=(16, 16), mode="bilinear", align_corners=False)
    there = [torch.tensor(part)[:, None, None] for part in (_pretrained.MEAN, _pretrained.SPREAD)]
    assert_close(model.features(x), body((wide - there[0]) / there[1]).mean((2, 3)))
    assert model(x).shape == (2, 2)
