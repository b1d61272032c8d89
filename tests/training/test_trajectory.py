import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.errors import DataError
from inscape.training.settings import FitSettings
from inscape.training.trajectory import Trajectory, fingerprint

SETTINGS = FitSettings(
    loss="mse",
    optimizer="adam",
    lr=0.1,
    momentum=0.0,
    nesterov=False,
    weight_decay=0.0,
    betas=(0.9, 0.99),
    batch=2,
    epochs=3,
    schedule=None,
    stop_loss=1e-3,
    stop_on="running",
    penalties=((0.1, "l2_norm"),),
    seed=4,
    record=4,
)


def way(**changes):
    """Three epochs of five points in batches of two: nine steps, checkpoints at 0, 4, 8, 9."""
    made = Trajectory(
        states={
            "0.weight": torch.arange(8.0).reshape(4, 1, 2),
            "late": torch.zeros(4),
            "count": torch.tensor([0, 4, 8, 9]),
        },
        memory={
            "0.step": torch.tensor([4.0, 8.0, 9.0]),
            "0.exp_avg": torch.arange(6.0).reshape(3, 1, 2),
            "0.exp_avg_sq": torch.ones(3, 1, 2),
            "1.step": torch.tensor([1.0, 2.0]),
            "1.exp_avg": torch.tensor([7.0, 8.0]),
            "1.exp_avg_sq": torch.ones(2),
        },
        checkpoints=torch.tensor([0, 4, 8, 9]),
        rates=torch.linspace(1, 0.2, 9, dtype=torch.float64),
        order=torch.tensor([[4, 0, 3, 1, 2], [0, 1, 2, 3, 4], [2, 3, 4, 0, 1]], dtype=torch.uint8),
        trainable=("0.weight", "late"),
        settings=SETTINGS,
        data="abc",
    )
    return replace(made, **changes)


def test_checkpoints_are_state_dicts():
    assert way().steps == 9
    assert way().at(4)["0.weight"].tolist() == [[2.0, 3.0]]
    assert way().at(9)["count"] == 9
    assert [way().before(step) for step in (0, 3, 4, 7, 8, 9)] == [0, 0, 4, 4, 8, 9]
    assert repr(way()) == "Trajectory(9 steps of adam, 4 checkpoints)"


def test_a_checkpoint_is_a_copy():
    one = way()
    one.at(4)["0.weight"].zero_()
    one.optimizer_state(4)[0]["exp_avg"].fill_(-1)
    assert one.at(4)["0.weight"].any()
    assert one.optimizer_state(4)[0]["exp_avg"].tolist() == [[0.0, 1.0]]


def test_the_optimizers_memory_belongs_to_the_last_checkpoints():
    assert way().optimizer_state(0) == {}
    assert list(way().optimizer_state(4)) == [0]
    late = way().optimizer_state(8)
    assert late[0]["exp_avg"].tolist() == [[2.0, 3.0]]
    assert late[1]["exp_avg"] == 7.0
    assert way().optimizer_state(9)[1]["exp_avg"] == 8.0


def test_rows_are_the_batch_of_each_step():
    batches = [way().rows(step).tolist() for step in range(9)]
    assert batches == [[4, 0], [3, 1], [2], [0, 1], [2, 3], [4], [2, 3], [4, 0], [1]]
    assert way(order=None).rows(3) == slice(None)


def test_steps_that_are_not_there_are_refused():
    with pytest.raises(
        ValueError, match=r"step 6 is no checkpoint, the nearest before it is 4: use"
    ):
        way().at(6)
    for step in (-1, 10):
        with pytest.raises(ValueError, match=rf"between 0 and 9, found {step}: choose another"):
            way().at(step)
    with pytest.raises(ValueError, match=r"between 0 and 8, found 9"):
        way().rows(9)


