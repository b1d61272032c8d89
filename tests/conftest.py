"""Fixtures that every test may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import config


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data, or skip the test where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("INSCAPE_DATA_DIR", beside))
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} (set INSCAPE_DATA_DIR)")
    return folder


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switch the shape checks off, to see the errors that a user sees."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
