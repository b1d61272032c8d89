"""Sweeps: numbers equal those by hand, failures have rows, nothing is measured twice."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import inscape
from inscape._core import Result, instruments
from inscape.loaders import performance
from inscape.models import mlp
from inscape.report import Sweep, sweep
from inscape.report.look import subject
from inscape.report.sweeps.cells import SHELF
from inscape.report.sweeps.models import entries, natural
from inscape.report.sweeps.saving import json_text
from inscape.selection import selected_instruments
from inscape.smoothness import gradient_norm, path_length

ONLY = "gradient_norm,path_length,weights_product"

NET = '''"""A factory that notes each call."""

from pathlib import Path

from torch import nn


def make():
    with Path(__file__).with_name("opened.txt").open("a") as file:
        file.write("x")
    return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2))
'''


class Folder:
    """Checkpoints of one architecture, data and a factory, in a folder."""

    def __init__(self, path: Path, count: int = 4) -> None:
        self.path = path
        (path / "net.py").write_text(NET)
        (path / "ckpts").mkdir()
        for k in range(count):
            torch.save(mlp(3, 6, 2, seed=k).state_dict(), path / "ckpts" / f"epoch-{4 * k}.pt")
        x = np.random.default_rng(0).normal(size=(60, 3)).astype("float32")
        np.savez(path / "data.npz", x=x, y=(x[:, 0] > 0).astype("int64"))

    @property
    def factory(self) -> str:
        return f"{self.path / 'net.py'}:make"

    @property
    def opened(self) -> int:
        file = self.path / "opened.txt"
        return len(file.read_text()) if file.exists() else 0

    def sweep(self, models: object = None, **more) -> Sweep:
        options = {"only": ONLY, "model": self.factory, "executor": "serial", "quiet": True, **more}
        return sweep(models or self.path / "ckpts", str(self.path / "data.npz"), **options)


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def data() -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(80, 3, generator=rng)
    return x, (x[:, 0] > 0).long()


@pytest.fixture(scope="module")
def found(data) -> Sweep:
    """A sweep over five networks in memory, with a column."""
    nets = {f"net {k}": mlp(3, 4 + 2 * k, 2, seed=k) for k in range(5)}
    return sweep(nets, data, only=[ONLY, "robustness"], columns={"size": range(5)}, quiet=True)


def net(k: int) -> nn.Module:
    return mlp(3, 4 + 2 * k, 2, seed=k)


def test_the_table_is_what_the_instruments_say_by_hand(found, data):
    for k in range(5):
        for call in (gradient_norm, path_length):
            ours = found.measurement(f"net {k}", call.__name__)
            theirs = call(net(k), data[0], seed=0)
            assert ours.summary == theirs.summary()
            np.testing.assert_array_equal(ours.samples, theirs.per_sample().double().numpy())
        scores = performance(net(k), *data, "cross_entropy")
        assert found.value(f"net {k}", "accuracy") == scores.accuracy
        assert found.value(f"net {k}", "loss") == pytest.approx(scores.loss, rel=1e-12)


def test_another_seed_takes_other_samples(data):
    ours = sweep([net(1)], data, only="path_length", seed=7, quiet=True)
    theirs = path_length(net(1), data[0], seed=7).summary()
    assert ours.value("Sequential 1", "path_length") == theirs.value


def test_values_by_sample_have_the_mean_that_is_said(data):
    keeping = []
    for name in ("disagreement", "gradient_deflection", "gradient_norm", "gradient_path_length",
                 "line_regions", "map_compression", "map_distance", "map_transfer",
                 "mutual_neighbours", "output_cross_entropy", "path_length", "robustness",
                 "rugosity", "saliency"):  # fmt: skip
        result = instruments()[name].measure(net(1), *data)
        samples, summary = result.per_sample(), result.summary()
        assert float(samples.double().mean()) == pytest.approx(summary.value, rel=1e-6), name
        keeping.append(type(result))
    ours = {kind for kind in Result.types.values() if kind.__module__.startswith("inscape.")}
    assert set(keeping) < ours
    assert all(kind.per_sample is Result.per_sample for kind in ours - set(keeping))


def test_samples_of_two_models_are_compared_in_pairs(found, data):
    (one,) = [d for d in found.differences("net 4", "net 0") if d.instrument == "gradient_norm"]
    a, b = (gradient_norm(net(k), data[0]).norms.double().numpy() for k in (4, 0))
    theirs = stats.ttest_rel(a, b).confidence_interval()
    ends = one.difference.low, one.difference.high
    assert ends == pytest.approx((theirs.low, theirs.high))
    assert one.distinct == (ends[0] > 0 or ends[1] < 0)
    (exact,) = [d for d in found.differences("net 4", "net 0") if d.instrument == "weights_product"]
    assert exact.difference.method == "exact: both numbers are"


def test_a_difference_with_a_model_that_is_not_there_names_those_that_are(found):
    with pytest.raises(ValueError, match="found 'net 9': they are called net 0, net 1"):
        found.differences("net 9", "net 0")


def test_correlations_are_those_of_scipy(found):
    taus = {
        (correlation.instrument, correlation.column): correlation
        for correlation in found.correlations
    }
    values = [found.value(f"net {k}", "path_length") for k in range(5)]
    theirs = stats.kendalltau(values, range(5))
    assert taus["path_length", "size"].tau.value == pytest.approx(theirs.statistic)
    assert taus["path_length", "size"].p == pytest.approx(theirs.pvalue)
    assert ("gradient_norm", "accuracy") in taus
    assert ("accuracy", "accuracy") not in taus


def test_the_frame_is_tidy(found):
    frame = found.to_frame()
    assert len(frame) == 5 * 6
    assert not frame.duplicated(["model", "instrument"]).any()
    assert list(frame["size"].unique()) == [0, 1, 2, 3, 4]
    row = frame[(frame.model == "net 2") & (frame.instrument == "gradient_norm")].iloc[0]
    assert row.low < row.value < row.high
    assert row.samples == 80
    assert row.kind == "estimate"


def test_files_give_the_numbers_of_their_weights(folder):
    swept = folder.sweep()
    x = torch.tensor(np.load(folder.path / "data.npz")["x"])
    assert [model.name for model in swept.models] == ["epoch-0", "epoch-4", "epoch-8", "epoch-12"]
    for k, model in enumerate(swept.models):
        theirs = gradient_norm(mlp(3, 6, 2, seed=k), x).summary()
        assert swept.measurement(model.name, "gradient_norm").summary == theirs


def test_each_model_is_opened_once(folder):
    folder.sweep()
    assert folder.opened == 4


def test_what_is_there_is_not_measured_again(folder):
    out = folder.path / "out"
    first = folder.sweep(out=out)
    again = folder.sweep(out=out)
    assert (first.computed, again.computed) == (16, 0)
    assert [a.row() for a in first.measurements] == [b.row() for b in again.measurements]
    torch.save(mlp(3, 6, 2, seed=9).state_dict(), folder.path / "ckpts" / "epoch-4.pt")
    assert folder.sweep(out=out).computed == 4
    more = folder.sweep(out=out, only=[ONLY, "rugosity"])
    assert more.computed == 4
    assert folder.sweep(out=out, fresh=True).computed == 16


def test_a_factory_that_changes_is_measured_again(folder):
    out = folder.path / "out"
    folder.sweep(out=out)
    (folder.path / "net.py").write_text(NET.replace("nn.ReLU()", "nn.Tanh()"))
    assert folder.sweep(out=out).computed == 16


def test_objects_are_found_again_by_what_they_hold(data, tmp_path):
    first = sweep([net(0), net(1)], data, only="gradient_norm", out=tmp_path, quiet=True)
    again = sweep([net(0), net(1)], data, only="gradient_norm", out=tmp_path, quiet=True)
    other = sweep([net(0), net(2)], data, only="gradient_norm", out=tmp_path, quiet=True)
    assert (first.computed, again.computed, other.computed) == (4, 0, 2)


def test_models_that_cannot_be_opened_have_a_row_each(folder):
    broken = folder.path / "broken.pt"
    broken.write_bytes(b"PK\x03\x04 not a model")
    other = folder.path / "other.pt"
    torch.save(mlp(5, 7, 2).state_dict(), other)
    good = folder.path / "ckpts" / "epoch-0.pt"
    swept = folder.sweep([str(good), str(broken), str(other), str(folder.path / "gone.pt")])
    rows = {row["model"]: row for row in swept.rows() if str(row["status"]).startswith("failed")}
    assert sorted(rows) == ["broken", "gone", "other"]
    assert all(row["instrument"] == "all" for row in rows.values())
    assert "must be an existing file" in rows["gone"]["status"]
    assert "is (2, 6) in the model and (2, 7) in the file" in rows["other"]["status"]
    assert swept.value("epoch-0", "gradient_norm") > 0
    assert "3 of 4 models could not be opened" in swept.save(folder.path / "a.html").read_text()


def test_models_of_any_kind_stand_in_one_sweep(folder):
    exported = folder.path / "whole.pt2"
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net(1), (torch.zeros(4, 3),), dynamic_shapes=[{0: batch}])
    torch.export.save(program, exported)
    onnx = folder.path / "missing.onnx"
    swept = folder.sweep([folder.factory, str(exported), str(onnx)])
    x = torch.tensor(np.load(folder.path / "data.npz")["x"])
    value = swept.value("whole", "gradient_norm")
    assert value == pytest.approx(gradient_norm(net(1), x).summary().value, rel=1e-5)
    assert swept.value(folder.factory, "gradient_norm") > 0
    assert [failure.model for failure in swept.failed] == ["missing"]


def test_an_instrument_that_fails_leaves_the_others(folder, monkeypatch):
    result = instruments()["path_length"]
    monkeypatch.setattr(type(result), "measure", _only_failing("path_length", type(result).measure))
    swept = folder.sweep()
    assert {result.instrument for result in swept.failed} == {"path_length"}
    assert all("ZeroDivisionError: no luck" in result.status for result in swept.failed)
    assert swept.value("epoch-8", "gradient_norm") > 0


def _only_failing(name, usual):
    def measure(self, *args, **settings):
        if self.name == name:
            raise ZeroDivisionError("no luck")
        return usual(self, *args, **settings)

    return measure


def test_what_does_not_apply_says_so(data):
    swept = sweep([net(0)], data, only="slope_variation", quiet=True)
    (row,) = [row for row in swept.rows() if row["instrument"] == "slope_variation"]
    assert row["status"] == "not applicable: it needs one input dimension, the model has 3"
    assert not swept.failed


def test_data_without_labels_are_measured_without_accuracy(data):
    swept = sweep([net(0)], data[0], only="gradient_norm,robustness", quiet=True)
    assert swept.instruments == ("gradient_norm",)
    (row,) = [row for row in swept.rows() if row["instrument"] == "robustness"]
    assert row["status"] == "not applicable: it needs labels, the data have none"


def test_a_budget_chooses_rows_once_and_for_all(folder, monkeypatch):
    pace = 1e-3
    monkeypatch.setattr(subject, "seconds_per_row", lambda *a, **k: pace)
    x = np.random.default_rng(1).normal(size=(3000, 3)).astype("float32")
    np.savez(folder.path / "data.npz", x=x)
    settings = {"only": "gradient_norm", "budget": 2.0, "out": folder.path / "out"}
    first = folder.sweep(**settings)
    assert first.rows_measured == 200  # 0.5 s to open, and 5 passes of 1 ms for each row
    pace = 1e-5
    again = folder.sweep(**settings)
    assert (again.rows_measured, again.computed) == (200, 0)
    assert folder.sweep(**settings | {"seed": 1}).rows_measured == 3000


def test_a_budget_leaves_out_what_never_fits(folder, monkeypatch):
    monkeypatch.setattr(subject, "seconds_per_row", lambda *a, **k: 1e-3)
    swept = folder.sweep(only="gradient_norm,gradient_path_length", budget=3.0)
    assert list(swept.left_out) == ["gradient_path_length"]
    assert swept.instruments == ("accuracy", "loss", "gradient_norm")
    with pytest.raises(ValueError, match="budget must be a positive number of seconds, found -1"):
        folder.sweep(budget=-1.0)


def selected(only):
    return selected_instruments(only, usual_of_families=True)


def test_families_and_names_are_selected():
    assert {instrument.family for instrument in selected("smoothness,regions").values()} == {
        "smoothness",
        "regions",
    }
    assert "tropical" not in selected("regions")  # a sweep takes the usual ones of a family
    assert "tropical" in selected_instruments("regions")
    assert set(selected(["robustness", "path_length"])) == {"robustness", "path_length"}
    assert "lipschitz" in selected("controls")
    assert all(instrument.by_default for instrument in selected(None).values())


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ("smothness", "no instrument or family is called 'smothness': did you mean"),
        ("qqq", "no instrument or family is called 'qqq': choose from "),
        ("path_kernel", "found 'path_kernel', which needs a recorded training: leave it out"),
        ("interpolation", "found 'interpolation', which needs two networks: leave it out"),
    ],
)
def test_what_cannot_be_selected_is_refused(only, said):
    with pytest.raises(ValueError, match=said):
        selected(only)


def test_arguments_that_cannot_be_are_refused(data, folder):
    with pytest.raises(ValueError, match="two names of one argument"):
        sweep([net(0)], data, only="rugosity", measures="rugosity")
    with pytest.raises(ValueError, match="in memory must be measured in this process, found exec"):
        sweep([net(0)], data, executor="joblib")
    with pytest.raises(ValueError, match="at least one model, found none"):
        sweep([], data)
    (folder.path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"must hold files that end in \.pt2"):
        folder.sweep(folder.path / "empty")
    with pytest.raises(ValueError, match=r"no file matches .*nothing"):
        folder.sweep(str(folder.path / "nothing*.pt"))


def test_measures_is_another_name_of_only(data):
    swept = sweep([net(0)], data, measures=["gradient_norm"], quiet=True)
    assert swept.instruments == ("accuracy", "loss", "gradient_norm")


def test_a_function_builds_the_network_of_weights(folder):
    swept = folder.sweep(model=lambda: mlp(3, 6, 2), executor=None)
    assert swept.value("epoch-4", "gradient_norm") == folder.sweep().value(
        "epoch-4", "gradient_norm"
    )


def test_nothing_is_left_in_memory_or_in_the_temporary_folder(data, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sweep([net(0)], data, only="gradient_norm", quiet=True)
    assert not SHELF.objects
    assert not SHELF.subjects
    with pytest.raises(ValueError, match="at least one example"):
        sweep([net(0)], torch.zeros(0, 3), only="gradient_norm")
    assert not list(tmp_path.iterdir())


def test_a_folder_of_data_is_an_option_like_any_other(folder):
    swept = folder.sweep(data_options={"data_dir": folder.path, "labels": "none"})
    assert "accuracy" not in swept.instruments


def test_models_are_named_and_ordered_as_people_would(tmp_path):
    for name in ("b/e-10.pt", "b/e-9.pt", "c/e-9.pt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    options = {"take": None}

    def names(*models):
        listed = [str(tmp_path / model) for model in models]
        return [entry.name for entry in entries(listed, factory=None, options=options)]

    assert names("b") == ["e-9", "e-10"]
    assert names("b/e-10.pt", "b/e-9.pt") == ["e-9", "e-10"]  # as a shell lists them
    assert names("c/e-9.pt", "b/e-10.pt") == ["e-9", "e-10"]  # as a person does
    assert names("b/*.pt") == ["e-9", "e-10"]
    assert names("b/e-9.pt", "c/e-9.pt") == [str(tmp_path / f"{k}/e-9.pt") for k in "bc"]
    assert names("b/e-9.pt", "b/e-9.pt") == ["e-9"]
    assert natural("a10") > natural("a9")


def test_the_signature_is_there_for_completion():
    names = list(inspect.signature(inscape.sweep).parameters)
    assert names[:4] == ["models", "data", "only", "measures"]
    assert inspect.signature(inscape.sweep).return_annotation is Sweep
    assert (inscape.sweep.__doc__ or "").startswith("Measure many models")


def test_json_holds_everything_but_the_samples(found):
    plain = json.loads(json_text(found))
    assert plain["rows_measured"] == 80
    assert len(plain["measurements"]) == 30
    assert {row["instrument"] for row in plain["differences"]} == set(found.instruments)