@pytest.mark.parametrize("order", [way().order, None])
def test_a_file_holds_everything(tmp_path, order):
    made = way(order=order)
    path = made.save(tmp_path / "way.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["way.npz"]
    read = Trajectory.load(str(path))
    assert read.settings == made.settings
    for name in ("states", "memory", "checkpoints", "rates", "order"):
        one, two = getattr(made, name), getattr(read, name)
        if one is None:
            assert two is None
        else:
            assert_close(two, one, rtol=0, atol=0)
    assert (read.data, read.trainable) == (made.data, made.trainable)
    assert read.states["count"].dtype == torch.int64


def test_the_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = way().save(tmp_path / "way.npz")
    before = path.read_bytes()

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        way(data="other").save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["way.npz"]


def test_only_npz_is_written(tmp_path):
    with pytest.raises(
        ValueError, match=r"written as \.npz, found 'way\.pt': rename it to 'way\.npz'"
    ):
        way().save(tmp_path / "way.pt")


def test_types_that_numpy_does_not_know_are_refused(tmp_path):
    states = {"w": torch.zeros(4, dtype=torch.bfloat16)}
    text = r"types that numpy knows, found torch\.bfloat16 in 'states/w': train in float32"
    with pytest.raises(TypeError, match=text):
        way(states=states).save(tmp_path / "way.npz")
    assert not list(tmp_path.iterdir())


def damaged(path, kind):
    whole = path.read_bytes()
    match kind:
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "changed":
            place = whole.index(np.arange(8, dtype=np.float32).tobytes())
            path.write_bytes(whole[: place + 8] + b"\xff" + whole[place + 9 :])
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("hello")
        case "array":
            with path.open("wb") as file:
                np.save(file, np.zeros(3))
        case "other npz":
            np.savez(path, x=np.zeros(3))
        case "pickle":
            np.savez(path, about=np.array([{"a": 1}], dtype=object))
        case "no settings":
            np.savez(path, about=np.array(json.dumps({"schema": 1})))


@pytest.mark.parametrize(
    "kind",
    ["truncated", "changed", "empty", "text", "array", "other npz", "pickle", "no settings"],
)
def test_a_bad_file_is_named(tmp_path, kind):
    path = way().save(tmp_path / "way.npz")
    damaged(path, kind)
    with pytest.raises(
        DataError, match=r"way\.npz must be a trajectory saved by Inscape, found some"
    ):
        Trajectory.load(path)


ONES = np.ones(3, np.float32)
MISFITS = [
    ({"checkpoints": np.array([0, 4, 4, 9])}, {}, "checkpoints that do not increase"),
    ({"checkpoints": np.zeros(4)}, {}, "checkpoints that are no list of integers"),
    ({"checkpoints": np.zeros(0, np.int64)}, {}, "checkpoints that are no list of integers"),
    ({"rates": np.ones(9, np.float32)}, {}, "learning rates that are no list of numbers"),
    ({"order": np.full((3, 5), 5)}, {}, "an order of the data that is none"),
    ({"order": np.zeros((3, 5))}, {}, "an order of the data that is none"),
    ({}, {"trainable": ["0.weight", "other"]}, "no weights of 'other'"),
    ({}, {"trainable": ["0.weight", 3]}, "names that are no text"),
    ({}, {"data": 3}, "names that are no text"),
    ({"states/count": np.array(3)}, {}, "another number of checkpoints of 'count'"),
    ({"memory/2.step": ONES}, {}, r"'2\.step' in the optimiser state"),
    ({"memory/x": ONES}, {}, "'x' in the optimiser state"),
    ({"memory/0.step": np.ones(5)}, {}, r"too many rows of '0\.step'"),
    ({"memory/0.step": -ONES}, {}, r"another shape or type of '0\.step'"),
    ({"memory/0.exp_avg": np.ones((3, 2))}, {}, r"another shape or type of '0\.exp_avg'"),
    ({"memory/0.exp_avg": np.ones((3, 1, 2))}, {}, r"another shape or type of '0\.exp_avg'"),
    ({"memory/1.step": ONES}, {}, "a part of the optimiser state of 'late' only"),
    ({"memory/1.step": None}, {}, "a part of the optimiser state of 'late' only"),
    ({}, {"lr": "fast"}, "the setting lr = 'fast'"),
    ({}, {"betas": [1, 2, 3]}, r"the setting betas = \(1, 2, 3\)"),
    ({}, {"batch": 0}, "the setting batch = 0"),
    ({}, {"seed": 2.5}, r"the setting seed = 2\.5"),
    ({}, {"penalties": [[None, "l2"]]}, "the setting penalties = "),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("arrays", "facts", "text"), MISFITS, ids=[text for *_, text in MISFITS])
def test_parts_that_do_not_fit_are_named(tmp_path, arrays, facts, text):
    path = way().save(tmp_path / "way.npz")
    stored = {**np.load(path), **arrays}
    about = json.loads(stored["about"].item())
    for name, value in facts.items():
        (about["settings"] if name in about["settings"] else about)[name] = value
    stored["about"] = np.array(json.dumps(about))
    np.savez(path, **{name: array for name, array in stored.items() if array is not None})
    with pytest.raises(DataError, match=rf"found something else \(ValueError: {text}"):
        Trajectory.load(path)


def test_a_file_of_the_future_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("inscape.training.trajectory.SCHEMA", 2)
    path = way().save(tmp_path / "way.npz")
    monkeypatch.undo()
    with pytest.raises(
        DataError, match=r"has schema 2, this version reads up to 1: update inscape"
    ):
        Trajectory.load(path)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "none.npz")


def test_a_fingerprint_knows_values_shapes_and_types():
    x = torch.arange(6.0).reshape(2, 3)
    known = fingerprint(x, x)
    assert known == fingerprint(x.clone(), x.T.contiguous().T)
    others = [x + 1, x.double(), x.reshape(3, 2), x.T, -x]
    assert len({known, *(fingerprint(other, x) for other in others), fingerprint(x)}) == 7
    assert fingerprint(torch.tensor([True])) != fingerprint(torch.tensor([False]))
    assert len(fingerprint(torch.zeros(2, dtype=torch.bfloat16))) == 64
