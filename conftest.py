"""What holds for the tests and for the examples in docstrings alike."""

import pytest
import torch


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Start every test, and the fixtures made for it, from one seed, whichever ran before it."""
    torch.manual_seed(0)
