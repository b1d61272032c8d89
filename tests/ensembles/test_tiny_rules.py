"""Tiny networks: when they stop, what they refuse, and who they do not depend on."""

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.ensembles.fit_tiny import fit_tiny, tiny_weights
from inscape.ensembles.tiles import threads
from oracles.tiny import flat, plain

CORNERS = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)), dtype=torch.float64)
SIZES = (4, 3, 1)


def functions(count):
    """Return truth tables of different difficulty, one row per member."""
    numbers = [(7919 * k + 27030) % 65536 for k in range(count)]
    return torch.tensor([[n >> (15 - i) & 1 for i in range(16)] for n in numbers])


def fitted(seeds, y=None, **options):
    settings = {"threads": 1, "progress": False, "epochs": 150, "dtype": torch.float64}
    return fit_tiny(
        SIZES, CORNERS, functions(len(seeds)) if y is None else y, seeds=seeds,
        **settings | options,
    )  # fmt: skip


RULES = [
    {"stop": "right"},
    {"stop": "accuracy", "stop_at": 0.75},
    {"stop": "loss", "stop_at": 0.3},
    {"stop": None},
    {"stop": "right", "batch": 5},
    {"stop": "loss", "stop_at": 0.3, "batch": 16},
    {"stop": "loss", "stop_at": 0.5, "loss": "mse"},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules_are_those_of_a_slow_loop(rule):
    y = functions(20)
    y = 2 * y - 1 if "loss" in rule else y
    found = fitted(range(20), y, **rule)
    if rule["stop"]:
        assert found.stopped.sum() > 0
        assert len(found.epochs.unique()) > 3  # lanes were left and taken again
    for k in range(0, 20, 3):
        model, facts = plain(SIZES, CORNERS, y[k].double(), seed=k, epochs=150, **rule)
        assert_close(found.weights[k], flat(model), rtol=1e-6, atol=1e-8)
        loss = facts.pop("loss")
        assert found.loss[k].item() == pytest.approx(loss, rel=1e-6)
        assert {name: getattr(found, name)[k].item() for name in facts} == facts


def test_limits_and_levels_of_each():
    limits = np.array([1, 5, 40, 150])
    found = fitted(range(4), stop=None, epochs=limits)
    assert found.epochs.tolist() == limits.tolist()
    assert not found.stopped.any()
    levels = [0.5, 0.25, 0.9, 1.0]
    found = fitted(range(4), stop="accuracy", stop_at=levels, epochs=[150] * 4)
    for k, level in enumerate(levels):
        assert found.stopped[k] == (found.right[k] >= 16 * level)


@pytest.mark.parametrize(("share", "enough"), [(0.3, 3), (0.7, 7), (0.61, 7), (1.0, 10)])
def test_a_share_is_not_rounded_away(share, enough):
    x, y = CORNERS[:10], torch.tensor([0, 1] * 5)
    found = fit_tiny(
        SIZES, x, y, seeds=range(200), stop="accuracy", stop_at=share, epochs=4000, lr=0.003,
        progress=False, threads=1,
    )  # fmt: skip
    assert found.right[found.stopped].min() == enough


def test_a_loss_of_nothing_is_noticed():
    start = torch.zeros(2, 19, dtype=torch.float64)
    y = torch.zeros(2, 16)
    y[1] = 1.0
    found = fitted([0, 1], y, weights=start, loss="mse", stop="loss", stop_at=0.0)
    assert found.stopped.tolist() == [True, False]
    assert found.epochs.tolist() == [1, 150]


def test_mse_takes_a_threshold():
    found = fitted(range(8), loss="mse", threshold=0.5, epochs=400, lr=0.01)
    for k in range(8):
        out = found.module(k)(CORNERS)[:, 0]
        assert found.right[k] == ((out > 0.5) == functions(8)[k].bool()).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [None, 5])
def test_a_member_does_not_know_its_company(dtype, batch):
    options = {"dtype": dtype, "batch": batch, "epochs": 60}
    names = ("weights", "right", "best_right", "best_epoch", "epochs", "stopped", "loss")
    seeds, y = list(range(45)), functions(45)
    together = fitted(seeds, y, **options)
    assert len(together.epochs.unique()) > 3
    backwards = fitted(seeds[::-1], y.flip(0), **options)
    threads = fitted(seeds, y, **options | {"threads": 3})
    for name in names:
        assert torch.equal(getattr(together, name), getattr(backwards, name).flip(0))
        assert torch.equal(getattr(together, name), getattr(threads, name))
    for k in (0, 17, 44):
        alone = fitted([k], y[k], **options)
        for name in names:
            assert torch.equal(getattr(together, name)[k], getattr(alone, name)[0])


