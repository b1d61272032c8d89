"""Shape, scale and normalisation of inputs."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from inscape.errors import DataError
from inscape.loaders import open_data

PIXELS = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4) * 2 + 40
FLAT = PIXELS.reshape(2, 48)


@pytest.mark.parametrize("shape", ["3x4x4", (3, 4, 4), [3, 4, 4]])
def test_flat_rows_become_images(shape):
    data = open_data(FLAT, input_shape=tuple(shape) if isinstance(shape, list) else shape)
    assert_close(data.x, torch.from_numpy(PIXELS).float())
    assert open_data(PIXELS, input_shape="48").x.shape == (2, 48)


def test_channels_are_moved_not_scrambled():
    last = PIXELS.transpose(0, 2, 3, 1)
    data = open_data(last, input_shape="3x4x4")
    assert_close(data.x, torch.from_numpy(PIXELS).float())
    assert "moved the channels from last to first" in data.notes
    back = open_data(PIXELS, input_shape="4x4x3")
    assert_close(back.x, torch.from_numpy(last.copy()).float())
    assert "moved the channels from first to last" in back.notes


@pytest.mark.parametrize("given", ["3x4", "50"])
def test_shapes_that_do_not_fit(given):
    with pytest.raises(
        DataError, match=rf"input shape {given} must hold \d+ numbers, found examples of"
    ):
        open_data(FLAT, input_shape=given)


@pytest.mark.parametrize("given", ["", "axb", "0x3", "-1x48", (), "3,4,4"])
def test_shapes_that_are_none(given):
    with pytest.raises(ValueError, match="input shape must be integers such as 1x28x28, found"):
        open_data(FLAT, input_shape=given)


def test_scale():
    assert_close(open_data(FLAT, divide="255").x, torch.from_numpy(FLAT).float() / 255)
    assert_close(open_data(FLAT, divide=2).x, torch.from_numpy(FLAT).float() / 2)
    assert open_data(FLAT, divide=2).settings["divide"] == 2.0


def test_bytes_are_scaled_only_on_request_and_it_is_said():
    plain = open_data(FLAT)
    assert_close(plain.x, torch.from_numpy(FLAT).float())
    text = "x holds integers from 40 to 230: taken as they are (use --divide 255 to divide)"
    assert text in plain.notes
    auto = open_data(FLAT.astype(np.int64), divide="auto")
    assert_close(auto.x, torch.from_numpy(FLAT).float() / 255)
    text = "x holds integers from 40 to 230: divided by 255 (use --divide 1 otherwise)"
    assert text in auto.notes
    assert auto.settings["divide"] == 255.0


@pytest.mark.parametrize("top", [1, 16, 127, 300])
def test_auto_leaves_other_whole_numbers_alone(top):
    x = np.array([[0, top]])
    data = open_data(x, divide="auto")
    assert data.x.tolist() == [[0, top]]
    assert f"x holds integers from 0 to {top}: taken as they are" in data.notes
    assert open_data(x.astype(float), divide="auto").notes == ()


@pytest.mark.parametrize("given", ["zero", 0, "nan", "inf"])
def test_scales_that_are_none(given):
    with pytest.raises(ValueError, match="divide must be a number to divide by, or auto, found"):
        open_data(FLAT, divide=given)


@pytest.mark.parametrize("given", ["0.5,0.25", (0.5, 0.25)])
def test_normalise_by_two_numbers(given):
    data = open_data(FLAT, divide=255, normalise=given)
    assert_close(data.x, (torch.from_numpy(FLAT).float() / 255 - 0.5) / 0.25)


@pytest.mark.parametrize("given", ["1,2,3/4,5,6", ((1, 2, 3), (4, 5, 6)), (np.r_[1:4], [4, 5, 6])])
def test_normalise_by_channel(given):
    data = open_data(FLAT, input_shape="3x4x4", normalise=given)
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in ([1.0, 2, 3], [4.0, 5, 6]))
    assert_close(data.x, (torch.from_numpy(PIXELS).float() - mean) / std)
    assert data.settings["normalise"] == ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))


def test_normalise_by_name():
    data = open_data(FLAT, input_shape="3x4x4", divide=255, normalise="cifar10")
    assert_close(data.x[0, 2, 0, 0].item(), (FLAT[0, 32] / 255 - 0.44653091) / 0.26158784)
    data = open_data(FLAT, divide=255, normalise="mnist")
    assert_close(data.x[0, 0].item(), (FLAT[0, 0] / 255 - 0.1307) / 0.3081)


@pytest.mark.data
def test_the_statistics_are_those_of_the_images(data_dir):
    mnist = open_data("mnist", data_dir=data_dir, normalise="mnist")
    assert abs(float(mnist.x.mean())) < 1e-3
    assert abs(float(mnist.x.std()) - 1) < 1e-3


def test_columns_of_a_table_can_be_normalised_too():
    data = open_data(np.array([[1.0, 10], [3, 30]]), normalise="2,20/1,10")
    assert_close(data.x, torch.tensor([[-1.0, -1], [1, 1]]))


def test_channels_that_are_not_there():
    with pytest.raises(
        DataError, match=r"found 3 for examples of shape \(48,\): use --input-shape"
    ):
        open_data(FLAT, normalise="cifar10")


@pytest.mark.parametrize("given", ["0.5", "0.5,0", "a,b", "1,2/3", "1,2,3", "nan,1", "imagenot"])
def test_normalisations_that_are_none(given):
    with pytest.raises(
        ValueError, match="normalise must be MEAN,STD or MEANS/STDS with one of each"
    ):
        open_data(FLAT, normalise=given)


def test_both_splits_are_prepared_alike():
    data = open_data({"x": FLAT, "x_test": FLAT // 2}, divide="auto", input_shape="3x4x4")
    assert_close(data.x_test, torch.from_numpy(PIXELS // 2).float() / 255)
