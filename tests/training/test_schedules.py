import math

import pytest
import torch

from inscape.models import mlp
from inscape.training import cosine, decay, fit, plateau, replay, steps, warmup
from inscape.training.schedules import description, factor


def torchs(make, count, lr=1.0):
    """The factors of a scheduler of PyTorch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], lr)
    scheduler = make(optimizer)
    rates = []
    for _ in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_steps_are_torchs_milestones():
    theirs = torchs(lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [3, 7, 8], 0.2), 12)
    assert [steps((3, 7, 8), 0.2)(i) for i in range(12)] == pytest.approx(theirs)


def test_decay_is_torchs_step():
    theirs = torchs(lambda o: torch.optim.lr_scheduler.StepLR(o, 4, 0.9), 20)
    assert [decay(0.9, every=4)(i) for i in range(20)] == pytest.approx(theirs)


def test_klindts_decay_falls_a_hundred_times_in_50000_steps():
    schedule = decay(0.9, every=500)
    assert schedule(499) == 1.0
    assert schedule(500) == 0.9
    assert schedule(49_999) == pytest.approx(0.9**99)


def test_cosine_is_torchs():
    theirs = torchs(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10), 10)
    assert [cosine(10)(i) for i in range(10)] == pytest.approx(theirs)
    assert cosine(10)(10) == cosine(10)(99) == 0.0


def test_warmup_ends_at_one():
    assert [warmup(3)(i) for i in range(4)] == pytest.approx([1 / 3, 2 / 3, 1, 1])


def test_schedules_multiply_and_print_and_compare():
    product = warmup(2) * decay(0.5, every=3)
    assert [product(i) for i in range(4)] == [0.5, 1.0, 1.0, 0.5]
    assert repr(product) == "Product(one=Warmup(n=2), two=Decay(factor=0.5, every=3))"
    assert decay(0.5, every=3) == decay(0.5, every=3) != decay(0.5, every=4)


def test_a_schedule_is_recorded_by_what_it_is():
    assert description(None) is None
    assert description(steps((1, 2), 0.1)) == "Steps(at=(1, 2), factor=0.1)"
    assert description(math.exp) == "own:exp"


def test_a_factor_is_one_without_a_schedule_and_never_bad():
    assert factor(None, 3) == 1.0
    assert factor(cosine(4), 2) == pytest.approx(0.5)
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=rf"at least 0, found {bad} at step 5: mend the sched"):
            factor(lambda step, bad=bad: bad, 5)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"rising order, found \(3, 1\): sort them"):
        steps((3, 1), 0.1)
    with pytest.raises(ValueError, match=r"factor must be at least 0, found -0\.1"):
        steps((1,), -0.1)
    with pytest.raises(ValueError, match=r"factor must be at least 0, found -0\.1"):
        decay(-0.1, every=1)
    with pytest.raises(ValueError, match=r"every must be at least 1, found 0"):
        decay(0.1, every=0)
    with pytest.raises(ValueError, match=r"total must be at least 1, found 0"):
        cosine(0)
    with pytest.raises(ValueError, match=r"n must be at least 1, found 0"):
        warmup(0)


LOSSES = [1.0, 0.9, 0.95, 0.9, 0.91, 0.8, 0.8, 0.79995, 0.79999, 0.8, 0.5, 0.6, 0.7, 0.6, 0.6, 0.6]


@pytest.mark.parametrize("patience", [0, 1, 2])
def test_plateau_is_torchs(patience):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], 1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience)
    schedule = plateau(0.5, patience).begin()
    for epoch, loss in enumerate(LOSSES):
        assert schedule(epoch) == optimizer.param_groups[0]["lr"]
        theirs.step(loss)
        schedule.hear(loss)
    assert schedule(99) == optimizer.param_groups[0]["lr"] < 1


def test_a_plateau_starts_afresh_in_every_training():
    x = torch.linspace(-1, 1, 8)[:, None]
    settings = {"epochs": 6, "record": 1, "schedule": warmup(3) * plateau(0.1, 0, threshold=0.9)}
    first, second = (fit(mlp(1, 2, 1), x, x, lr=0.1, **settings).trajectory for _ in range(2))
    assert first.rates.tolist() == pytest.approx([1 / 30, 2 / 30, 0.01, 1e-3, 1e-4, 1e-5])
    assert torch.equal(first.rates, second.rates)
    assert first.settings.schedule == (
        "Product(one=Warmup(n=3), two=Plateau(factor=0.1, patience=0, threshold=0.9))"
    )
    end = replay(first, mlp(1, 2, 1), x, x, 4)
    short = fit(mlp(1, 2, 1), x, x, lr=0.1, **settings | {"epochs": 4}).model.state_dict()
    assert all(torch.equal(short[name], t) for name, t in end.items())


def test_only_a_plateau_listens():
    assert not cosine(3).listens
    assert (warmup(3) * plateau()).listens
    assert not (warmup(3) * cosine(3)).listens
    assert cosine(3).begin() == cosine(3)
    with pytest.raises(ValueError, match=r"patience must be at least 0, found -1"):
        plateau(patience=-1)
