"""What is said of a prediction adds up to it, and belongs to the training that is given."""

import base64
import copy
import io
import json
import math
import os
from dataclasses import replace
from math import fsum

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import one_hot
from torch.testing import assert_close

import recorded_loops
from inscape.data import Dataset
from inscape.kernels import neighbours, path_kernel
from inscape.loaders import open_data
from inscape.models import mlp
from inscape.report import look
from inscape.report.comparison.pictures import heat
from inscape.report.look.attribution_page import amounts, bars, class_bars, signed
from inscape.report.look.attribution_text import attribution_text
from inscape.report.look.explanation import explain
from inscape.report.look.page import page
from inscape.report.look.pulse import pulse
from inscape.report.look.recorded_training import PredictionQuery, RecordedTraining
from inscape.report.look.session import prepare
from inscape.report.look.watch import BudgetWatch, Interrupted
from inscape.report.pictures import thumbnail
from inscape.report.words import number
from inscape.runtime.progress import QUIET, progress
from inscape.training import Trajectory, fit, replay
from markup import Structure


@pytest.fixture(scope="module")
def digits() -> Dataset:
    """Pictures of 8 x 8 pixels, of three classes that their brightest rows tell."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(36, 64, generator=rng, dtype=torch.float64)
    y = torch.arange(36) % 3
    for k in range(36):
        x[k].view(8, 8)[2 * int(y[k]) : 2 * int(y[k]) + 2] += 0.4
    return Dataset(name="stripes", x=x[:24], y=y[:24], x_test=x[24:], y_test=y[24:], task="classes")


@pytest.fixture(scope="module")
def net() -> nn.Sequential:
    return mlp(64, 4, 3, seed=1, dtype=torch.float64)


@pytest.fixture(scope="module")
def way(net, digits) -> Trajectory:
    run = fit(
        net, digits.x, digits.y, loss="cross_entropy", optimizer="adamw", lr=0.01, batch=8,
        weight_decay=0.1, epochs=5, record=4, progress=False,
    )  # fmt: skip
    return run.trajectory


@pytest.fixture(scope="module")
def found(net, digits, way):
    """A look that does nothing but explain."""
    return look(
        net, digits, trajectory=way, only="attribution", quiet=True, command="inscape look a:b"
    )


@pytest.fixture(scope="module")
def split(net, digits, way, found):
    rows = [explained.prediction.row for explained in found.attribution.explained]
    return path_kernel(net, digits.x, digits.y, trajectory=way, queries=digits.x_test[rows])


def test_parts_add_up_to_what_the_network_says(found, net, digits):
    for explained in found.attribution.explained:
        said = net(digits.x_test)[explained.prediction.row]
        assert explained.prediction.output == int(said.argmax()) == int(explained.prediction.says)
        assert explained.total == pytest.approx(said.max().item(), abs=1e-12)
        assert explained.final == pytest.approx(explained.prediction.value, abs=1e-12)
        assert explained.prediction.probability == pytest.approx(said.softmax(0).max().item())
        assert list(explained.rest) == ["weight decay", "residual"]
    assert found.attribution.residual < 1e-12


def test_amounts_are_those_of_the_path_kernel(found, split, digits):
    for k, one in enumerate(found.attribution.explained):
        added = split.samples[k, :, one.prediction.output]
        named = {push.row: push.amount for push in (*one.up, *one.down)}
        assert named == pytest.approx({row: float(added[row]) for row in named})
        assert [push.row for push in one.up] == added.argsort(descending=True)[:5].tolist()
        assert [push.row for push in one.down] == added.argsort()[:5].tolist()
        others = [float(a) for row, a in enumerate(added) if row not in named]
        assert one.others.rows == len(others) == 14
        assert one.others.amount == pytest.approx(fsum(others))
        assert one.others.up == pytest.approx(fsum(a for a in others if a > 0))
        assert {push.label for push in one.up} <= {"0", "1", "2"}
        for push in one.by_class:
            members = digits.y == int(push.label)
            assert push.rows == int(members.sum())
            assert push.amount == pytest.approx(float(added[members].sum()))


def test_right_and_wrong_predictions_are_chosen(found, net, digits):
    outputs = net(digits.x_test).detach()
    best = outputs.topk(2, dim=1).values
    ahead, right = best[:, 0] - best[:, 1], outputs.argmax(1) == digits.y_test
    chosen = {
        explained.prediction.why: explained.prediction.row
        for explained in found.attribution.explained
    }
    wrong = ahead.where(~right, -1.0).argsort(descending=True)
    count, bad = int(right.sum()), int((~right).sum())
    assert count > 1
    assert bad > 1
    assert chosen == {
        f"wrong, and the surest of {bad}": int(wrong[0]),
        f"wrong, and the second surest of {bad}": int(wrong[1]),
        f"right, and the least sure of {count}": int(ahead.where(right, torch.inf).argmin()),
        f"right, and the surest of {count}": int(ahead.where(right, -1.0).argmax()),
    }


def test_rows_that_are_named_are_explained_with_or_without_other_instruments(net, digits, way):
    report = look(net, digits, trajectory=way, only="gradient_norm", explain=[7, 2], quiet=True)
    assert [explained.prediction.row for explained in report.attribution.explained] == [7, 2]
    assert report.attribution.explained[0].prediction.why == "asked for"
    assert [measured.name for measured in report.measurements] == ["gradient_norm"]
    assert look(net, digits, only="gradient_norm", trajectory=way, quiet=True).attribution is None
    none = look(net, digits, only="attribution", explain=[], trajectory=way, quiet=True)
    assert none.attribution is None
    assert "explain=[7, 2], trajectory=trajectory)" in report.attribution.command


def test_json_has_the_same_numbers(found):
    result = json.loads(json.dumps(found.to_dict(), allow_nan=False))["attribution"]
    for said, one in zip(result["explained"], found.attribution.explained, strict=True):
        pushes = [push["amount"] for push in (*said["up"], *said["down"])]
        rest = (said["initial"], *said["rest"].values())
        total = fsum([*pushes, said["others"]["up"], said["others"]["down"], *rest])
        assert total == pytest.approx(one.prediction.value, abs=1e-12)
        assert said["prediction"]["row"] == one.prediction.row
    assert result["training"] == "15 updates of AdamW, batches of 8"
    assert "pictures" not in result


def test_page_shows_pictures_and_amounts(found):
    read = Structure(page(found))
    result = found.attribution.explained[0]
    tiles = [image["alt"] for image in read.all("img") if image["alt"]]  # the slice's have none
    named = [f"example {push.row}" for push in (*result.up, *result.down)]
    assert tiles[: 1 + len(named)] == [f"test example {result.prediction.row}", *named]
    assert all(image["src"].startswith("data:image/png;base64,") for image in read.all("img"))
    for push in (*result.up, *result.down):
        assert signed(push.amount) in read.text
    assert "15 updates of AdamW, batches of 8" in read.text
    assert (
        "4 predictions are explained as the sum of what each of 24 training examples has added."
        in read.text
    )
    assert "weight decay" in read.text
    assert found.attribution.command in read.text
    (button,) = [a for a in read.all("a") if "download" in a]
    assert button["download"] == "attribution.csv"


def test_bars_begin_where_the_one_before_ended(found):
    for explained in found.attribution.explained:
        drawn = bars(explained, {})
        at = drawn[0].low
        for bar in drawn[1:-1]:
            start, end = bar.low, bar.low + bar.width
            assert at == pytest.approx(start if bar.amount >= 0 else end, abs=1e-2)
            at = end if bar.amount >= 0 else start
        assert at == pytest.approx(drawn[-1].low, abs=1e-2)
        assert min(bar.low for bar in drawn) == 0
        assert max(bar.low + bar.width for bar in drawn) == pytest.approx(100)
        assert fsum(bar.amount for bar in drawn[:-1]) == pytest.approx(explained.final)


def test_many_classes_are_brought_together(found):
    result = found.attribution.explained[0]
    many = tuple(replace(result.by_class[0], label=str(k), amount=float(k - 9)) for k in range(30))
    drawn = class_bars(replace(result, by_class=many))
    assert len(drawn) == 12
    assert drawn[-1].name == "19 others"
    assert fsum(bar.amount for bar in drawn) == pytest.approx(fsum(p.amount for p in many))


def test_csv_holds_the_strongest_amounts(found, split):
    data, note = amounts(found.attribution, 2000)
    assert note == ""
    assert len(data) == 4 * 24
    few, note = amounts(found.attribution, 20)
    assert note == "the 5 strongest of 24 examples for each prediction"
    result = found.attribution.explained[0].prediction
    added = split.samples[0, :, result.output]
    assert [row["training example"] for row in few[:5]] == (
        added.abs().argsort(descending=True)[:5].tolist()
    )


def test_without_a_record_the_likes_are_shown_and_how_to_record(net, digits):
    report = look(net, digits, only="attribution", quiet=True)
    result = report.attribution
    assert result.explained == ()
    assert result.reason == "there is no record of the training"
    assert "fit(model, x, y, record=100)" in result.advice
    rows = [nearest.prediction.row for nearest in result.nearest]
    again = neighbours(net, digits.x, queries=digits.x_test[rows], count=5)
    for k, nearest in enumerate(result.nearest):
        assert [like.row for like in nearest.by_kernel] == again.by_kernel[k].tolist()
        assert [like.row for like in nearest.by_distance] == again.by_distance[k].tolist()
        assert_close([like.nearness for like in nearest.by_kernel], again.cosines[k].tolist())
        assert [like.label for like in nearest.by_kernel] == [
            str(int(digits.y[like.row])) for like in nearest.by_kernel
        ]
        both = {like.row for like in nearest.by_kernel} & {like.row for like in nearest.by_distance}
        assert {like.row for like in nearest.by_kernel if like.both} == both
    read = Structure(page(report))
    assert "Which examples have similar gradients" in read.text
    assert len([image for image in read.all("img") if image["alt"]]) == len(rows) * 11
    assert "run.trajectory.save" in read.text


def test_a_row_is_not_like_itself_where_all_rows_are_measured(net, digits):
    report = look(net, (digits.x, digits.y), only="attribution", explain=[3], quiet=True)
    (one,) = report.attribution.nearest
    again = neighbours(net, digits.x, count=5)
    assert [like.row for like in one.by_kernel] == again.by_kernel[3].tolist()
    assert [like.row for like in one.by_distance] == again.by_distance[3].tolist()
    assert report.attribution.row == "example"


def test_regression_without_pictures_is_a_table_of_numbers(regression, network):
    report = look(network, regression, only="attribution", quiet=True)
    result = report.attribution
    errors = (network(regression.x_test) - regression.y_test).detach().abs().flatten()
    order = errors.argsort(descending=True).tolist()
    whys = ("the largest error", "an error of usual size", "the smallest error")
    assert {nearest.prediction.why: nearest.prediction.row for nearest in result.nearest} == dict(
        zip(whys, (order[0], order[10], order[-1]), strict=True)
    )
    read = Structure(page(report))
    assert read.all("img") == []
    like = result.nearest[0].by_kernel[0]
    assert f"example {like.row} label {like.label} cosine {number(like.nearness, 3)}" in read.text
    unlabelled = look(network, regression.x, only="attribution", quiet=True)
    assert [nearest.prediction.row for nearest in unlabelled.attribution.nearest] == [0, 1, 2, 3]
    assert unlabelled.attribution.nearest[0].prediction.truth is None


def test_an_output_of_one_number_for_each_example_is_a_column_of_one(regression, network):
    flat = nn.Sequential(network, nn.Flatten(0)).eval()
    data = (regression.x, regression.y)
    expected, found = (look(net, data, only="attribution", quiet=True) for net in (network, flat))
    pairs = zip(found.attribution.nearest, expected.attribution.nearest, strict=True)
    assert all(ours.prediction == theirs.prediction for ours, theirs in pairs)
    assert len(found.attribution.nearest) == 3


def test_as_many_are_explained_as_half_of_the_budget_allows(net, digits, way, monkeypatch):
    monkeypatch.setattr(
        RecordedTraining, "seconds", lambda self, asked: 5.0 + 5.0 * len(asked.queries)
    )
    monkeypatch.setattr(BudgetWatch, "spent", 0.0)  # a busy machine would leave less
    result = look(
        net, digits, trajectory=way, only="attribution", explain=[0, 1, 2, 3, 4, 5, 6, 7],
        budget=40, quiet=True, command="inscape look a:b --explain 0,1",
    ).attribution  # fmt: skip
    assert [explained.prediction.row for explained in result.explained] == [0, 1, 2]
    assert result.left_out == (3, 4, 5, 6, 7)
    assert result.command == (
        "inscape look a:b --only attribution --explain 0,1,2,3,4,5,6,7 --budget 135"
    )
    late = look(net, digits, trajectory=way, only="attribution", budget=19, quiet=True)
    assert late.attribution.explained == ()
    assert late.attribution.reason == "left out for time: one prediction takes about 10 s"
    assert len(late.attribution.left_out) == len(late.attribution.nearest) == 4
    text = Structure(page(late)).text
    assert "Left out for time: 4 predictions" in text
    nothing = look(net, digits, only="attribution", budget=0.0, quiet=True).attribution
    assert nothing.nearest == ()
    assert nothing.reason.endswith("; there was no time to search for neighbours")


def test_one_is_explained_to_first_order_where_the_exact_sum_takes_too_long(
    net, digits, way, monkeypatch
):
    cost = {"exact": 100.0, "first-order": 1.0}
    monkeypatch.setattr(RecordedTraining, "seconds", lambda self, asked: cost[asked.mode])
    monkeypatch.setattr(BudgetWatch, "spent", 0.0)
    modes = []

    def split(self, asked, own=RecordedTraining.split):
        modes.append(asked.mode)
        if late and asked.mode == "exact":
            raise Interrupted
        return own(self, asked)

    monkeypatch.setattr(RecordedTraining, "split", split)
    for late in (True, False):
        told = look(net, digits, trajectory=way, only="attribution", budget=40, quiet=True)
        (one,) = told.attribution.explained
        assert one.prediction.why.startswith(("wrong", "the only wrong"))
        assert modes == ["first-order", "exact"]
        assert len(told.attribution.left_out) == 3
        words = "to first order, since there was no time for the exact sum"
        text = " ".join(attribution_text(told.attribution).split())
        assert (words in Structure(page(told)).text) == (words in text) == late
        assert ("first_order=1" in told.work) == late
        assert (abs(one.rest["residual"]) > 1e-10) == late
        assert one.total == pytest.approx(one.prediction.value)
        modes.clear()


def test_a_folder_that_a_loop_was_recorded_to_explains_predictions(tmp_path):
    model = recorded_loops.with_everything()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=1e-3)
    recorded_loops.trained(model, optimizer, tmp_path / "run", rows=recorded_loops.batches(8))
    x, y = recorded_loops.data()
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=y.numpy())
    told = look(
        model, tmp_path / "data.npz", trajectory=Trajectory.load(tmp_path / "run"),
        only="attribution", explain=[0], budget=10**4, quiet=True,
    ).attribution  # fmt: skip
    (one,) = told.explained
    assert "a loop of your own" in told.training
    assert "running statistics" in one.rest
    assert one.total == pytest.approx(model(x[:1]).max().item(), abs=1e-10)


def test_expected_time_grows_with_the_training(net, digits, way):
    known = RecordedTraining(model=net, x=digits.x, y=digits.y, trajectory=way)
    taken = []

    def timed(trajectory, asked):
        taken.append(trajectory.steps)
        return 1.0 + 0.1 * trajectory.steps

    object.__setattr__(known, "_timed", timed)
    asked = PredictionQuery(queries=digits.x_test[:1], outputs=(2,))
    assert known.seconds(asked) == pytest.approx(1.2 + 15 * 0.1)
    assert taken == [2, 2, 10]
    short = known._beginning(10)
    assert_close(short.at(10), replay(way, net, digits.x, digits.y, 10), rtol=0, atol=0)
    again = known._split(short, asked)
    assert again.samples.shape == (1, 24, 1)
    assert float(again.residual.abs().max()) < 1e-12


@pytest.mark.parametrize("form", ["one-hot", "column", "numbers"])
def test_labels_are_known_in_the_form_of_the_training(form):
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(9, 2, generator=rng, dtype=torch.float64), torch.arange(9) % 2
    forms = {"one-hot": one_hot(y).double(), "column": y[:, None].double(), "numbers": y.double()}
    tail = [nn.Flatten(0)] if form == "numbers" else []
    model = nn.Sequential(*mlp(2, 3, 2 if form == "one-hot" else 1, dtype=x.dtype), *tail)
    run = fit(model, x, forms[form], epochs=3, record=1, progress=False)
    known = RecordedTraining.of(
        model, open_data((x, y), labels="classes", dtype=x.dtype), run.trajectory
    )
    assert torch.equal(known.y, forms[form])


def test_real_labels_are_known_as_column_or_as_row(regression):
    for y in (regression.y, regression.y.flatten()):
        tail = [nn.Flatten(0)] if y.ndim == 1 else []
        model = nn.Sequential(*mlp(3, 2, 1, dtype=torch.float64), *tail)
        run = fit(model, regression.x, y, epochs=2, record=1, progress=False)
        data = open_data((regression.x, regression.y), dtype=torch.float64)
        assert torch.equal(RecordedTraining.of(model, data, run.trajectory).y, y)


def changed(model: nn.Module) -> nn.Module:
    body = copy.deepcopy(model)
    with torch.no_grad():
        body[0].weight[0, 0] += 0.5
    return body


def test_training_of_another_network_or_of_other_data_is_refused(net, digits, way):
    def told(model=net, data=digits):
        return look(model, data, trajectory=way, only="attribution", quiet=True)

    with pytest.raises(ValueError, match=r"another: '0\.weight' is 4x64 in float64 in it and 5x64"):
        told(mlp(64, 5, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"'3\.weight' is missing in it and 3x3 in float64 in"):
        told(nn.Sequential(*net, nn.Linear(3, 3).double()).eval())
    with pytest.raises(ValueError, match=r"4x64 in float64 in it and 4x64 in float32 in the model"):
        told(mlp(64, 4, 3))
    with pytest.raises(ValueError, match=r"end at the weights of the model, found '0\.weight' up"):
        told(changed(net))
    with pytest.raises(
        ValueError, match=r"these very data, found one on other values.*stripes has"
    ):
        told(data=replace(digits, x=digits.x + 1e-9))
    with pytest.raises(ValueError, match=r"24x64 in float64, without labels\): give --data"):
        told(data=digits.x)
    with pytest.raises(ValueError, match=r"explain must name measured examples, 0 to 11, found 12"):
        look(net, digits, explain=[3, 12], only="attribution", quiet=True)


def test_functions_of_the_user_are_named(digits):
    model = mlp(64, 3, 3, dtype=torch.float64)
    run = fit(
        model, digits.x, digits.y, epochs=2, record=1, progress=False,
        loss=lambda outputs, y: outputs.square().mean(),
    )  # fmt: skip
    report = look(model, digits, trajectory=run.trajectory, only="attribution", quiet=True)
    assert "holds no functions, found loss of your own in it" in report.attribution.reason
    assert report.attribution.nearest


def test_batch_statistics_are_said_and_the_likes_shown_instead(digits):
    model = nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
    run = fit(model, digits.x, digits.y, loss="cross_entropy", epochs=2, record=1, progress=False)
    report = look(model, digits, trajectory=run.trajectory, only="attribution", quiet=True)
    assert "found batch statistics or random draws in training mode" in report.attribution.reason
    assert "in eval mode" in report.attribution.reason
    assert report.attribution.nearest
    assert (
        "Not attributed to training examples: the path kernel needs" in Structure(page(report)).text
    )


def test_one_logit_is_explained_for_both_classes(regression):
    y = (regression.x[:, 0] > 0).long()
    model = mlp(3, 4, 1, dtype=torch.float64)
    report = look(model, (regression.x, y), only="attribution", explain=range(8), quiet=True)
    outputs = model(regression.x)[:8, 0].detach()
    for nearest, output in zip(report.attribution.nearest, outputs.tolist(), strict=True):
        said = nearest.prediction
        assert (said.output, said.value) == (0, pytest.approx(output))
        assert said.says == str(int(output > 0))
        assert said.probability == pytest.approx(torch.tensor(abs(output)).sigmoid().item())
        assert said.right == (said.says == str(int(y[said.row])))
    assert {nearest.prediction.says for nearest in report.attribution.nearest} == {"0", "1"}


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((64,), (8, 8)),
        ((1, 28, 28), (28, 28)),
        ((28, 28), (28, 28)),
        ((3, 64, 32), (16, 32)),
        ((64, 32, 3), (16, 32)),
        ((28, 28, 1), (28, 28)),
        ((63,), None),
        ((49,), None),
        ((2, 8, 8), None),
        ((4, 40), None),
    ],
    ids=str,
)
def test_thumbnails(shape, size):
    address = thumbnail(torch.linspace(0, 1, math.prod(shape)).reshape(shape))
    if size is None:
        assert address is None
        return
    content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    shown = Image.open(io.BytesIO(content))
    assert shown.size == size
    assert shown.mode == ("RGB" if 3 in shape else "L")
    if shape == (28, 28):  # ink on paper: the largest value is black
        assert shown.getpixel((0, 0)) == 255
        assert shown.getpixel((27, 27)) == 0


def test_pictures_with_channels_last_are_those_with_channels_first():
    x = torch.rand(3, 12, 9, generator=torch.Generator().manual_seed(0))
    assert thumbnail(x.movedim(0, 2)) == thumbnail(x)
    assert heat(x.movedim(0, 2)) == heat(x)
    assert heat(x) is not None


def test_bars_of_instruments_are_silent_where_quiet_is_wanted(monkeypatch):
    monkeypatch.delenv(QUIET, raising=False)
    for quiet, shown in ((True, False), (None, True)):
        with pulse(1.0, quiet=quiet), progress(3, label="one instrument") as bar:
            assert (bar._due < math.inf) == shown
        assert QUIET not in os.environ
    monkeypatch.setenv(QUIET, "0")
    with pulse(1.0, quiet=True), progress(3, label="one instrument") as bar:
        assert bar._due == math.inf
    assert os.environ[QUIET] == "0"


def test_a_bar_moves_where_no_time_is_expected():
    with pulse(5.0, quiet=True) as moved:
        moved.expected = 0.0  # as for a budget of nothing
        moved.start -= 0.5
        moved.beat()
        assert 50 <= moved.bar.done <= 99


def test_a_plan_that_there_is_no_time_for_says_so(net, digits, way):
    prepared = prepare(net, digits, trajectory=way, only="attribution", budget=60)
    late = prepared.explaining.without_time()
    result = explain(prepared.subject, prepared.data, late)
    assert result.reason.startswith("left out for time; ")
    assert len(result.left_out) == 4
    assert "attribution" in result.command
