"""The choices that section 3.4 leaves open: first weights, and success at the end."""

import numpy as np
import pytest
import torch

from inscape.papers.sattelberg import _trials, figure_3_5, open_choices
from inscape.papers.sattelberg._npn_metrics import points, tables

SIZES = (4, 3, 3, 1)
SEEDS = _trials.member_seeds(range(40), range(50), 1).ravel()
#: Places of each layer's matrix and biases in a row of weights.
PARTS = (
    (slice(0, 12), slice(12, 15)),
    (slice(15, 24), slice(24, 27)),
    (slice(27, 30), slice(30, 31)),
)


def weights(choice: str) -> np.ndarray:
    found = open_choices.first_weights(choice, SIZES, SEEDS)
    assert found is not None
    return found


def test_only_two_choices_touch_first_weights():
    assert open_choices.first_weights(open_choices.BASE, SIZES, SEEDS) is None
    assert open_choices.first_weights("at the end", SIZES, SEEDS) is None


@pytest.mark.parametrize("layer", range(3))
def test_fan_out_has_he_s_spread_by_outputs(layer: int):
    matrix, bias = PARTS[layer]
    found = weights("fan-out")
    assert found[:, matrix].std() == pytest.approx((2 / SIZES[layer + 1]) ** 0.5, rel=0.05)
    assert (found[:, bias] == 0).all()


@pytest.mark.parametrize("layer", range(3))
def test_random_biases_have_pytorch_s_law_and_nothing_to_do_with_the_weights(layer: int):
    matrix, bias = PARTS[layer]
    found = weights("random biases")
    bound = SIZES[layer] ** -0.5
    assert found[:, matrix].std() == pytest.approx((2 / SIZES[layer]) ** 0.5, rel=0.05)
    assert 0.97 * bound < np.abs(found[:, bias]).max() <= bound * (1 + 1e-6)
    assert found[:, bias].std() == pytest.approx(bound / 3**0.5, rel=0.06)
    both = np.corrcoef(found[:, matrix.start], found[:, bias.start])[0, 1]
    assert abs(both) < 0.1


def test_base_is_figure_3_5():
    given = {"leak": 0.1, "width": 3, "depth": 1, "trials": 2, "epochs": 40}
    ours = open_choices.cell(choice=open_choices.BASE, **given)
    assert (ours["successes"] == figure_3_5.cell(**given)["successes"]).all()


def test_success_at_the_end_is_that_of_all_epochs():
    seeds = _trials.member_seeds([6, 27], range(8), 2)
    given = {"width": 3, "depth": 1, "leak": 0.1, "seeds": seeds, "epochs": 60}
    end = _trials.trained(tables()[[6, 27]], points(), stops=False, **given)
    assert (end.epochs == 60).all()
    assert (end.solved == (end.right == 16)).all()
    some = _trials.trained(tables()[[6, 27]], points(), **given)
    assert (some.solved == (end.best == 16)).all()


def test_given_weights_are_where_training_starts():
    from inscape.ensembles.fit_tiny import tiny_weights

    seeds = _trials.member_seeds([6], range(5), 3)
    start = np.asarray(tiny_weights((4, 3, 1), seeds.ravel().tolist(), dtype=torch.float32))
    given = {"width": 3, "depth": 1, "leak": 0.1, "seeds": seeds, "epochs": 60}
    one = _trials.trained(tables()[[6]], points(), **given)
    two = _trials.trained(tables()[[6]], points(), start=start, **given)
    assert (one.epochs == two.epochs).all()
    other = _trials.trained(tables()[[6]], points(), start=start[::-1].copy(), **given)
    assert (other.epochs == one.epochs[:, ::-1]).all()
