import numpy as np
import pytest
import torch

from inscape.data import digits, digits_binary
from inscape.errors import DataError


def test_digits_are_scaled_and_split():
    data = digits()
    assert data.x.shape == (1437, 64)
    assert data.x_test.shape == (360, 64)
    assert (data.x.min(), data.x.max()) == (0, 1)
    assert data.classes == 10
    assert digits(flat=False).x.shape == (1437, 1, 8, 8)


def test_every_image_is_in_one_half_with_its_own_label():
    from sklearn.datasets import load_digits

    data, stored = digits(dtype=torch.float64), load_digits()
    rows = torch.cat((data.x, data.x_test)).numpy() * 16
    labels = torch.cat((data.y, data.y_test)).numpy()
    result = sorted(zip(map(tuple, rows.tolist()), labels.tolist(), strict=True))
    expected = sorted(zip(map(tuple, stored.data.tolist()), stored.target.tolist(), strict=True))
    assert result == expected


def test_a_seed_names_the_split():
    assert digits(seed=1).hash == digits(seed=1).hash
    assert digits(seed=1).hash != digits(seed=2).hash
    assert not torch.equal(digits(seed=1).y, digits(seed=2).y)


def test_the_first_images_on_request():
    assert torch.equal(digits(n=9).x, digits().x[:9])
    assert digits(n_test=0).x.shape == (1797, 64)
    assert digits(n_test=0).x_test is None


def test_two_digits_with_signs():
    whole, two = digits(), digits_binary(8, 3)
    keep = (whole.y == 3) | (whole.y == 8)
    assert torch.equal(two.x, whole.x[keep])
    assert torch.equal(two.y[:, 0] == 1, whole.y[keep] == 3)
    assert torch.equal(digits_binary(3, 8, n=5).x, two.x[:5])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: digits(n_test=1797), "n_test must lie between 0 and 1796, found 1797"),
        (lambda: digits(n_test=-1), "n_test must lie between 0 and 1796, found -1"),
        (lambda: digits(n=1438), "at most the 1437 training images of digits, found 1438"),
        (lambda: digits(seed=-1), "seed must be at least 0, found -1"),
        (lambda: digits_binary(3, 8, n_test=10), "n_test must be at least 50, .* found 10"),
        (lambda: digits_binary(3, 3), "a and b must be two different digits"),
    ],
)
def test_wrong_settings_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_other_bytes_than_the_known_ones_are_refused(monkeypatch):
    from sklearn.datasets import load_digits

    stored = load_digits()
    stored.images = np.roll(stored.images, 1)
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: stored)
    with pytest.raises(
        DataError, match=r"scikit-learn's digits must have sha256 8f26b2bd9d13\.\.\."
    ):
        digits()
