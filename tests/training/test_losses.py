import pytest
import torch
from torch.testing import assert_close

from inscape.training import bce_logits, cross_entropy, mse
from inscape.training.losses import check_targets, loss_function, shape

PREDICTION = torch.tensor([[0.5, -1.0, 2.0], [0.0, 1.0, -3.0]], dtype=torch.float64)


def test_mse_is_the_mean_over_all_elements():
    target = torch.ones_like(PREDICTION)
    numbers = (PREDICTION - 1).flatten().tolist()
    assert mse(PREDICTION, target).item() == pytest.approx(sum(r * r for r in numbers) / 6)


def test_cross_entropy_is_the_mean_log_probability():
    picked = torch.softmax(PREDICTION, 1)[[0, 1], [2, 1]]
    loss = cross_entropy(PREDICTION, torch.tensor([2, 1]))
    assert_close(loss, -picked.log().mean())
    one_hot = torch.tensor([[0, 0, 1], [0, 1, 0]], dtype=torch.float64)
    assert_close(cross_entropy(PREDICTION, one_hot), loss)


def test_cross_entropy_of_maps_takes_a_class_per_place():
    maps = PREDICTION[:, :, None].expand(2, 3, 4)
    target = torch.tensor([2, 1])[:, None].expand(2, 4)
    assert_close(cross_entropy(maps, target), cross_entropy(PREDICTION, torch.tensor([2, 1])))


def test_bce_is_the_mean_over_all_elements():
    target = torch.tensor([[0, 1, 0.25], [1, 1, 0]], dtype=torch.float64)
    p = torch.sigmoid(PREDICTION)
    expected = -(target * p.log() + (1 - target) * (1 - p).log()).mean()
    assert_close(bce_logits(PREDICTION, target), expected)


@pytest.mark.parametrize("loss", [mse, bce_logits])
def test_shapes_are_never_broadcast(loss):
    text = r"shaped as the predictions, found predictions \(n, 1\) and targets \(n,\): reshape y"
    with pytest.raises(ValueError, match=text + r" to \(n, 1\)\."):
        loss(torch.zeros(4, 1), torch.zeros(4))
    with pytest.raises(ValueError, match=r"found predictions \(n,\) and targets \(n, 1\)"):
        loss(torch.zeros(4), torch.zeros(4, 1))
    with pytest.raises(TypeError, match=r"torch\.float32 and torch\.float64: use y\.to\(torch\.fl"):
        loss(torch.zeros(4, 1), torch.zeros(4, 1, dtype=torch.float64))
    with pytest.raises(
        TypeError, match=r"'(mse|bce_logits)' requires targets of the type of the pre"
    ):
        loss(torch.zeros(4, 1), torch.zeros(4, 1, dtype=torch.int64))


def test_cross_entropy_refuses_what_does_not_fit():
    with pytest.raises(
        TypeError, match=r"requires class numbers as int64, found torch\.uint8: use y"
    ):
        cross_entropy(PREDICTION, torch.zeros(2, dtype=torch.uint8))
    text = r"requires predictions \(n, classes\) and .* found \(n, 3\) and \(n, 1\): reshape y"
    with pytest.raises(ValueError, match=text):
        cross_entropy(PREDICTION, torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"found \(n,\) and \(n,\)"):
        cross_entropy(torch.zeros(3), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"'cross_entropy' requires targets shaped as"):
        cross_entropy(PREDICTION, torch.zeros(2))


def test_values_are_checked_over_all_targets():
    y = torch.tensor([0, 2])
    check_targets("cross_entropy", y, PREDICTION)
    with pytest.raises(ValueError, match=r"between 0 and 2, found 0 to 3: renumber y or give the"):
        check_targets("cross_entropy", torch.tensor([0, 3]), PREDICTION)
    with pytest.raises(ValueError, match=r"between 0 and 2, found -1 to 0"):
        check_targets("cross_entropy", torch.tensor([-1, 0]), PREDICTION)
    check_targets("bce_logits", torch.tensor([[0.0], [1.0]]), PREDICTION)
    with pytest.raises(ValueError, match=r"between 0 and 1, found -1\.0 to 1\.0: for labels -1 a"):
        check_targets("bce_logits", torch.tensor([[-1.0], [1.0]]), PREDICTION)
    check_targets("mse", torch.tensor([[-1.0], [7.0]]), PREDICTION)
    check_targets(mse, torch.tensor([[-1.0], [7.0]]), PREDICTION)


def test_losses_go_by_name_or_as_they_are():
    assert loss_function("mse") is mse
    assert loss_function(torch.dot) is torch.dot
    with pytest.raises(ValueError, match=r"loss must be one of 'mse', 'cross_entropy', 'bce_log"):
        loss_function("hinge")


def test_shapes_read_well():
    assert [shape(torch.zeros(s)) for s in [(4,), (4, 1), (4, 2, 3)]] == [
        "(n,)",
        "(n, 1)",
        "(n, 2, 3)",
    ]
