"""Small looks, taken once, that many tests read."""

import pytest
import torch
from torch import Tensor, nn

from inscape.data import Dataset
from inscape.models import mlp
from inscape.report import Look, look

#: The work of a look that had time for all there is.
WHOLE = "batch=1600"


def step(x: Tensor) -> Tensor:
    return (x[:, :1] > 0).to(x.dtype) - x[:, 1:2]


@pytest.fixture(scope="session")
def regression() -> Dataset:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=rng, dtype=torch.float64)
    return Dataset(
        name="steps",
        x=x[:40],
        y=step(x[:40]),
        x_test=x[40:],
        y_test=step(x[40:]),
        task="regression",
    )


@pytest.fixture(scope="session")
def classes() -> Dataset:
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(50, 2, 2, generator=rng)
    return Dataset(name="quarters", x=x, y=(x[:, 0, 0] > 0) + 2 * (x[:, 1, 1] > 0), task="classes")


@pytest.fixture(scope="session")
def network() -> nn.Sequential:
    return mlp(3, 5, 1, seed=1, dtype=torch.float64)


@pytest.fixture(scope="session")
def classifier() -> nn.Module:
    return nn.Sequential(nn.Flatten(), *mlp(4, 6, 5, 4, seed=2)).eval()


@pytest.fixture(scope="session")
def seen(network: nn.Sequential, regression: Dataset) -> Look:
    """A look at a regression with all of its references."""
    command = "inscape look net.py:make --out a.html"
    return look(network, regression, quiet=True, command=command, work=WHOLE)


@pytest.fixture(scope="session")
def classified(classifier: nn.Module, classes: Dataset) -> Look:
    """A look at a classifier of images, from Python."""
    return look(classifier, classes, quiet=True, seed=3, work=WHOLE)
