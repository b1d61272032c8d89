"""Sub-networks are cut right, and what is said of them follows from the records."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.boolean.truth_table import parity
from inscape.lab.store import Record
from inscape.papers.sattelberg import _deep_pruning, _parity_pruning, table_3_4, table_3_5
from inscape.papers.sattelberg import conv_pruning as _conv_pruning
from inscape.papers.sattelberg._loss_curves import loss_curves
from inscape.pruning import cut


def net(*sizes: int, seed: int = 0) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=draw))
    return model.eval()


def row(model: nn.Module) -> np.ndarray:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def test_sub_networks_are_those_that_cut_gives():
    model, x = net(3, 5, 1), torch.tensor(parity(3).points).float()
    kept = _parity_pruning.subsets(5, 2)
    rows = _parity_pruning.sub_networks(row(model), 3, 5, kept)
    assert len(rows) == 10
    for units, weights in zip(kept.tolist(), rows, strict=True):
        assert np.array_equal(weights, row(cut(model, x, {"0": units})))


def test_nodes_of_deep_networks_are_those_that_cut_gives():
    model, x = net(3, 4, 3, 1), torch.tensor(parity(3).points).float()
    layers = _deep_pruning.unpacked(row(model), (3, 4, 3, 1))
    assert np.array_equal(_deep_pruning.packed(layers), row(model))
    nets = [one for group in _deep_pruning.smaller(layers) for one in group]
    wanted = [("0", 4, k) for k in range(4)] + [("2", 3, k) for k in range(3)]
    for found, (layer, width, gone) in zip(nets, wanted, strict=True):
        keep = [k for k in range(width) if k != gone]
        assert np.array_equal(_deep_pruning.packed(found), row(cut(model, x, {layer: keep})))


def test_a_layer_whose_unit_is_always_on_can_be_folded_without_loss():
    model, x = net(3, 1, 4, 1), torch.tensor(parity(3).points).float()
    model[0].bias.data.fill_(100.0)
    layers = _deep_pruning.unpacked(row(model), (3, 1, 4, 1))
    folded = _deep_pruning.folded(layers, 0)
    assert _deep_pruning.sizes_of(folded) == (3, 4, 1)
    (first, bias), (last, other) = folded
    hidden = np.maximum(x.numpy() @ first.T + bias, 0)
    assert_close(torch.tensor(hidden @ last.T + other), model(x).detach(), rtol=1e-4, atol=1e-3)
    sizes = {_deep_pruning.sizes_of(group[0]) for group in _deep_pruning.smaller(layers)}
    assert sizes == {(3, 4, 1), (3, 1, 3, 1)}


def test_pruning_ends_at_a_network_that_cannot_lose_a_node():
    run = _parity_pruning.fitted((2, 6, 1), 2, epochs=2000, seeds=range(4), enough=0.01)
    solved = int((run.right == 4).int().argmax())
    layers = _deep_pruning.unpacked(run.weights[solved].numpy(), (2, 6, 1))
    assert _deep_pruning.pruned(layers, 2, 1000, seed=0) == (2,)


def test_exhaustive_search_ends_at_the_smallest():
    run = _parity_pruning.fitted((2, 4, 1), 2, epochs=2000, seeds=range(6))
    good = run.weights.numpy()[run.stopped.numpy()]
    sizes, counts = _parity_pruning.smallest(good, 2, 4, 1000)
    assert len(sizes) == len(good) > 0
    assert set(sizes) <= {2, 3, 4}
    assert min(sizes) == 2
    assert all(count >= 1 for count in counts)


def test_loss_curves_are_those_of_torch_one_by_one():
    table = parity(2)
    x, y = torch.tensor(table.points).float(), torch.tensor(table.bits).float()
    models = [net(2, 3, 1, seed=k) for k in range(3)]
    losses, solved = loss_curves(
        np.stack([row(model) for model in models]), table.points, table.bits, width=3, epochs=60
    )
    for k, model in enumerate(models):
        step, first = torch.optim.Adam(model.parameters(), 0.025), -1
        for epoch in range(61):
            out = model(x)[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(out, y)
            assert float(losses[epoch, k]) == pytest.approx(loss.item(), rel=1e-3)
            if first < 0 and bool(((out > 0) == (y > 0.5)).all()):
                first = epoch
            step.zero_grad()
            loss.backward()
            step.step()
        assert solved[k] == first


def test_a_shape_fits_into_another_when_layers_are_left_out():
    fits = table_3_5.at_least_as_small
    assert fits((2, 2), (2, 2, 2))
    assert fits((3,), (2, 3))
    assert fits((2, 3), (2, 3))
    assert not fits((3, 2), (2, 3))
    assert not fits((2, 2, 2), (2, 3))
    assert not fits((4,), (2, 3))


def record(values, **settings) -> Record:
    return Record(
        experiment="",
        scale="laptop",
        key="",
        settings=settings,
        data="",
        values=values,
        claims={},
        provenance={},
    )


def test_the_best_of_four_is_the_smallest_in_the_most_ways():
    one = record(
        {"smallest": [4, 0, 3, 3, 2], "working": [9, 0, 1, 2, 5]}, width=6, digits=4, trials=5
    )
    assert table_3_4.best(one) == (3, 2)
    none = record({"smallest": [0] * 4 + [2], "working": [0] * 5}, width=2, digits=3, trials=5)
    assert table_3_4.best(none) is None
    assert table_3_4.likely(none)  # printed: a dash
    surely = record({"smallest": [5] * 20, "working": [1] * 20}, width=6, digits=4, trials=20)
    assert table_3_4.likely(surely) is (1 - (1 - 0.5 / 21) ** 4 >= 0.025)


def test_rates_of_the_text():
    six = {"smallest": [3, 4, 0, 3], "working": [1, 2, 0, 3]}
    found = table_3_4.rates(six, {"smallest": [3, 0, 0, 0]})
    values = {name: estimate.value for name, estimate in found.items()}
    assert values == {
        "solved": 0.75,
        "pruned": 0.5,
        "direct": 0.25,
        "gain": 0.25,
        "contains": 2 / 3,
        "ways": 2.0,
    }


def test_accuracy_is_read_between_steps_and_kept_beyond_the_end():
    values = {"channels/share": [1.0, 0.5, 0.25], "channels/accuracy": [0.9, 0.8, 0.4]}
    at = [_conv_pruning.accuracy_at(values, "channels", share) for share in (1.0, 0.75, 0.5, 0.1)]
    assert at == pytest.approx([0.9, 0.85, 0.8, 0.4])
    assert _conv_pruning.smallest(record(values), "channels", slack=0.11) == 0.5
