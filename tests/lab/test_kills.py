"""A real experiment that is killed again and again ends in the records of a calm run."""

import pytest

from inscape.files.leftovers import SEMAPHORES
from kills import trial


@pytest.mark.slow
@pytest.mark.skipif(not SEMAPHORES.is_dir(), reason="sees workers by their semaphores")
def test_a_killed_experiment_goes_on_and_leaves_nothing_behind(tmp_path):
    result = trial("courtois/figure-8", "laptop", tmp_path, kills=2, longest=0.3)
    assert result.cells == 18
    assert result.lost == []
    assert result.damaged == []
    assert result.differing == []
    assert result.left == []
    assert len(result.kills) > 1
    assert result.left_by_kills  # else the test would not see what is tidied
    assert [before for before, _ in result.kills[1:]] == [after for _, after in result.kills[:-1]]
