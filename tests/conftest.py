"""Fixtures that every test may use."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from jaxtyping import config

from elsewhere import ROUNDING

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some tests interrupt processes

TESTS = Path(__file__).parent

#: Run before all others: a long test at the end would leave the other workers idle.
FIRST = ("test_wheel.py", "test_gallery.py", "lab/test_kills.py")

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Draw what a file of tests draws while it is read from one seed: a test passes or it fails."""
    if isinstance(collector, pytest.Module):
        torch.manual_seed(0)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of folders, and of files, that compare bits, orders or tight tolerances."""
    place = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
    if any(part.as_posix() in ROUNDING for part in (place, *place.parents)):
        item.add_marker("rounding")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with the longest tests in front."""
    longest = [TESTS / name for name in FIRST]
    items.sort(key=lambda item: longest.index(item.path) if item.path in longest else len(FIRST))


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