def test_turns_leave_no_trace(monkeypatch):
    whole = fitted(range(40))
    monkeypatch.setattr(threads, "TURN", 0.0)  # Python looks up after every epoch
    pieces = fitted(range(40))
    assert torch.equal(whole.weights, pieces.weights)
    assert torch.equal(whole.epochs, pieces.epochs)


@pytest.mark.parametrize("batch", [None, 4])
def test_one_that_diverges_disturbs_nobody(batch):
    options = {"loss": "mse", "optimizer": "sgd", "lr": 0.02, "batch": batch, "stop": None}
    start = tiny_weights(SIZES, range(20), dtype=torch.float64)
    good = fitted(range(20), weights=start, **options)
    wild = start.clone()
    wild[[3, 11]] *= 1e3
    found = fitted(range(20), weights=wild, **options)
    assert (found.diverged >= 0).nonzero().flatten().tolist() == [3, 11]
    others = [k for k in range(20) if k not in (3, 11)]
    assert torch.equal(found.weights[others], good.weights[others])
    assert not found.stopped[[3, 11]].any()
    assert not found.loss[[3, 11]].isfinite().any()
    for k in (3, 11):
        options.pop("stop", None)
        _, facts = plain(
            SIZES, CORNERS, functions(20)[k].double(), seed=k, weights=wild[k], epochs=150,
            stop=None, **options,
        )  # fmt: skip
        assert found.diverged[k] == facts["diverged"]
        assert found.epochs[k] == facts["epochs"]


def test_an_epoch_that_was_lost_on_the_way_does_not_count():
    x = CORNERS * torch.tensor([1.0, 50.0, 2500.0, 1.0], dtype=torch.float64)[: SIZES[0]]
    options = {"optimizer": "sgd", "lr": 0.1, "loss": "mse", "batch": 3, "stop": None}
    found = fit_tiny(
        SIZES, x, functions(1)[0], seeds=range(12), dtype=torch.float64, threads=1, epochs=200,
        **options,
    )  # fmt: skip
    lost = (found.diverged >= 0).nonzero().flatten().tolist()
    assert lost
    for k in lost:
        _, facts = plain(SIZES, x, functions(1)[0].double(), seed=k, epochs=200, **options)
        assert (found.diverged[k], found.epochs[k]) == (facts["diverged"], facts["epochs"])
        assert found.best_epoch[k] <= found.epochs[k]


def test_a_loss_that_overflows_ends_a_member_though_its_weights_are_finite():
    start = tiny_weights(SIZES, range(2), dtype=torch.float64)
    x, y = CORNERS, functions(2)[0].double()
    y[3] = 1e160  # the square of its error is too large, the error is not
    options = {"loss": "mse", "optimizer": "sgd", "lr": 1e-300, "batch": 4, "stop": None}
    found = fit_tiny(
        SIZES, x, y, seeds=range(2), weights=start, dtype=torch.float64, threads=1, epochs=9,
        **options,
    )  # fmt: skip
    assert found.weights.isfinite().all()
    assert found.epochs.tolist() == [0, 0]
    assert found.best_epoch.tolist() == [0, 0]
    for k in range(2):
        _, facts = plain(SIZES, x, y, seed=k, weights=start[k], epochs=9, **options)
        assert found.diverged[k] == facts["diverged"]
    assert (found.diverged < 4).all()


def test_lists_and_tensors_of_numbers():
    one = fitted(torch.arange(3), epochs=torch.tensor([4, 5, 6]), stop=None)
    two = fitted(np.arange(3), epochs=[4, 5, 6], stop=None)
    assert torch.equal(one.weights, two.weights)


