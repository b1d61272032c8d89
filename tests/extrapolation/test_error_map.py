import pytest
import torch
from torch.testing import assert_close

from inscape.extrapolation import error_map


def total(x):
    return x.sum(1, keepdim=True)


def test_errors_lie_where_the_inputs_are():
    found = error_map(
        lambda x: total(x) + x[:, :1] * (x[:, 1:] > 0),
        total,
        across=(-2, 2),
        up=(-1, 1),
        size=5,
        dtype=torch.float64,
    )
    across = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]).double()
    assert found.errors[:3].max() < 1e-30  # below and at zero
    assert_close(found.errors[3:], across.square().expand(2, 5))
    assert found.brightness[4, 0] == -found.errors[4, 0].log()
    rows = list(found.rows())
    assert rows[-1] == {"x1": 2.0, "x2": 1.0, "error": 4.0}
    assert_close(found.summary().value, float(found.errors.mean()))


def test_zeros_are_as_bright_as_the_least_error():
    found = error_map(lambda x: total(x) + x[:, :1].relu(), total, size=9, dtype=torch.float64)
    assert found.brightness.isfinite().all()
    least = found.errors[found.errors > 1e-30].min()
    assert found.brightness.max() >= -least.log()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="size must be at least 2"):
        error_map(total, total, size=1)
    with pytest.raises(ValueError, match=r"up must rise, found \(1.0, 1.0\): swap its ends"):
        error_map(total, total, up=(1.0, 1.0))
    with pytest.raises(ValueError, match="as many outputs as f, found 2 and 1"):
        error_map(total, lambda x: x)
