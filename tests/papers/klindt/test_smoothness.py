"""Figures 4 and 9: curvature, rings of new points, normalised convolutions, and their analyses."""

import pytest
import torch
from torch.testing import assert_close

from inscape.lab.store import Record
from inscape.papers.klindt import _addition as task
from inscape.papers.klindt import figure_4, figure_9


def record(values: dict, **settings) -> Record:
    nothing: dict = {"claims": {}, "provenance": {}, "data": "", "key": ""}
    return Record(experiment="", scale="laptop", settings=settings, values=values, **nothing)


def test_curvature_is_that_of_the_hessian():
    net = task.network(7, "tanh", normal=True, seed=2).double()
    at = task.plane(1.5, 3)
    bends = [torch.autograd.functional.hessian(lambda x: net(x[None])[0, 0], x) for x in at]
    expected = torch.stack(bends).square().sum((1, 2)).mean().sqrt()
    assert figure_4.curvature(net, at) == pytest.approx(float(expected))


def test_ring_draws_anew_at_every_step():
    draws = [task.ring(500, seed) for seed in (1, 1, 2)]
    (x, y), (same, _), (other, _) = (fresh(0) for fresh in draws)
    assert torch.equal(x, same)
    assert not torch.equal(x, other)
    assert not torch.equal(x, draws[0](1)[0])
    assert_close(y[:, 0], x.sum(1))
    radius = x.double().norm(dim=1)
    assert 0.5 <= radius.min() < 0.51 < 0.99 < radius.max() <= 1 + 1e-6
    assert float(radius.square().mean()) == pytest.approx(5 / 8, abs=0.03)  # uniform in the plane


def test_figure_4_ranks_each_seed():
    bent = {0: [4.0, 3.0, 2.0, 1.0], 1: [4.0, 3.0, 1.0, 2.0]}  # tau -1 and -2/3
    records = [
        record({"curvature": v, "crossings": 1.0}, data="disc", inverse_sigma=10.0**k, seed=seed)
        for seed, row in bent.items()
        for k, v in enumerate(row)
    ]
    found = figure_4.QUANTITIES(records)
    assert set(found) == {"curvature, disc", "ridges, disc"}
    assert found["curvature, disc"].value == pytest.approx(-5 / 6)
    assert found["ridges, disc"].value == 0.0  # nothing to rank
    found = figure_4.QUANTITIES(records[:-1])
    assert found["curvature, disc"].n == 1  # seed 1 is not whole


@pytest.mark.parametrize("kind", figure_9.DEEP)
def test_every_input_channel_has_its_deviation(kind: str):
    net = figure_9.held(kind, 0.5, 4, seed=1).requires_grad_(False)
    layers = [part for part in net.modules() if isinstance(part, torch.nn.Conv2d)]
    for layer in layers:
        spread = layer.weight.transpose(0, 1).flatten(1).std(1)
        assert_close(spread, torch.full_like(spread, 0.5 / (9 * layer.in_channels) ** 0.5))
    assert float(net[-1].weight.std()) == pytest.approx(0.5 / 32**0.5)
    biased = [layer.bias for layer in layers if layer.bias is not None] + [net[-1].bias]
    assert len(biased) == (9 if kind == "resnet9-plain" else 1)
    assert all(float(bias.std()) == pytest.approx(0.5) for bias in biased)


def test_batch_norm_undoes_the_scale_of_all_layers_but_the_last():
    x = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def spread(kind: str) -> float:
        nets = ((s, figure_9.held(kind, s, 4, seed=1).double().train()) for s in (1.0, 2.0))
        once, twice = (net(x).detach() / s for s, net in nets)
        return float((once - twice).abs().max() / once.std())

    assert spread("resnet9") < 1e-2  # eps is all that is left
    assert spread("resnet9-plain") > 0.1


def sweep(kind: str, order: list[float], clean: float = 0.8) -> list[Record]:
    """Networks that have lost everything at the given step of the budgets."""
    found = []
    for k, (scale, reach) in enumerate(zip((0.1, 1.0, 10.0), order, strict=True)):
        curve = [clean] + [clean if at < reach else 0.0 for at in range(8)]
        values = dict.fromkeys(figure_9.ATTACKS, curve)
        found.append(record(values, kind=kind, strength=scale, seed=0, points=k))
    return found


def test_figure_9_compares_with_one_hidden_layer():
    records = sweep("two-layer", [1, 3, 5]) + sweep("resnet9", [5, 3, 1])
    found = figure_9.analyse(records)
    for attack in figure_9.ATTACKS:
        assert found[f"{attack}, two-layer"].value == pytest.approx(1)
        assert found[f"{attack}, resnet9"].value == pytest.approx(-1)
        assert found[f"lead {attack}, resnet9"].value == pytest.approx(2)
    assert len(found) == 9


def test_figure_9_says_nothing_of_networks_that_have_not_learned():
    records = sweep("two-layer", [1, 3, 5]) + sweep("resnet9", [5, 3, 1], clean=0.15)
    assert set(figure_9.analyse(records)) == {f"{attack}, two-layer" for attack in figure_9.ATTACKS}
    assert "ResNet9 with batch norm, 1/sigma 0.1, 1, 10: unperturbed accuracy 15, 15, 15%." in (
        figure_9.conclude(records)
    )
