"""One foreign model of each kind, measured beside brute force; make test-models has them all."""

from collections import Counter

import pytest

import zoo.table as table
from zoo.files import AbsentError
from zoo.rows import ROWS

FAST = [row for row in ROWS if row.fast]

#: How many models of each kind the table has at least.
LEAST = {
    "ONNX": 10, "Hugging Face": 5, "Keras": 4, "scikit-learn": 5, "TorchScript": 3, ".nnet": 3,
    "several": 5, "tokens": 3,
}  # fmt: skip


def test_the_table_has_enough_models_and_not_too_many_of_one_kind():
    kinds = Counter(row.kind for row in ROWS)
    assert len(ROWS) >= 40
    for kind, least in LEAST.items():
        assert least <= kinds[kind] <= least + 4, kind
    assert all(count <= 4 for kind, count in kinds.items() if kind not in LEAST)
    assert len({row.kind for row in FAST}) == len(FAST) >= 10


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("row", FAST, ids=lambda row: row.kind)
def test_a_model_of_each_kind_agrees_with_brute_force(row, tmp_path):
    for name in row.needs:
        pytest.importorskip(name)
    try:
        how, outcomes = table.outcome_of(row, tmp_path)
    except AbsentError as error:
        pytest.skip(str(error))
    assert table.faults(row, outcomes) == []
    assert how


def test_the_page_has_a_line_for_each_model():
    lines = [line for line in table.PAGE.read_text().splitlines() if line.startswith("| ")]
    for row in ROWS:
        assert any(f"| {row.name} |" in line for line in lines), row.name
