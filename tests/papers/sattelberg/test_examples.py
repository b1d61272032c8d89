"""Figures 5.1 and 5.2: the corrected numbers, by hand and by the network itself."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from inscape.papers.sattelberg import xor_by_hand as figure_5_1
from inscape.papers.sattelberg import xor_by_hand as figure_5_2


def test_map_of_the_pattern_by_matrices():
    (first, b1), (second, b2), (third, b3) = (
        (torch.tensor(w).double(), torch.tensor(b).double()) for w, b in figure_5_1.LAYERS
    )
    on1, on2 = (torch.diag(torch.tensor(row).double()) for row in figure_5_1.PATTERN)
    matrix = third @ on2 @ second @ on1 @ first
    vector = third @ on2 @ (second @ on1 @ b1 + b2) + b3
    ours = torch.tensor(figure_5_1.worked_cell(points=10)["map"]).double()
    assert_close(ours, torch.cat([matrix, vector[:, None]], 1))
    assert_close(ours, torch.tensor(figure_5_1.CORRECTED).double())


def test_no_input_has_the_printed_pattern():
    found = figure_5_1.worked_cell(points=1000)
    assert found["least"] >= found["bound"] > 0


def test_xor_is_solved_with_the_corrected_bias_alone():
    wanted = torch.tensor(list(figure_5_2.TABLE.values())).double()
    corrected = torch.tensor(figure_5_2.xor_cell("corrected")["values"]).double()
    assert_close(corrected, wanted)
    printed = torch.tensor(figure_5_2.xor_cell("printed")["values"]).double()
    assert (printed != wanted).any()


@pytest.mark.parametrize("bias", ["printed", "corrected"])
def test_patterns_that_exist_are_those_on_a_grid(bias: str):
    weights = figure_5_2.BIASES[bias]
    seen = set()
    for s in torch.linspace(-4, 4, 801).tolist():
        seen.add("".join(str(int(s + b > 0)) for b in weights))
    exists = figure_5_2.xor_cell(bias)["exists"]
    assert seen == {name for name, there in exists.items() if there}
    assert set(exists) == {"".join(bits) for bits in itertools.product("01", repeat=2)}
