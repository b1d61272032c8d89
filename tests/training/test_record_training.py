"""A recorded loop is the training that it was: against ``fit``, and replayed step by step."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import inscape
from inscape.kernels import kernel_drift, path_kernel
from inscape.regions import region_evolution
from inscape.training import Trajectory, fit, record_training, replay
from recorded_loops import CLASSES, batches, data, plain, trained, two_groups, with_everything

SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW

OPTIMIZERS = {
    "sgd": (SGD, {"lr": 0.1}),
    "momentum": (SGD, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": (SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "adam": (ADAM, {"lr": 0.01}),
    "adamw": (ADAMW, {"lr": 0.01, "weight_decay": 0.1}),
}


@pytest.mark.rounding
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_with_the_batches_of_fit_gives_its_trajectory_and_attribution(name, tmp_path):
    kind, options = OPTIMIZERS[name]
    x, y = data()
    ours = plain()
    known = fit(
        ours, x, y, loss="cross_entropy", optimizer=kind.__name__.lower(), batch=16, epochs=4,
        record=5, progress=False, **options,
    ).trajectory  # fmt: skip
    theirs = plain()
    rows = [torch.arange(len(x))[known.rows(step)] for step in range(known.steps)]
    run = trained(
        theirs, kind(theirs.parameters(), **options), tmp_path / "run", rows=rows, every=5,
        loss=nn.CrossEntropyLoss(), tell="values",
    )  # fmt: skip
    recorded = run.trajectory
    assert run.verdict == "3 updates replayed bit for bit"
    assert recorded.checkpoints.tolist() == known.checkpoints.tolist()
    for part in ("states", "memory"):
        assert getattr(recorded, part).keys() == getattr(known, part).keys()
        for key, tensor in getattr(known, part).items():
            assert torch.equal(getattr(recorded, part)[key], tensor)
    assert torch.equal(recorded.rates, known.rates)
    assert all(torch.equal(recorded.rows(k), rows[k]) for k in range(known.steps))
    expected = path_kernel(ours, x, y, trajectory=known, queries=x[:3])
    split = path_kernel(theirs, x, y, trajectory=recorded, queries=x[:3])
    assert_close(split.samples, expected.samples)
    assert_close(split.decay, expected.decay)
    assert split.relative_residual < 1e-12


CASES = {
    "groups and schedule": {"groups": True, "schedule": True},
    "norm": {"clip": "norm"},
    "value": {"clip": "value"},
    "accumulation": {"accumulate": 2},
    "accumulation of sums": {"accumulate": 2, "divide": False},
    "all": {"groups": True, "schedule": True, "clip": "norm", "accumulate": 2},
}


def recorded_case(case, kind, folder, dtype=torch.float64, **more):
    case = dict(CASES[case])
    model = with_everything(dtype)
    optimizer = two_groups(kind, model) if case.pop("groups", False) else kind(
        model.parameters(), lr=0.02)  # fmt: skip
    if case.pop("schedule", False):
        case["schedule"] = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    clips = {
        "norm": lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5),
        "value": lambda: nn.utils.clip_grad_value_(model.parameters(), 0.02),
    }
    case["clip"] = clips.get(case.pop("clip", None))
    return model, trained(model, optimizer, folder, rows=batches(20), **case, **more)


@pytest.mark.rounding
@pytest.mark.parametrize("kind", [SGD, ADAMW])
@pytest.mark.parametrize("case", CASES)
def test_dropout_batch_norm_and_all_else_are_replayed_bit_for_bit(case, kind, tmp_path):
    model, run = recorded_case(case, kind, tmp_path / "run", torch.float32)
    x, y = data(torch.float32)
    assert run.verdict.endswith("replayed bit for bit")
    assert run.notes == []
    trajectory = run.trajectory
    last, before = trajectory.steps, int(trajectory.checkpoints[-2])
    state = {k: t.clone() for k, t in trajectory.states.items()}
    replayed = replay(trajectory, model, x, y, last - 1)
    assert before < last - 1
    walked = replay(trajectory, model, x, y, last)
    for name, tensor in model.state_dict().items():
        assert torch.equal(walked[name], tensor)
        assert torch.equal(state[name][-1], tensor)
    assert any(not torch.equal(replayed[k], walked[k]) for k in walked)


@pytest.mark.parametrize("name", ["RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "Adadelta"])
def test_other_optimizers_of_pytorch_are_replayed(name, tmp_path):
    model = plain()
    run = trained(model, getattr(torch.optim, name)(model.parameters(), lr=0.01), tmp_path / "run")
    assert "replayed bit for bit" in run.verdict
    with pytest.raises(ValueError, match="supports sgd, adam and adamw"):
        path_kernel(model, *data(), trajectory=run.trajectory)


def test_momentum_that_a_schedule_changes_is_recorded(tmp_path):
    model = plain()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
    run = trained(model, optimizer, tmp_path / "run", schedule=schedule)
    loop = run.trajectory.loop
    assert "bit for bit" in run.verdict
    momenta = loop.options[:, 0, loop.option_names.index("momentum")]
    assert len(momenta.unique()) > 3
    x, y = data()
    split = path_kernel(model, x, y, trajectory=run.trajectory, queries=x[:2])
    assert split.relative_rounding < 1e-12


class Attention(nn.Module):
    """Attention as of a transformer, with dropout behind it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.joined, self.head = nn.Linear(6, 12), nn.Linear(4, CLASSES)

    def forward(self, x):
        query, key, value = self.joined(x).chunk(3, -1)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.head(nn.functional.dropout(attended.flatten(1, 2).mean(1), 0.2, self.training))


