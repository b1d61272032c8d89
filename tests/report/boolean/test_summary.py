"""The look at a Boolean function, its page, and what records say about it."""

import json

import numpy as np
import pytest

from inscape.boolean import npn
from inscape.boolean.truth_table import TruthTable, parity, random
from inscape.lab.encoding import cell_key
from inscape.lab.statistics import proportion_estimate
from inscape.lab.store import Record, Store
from inscape.report.boolean import summary, trials
from inscape.report.boolean.page import page
from inscape.report.boolean.summary import (
    constructed,
    description,
    hypothetical,
    look_at_function,
    sizes,
)
from inscape.report.boolean.trials import seen_before
from markup import Structure

XOR = TruthTable(2, 6)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "sizes", lambda n, swaps: [(2, 1)])
        empty = tmp_path_factory.mktemp("empty")
        return look_at_function(XOR, networks=30, results=empty, threads=1, command="inscape look")


def test_a_look_knows_the_function(seen):
    rows = {row["quantity"]: row["value"] for row in seen.rows()}
    assert rows == {
        "class": 6,
        "class size": 2,
        "true inputs": 2,
        "swaps": 2,
        "degree": 2,
        "influence": 2.0,
        "entropy": 0.0,
    }
    assert [trial.size for trial in seen.networks] == ["2-2-1", "2-2-1", "2-2-1"]
    assert all(trial.checked for trial in seen.networks)
    assert seen.smallest.parameters == 9
    assert {trial.activation for trial in seen.trials} == {"leaky ReLU", "ReLU"}
    for trial in seen.trials:
        assert (trial.networks, trial.fraction) == (30, trial.solved / 30)
        assert trial.low <= trial.fraction <= trial.high
    assert any(trial.solved for trial in seen.trials)
    assert "function 6 of 2 inputs changes 2 times" in description(seen)
    json.dumps(seen.to_dict())


def test_the_page_is_whole_and_needs_nothing(seen, tmp_path):
    written = page(seen)
    result = Structure(written)
    assert "Function 6 of 2 inputs" in result.text
    for one in (*seen.networks, *seen.trials):
        assert one.size in result.text
    assert description(seen) in result.text
    ids = [attributes["id"] for _, attributes in result.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not {tag for tag, _ in result.tags} & {"script", "link", "img"}
    assert len(written) < 300_000
    path = seen.save(tmp_path / "a.json")
    assert json.loads(path.read_text())["function"]["number"] == 6
    with pytest.raises(ValueError, match=r"must be named .html or .json, found '.txt'"):
        seen.save(tmp_path / "a.txt")


def test_a_formula_is_escaped(seen):
    from dataclasses import replace

    assert "&lt;b&gt;" in page(replace(seen, written="<b>"))


def test_without_time_nothing_is_trained(tmp_path):
    look = look_at_function(XOR, budget=1e-9, results=tmp_path)
    assert look.trials == ()
    assert "2-2-1 with ReLU" in look.left_out
    assert "Left out for time" in Structure(page(look)).text


def test_more_inputs_than_can_be_searched_give_a_bound(tmp_path):
    look = look_at_function(random(7, seed=1), budget=1e-9, results=tmp_path)
    assert look.canonical is None
    assert look.swaps.kind == "upper bound"
    assert "at most" in description(look)
    assert all(network.checked for network in look.networks)
    assert "a better line was not found" in Structure(page(look)).text
    with pytest.raises(ValueError, match="at most 10 inputs to be looked at, found 11"):
        look_at_function(TruthTable(11, 0))


def test_parity_has_its_own_network():
    result = list(constructed(parity(4), summary.swaps(parity(4)), parity(4).number))
    assert [one.size for one in result] == ["4-4-1", "4-2-2-2-1", "4-2-2-1"]
    other = ~parity(4)
    *_, last = constructed(other, summary.swaps(other), parity(4).number)
    assert last.checked is None


def test_sizes_lie_about_the_bound():
    assert sizes(4, 4) == [(3, 1), (4, 1), (5, 1), (9, 1), (2, 2), (3, 2), (4, 2)]
    assert sizes(2, 0)[0] == (1, 1)
    assert max(sizes(10, 400)) == (24, 1)
    assert hypothetical(5) == [
        {"width": 2, "depth": 3},
        {"width": 3, "depth": 2},
        {"width": 4, "depth": 2},
    ]


def test_wilson_against_its_formula():
    p, n, z = 0.3, 50, 1.959963984540054
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    rate = proportion_estimate(15, 50)
    assert (rate.low, rate.high) == pytest.approx((middle - half, middle + half))


def test_records_of_figure_3_5_are_read(tmp_path):
    store = Store(tmp_path)
    place = npn.classes(4).tolist().index(27030)
    for leak, width, count in ((0.1, 3, 0), (0.1, 4, 7), (0.1, 5, 50), (0.0, 6, 9)):
        successes = np.zeros(222, dtype=np.uint16)
        successes[place] = count
        settings = {"leak": leak, "width": width, "depth": 1, "trials": 100, "epochs": 4000}
        store.write(
            Record(
                experiment=trials.RECORDS,
                scale="paper",
                key=cell_key(trials.RECORDS, settings, 1, "none"),
                settings=settings,
                data="none",
                values={"successes": successes},
                claims={},
                provenance={},
            )
        )
    leaky, relu = seen_before(27030, tmp_path)
    assert (leaky.size, leaky.solved, leaky.activation, leaky.scale) == (
        "4-4-1",
        7,
        "leaky ReLU",
        "paper",
    )
    assert (relu.size, relu.solved) == ("4-6-1", 9)
    assert seen_before(1, tmp_path) == ()
    assert seen_before(27030, tmp_path / "nowhere") == ()
