"""A real experiment that is killed again and again ends in the records of a calm run."""

import pytest

from inscape.files.leftovers import SEMAPHORES
from kills import trial


@pytest.mark.slow
@pytest.mark.skipif(not SEMAPHORES.is_dir(), reason="sees workers by their semaphores")
def test_a_killed_experiment_goes_on_and_leaves_nothing_behind(tmp_path):
    found = trial("courtois/figure-8", "laptop", tmp_path, kills=4, longest=0.3)
    assert found.cells == 18
    assert found.lost == []
    assert found.damaged == []
    assert found.differing == []
    assert found.left == []
    assert len(found.kills) > 1
    assert found.left_by_kills  # else the test would not see what is tidied
    assert [before for before, _ in found.kills[1:]] == [after for _, after in found.kills[:-1]]
