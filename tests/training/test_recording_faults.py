"""What a recording refuses, and how it ends where it cannot go on: the training always does."""

import signal
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from faults import Disk, failing
from inscape.errors import DataError
from inscape.training import Trajectory, record_training, replay
from inscape.training.recording import Recording
from inscape.training.recording_checks import bare_model, bare_optimizer
from recorded_loops import batches, data, plain, trained

SGD = torch.optim.SGD


def loop(model, run, optimizer, steps=10, tell=lambda run, rows, number: run.step(rows)):
    x, y = data()
    for number, rows in enumerate(batches(steps)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        tell(run, rows, number)


def begun(tmp_path, **settings):
    model = plain().train()
    optimizer = SGD(model.parameters(), lr=0.1)
    options = {"loss": "cross_entropy", "data": data(), "every": 4, "to": tmp_path / "run"}
    return model, optimizer, record_training(model, optimizer, **options | settings)


def test_a_step_that_the_loop_does_not_tell_is_said_and_bridged(tmp_path):
    model, optimizer, run = begun(tmp_path, every=3)

    def all_but_one(run, rows, number):
        if number != 4:
            run.step(rows)

    with pytest.warns(RuntimeWarning, match=r"called without run.step: 1 update of unknown"), run:
        loop(model, run, optimizer, tell=all_but_one)
    trajectory = run.trajectory
    assert trajectory.steps == 10
    assert trajectory.loop.counts.tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]
    assert trajectory.checkpoints.tolist() == [0, 3, 6, 9, 10]
    from inscape.kernels import path_kernel

    x, y = data()
    split = path_kernel(model.eval(), x, y, trajectory=trajectory, queries=x[:2])
    assert split.relative_residual < 1e-12


def test_a_last_step_that_is_not_told_is_said(tmp_path):
    model, optimizer, run = begun(tmp_path)
    with pytest.warns(RuntimeWarning, match="1 update of unknown batches"), run:
        loop(model, run, optimizer, tell=lambda run, rows, k: run.step(rows) if k < 9 else None)
    assert run.trajectory.steps == 10


def test_a_step_without_an_update_is_said_and_left_out(tmp_path):
    model, optimizer, run = begun(tmp_path)

    def twice(run, rows, number):
        run.step(rows)
        if number == 3:
            run.step(rows)

    with pytest.warns(RuntimeWarning, match=r"without an optimizer.step\(\) .* accumulate=k"), run:
        loop(model, run, optimizer, tell=twice)
    assert run.trajectory.steps == 10
    assert "replayed bit for bit" in run.verdict


def test_every_write_fails_in_turn_and_the_training_goes_on(tmp_path):
    expected = plain().train()
    loop(expected, None, SGD(expected.parameters(), lr=0.1), tell=lambda *_: None)
    writes, at = None, 0
    while writes is None or at < writes:
        folder = tmp_path / str(at)
        model, optimizer, run = begun(folder.parent, to=folder)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            folder.mkdir()
            with failing(Disk(10**9 if writes is None else at)) as disk, run:
                loop(model, run, optimizer)
        assert all(torch.equal(model.state_dict()[k], t) for k, t in expected.state_dict().items())
        if writes is None:
            assert not said
            writes = disk.writes
            assert writes > 10
            folder.rename(tmp_path / "whole")
            continue
        stopped = [w for w in said if "stopped at update" in str(w.message)]
        assert len(said) == len(stopped) <= 1
        if stopped:
            assert "No space left on device" in str(stopped[0].message)
            assert "the training goes on" in str(stopped[0].message)
        opened = [step for step in (4, 8, 10) if (folder / f"checkpoint-{step:09d}.npz").exists()]
        if opened and (folder / "about.json").exists():
            assert Trajectory.load(folder).steps == opened[-1]
        at += 7


def test_an_error_while_recording_stops_it_with_one_warning(tmp_path):
    model, optimizer, run = begun(tmp_path)

    def tell(run, rows, number):
        run.step(rows + (1000 if number == 6 else 0))

    with pytest.warns(RuntimeWarning) as said, run:
        loop(model, run, optimizer, tell=tell)
    assert [str(w.message) for w in said] == [
        f"recording to {run.path}: stopped at update 6 (ValueError: numbers of rows must lie "
        f"between 0 and 39, found {int(batches(7)[6].min()) + 1000} to "
        f"{int(batches(7)[6].max()) + 1000}: pass numbers of rows of data=(x, y).); the training "
        "goes on, and what was recorded up to update 4 can be opened."
    ]
    assert run.trajectory.steps == 4


def test_data_of_another_form_than_the_model_receives_are_said(tmp_path):
    model, optimizer, run = begun(tmp_path, data=(data()[0].flatten(1), data()[1]))
    with pytest.warns(RuntimeWarning, match=r"as the model receives them, \(1, 6, 6\)"), run:
        loop(model, run, optimizer)


