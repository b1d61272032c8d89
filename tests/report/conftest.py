"""Small looks, taken once, that many tests read."""

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inscape.data import Dataset
from inscape.models import mlp
from inscape.regions import Boundary, PlaneRegions
from inscape.report import Look, look
from inscape.report.look import page

#: The work of a look that had time for all there is.
WHOLE = "batch=1600"


#: Figures by what they show; it is kept beside them, or another might take its address.
Figures = dict[tuple[Hashable, ...], tuple[tuple[object, ...], Any]]
_FIGURES: Figures = {}


@pytest.fixture(autouse=True, scope="module")
def figures() -> Iterator[Figures]:
    """Draw each figure of a shared look once, on however many pages it stands.

    A test that wants them drawn again clears what is returned.
    """
    figure, part, section = page.figure, page._figure, page.slice_section

    def in_the_plane(measured: Any, cut: object) -> Any:
        if not isinstance(measured.result, PlaneRegions | Boundary):
            return part(measured, cut)
        shows = (measured.result, cut)
        return _once(shows, (str(measured.summary),), lambda: part(measured, cut))

    def of_the_slice(look: Look) -> Any:
        planes = [m.result for m in look.measurements if isinstance(m.result, PlaneRegions)]
        return _once((look.slice, *planes), ("slice",), lambda: section(look))

    def of_a_result(result: object, *, prefix: str, label: str) -> Any:
        make = partial(figure, result, prefix=prefix, label=label)
        return _once((result,), (prefix, label), make)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "figure", of_a_result)
        patch.setattr(page, "_figure", in_the_plane)
        patch.setattr(page, "slice_section", of_the_slice)
        yield _FIGURES


def _once(shows: tuple[object, ...], words: tuple[str, ...], make: Callable[[], Any]) -> Any:
    key = (*map(id, shows), *words)
    if key not in _FIGURES:
        _FIGURES[key] = shows, make()
    return _FIGURES[key][1]


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
