"""Tiny networks against plain PyTorch, step by step."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from inscape.ensembles.fit_tiny import fit_tiny, tiny_order, tiny_weights
from oracles.tiny import flat, plain

DOUBLE = {"dtype": torch.float64, "threads": 1, "progress": False}


def data(n=19, d=3, members=None, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shape = (n,) if members is None else (members, n)
    x = torch.randn(*shape, d, generator=rng, dtype=torch.float64)
    return x, (torch.rand(shape, generator=rng) > 0.5).double()


def compare(sizes, x, y, *, seeds=(0, 7, 8), **options):
    """Train members together and one by one, and compare everything."""
    found = fit_tiny(sizes, x, y, seeds=seeds, **DOUBLE, **options)
    for k, seed in enumerate(seeds):
        own_x, own_y = (x[k] if x.ndim == 3 else x), (y[k] if y.ndim == 2 else y)
        model, facts = plain(sizes, own_x, own_y, seed=seed, **options)
        assert_close(found.weights[k], flat(model))
        loss = facts.pop("loss")
        assert found.loss[k].item() == pytest.approx(loss, rel=1e-6, abs=1e-9)
        assert {name: getattr(found, name)[k].item() for name in facts} == facts
    return found


SHAPES = [(3, 1), (3, 1, 1), (3, 3, 1), (3, 6, 7, 1), (3, 4, 11, 2, 1), (3, 17, 9, 1)]
OPTIMIZERS = {
    "adam": {},
    "betas": {"betas": (0.5, 0.9)},
    "sgd": {"optimizer": "sgd", "lr": 0.1},
    "momentum": {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9},
}


@pytest.mark.parametrize("steps", [1, 2, 10, 100])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_is_that_of_pytorch(name, steps):
    x, y = data()
    compare((3, 5, 4, 1), x, y, epochs=steps, stop=None, **OPTIMIZERS[name])


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh"])
@pytest.mark.parametrize("loss", ["bce_logits", "mse"])
@pytest.mark.parametrize("batch", [None, 4, 17, 100])
def test_activations_losses_and_batches(activation, loss, batch):
    x, y = data()
    y = 2 * y - 1 if loss == "mse" else y
    compare((3, 7, 5, 1), x, y, activation=activation, loss=loss, batch=batch, epochs=12, stop=None)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("n", [1, 16, 37])
def test_shapes_and_numbers_of_points(sizes, n):
    x, y = data(n)
    compare(sizes, x, y, epochs=8, stop=None)
    compare(sizes, x, y, epochs=3, stop=None, batch=5, optimizer="sgd", lr=0.1)


@pytest.mark.parametrize("slope", [0, 0.5, 1.0, 2.0])
def test_slopes_below_zero(slope):
    x, y = data()
    compare((3, 5, 4, 1), x, y, slope=slope, epochs=12, stop=None)


def test_many_inputs():
    x, y = data(n=9, d=70)
    compare((70, 66, 1), x, y, epochs=5, stop=None, lr=0.001)


def test_each_member_has_its_own_data():
    x, y = data(members=3)
    compare((3, 4, 1), x, y, epochs=20)
    compare((3, 4, 1), x[0], y, epochs=20, batch=6)
    compare((3, 4, 1), x, y[0], epochs=20, batch=6)


def test_weights_may_be_given():
    x, y = data()
    start = torch.randn(2, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    found = fit_tiny((3, 4, 1), x, y, seeds=[5, 5], weights=start, epochs=6, stop=None, **DOUBLE)
    for k in range(2):
        model, _ = plain((3, 4, 1), x, y, seed=5, weights=start[k], epochs=6, stop=None)
        assert_close(found.weights[k], flat(model))


def test_single_precision_stays_near_double():
    x, y = data()
    options = {"seeds": range(20), "epochs": 60, "stop": None, "threads": 1, "activation": "tanh"}
    start = tiny_weights((3, 5, 1), range(20)).double()
    one = fit_tiny((3, 5, 1), x, y, weights=start, **options)
    two = fit_tiny((3, 5, 1), x, y, weights=start, dtype=torch.float64, **options)
    assert one.weights.dtype == torch.float32
    assert_close(one.weights.double(), two.weights, rtol=1e-3, atol=1e-3)  # 60 steps of rounding
    assert_close(one.loss, two.loss, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "tanh"])
def test_module_gives_the_function(activation):
    x, y = data()
    found = fit_tiny((3, 4, 2, 1), x, y, seeds=range(3), activation=activation, epochs=30, **DOUBLE)
    for k in range(3):
        model = found.module(k)
        assert not model.training
        out = model(x)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y)
        assert found.loss[k].item() == pytest.approx(loss.item(), rel=1e-9)
        assert found.right[k] == ((out > 0) == (y > 0.5)).sum()
    assert repr(found).startswith("Tiny(3 networks 3-4-2-1, ")
    assert len(found) == 3


def test_dead_networks_do_not_slow_down_nor_move():
    x, y = data()
    start = torch.full((1, 21), -1.0, dtype=torch.float64)
    start[0, :12] = 0.0  # hidden units are off everywhere: only the last bias moves
    found = fit_tiny(
        (3, 4, 1), x, y, seeds=[0], weights=start, activation="relu", epochs=3000, stop=None,
        **DOUBLE,
    )  # fmt: skip
    assert torch.equal(found.weights[0, :20], start[0, :20])
    share = y.mean()
    assert_close(found.weights[0, 20], torch.log(share / (1 - share)), rtol=1e-3, atol=1e-3)


def mixed(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def drawn(key, i):
    return mixed((key + (i + 1) * 0x9E3779B97F4A7C15) % 2**64)


@pytest.mark.parametrize("seed", [0, 5, 2**40, -1])
def test_draws_are_the_documented_ones(seed):
    key = mixed((mixed(seed % 2**64) + 1) % 2**64)
    u = torch.tensor([((drawn(key, i) >> 11) + 0.5) / 2**53 for i in range(8)], dtype=torch.float64)
    found = tiny_weights((4, 2, 1), [seed], init="he_uniform", dtype=torch.float64)[0, :8]
    assert_close(found, (2 * u - 1) * 1.5**0.5)
    size = (-2 * u[::2].log()).sqrt()
    normal = torch.stack([size * torch.cos(2 * torch.pi * u[1::2]),
                          size * torch.sin(2 * torch.pi * u[1::2])], 1).flatten()  # fmt: skip
    found = tiny_weights((4, 2, 1), [seed], dtype=torch.float64)[0, :8]
    assert_close(found, normal * 0.5**0.5)
    stream = mixed((mixed(seed % 2**64) + 2) % 2**64)
    places = list(range(9))
    for j in range(8, 0, -1):
        other = ((drawn(drawn(stream, 3), j) >> 32) * (j + 1)) >> 32
        places[j], places[other] = places[other], places[j]
    assert tiny_order(9, seed, 3).tolist() == places


@pytest.mark.parametrize(
    ("init", "variance", "bias"),
    [("he_normal", 2 / 30, 0), ("he_uniform", 2 / 30, 0), ("glorot", 2 / 50, 0),
     ("pytorch", 1 / 90, 1 / 90)],
)  # fmt: skip
def test_laws_of_the_first_weights(init, variance, bias):
    weights = tiny_weights((30, 20, 1), range(100), init=init, dtype=torch.float64)
    drawn, biases = weights[:, :600].flatten(), weights[:, 600:620].flatten()
    spread = variance * (5 * (2 / drawn.numel()) ** 0.5)
    assert abs(drawn.mean()) < 5 * (variance / drawn.numel()) ** 0.5
    assert abs(drawn.var() - variance) < spread
    assert abs(biases.var() - bias) <= bias * 5 * (2 / biases.numel()) ** 0.5
    pairs = torch.corrcoef(weights[:, :40].T)
    assert (pairs - torch.eye(40)).abs().max() < 0.5  # 100 members: a standard error is 0.1


def test_other_names_of_laws():
    for one, two in (("default", "pytorch"), ("glorot_uniform", "glorot")):
        assert torch.equal(
            tiny_weights((3, 2, 1), [1, 2], init=one), tiny_weights((3, 2, 1), [1, 2], init=two)
        )


def test_orders_are_even():
    orders = [
        tuple(tiny_order(4, seed, epoch).tolist()) for seed in range(60) for epoch in range(80)
    ]
    counts = [orders.count(order) for order in itertools.permutations(range(4))]
    assert sum(counts) == 4800
    assert sum((count - 200) ** 2 / 200 for count in counts) < 23 + 5 * 46**0.5  # chi square