def test_checkpoints_thin_out_where_the_disk_budget_ends(tmp_path):
    model, optimizer, run = begun(tmp_path, every=2, disk=200_000)
    with pytest.warns(RuntimeWarning, match="every other checkpoint is deleted"), run:
        loop(model, run, optimizer, steps=100)
    trajectory = run.trajectory
    assert trajectory.steps == 100
    assert 2 < len(trajectory.checkpoints) < 50
    size = sum(file.stat().st_size for file in run.path.iterdir())
    assert size < 205_000  # about.json is beside the budget
    assert "replayed bit for bit" in run.verdict


def test_recording_stops_where_updates_alone_exceed_the_budget(tmp_path):
    model, optimizer, run = begun(tmp_path, every=50, disk=20_000)
    with pytest.warns(RuntimeWarning, match="stopped at update .* would exceed disk=20,000"), run:
        loop(model, run, optimizer, steps=300)
    assert sum(file.stat().st_size for file in run.path.iterdir()) < 25_000


def test_disk_is_stated_beforehand(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("INSCAPE_QUIET", raising=False)
    model, optimizer, run = begun(tmp_path)
    with run:
        line = capfd.readouterr().err
        loop(model, run, optimizer)
    assert "a checkpoint every 4 updates takes 0.00 to 0.01 MB" in line
    assert "at most 1,000 MB in all, then checkpoints thin out" in line
    assert "3 updates replayed bit for bit" in capfd.readouterr().err


KILLED = """
    import os, signal, sys, torch
    sys.path.insert(0, {tests!r})
    from recorded_loops import batches, data, plain
    from inscape.training import record_training
    model = plain().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    with record_training(
        model, optimizer, loss="cross_entropy", data=(x, y), every=4, to={to!r}
    ) as run:
        for number, rows in enumerate(batches(20)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            run.step(rows)
            if number == 14:
                os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_training_opens_as_a_shorter_one(tmp_path):
    from inscape.kernels import path_kernel

    tests = str(Path(__file__).parents[1])
    script = textwrap.dedent(KILLED.format(tests=tests, to=str(tmp_path / "run")))
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    trajectory = Trajectory.load(tmp_path / "run")
    assert trajectory.steps == 12
    assert trajectory.loop.verdict == "not verified"
    x, y = data()
    model = plain()
    model.load_state_dict(trajectory.at(12))
    split = path_kernel(model.eval(), x, y, trajectory=trajectory, queries=x[:1])
    assert split.relative_rounding < 1e-12


def test_an_error_of_the_training_itself_leaves_a_recording(tmp_path):
    model, optimizer, run = begun(tmp_path)

    def interrupted():
        with run:
            loop(model, run, optimizer, steps=6)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert run.trajectory.steps == 6


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"optimizer": "LBFGS"}, ValueError, "found LBFGS, which calls its closure several times"),
        ({"model": "average"}, ValueError, r"found its average \(AveragedModel, as SWA and EMA"),
        ({"model": "other"}, ValueError, "must update parameters of the model, found 4 that are"),
        ({"model": "bfloat16"}, TypeError, "types that NumPy knows, found '1.weight' in torch.bfl"),
        ({"data": 3}, ValueError, "two tensors of one length, found int: pass data="),
        ({"data": (torch.ones(3), torch.ones(2))}, ValueError, "two tensors of one length"),
        ({"every": 0}, ValueError, "every must be"),
        ({"disk": 0}, ValueError, "disk must be"),
        ({"loss": "hinge"}, ValueError, "loss must be one of"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_training(change, error, text, tmp_path):
    model = plain()
    if change.get("model") == "bfloat16":
        model = model.to(torch.bfloat16)
    optimizer = SGD(model.parameters(), lr=0.1)
    models = {
        "average": lambda: torch.optim.swa_utils.AveragedModel(model),
        "other": plain,
        "bfloat16": lambda: model,
    }
    if "optimizer" in change:
        optimizer = torch.optim.LBFGS(model.parameters())
    given = models[change["model"]]() if "model" in change else model
    options = {"loss": "cross_entropy", "to": tmp_path / "run"}
    options |= {k: v for k, v in change.items() if k not in ("model", "optimizer")}
    with pytest.raises(error, match=text):
        record_training(given, optimizer, **options)
    assert not (tmp_path / "run").exists()


def test_what_is_no_model_and_no_optimizer_is_refused():
    with pytest.raises(TypeError, match=r"needs a torch.nn.Module, found function"):
        bare_model(lambda x: x)
    with pytest.raises(TypeError, match=r"needs the torch.optim.Optimizer of the loop, found None"):
        bare_optimizer(None)


def test_a_recording_is_not_overwritten_unasked(tmp_path):
    _, _, run = begun(tmp_path)
    with run:
        pass
    with pytest.raises(ValueError, match=r"found a recording in .* pass overwrite=True"):
        begun(tmp_path)
    model, optimizer, again = begun(tmp_path, overwrite=True)
    with again:
        loop(model, again, optimizer)
    assert again.trajectory.steps == 10


def test_a_folder_in_use_is_never_deleted(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=r"new or empty folder, found .* in use"):
            begun(tmp_path, overwrite=overwrite)
    assert (tmp_path / "run" / "thesis.tex").read_text() == "years of work"


def spoilt(folder, name, change):
    path = folder / name
    before = path.read_bytes()
    path.write_bytes(change(before))
    assert path.read_bytes() != before


def swap(old, new):
    """Return a change of a text that must be there."""
    return lambda content: content.replace(*(text.encode() for text in (old, new)))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("about.json", lambda _: b"{", "found something else"),
        ("about.json", lambda b: b.replace(b'"schema": 1', b'"schema": 9'), "update inscape"),
        ("about.json", lambda b: b.replace(b'"lr"', b'"rate"'), "found something else"),
        ("about.json", lambda b: b"[" * 100_000, "found something else"),
        ("checkpoint-000000004.npz", lambda b: b[:200], "found something else"),
        ("steps-000000000.npz", lambda b: b[:100], "found something else"),
        ("about.json", swap('"autocast": null', '"autocast": "save"'), "autocast ="),
        ("about.json", swap('"accumulate": 1', '"accumulate": "x"'), "accumulate ="),
        ("about.json", swap('"dampening"', '"params"'), "options of no optimizer"),
        ("about.json", swap('[["1.weight"', '[["3.weight"'), "other parameters in the groups"),
    ],
)
def test_a_damaged_recording_is_refused(name, change, text, tmp_path):
    model = plain()
    run = trained(model, SGD(model.parameters(), lr=0.1), tmp_path / "run")
    spoilt(run.path, name, change)
    with pytest.raises(DataError, match=text):
        Trajectory.load(run.path)


def rewritten(path, **changes):
    """Write some arrays of an npz anew."""
    arrays = dict(np.load(path))
    assert changes.keys() <= arrays.keys()
    np.savez(path, **{name: changes.get(name, array) for name, array in arrays.items()})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("file", "name", "change", "text"),
    [
        ("checkpoint-000000004.npz", "states/1.weight", lambda a: a[:, 1:], "other weights than"),
        ("checkpoint-000000004.npz", "states/1.weight", lambda a: a.astype("f4"), "other weights"),
        ("steps-000000004.npz", "rows", lambda a: a[None], "same number of dimensions"),
        ("steps-000000000.npz", "options", lambda a: a.astype("c16"), "do not fit each other"),
        ("steps-000000000.npz", "rows", lambda a: a - 9, "do not fit each other"),
        ("steps-000000000.npz", "counts", lambda a: a.astype("f8"), "do not fit each other"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, name, change, text, tmp_path):
    model = plain()
    run = trained(model, SGD(model.parameters(), lr=0.1), tmp_path / "run")
    path = run.path / file
    rewritten(path, **{name: change(np.load(path)[name])})
    with pytest.raises(DataError, match=text):
        Trajectory.load(run.path)


def test_the_sizes_of_all_files_are_added_before_one_is_unpacked(tmp_path):
    model = plain()
    run = trained(model, SGD(model.parameters(), lr=0.1), tmp_path / "run")
    for number in (4, 8):  # each alone would fit
        path = run.path / f"checkpoint-{number:09d}.npz"
        np.savez_compressed(path, **{**np.load(path), "states/more": np.zeros(10**6)})
        assert path.stat().st_size < 40_000
    text = r"must unpack to at most 10 MB, found 16 MB"
    with pytest.raises(DataError, match=text):
        Trajectory.load(run.path, max_size=10_000_000)


def test_samples_beyond_the_data_and_options_of_no_optimizer_are_refused_in_a_replay(tmp_path):
    model = plain()
    run = trained(model, torch.optim.Adam(model.parameters(), lr=0.1), tmp_path / "run")
    x, y = data()
    trajectory = run.trajectory
    far = replace(trajectory, loop=replace(trajectory.loop, rows=trajectory.loop.rows + len(x)))
    with pytest.raises(ValueError, match=r"a replay needs batches of the 40 samples of the train"):
        replay(far, model, x, y, 3)
    odd = replace(trajectory.loop, options=trajectory.loop.options * 1e6)  # betas above one
    with pytest.raises(ValueError, match=r"a replay needs options and state of adam, found others"):
        replay(replace(trajectory, loop=odd), model, x, y, 3)


def test_a_folder_that_is_no_recording_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"found no about.json in it: name the folder that"):
        Trajectory.load(tmp_path)
    _, _, run = begun(tmp_path)
    with run:
        pass
    with pytest.raises(DataError, match="at least one checkpoint after the first, found none"):
        Trajectory.load(run.path)


def test_a_recording_says_what_it_is(tmp_path):
    _, _, run = begun(tmp_path)
    assert isinstance(run, Recording)
    assert run.steps == 0
