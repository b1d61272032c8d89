"""The figures of the thesis: each runs at smoke scale and is drawn from its records alone."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.figures.style import styled
from inscape.lab import catalogue
from inscape.lab.planning import plan
from inscape.lab.runner import run
from inscape.lab.store import Record, Store
from inscape.papers.volhejn import figure_1, figure_2_1, figure_3_1, training_loss
from inscape.papers.volhejn import penalties as boxes
from inscape.papers.volhejn._penalties import RUNS
from inscape.smoothness import slope_variation, total_variation

ITEMS = ["1", "1.1", "2", "2.1", "3.1", "4.1", "4.2", "4.3", "4.4", "4.5"]
IDS = [f"volhejn/figure-{item}" for item in ITEMS] + ["volhejn/training-loss"]
OWN = [id for id in IDS if not catalogue.experiment(id).same_as]


def record(settings: dict[str, Any], values: dict[str, Any]) -> Record:
    return Record(
        experiment="made",
        scale="laptop",
        key="",
        settings=settings,
        data="",
        values=values,
        claims={},
        provenance={},
    )


def drawn(id: str, some: list[Record]) -> Any:
    """Return the figure after it has been put on paper."""
    draw = catalogue.experiment(id).draw
    assert draw is not None
    with styled():
        figure = draw(some)
        figure.canvas.draw()
    return figure


@pytest.mark.parametrize("id", OWN)
def test_small_records_give_what_claims_and_figures_are_about(id: str, tmp_path):
    """Small records are committed, and pages are made from the JSON files alone."""
    experiment, store = catalogue.experiment(id), Store(tmp_path)
    made = plan(id, scale="smoke", store=store)
    run(made, store=store, quiet=True)
    some = made.records(store)
    files = list((store.root / id / "smoke").iterdir())
    assert {file.suffix for file in files} == {".json"}
    assert all(json.loads(file.read_text())["values"] for file in files)
    found = experiment.analyse(some) if experiment.analyse else {}
    assert {claim.of for claim in experiment.claims} <= set(found)
    assert all(ax.has_data() for ax in drawn(id, some).axes)


@pytest.mark.parametrize("id", IDS)
def test_every_scale_has_cells_and_a_guess_of_their_time(id: str):
    runs = catalogue.experiment(catalogue.source(id))
    for scale in ("smoke", "laptop", "paper"):
        cells = runs.cells(runs.axes(scale))
        assert cells
        assert all(0 < runs.seconds(cell) < 1e5 for cell in cells)


def test_figures_of_table_4_4_add_no_claims_to_its_records():
    hashes = catalogue.claim_hashes("volhejn/table-4.4")
    assert {catalogue.source(f"volhejn/figure-4.{k}") for k in range(2, 6)} == {"volhejn/table-4.4"}
    assert not [name for name in hashes if name.startswith("figure")]


# Figure 3.1


def test_example_has_the_printed_variations_by_two_ways():
    f = figure_3_1.cell("f", 17)
    spline = figure_3_1.cell("spline", 17)
    assert (f["PL0"], f["PL1"], spline["PL0"], spline["PL1"]) == (3.0, 2.0, 2.0, 2.0)
    assert f["exact"]
    assert f["by secants"] == pytest.approx([3.0, 2.0], abs=1e-9)


def test_network_through_points_is_straight_between_them():
    knots = torch.tensor([-2.0, -0.5, 0.25, 3.0], dtype=torch.float64)
    heights = torch.tensor([1.0, -2.0, 0.5, 0.5], dtype=torch.float64)
    model = figure_3_1.through(knots, heights)
    x = torch.linspace(-2, 3, 101, dtype=torch.float64)
    truth = torch.from_numpy(np.interp(x.numpy(), knots.numpy(), heights.numpy()))
    assert_close(model(x[:, None])[:, 0].detach(), truth)
    ends = torch.tensor([[-2.0], [3.0]], dtype=torch.float64)
    assert total_variation(model, ends).summary().value == pytest.approx(5.5)
    assert slope_variation(model, ends).summary().value == pytest.approx(2 + 10 / 3 + 10 / 3)


# Figure 1


def made_errors(train: dict[int, float], test: dict[int, list[float]]) -> list[Record]:
    return [
        record(
            {"hidden": width, "seed": seed},
            {"train_error": train[width], "test_error": error},
        )
        for width, errors in test.items()
        for seed, error in enumerate(errors)
    ]


def test_double_descent_is_found_where_it_is():
    train = {2: 0.4, 4: 0.2, 8: 0.1, 16: 0.005, 64: 0.0}
    test = {2: [0.5, 0.52], 4: [0.3, 0.31], 8: [0.38, 0.4], 16: [0.35, 0.36], 64: [0.2, 0.22]}
    some = made_errors(train, test)
    assert figure_1.threshold(some) == 16
    found = figure_1.analyse(some)
    assert found["beyond"].value == pytest.approx((0.2 - 0.35 + 0.22 - 0.36) / 2)
    assert found["bump"].value == pytest.approx((0.38 - 0.3 + 0.4 - 0.31) / 2)


def test_a_falling_error_has_no_bump():
    widths = (2, 4, 8, 16, 64)
    falling = {h: [1 / (h + 1), 1.01 / (h + 1)] for h in widths}
    some = made_errors({2: 0.4, 4: 0.2, 8: 0.1, 16: 0.0, 64: 0.0}, falling)
    found = figure_1.analyse(some)
    assert found["bump"].high < 0
    assert found["beyond"].high < 0


def test_without_a_width_that_fits_there_is_nothing_to_compare():
    some = made_errors({2: 0.4, 4: 0.2}, {2: [0.5, 0.6], 4: [0.4, 0.5]})
    assert figure_1.threshold(some) is None
    assert set(figure_1.analyse(some)) == {"test/2", "test/4"}
    assert figure_1.conclude(some)[0].startswith("No width fits all training labels;")
    drawn("volhejn/figure-1", some)


def test_wrong_labels_are_a_share_and_always_wrong():
    y = torch.arange(1000) % 10
    moved = figure_1.mislabelled(y, 10, 0.2, seed=3)
    assert int((moved != y).sum()) == 200
    assert set(moved.tolist()) == set(range(10))
    assert torch.equal(moved, figure_1.mislabelled(y, 10, 0.2, seed=3))
    assert not torch.equal(moved, figure_1.mislabelled(y, 10, 0.2, seed=4))
    assert torch.equal(figure_1.mislabelled(y, 10, 0.0, seed=3), y)


# Figure 2.1


def test_least_squares_fits_all_points_from_as_many_features_on():
    below, above = (figure_2_1.cell(k, 20, 5, 0.3, 3, 0)["train"] for k in (10, 40))
    assert min(below) > 1e-3
    assert max(above) < 1e-15


def test_features_and_data_of_a_trial_are_nested():
    """With the same data, more features below the threshold never fit the training data worse."""
    risks = [figure_2_1.cell(k, 20, 5, 0.3, 4, 0)["train"] for k in range(3, 19)]
    assert (np.diff(risks, axis=0) < 0).all()


def test_peak_and_descents_are_read_off_the_records():
    tests = {2: [1.0, 1.1], 5: [0.5, 0.4], 20: [9.0, 30.0], 80: [0.3, 0.2]}
    some = [
        record({"features": k, "n": 20}, {"test": risks, "train": risks})
        for k, risks in tests.items()
    ]
    found = figure_2_1.analyse(some)
    assert found["peak"].value == 1.0
    assert found["ascent"].value == pytest.approx(np.log([18.0, 75.0]).mean())
    assert found["first descent"].value < 0
    assert found["second descent"].value == pytest.approx(np.log([0.3 / 9, 0.2 / 30]).mean())
    assert figure_2_1.analyse(some[:2]) == {}


# Figures 4.2 to 4.5


def made_penalties(*, lost: tuple[str, str, float] | None = None) -> list[Record]:
    """Runs of three data sets: each penalty halves its distance from 1; one may be lost."""
    penalised = {"gradient_norm": "GN", "path_length": "PL0", "gradient_path_length": "PL1"}
    some = []
    for k, data in enumerate(("0-1", "1-2", "2-3")):
        for penalty, coefficient, lr in RUNS:
            values = {"GN": 2.0 + k, "PL0": 1.4 + k / 10, "PL1": 3.0 + k, "WP": 8.0 + k}
            if penalty != "none":
                name = penalised.get(penalty, "WP")
                values[name] = 1 + (values[name] - 1) / 2
            settings = {"data": data, "penalty": penalty, "coefficient": coefficient, "lr": lr}
            converged = (data, penalty, coefficient) != lost
            some.append(record(settings, {"converged": converged, "test": values}))
    return some


def test_boxes_hold_the_measure_and_what_is_left_above_its_bound():
    plain, left = boxes.boxes(made_penalties(), "PL0")
    assert plain == {0.0: pytest.approx([1.4, 1.5, 1.6]), 1e-4: pytest.approx([1.2, 1.25, 1.3])}
    assert left == {0.0: [1.0, 1.0, 1.0], 1e-4: pytest.approx([0.5, 0.5, 0.5])}
    plain, left = boxes.boxes(made_penalties(), "GN")
    assert list(plain) == [0.0, 1e-5, 1e-4, 1e-3]
    assert left[1e-3] == pytest.approx([1.5 / 2, 2 / 3, 2.5 / 4])


def test_a_data_set_that_did_not_converge_is_in_no_box():
    some = made_penalties(lost=("1-2", "weights_product", 3e-5))
    assert boxes.shown(some, "WP") == (["0-1", "2-3"], ["1-2"])
    assert {len(box) for box in boxes.boxes(some, "WP")[0].values()} == {2}
    assert boxes.shown(some, "GN")[1] == []
    (said,) = boxes.conclude("WP")(some)
    assert said == "Each box holds 2 data sets; left out, since a run did not converge: 1-2."


@pytest.mark.parametrize("item", ["4.2", "4.3", "4.4", "4.5"])
def test_boxes_are_drawn_one_for_each_coefficient(item: str):
    left, right = drawn(f"volhejn/figure-{item}", made_penalties()).axes
    counts = {"4.2": 4, "4.3": 2, "4.4": 2, "4.5": 3}
    for ax in (left, right):
        assert len(ax.get_xticklabels()) == counts[item]
        assert ax.get_xticklabels()[0].get_text() == "0"
    points = [line for line in right.lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in points] == [3] * counts[item]


def test_boxes_without_a_converged_run_say_so():
    some = [
        record(dict(one.settings), {**one.values, "converged": False}) for one in made_penalties()
    ]
    left, _ = drawn("volhejn/figure-4.2", some).axes
    assert [text.get_text() for text in left.texts] == ["no data set converged"]


# The training loss


def test_a_measure_that_grows_while_the_loss_falls_has_tau_minus_one():
    some = [
        record(
            {"data": data, "stop_loss": loss},
            {
                "converged": loss > 1e-5,
                "train_loss": loss,
                "measures": {"GN": -loss, "PL0": loss, "PL1": 1 / loss, "WP": 2 - loss},
            },
        )
        for data in ("0-1", "1-2")
        for loss in (0.1, 0.01, 0.001, 1e-5)
    ]
    found = training_loss.analyse(some)
    assert [found[f"tau/{m}"].value for m in ("GN", "PL0", "PL1", "WP")] == [-1, 1, -1, -1]
    assert all(len(pairs) == 3 for pairs in training_loss.runs(some, "GN").values())


def test_real_images_are_named_only_beyond_the_smoke_scale():
    """Tests pass with no data present."""
    for id in OWN:
        experiment = catalogue.experiment(id)
        for cell in experiment.cells(experiment.smoke):
            assert str(cell.get("data", "digits")).startswith("digits")


def test_this_folder_names_every_figure_of_the_thesis():
    facts = json.loads((Path(catalogue.PAPERS) / "volhejn" / "published.json").read_text())
    figures = [entry["id"] for entry in facts["entries"] if entry["kind"] == "figure"]
    assert {f"volhejn/{figure}" for figure in figures} <= set(IDS)