REFUSED = {
    "sizes": ({"sizes": (4, 3, 2)}, r"sizes must be inputs, .* found \(4, 3, 2\)"),
    "short": ({"sizes": (4,)}, r"sizes must be inputs, .* found \(4,\)"),
    "seeds": ({"seeds": []}, "seeds must be integers"),
    "half": ({"seeds": torch.tensor([0.5])}, "seeds must be integers"),
    "x": ({"x": CORNERS[:, :3]}, r"x must be points of 4 numbers, .* found shape \(16, 3\)"),
    "xs": ({"x": CORNERS.expand(3, 16, 4)}, "x must hold points for each of the 2 seeds, found 3"),
    "nan": ({"x": CORNERS * float("nan")}, "x must be finite, found NaN"),
    "y": ({"y": torch.zeros(15)}, r"y must hold one label per point, .* found shape \(15,\)"),
    "y nan": ({"y": torch.full((16,), float("nan"))}, "y must be finite, found NaN"),
    "signs": ({"y": -torch.ones(16)}, "bce_logits requires labels from 0 to 1, found some from -1"),
    "weights": ({"weights": torch.zeros(2, 18)}, "weights must hold 19 numbers for each of the 2"),
    "wild": ({"weights": torch.full((2, 19), torch.inf)}, "weights must be finite, found NaN"),
    "init": ({"init": "zeros"}, "init must be one of"),
    "activation": ({"activation": "gelu"}, "activation must be one of 'relu', 'leaky_relu'"),
    "loss": ({"loss": "hinge"}, "loss must be one of 'mse', 'bce_logits'"),
    "optimizer": ({"optimizer": "adamw"}, "optimizer must be one of 'sgd', 'adam'"),
    "lr": ({"lr": 0.0}, "lr must be positive and finite, found 0.0"),
    "betas": ({"betas": (0.9, 1.0)}, r"momentum and betas must lie in \[0, 1\)"),
    "momentum": ({"momentum": 0.9}, "momentum is an option of sgd, found momentum=0.9"),
    "slope": ({"slope": -0.1}, "slope must be at least 0 and finite, found -0.1"),
    "threshold": ({"threshold": float("inf")}, "threshold must be finite, found inf"),
    "batch": ({"batch": 0}, "batch must be at least 1, found 0"),
    "threads": ({"threads": 0}, "threads must be at least 1, found 0"),
    "epochs": ({"epochs": 0}, "epochs must be at least 1, found 0"),
    "long": ({"epochs": 2**25}, "epochs must be at most 16777216, found 33554432"),
    "limits": ({"epochs": [1, 2, 3]}, "epochs must be one integer, or one for each of the 2"),
    "stop": ({"stop": "never"}, "stop must be one of 'right', 'accuracy', 'loss', found 'never'"),
    "right": ({"stop_at": 0.5}, "stop_at goes with stop='accuracy' or stop='loss', found stop='ri"),
    "none": ({"stop": None, "stop_at": 0.5}, "stop_at goes with .* found stop=None"),
    "no level": ({"stop": "loss"}, "stop='loss' needs stop_at, found None"),
    "no share": ({"stop": "accuracy"}, "stop='accuracy' needs stop_at, found None"),
    "share": (
        {"stop": "accuracy", "stop_at": 95.0},
        "stop_at must be a fraction above 0 and up to 1",
    ),
    "zero": ({"stop": "accuracy", "stop_at": 0.0}, "stop_at must be a fraction above 0"),
    "low": ({"stop": "loss", "stop_at": -1.0}, "stop_at must be a finite loss, at least 0"),
    "levels": ({"stop": "loss", "stop_at": [0.1] * 3}, "stop_at must be one number, or one for"),
    "dtype": ({"dtype": torch.float16}, "dtype must be torch.float32 or torch.float64, found"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name):
    changed, text = REFUSED[name]
    given = {"sizes": SIZES, "x": CORNERS, "y": torch.zeros(16), "seeds": [0, 1]} | changed
    with pytest.raises(ValueError, match=text):
        fit_tiny(given.pop("sizes"), given.pop("x"), given.pop("y"), **given)


def test_half_a_point_is_no_batch(unchecked):
    with pytest.raises(ValueError, match=r"batch must be a whole number, found 2\.5"):
        fit_tiny(SIZES, CORNERS, torch.zeros(16), seeds=[0], batch=2.5)


def test_weights_and_orders_refuse_too():
    with pytest.raises(ValueError, match="init must be one of"):
        tiny_weights(SIZES, [0], init="zeros")
    with pytest.raises(ValueError, match="sizes must be inputs"):
        tiny_weights((4,), [0])