def test_attention_with_dropout_is_attributed(tmp_path):
    """Its fast kernels have no second derivatives, which batches in training mode need."""
    x, y = data()
    model = Attention().to(x.dtype)
    run = trained(model, ADAMW(model.parameters(), lr=0.01), tmp_path / "run")
    split = path_kernel(model.eval(), x, y, trajectory=run.trajectory, queries=x[:2])
    assert split.relative_residual < 1e-10


def test_autocast_is_replayed(tmp_path):
    x, y = data(torch.float32)
    model = plain(torch.float32)
    optimizer = SGD(model.parameters(), lr=0.1)
    with record_training(
        model, optimizer, loss="cross_entropy", data=(x, y), every=3, to=tmp_path / "run"
    ) as run:
        for rows in batches(6):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            run.step(rows)
    assert run.trajectory.loop.autocast == "bfloat16"
    assert "replayed bit for bit" in run.verdict


def test_steps_that_a_gradient_scaler_skips_are_left_out(tmp_path):
    x, y = data(torch.float32)
    model = plain(torch.float32)
    optimizer, scaler = SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", 2.0**8)
    with record_training(
        model, optimizer, loss="cross_entropy", data=(x, y), every=3, to=tmp_path / "run",
        scaler=scaler,
    ) as run:  # fmt: skip
        for number, rows in enumerate(batches(7)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            scaler.scale(loss * (float("inf") if number == 2 else 1)).backward()
            scaler.step(optimizer)
            scaler.update()
            run.step(rows)
    assert run.notes == []
    assert run.steps == 6
    assert "replayed bit for bit" in run.verdict


def test_modules_in_eval_mode_stay_so(tmp_path):
    model = with_everything()
    model.train = lambda mode=True: (
        [  # a frozen batch norm, as users write it
            setattr(m, "training", mode and not isinstance(m, nn.BatchNorm2d))
            for m in model.modules()
        ]
        and model
    )
    run = trained(model, SGD(model.parameters(), lr=0.1), tmp_path / "run")
    assert run.trajectory.loop.evaluated == ("1",)
    assert "replayed bit for bit" in run.verdict


def test_weights_that_are_changed_between_updates_are_found_out(tmp_path):
    model = plain()

    def squeeze(x):
        with torch.no_grad():
            model[1].weight.mul_(0.9)  # as a swap with averaged weights would
        return x

    with pytest.warns(RuntimeWarning, match="came out otherwise than recorded .* first order only"):
        run = trained(model, SGD(model.parameters(), lr=0.1), tmp_path / "run", transform=squeeze)
    trajectory = run.trajectory
    assert not trajectory.loop.replayable
    with pytest.raises(ValueError, match="a loop that cannot be made again"):
        replay(trajectory, model, *data(), 2)


def test_rows_are_found_by_their_values(tmp_path):
    model = plain()
    rows = batches(10)
    run = trained(
        model, SGD(model.parameters(), lr=0.1), tmp_path / "run", rows=rows, tell="values"
    )
    trajectory = run.trajectory
    assert all(torch.equal(trajectory.rows(k), own) for k, own in enumerate(rows))
    assert trajectory.loop.kept_x is None


@pytest.mark.parametrize("tell", ["rows", "values"])
def test_small_augmentations_are_kept_and_replayed(tell, tmp_path):
    model = plain()
    run = trained(
        model, SGD(model.parameters(), lr=0.1), tmp_path / "run", tell=tell,
        transform=lambda x: x.flip(-1),
    )  # fmt: skip
    trajectory = run.trajectory
    assert "replayed bit for bit" in run.verdict
    assert len(trajectory.loop.kept_x) == 80
    x, y = data()
    split = path_kernel(model, x, y, trajectory=trajectory, queries=x[:2])
    assert split.relative_rounding < 1e-12  # each row is known, its values are those it had
    assert float(split.unknown.abs().max()) == 0


def test_large_augmentations_leave_a_hash_and_first_order(tmp_path, monkeypatch):
    monkeypatch.setattr("inscape.training.batch_finder.SMALL", 100)
    model = plain()
    with pytest.warns(RuntimeWarning, match="only their hashes are, and explanations are first"):
        run = trained(
            model, SGD(model.parameters(), lr=0.01), tmp_path / "run",
            transform=lambda x: x + 0.01,
        )  # fmt: skip
    trajectory = run.trajectory
    assert trajectory.loop.kept_x is None
    assert bool((trajectory.loop.hashes > 0).all())
    with pytest.raises(ValueError, match="their transformed batches were not kept"):
        replay(trajectory, model, *data(), 2)
    x, y = data()
    split = path_kernel(model, x, y, trajectory=trajectory, queries=x[:2])
    assert split.relative_residual < 1e-12  # along straight lines between checkpoints
    assert 1e-6 < split.relative_rounding < 0.2  # and what that misses is told


def test_rows_that_are_not_in_the_data_have_a_part_of_their_own(tmp_path):
    x, y = data()
    model = plain()
    with pytest.warns(RuntimeWarning, match="some rows of batches are not in the data"):
        run = trained(
            model, SGD(model.parameters(), lr=0.1), tmp_path / "run", tell="values",
            told=(x[:30], y[:30]),
        )  # fmt: skip
    assert "replayed bit for bit" in run.verdict
    split = path_kernel(model, x[:30], y[:30], trajectory=run.trajectory, queries=x[:2])
    assert float(split.unknown.abs().max()) > 0
    total = split.initial + split.samples.sum(1) + split.unknown
    assert_close(total, split.final)


def test_a_loop_without_data_keeps_every_row_once(tmp_path):
    model = plain()
    run = trained(
        model, SGD(model.parameters(), lr=0.1), tmp_path / "run", tell="values", told=None
    )
    trajectory = run.trajectory
    x, y = data()
    with np.load(tmp_path / "run" / "data.npz") as arrays:
        own_x, own_y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    seen = list(dict.fromkeys(torch.cat(batches(10)).tolist()))
    assert torch.equal(own_x, x[seen])
    assert torch.equal(own_y, y[seen])
    expected = replay(trajectory, model, own_x, own_y, 10)
    assert all(torch.equal(expected[k], t) for k, t in model.state_dict().items())
    split = path_kernel(model, own_x, own_y, trajectory=trajectory, queries=x[:2])
    assert split.relative_rounding < 1e-12


def test_all_instruments_of_trajectories_take_a_recording(tmp_path):
    x, _ = data()
    model = plain()
    trajectory = trained(model, ADAM(model.parameters(), lr=0.01), tmp_path / "run").trajectory
    drift = kernel_drift(model, x[:5], trajectory=trajectory)
    assert drift.steps.tolist() == [0, 4, 8, 10]
    assert region_evolution(model.eval(), x[:5], trajectory=trajectory, steps=2).steps[-1] == 10
    moved = inscape.spectra.distance_from_init(model, x[:5], start=trajectory)
    assert moved.summary().value > 0


def test_a_trajectory_of_a_loop_survives_saving_as_one_file(tmp_path):
    model = with_everything()
    trajectory = trained(model, ADAM(model.parameters(), lr=0.01), tmp_path / "run").trajectory
    again = Trajectory.load(trajectory.save(tmp_path / "one.npz"))
    assert again.loop.about() == trajectory.loop.about()
    x, y = data()
    assert_close(
        path_kernel(model, x, y, trajectory=again, queries=x[:1]).samples,
        path_kernel(model, x, y, trajectory=trajectory, queries=x[:1]).samples,
    )


def test_the_training_is_the_same_with_and_without_recording(tmp_path):
    model, bare = with_everything(torch.float32), with_everything(torch.float32)
    run = trained(model, ADAM(model.parameters(), lr=0.01), tmp_path / "run", tell="values")
    x, y = data(torch.float32)
    optimizer = ADAM(bare.parameters(), lr=0.01)
    torch.manual_seed(7)
    for rows in batches(10):
        optimizer.zero_grad()
        nn.functional.cross_entropy(bare.train()(x[rows]), y[rows]).backward()
        optimizer.step()
    assert run.steps == 10
    assert all(torch.equal(model.state_dict()[k], t) for k, t in bare.state_dict().items())
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_names_of_losses_of_pytorch_are_ours(tmp_path):
    model = plain()
    optimizer = SGD(model.parameters(), lr=0.1)
    for number, (loss, name) in enumerate(
        [
            (nn.CrossEntropyLoss(), "cross_entropy"),
            (nn.functional.cross_entropy, "cross_entropy"),
            (nn.CrossEntropyLoss(label_smoothing=0.1), "own:CrossEntropyLoss"),
            (nn.MSELoss(), "mse"),
            (nn.functional.binary_cross_entropy_with_logits, "bce_logits"),
        ]
    ):
        with record_training(model, optimizer, loss=loss, to=tmp_path / str(number)):
            pass
        about = json.loads((tmp_path / str(number) / "about.json").read_text())
        assert about["settings"]["loss"] == name
