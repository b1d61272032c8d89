import copy

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import disagreement


def test_classes_are_compared_example_by_example():
    f, g, x = dense(3, 8, 4), dense(3, 8, 4, seed=1), points(40, 3)
    result = disagreement(f, x, other=g)
    differs = [int(f(row[None]).argmax()) != int(g(row[None]).argmax()) for row in x]
    assert result.per_sample().bool().tolist() == differs
    assert result.summary().value == sum(differs) / 40


def test_distance_is_the_total_variation_of_the_softmax_outputs():
    f, g, x = dense(2, 6, 3), dense(2, 6, 3, seed=1), points(10, 2)
    p, q = f(x).softmax(1), g(x).softmax(1)
    events = [[k for k in range(3) if mask >> k & 1] for mask in range(8)]  # the largest of all
    brute = torch.stack([(p[:, e].sum(1) - q[:, e].sum(1)).abs() for e in events]).amax(0)
    result = disagreement(f, x, other=g)
    assert_close(result.distances, brute.detach())
    assert result.most(10).tolist() == brute.argsort(descending=True).tolist()


def test_network_agrees_with_itself_and_with_itself_rescaled():
    f, x = dense(3, 8, 4), points(30, 3)
    assert disagreement(f, x, other=f).summary().value == 0
    assert disagreement(f, x, other=lambda z: 5 * f(z) - 1).summary().value == 0
    assert float(disagreement(f, x, other=f).distances.abs().max()) == 0


def test_one_output_has_two_classes():
    x = torch.tensor([[-1.0], [0.5], [2.0]])
    result = disagreement(lambda z: z, x, other=lambda z: z - 1)
    assert result.classes.tolist() == [0, 1, 1]
    assert result.other_classes.tolist() == [0, 0, 1]
    assert disagreement(lambda z: z, x, other=lambda z: z, level=0.5).classes.tolist() == [0, 0, 1]
    half = torch.tensor(0.5, dtype=torch.float64)
    assert_close(result.distances[1], half.sigmoid() - (-half).sigmoid())


def test_each_network_has_its_own_preprocessing():
    f, x = dense(3, 8, 4), points(20, 3)
    shifted = disagreement(f, x, other=lambda z: f(z - 7), other_x=x + 7)
    assert shifted.summary().value == 0


def test_each_network_is_measured_in_its_own_precision():
    f, x = dense(3, 8, 4), points(20, 3)
    single = copy.deepcopy(f).float()
    assert disagreement(f, x, other=single).summary().value == 0
    assert 0 < float(disagreement(f, x, other=single).distances.max()) < 1e-5


def test_without_a_second_network_it_does_not_apply():
    result = disagreement(dense(3, 8, 4), points(5, 3))
    assert result.status.startswith("not applicable: it needs a second network: pass other=")


def test_errors_say_what_does_not_fit():
    f, x = dense(3, 8, 4), points(5, 3)
    with pytest.raises(ValueError, match="same number of outputs, found 4 and 2: compare the"):
        disagreement(f, x, other=dense(3, 5, 2))
    with pytest.raises(ValueError, match="must hold the same examples, found 5 and 4: pass each"):
        disagreement(f, x, other=f, other_x=x[:4])
    with pytest.raises(TypeError, match="a function or a module, found OrderedDict: pass"):
        disagreement(f, x, other=f.state_dict())
