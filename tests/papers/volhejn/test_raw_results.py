"""Our analysis of the thesis' own raw results gives its printed tables (when they are at hand)."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from inscape.lab.store import Record
from inscape.papers.volhejn import _growing, _one_dimension, _penalties
from inscape.papers.volhejn.growing import equal_sizes
from inscape.papers.volhejn.penalties import ERRORS, PRINTED

RAW = Path(__file__).parents[4] / "shared" / "papers" / "volhejn_raw"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not RAW.is_dir(), reason="the thesis' raw results are not here"),
]
COLUMNS = {
    "GN": "gradient_norm",
    "PL0": "path_length_f",
    "PL1": "path_length_d",
    "WP": "weights_product",
}


def measures(row: Any, split: str = "test") -> dict[str, float]:
    return {m: row[c if m == "WP" else f"{c}_{split}"] for m, c in COLUMNS.items()}


def record(settings: dict[str, Any], values: dict[str, Any]) -> Record:
    return Record(
        experiment="raw",
        scale="paper",
        key="",
        settings=settings,
        data="",
        values=values,
        claims={},
        provenance={},
    )


def growing(file: str) -> list[Record]:
    table = pd.read_csv(RAW / f"increasing_training_set_size_{file}.csv").to_dict("records")
    return [
        record(
            {"data": row["dataset.name"], "size": row["dataset.samples_train"]},
            {"converged": True, "measures": measures(row)},
        )
        for row in table
    ]


PRINTED_TAUS = {
    "nd": {"GN": (0.15, 0.30), "PL0": (0.06, 0.40), "PL1": (0.96, 0.0), "WP": (0.96, 0.0)},
    "nd_init_scale_1": {
        "GN": (0.77, 0.25),
        "PL0": (0.72, 0.14),
        "PL1": (0.91, 0.08),
        "WP": (0.94, 0.03),
    },
}


@pytest.mark.parametrize("file", PRINTED_TAUS)
def test_tables_4_2_and_4_3(file: str):
    found = _growing.analyse(growing(file))
    for measure, (tau, sd) in PRINTED_TAUS[file].items():
        ours = found[f"tau/{measure}"]
        assert round(ours.value, 2) == tau
        assert round(ours.se * math.sqrt(45), 2) == sd


def test_ties_limit_tau():
    assert _growing.ceiling(growing("nd")) == pytest.approx(math.sqrt(252 / 276))


@pytest.mark.parametrize(("file", "item"), [("nd", "table-4.2"), ("nd_init_scale_1", "table-4.3")])
@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_numbers_that_claims_are_compared_with(file: str, item: str, scale: str):
    ring = {f"mnist{pair[0]}{pair[2]}" for pair in _growing.RING}
    records = [
        one
        for one in growing(file)
        if scale == "paper" or (one.settings["data"] in ring and one.settings["size"] <= 2048)
    ]
    found = _growing.analyse(records)
    carried = equal_sizes()[item][scale]
    for measure, (tau, se) in carried["tau"].items():
        assert found[f"tau/{measure}"].value == pytest.approx(tau, abs=6e-5)
        assert found[f"tau/{measure}"].se == pytest.approx(se, abs=6e-5)
    for measure, sizes in carried["mean"].items():
        for size, (mean, se) in sizes.items():
            assert found[f"mean/{measure}/{size}"].value == pytest.approx(mean, abs=6e-5)
            assert found[f"mean/{measure}/{size}"].se == pytest.approx(se, abs=6e-5)


def one_dimension() -> list[Record]:
    nets = pd.read_csv(RAW / "increasing_training_set_size_1d.csv")
    records = []
    for (seed, size), rows in nets.groupby(["dataset.seed", "dataset.samples_train"]):
        columns = {m: rows[c if m == "WP" else f"{c}_test"].tolist() for m, c in COLUMNS.items()}
        values = {
            "converged": (rows["actual_epochs"] < 50000).tolist(),
            "loss": rows["loss_train"].tolist(),
            **columns,
        }
        records.append(record({"kind": "network", "seed": seed, "size": size}, values))
    curves = pd.read_csv(RAW / "increasing_training_set_size_1d_polynomials.csv")
    for row in curves.to_dict("records"):
        settings = {
            "kind": "polynomial",
            "seed": row["dataset.seed"],
            "size": row["dataset.samples_train"],
        }
        values = {m: [v] for m, v in measures(row).items()}
        records.append(record(settings, {"converged": [True], "loss": [0.0], **values}))
    return records


def test_table_4_1():
    found = _one_dimension.analyse(one_dimension())
    printed = {
        "GN": (0.72, 0.19, 0.36, 0.20),
        "PL0": (0.62, 0.31, 0.44, 0.22),
        "PL1": (0.79, 0.12, 0.51, 0.14),
        "WP": (0.82, 0.13, 0.38, 0.15),
    }
    for measure, numbers in printed.items():
        nets, curves = found[f"tau/{measure}"], found[f"polynomial/{measure}"]
        ours = (nets.value, nets.se * math.sqrt(20), curves.value, curves.se * math.sqrt(20))
        assert tuple(round(number, 2) for number in ours) == numbers
    assert found["unconverged"].value == 23
    assert max(abs(found[f"shift/{m}"].value) for m in printed) < 0.05


def penalties() -> list[Record]:
    files = {
        "GN": ("gradient_norm", "gradient_norm_reg_coef", 15000),
        "PL0": ("function_path_length", "path_length_f_reg_coef", 25000),
        "PL1": ("gradient_path_length", "path_length_d_reg_coef", 25000),
        "WP": ("weights_product", "weights_product_reg_coef", 25000),
    }
    records = {}
    for measure, (file, column, limit) in files.items():
        for row in pd.read_csv(RAW / f"explicit_reg_{file}.csv").to_dict("records"):
            coefficient = row[f"model.{column}"]
            settings = {
                "data": row["dataset.name"],
                "penalty": _penalties.THESIS[measure] if coefficient else "none",
                "coefficient": coefficient,
                "lr": row["model.learning_rate"],
            }
            values = {
                # The thesis' filter looks only at the run with the largest coefficient.
                "converged": coefficient == 0 or row["actual_epochs"] < limit,
                "test": measures(row),
                "train": measures(row, "train"),
            }
            records[measure, *settings.values()] = (measure, record(settings, values))
    return list(records.values())


def test_table_4_4():
    runs = penalties()
    for measure, printed in PRINTED.items():
        own = [one for name, one in runs if name == measure]
        found = _penalties.analyse(own)
        if measure == "GN":  # the printed mean without penalty is over all 45 data sets
            assert round(found["held/GN"].value, 2) == printed["held"]
            assert round(found["left/GN"].value, 2) == printed["left"]
            continue
        for column, number in printed.items():
            assert round(found[f"{column}/{measure}"].value, 2) == number
            error = ERRORS[measure][column]
            assert found[f"{column}/{measure}"].se == pytest.approx(error, rel=0.05)
    own = {m: [one for name, one in runs if name == m] for m in PRINTED}
    shares = {m: _penalties.analyse(some)[f"omitted/{m}"].value for m, some in own.items()}
    counts = {m: round(45 * share) for m, share in shares.items()}
    assert counts == {"GN": 1, "PL0": 7, "PL1": 5, "WP": 3}
