"""The toy lab: trainings beside the library's own loop, frames beside the instruments, presets."""

import base64
import json
import math

import pytest
import torch
from torch.testing import assert_close

from inscape._core.anytime import finished
from inscape.explorer.toy.network import PENALTIES, loss_of, toy_network
from inscape.explorer.toy.points import toy_points
from inscape.explorer.toy.presets import presets
from inscape.explorer.toy.run import ToyRun, trained
from inscape.explorer.toy.setup import ToySetup
from inscape.explorer.toy.trainings import KEPT, Trainings, TrainRequest
from inscape.explorer.wire import unpacked
from inscape.regions import boundary, closed_regions, plane_regions
from inscape.training import fit

XOR = ((-1, -1, 0), (-1, 1, 1), (1, -1, 1), (1, 1, 0))


@pytest.mark.parametrize("batch", [0, 16])
def test_a_training_is_that_of_fit_bit_for_bit(batch):
    setup = ToySetup(hidden=(6,), n=40, batch=batch, lr=0.05)
    run = ToyRun(setup)
    epochs = 4
    finished(run.advance(epochs * (1 if not batch else math.ceil(40 / batch))))
    points = toy_points(setup)
    model = toy_network(setup, 2)
    loss, targets = loss_of(setup, points)
    fit(
        model, points.x, targets, loss=loss, optimizer="adam", lr=0.05, batch=batch or None,
        epochs=epochs, progress=False,
    )  # fmt: skip
    for ours, theirs in zip(run.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_steps_at_once_and_one_by_one_are_the_same():
    setup = ToySetup(hidden=(5,), n=20, batch=8)
    once, often = ToyRun(setup), ToyRun(setup)
    finished(once.advance(11))
    for _ in range(11):
        finished(often.advance(1))
        finished(often.frame("a"))  # to look changes nothing
    for a, b in zip(once.model.parameters(), often.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_frame_holds_the_regions_of_the_network_as_it_is_now():
    run = trained(updates=30, data="circle", hidden=(4, 3), n=30)
    facts, arrays = finished(run.frame("a"))
    (u, v), (a, b) = run.window
    domain = torch.tensor([[u - a, v - b], [u + a, v - b], [u + a, v + b], [u - a, v + b]])
    expected = plane_regions(run.model, run.points.x, domain=domain)
    assert facts["cells"] == expected.cells == len(arrays["counts"])
    line = boundary(run.model, run.points.x, domain=domain)
    assert facts["measures"]["boundary"] == pytest.approx(line.length)
    assert facts["measures"]["closed curves"] == int(line.closed.sum())
    y = run.model(run.points.x_test)[:, 0] > 0
    right = float((y == (run.points.y_test > 0)).double().mean())
    assert facts["measures"]["accuracy"] == pytest.approx(right)


def test_a_network_that_is_not_piecewise_linear_is_a_raster():
    facts, arrays = finished(trained(updates=2, activation="tanh", n=10).frame("a"))
    assert not facts["exact"]
    assert "tanh" in facts["refusal"]
    assert len(arrays["classes"]) == facts["width"] * facts["height"]


def test_width_two_closes_nothing_whatever_its_weights():
    """Theorem: n units in n dimensions enclose no region; closed_regions proves it of each."""
    for seed in range(3):
        run = trained(updates=40, hidden=(2,), seed=seed, n=40, lr=0.1)
        assert len(closed_regions(run.model, run.points.x).sides) == 0


@pytest.mark.parametrize("penalty", [name for name in PENALTIES if name != "weights-product"])
def test_every_penalty_is_lower_with_it_than_without(penalty):
    common = {"data": "circle", "hidden": (12,), "n": 40, "lr": 0.02}
    free = trained(updates=60, **common)
    held = trained(updates=60, penalty=penalty, coefficient=1.0, **common)
    cost = PENALTIES[penalty]
    x = free.points.x
    assert cost(held.model, x).item() < cost(free.model, x).item()


def test_controls_hold_what_they_promise():
    held = trained(updates=10, data="disc", hidden=(30,), control="length-scale", sigma=0.5)
    weight = held.model[0].weight
    assert weight.std().item() == pytest.approx(0.5 / math.sqrt(2))
    run = trained(updates=300, hidden=(8,), control="norm-bias", mu=6, strength=0.1, lr=0.05)
    assert run.measured()["norm of weights"] == pytest.approx(6, abs=0.5)
    both = trained(updates=5, data="disc", activation="tanh", symmetric=True)
    assert_close(both.model(torch.tensor([[0.2, 0.7]]).double()),
                 both.model(torch.tensor([[0.7, 0.2]]).double()))  # fmt: skip
    biased = toy_network(ToySetup(shift=20, bias=1, hidden=(9,)), 2)
    assert ((biased[0].bias - 20).abs() <= 1).all()


def test_points_beyond_follow_the_rule_of_the_data():
    for name in ("disc", "annulus", "circle", "xor-circles", "half-plane", "ball"):
        points = toy_points(ToySetup(data=name, n=50))
        x, y = points.beyond
        assert float(x.norm(dim=1).min()) > float(points.x.norm(dim=1).max())
        assert len(x) == len(y)
    x, y = toy_points(ToySetup(data="disc", target="multiplication")).beyond
    assert_close(y[:, 0], x[:, 0] * x[:, 1])


def test_own_points_are_refused_in_a_sentence_where_they_are_none():
    with pytest.raises(ValueError, match="must be at least 2, found 0: click"):
        toy_points(ToySetup(data="own"))
    with pytest.raises(ValueError, match="integers from 0 to 7, found others"):
        toy_points(ToySetup(data="own", rows=((0, 0, 0.5), (1, 1, 1))))
    three = toy_points(ToySetup(data="own", rows=(*XOR, (0, 0, 2))))
    assert three.names == ("0", "1", "2")
    assert toy_network(ToySetup(data="own"), 3)(three.x).shape == (5, 3)
    numbers = toy_points(ToySetup(data="own", labels="numbers", rows=((0, 0, 0.5), (1, 1, 1))))
    assert numbers.classes == 0


def test_a_training_that_diverges_says_so():
    run = ToyRun(ToySetup(data="disc", optimizer="sgd", lr=10, hidden=(64,), scale=100))
    with pytest.raises(ValueError, match=r"smaller (lr|learning rate)"):
        finished(run.advance(200))


def test_there_are_thirty_presets_of_five_works_each_with_its_result():
    assert len(presets()) >= 30
    assert len({preset.name for preset in presets()}) == len(presets())
    works = {preset.reference.split(",")[0] for preset in presets()}
    assert works == {"Klindt", "Volhejn", "Sattelberg", "Courtois", "Goldblum"}
    for preset in presets():
        assert preset.sights
        assert preset.sentence.endswith(".")
        assert any(char.isdigit() for char in preset.reference)


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_every_preset_trains_and_shows_its_measures(preset):
    run = ToyRun(preset.setup)
    before = [p.detach().clone() for p in run.model.parameters()]
    finished(run.advance(5))
    assert any(not torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    facts, _ = finished(run.frame("a"))
    assert facts["step"] == 5
    assert math.isfinite(facts["loss"])
    assert {sight.measure for sight in preset.sights} <= facts["measures"].keys()


def test_what_a_preset_shows_can_be_missed():
    """Width two and width three tell each other's sights apart: they are checks, not decoration."""
    two, three = (
        next(p for p in presets() if p.name == name)
        for name in ("width-2-cannot-close", "width-3-closes")
    )
    found = {}
    for preset in (two, three):
        run = ToyRun(preset.setup)
        finished(run.advance(preset.updates))
        found[preset.name] = finished(run.frame("a"))[0]["measures"]
    assert all(sight.holds(found[two.name]) for sight in two.sights)
    assert all(sight.holds(found[three.name]) for sight in three.sights)
    assert not all(sight.holds(found[two.name]) for sight in three.sights)
    assert not all(sight.holds(found[three.name]) for sight in two.sights)


# ----- the stream


def frames(served, /, **asked):
    """Return the events of a training, frames unpacked."""
    with served.stream("POST", "/api/toy/train", json=asked) as answer:
        assert answer.status_code == 200
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    events = [json.loads(line[6:]) for line in lines]
    return [
        unpacked(base64.b64decode(event["frame"])) if "frame" in event else event
        for event in events
    ]


SMALL = {"hidden": [3], "n": 20}


def test_a_stream_begins_with_what_is_there_and_goes_on_from_there(client):
    first, *rest, end = frames(client, setup=SMALL, until=20, interval=10, client="s1")
    assert end == {"finished": True}
    assert first[0]["loss"] is None
    assert len(first[1]["pointU"]) == 20
    assert [facts["step"] for facts, _ in (first, *rest)] == [0, 10, 20]
    more = frames(client, setup=SMALL, until=25, interval=10, client="s1")
    assert [facts["step"] for facts, _ in more[:-1]] == [20, 25]
    back = frames(client, setup=SMALL, until=5, interval=10, client="s1")
    assert [facts["step"] for facts, _ in back[:-1]] == [0, 5]
    other = frames(client, setup={**SMALL, "seed": 1}, until=0, client="s1")
    assert [facts["step"] for facts, _ in other[:-1]] == [0]


def test_the_window_of_a_frame_is_the_one_asked_for(client):
    asked = {"centre": [0.1, 0.2], "half": [0.3, 0.4]}
    (facts, _), _ = frames(client, setup=SMALL, client="s2", **asked)
    assert (facts["centre"], facts["half"]) == (asked["centre"], asked["half"])


def test_the_network_of_a_training_can_be_asked_about_its_cells(client):
    (facts, _), _ = frames(client, setup=SMALL, client="s3")
    answer = client.post("/api/toy/cell", json={"view": facts["view"], "cell": 0, "client": "s3"})
    details, _ = unpacked(answer.content)
    assert details["error"] < 1e-12
    window = {"kind": "whole", "centre": [0, 0], "half": [0.1, 0.1], "client": "s3"}
    assert unpacked(client.post("/api/toy/cells", json=window).content)[0]["complete"]
    gone = client.post("/api/toy/cells", json={**window, "client": "nobody"})
    assert gone.status_code == 410
    assert "this training is forgotten by now" in gone.json()["error"]


def test_what_goes_wrong_in_a_stream_is_an_event(client, monkeypatch, capsys):
    assert frames(client, setup={"data": "own"}, client="s4") == [
        {"error": "points of your own must be at least 2, found 0: click into the picture, or open "
                  "a CSV file."}
    ]  # fmt: skip

    def crash(self, asked):
        yield
        raise RuntimeError("inside")

    monkeypatch.setattr(Trainings, "begin", crash)
    assert frames(client, setup=SMALL, client="s4") == [
        {"error": "unexpected RuntimeError: see the terminal."}
    ]
    assert "inside" in capsys.readouterr().err
    assert client.get("/api/session").is_success


@pytest.mark.parametrize(
    "setup",
    [{"hidden": [257]}, {"hidden": [0]}, {"hidden": [1] * 7}, {"n": 1001}, {"lr": 0}, {"more": 1},
     {"rows": [[0, 0, 0]] * 1001}, {"activation": "none"}, {"scale": 1e9}, {"batch": -1}],
)  # fmt: skip
def test_setups_out_of_bounds_are_refused(client, setup):
    answer = client.post("/api/toy/train", json={"setup": setup})
    assert answer.status_code == 400
    assert next(iter(setup)) in answer.json()["error"]


def test_only_the_last_request_of_a_client_trains():
    lab = Trainings()
    asked = TrainRequest(setup=ToySetup(n=10, hidden=(2,)), until=50)
    training = finished(lab.begin(asked))
    turn = training.turn
    assert finished(lab.begin(asked)) is training
    assert finished(lab.go_on(asked, training, turn)) is None
    assert training.run.step == 0
    for k in range(KEPT):
        finished(lab.begin(asked.model_copy(update={"client": f"c{k}"})))
    with pytest.raises(LookupError, match="forgotten"):
        lab.session("page")
