"""Whether two results are the same, field by field."""

from dataclasses import fields

import torch
from torch import Tensor


def assert_same(a, b, *, exactly, skip=()):
    """Compare two results field by field."""
    assert type(a) is type(b)
    for field in fields(a):
        if field.name in skip:
            continue
        one, two = getattr(a, field.name), getattr(b, field.name)
        if not isinstance(one, Tensor):
            assert one == two, field.name
        elif exactly:
            assert torch.equal(one, two), field.name
        else:
            torch.testing.assert_close(one, two)
