"""The completion of rows: the exact structure, its data, and how its training is judged."""

import itertools

import numpy as np
import pytest
import torch

from inscape.lab.records import Records
from inscape.lab.statistics import proportion_difference as difference
from inscape.lab.statistics import proportion_of
from inscape.lab.store import Record
from inscape.papers.courtois import section_6_1_3 as study
from inscape.papers.courtois._completion import (
    Completion,
    by_windows,
    completed,
    least_error_of_one_unit,
    levels_of,
    rows,
    set_by_hand,
)
from inscape.papers.courtois._diagrams import described


def all_rows(p):
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=p)))


def loops(x):
    """Eq. (10) by two loops."""
    out = torch.zeros_like(x)
    for i, row in enumerate(x.tolist()):
        for j in range(len(row)):
            out[i, j] = sum(row[: j + 1]) % 2
    return out


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("options", [{}, {"kernel": 3}, {"extra": 2}, {"bias": True}])
def test_weights_set_by_hand_are_exact_on_every_row(p, options):
    x = all_rows(p)
    model = set_by_hand(Completion(p, 2, **options))
    assert torch.equal(model(x), completed(x))
    assert torch.equal(completed(x), loops(x))


@pytest.mark.parametrize("r", [2, 5])
def test_they_are_exact_at_the_papers_length(r):
    x = torch.cat([rows(20, 128, ones, seed=ones) for ones in (1, 2, 10, 64, 127, 128)])
    assert torch.equal(set_by_hand(Completion(128, r))(x), completed(x))


@pytest.mark.parametrize("options", [{}, {"kernel": 3}, {"kernel": 5}, {"extra": 1, "bias": True}])
def test_all_windows_at_once_are_each_window_alone(options):
    model = Completion(16, 3, seed=4, **options).double()
    for parameter in model.parameters():  # biases start at zero
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(parameter.numel()))
    x = torch.randn(6, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(model(x), by_windows(model, x))


def test_layers_are_counted_as_in_the_text():
    model = Completion(128, 2)
    names = [type(part).__name__ for part in model.modules()]
    assert (names.count("Convolution"), names.count("ReLU"), len(model.levels)) == (14, 7, 7)
    assert described(model.levels[0]) == "2 taps → 2, ReLU, 2 → 1"
    sizes = [signal.shape[1] for signal in levels_of(model, rows(1, 128, 3))]
    assert sizes == [128, 64, 32, 16, 8, 4, 2, 1]


def test_one_channel_cannot_do():
    """No weights of one unit come nearer than a half to the parity of a pair."""
    rng = torch.Generator().manual_seed(0)
    pairs = all_rows(2)
    weights = torch.randn(2000, 3, generator=rng)
    hidden = torch.relu(pairs @ weights[:, :2].T + weights[:, 2])
    low, high = hidden.min(0).values, hidden.max(0).values
    # The best line through one unit's values, by trying many.
    slopes = torch.linspace(-2, 2, 41)[:, None, None] / (high - low).clamp_min(1e-6)
    offsets = torch.linspace(-1, 2, 31)[:, None, None, None]
    truth = pairs.sum(1) % 2
    errors = (slopes * (hidden - low) + offsets - truth[:, None]).abs().amax(2)
    assert least_error_of_one_unit() == 0.5
    assert 0.5 - 1e-6 <= errors.min() < 0.55


def test_noise_is_as_large_as_asked():
    exact, near = (set_by_hand(Completion(128, 6), sigma=s, seed=1) for s in (0.0, 0.09))
    pairs = zip(near.parameters(), exact.parameters(), strict=True)
    noise = torch.cat([(a - b).detach().flatten() for a, b in pairs])
    assert noise.std() == pytest.approx(0.09, rel=0.2)


def test_rows_are_drawn_evenly():
    x = rows(4000, 8, 3, seed=2)
    assert x.sum(1).unique().tolist() == [3.0]
    assert x.mean(0).numpy() == pytest.approx(np.full(8, 3 / 8), abs=0.03)
    assert len(x.unique(dim=0)) == 56
    assert torch.equal(x, rows(4000, 8, 3, seed=2))


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"ones must be at most p, found 9 of 8 pixels: set fewer"):
        rows(2, 8, 9)
    with pytest.raises(ValueError, match=r"p must be a power of two, found 12: pad the rows"):
        Completion(12, 2)
    with pytest.raises(ValueError, match=r"kernel must be at least 2, found 1"):
        Completion(8, 2, kernel=1)
    with pytest.raises(ValueError, match=r"r must be at least 2, found 1"):
        set_by_hand(Completion(8, 1))


def record(variant, r, error, ones=10, seed=0):
    values = {f"error/{count}": error * 10 ** (k - 2) for k, count in enumerate(study.TESTED)}
    values |= {f"wrong/{count}": float(error > 0.1) for count in study.TESTED}
    settings = {"variant": variant, "r": r, "ones": ones, "seed": seed}
    return Record(
        schema=1, experiment="courtois/section-6.1.3", scale="smoke", key=f"{variant}{r}{seed}",
        settings=settings, data="none", values=values, claims={}, provenance={},
    )  # fmt: skip


def test_analysis_counts_and_averages():
    records = Records(
        [
            *(record("plain", 4, 0.2, seed=s) for s in range(3)),
            record("plain", 6, 1e-9),
            *(record("plain", 8, error, seed=k) for k, error in enumerate((1e-8, 1e-6, 0.3))),
            *(record("near", 2, 1e-12, seed=s) for s in range(2)),
            record("enlarged", 8, 0.1),
            *(record("extra", 8, 1e-2, seed=s) for s in range(2)),
            record("biased", 8, 0.2),
        ]
    )
    found = study.QUANTITIES(records)
    shares = {name: found[f"found/{name}"].value for name in ("few", "many", "near", "enlarged")}
    assert shares == pytest.approx({"few": 0.25, "many": 2 / 3, "near": 1.0, "enlarged": 0.0})
    assert found["found/many minus few"].value == pytest.approx(2 / 3 - 1 / 4)
    assert found["order/many/10"].value == pytest.approx(-7)
    orders = [found[f"order/extra/{ones}"].value for ones in study.TESTED]
    assert orders == pytest.approx([-4, -3, -2])
    assert found["order/extra/growth"].value == pytest.approx(2)
    said = study.conclude(records)
    assert "plain, r = 8: 2 of 3 networks find the rule" in said[2]
    assert said[-1].startswith("biased, r = 8: 0 of 1")


def test_shares_have_the_intervals_of_the_books():
    """Newcombe's own example (1998, table II): 56/70 and 48/80 give 0.0524 to 0.3339."""
    gap = difference([k < 56 for k in range(70)], [k < 48 for k in range(80)])
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    from scipy.stats import binomtest

    theirs = binomtest(3, 17).proportion_ci(method="wilson")
    ours = proportion_of([True] * 3 + [False] * 14)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-6)
