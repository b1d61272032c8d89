"""What is measured on a network of section 5.1: its boundary, neighbours and features."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from inscape.kernels import Neighbours, TangentKernel, neighbours, separability, tangent_kernel
from inscape.lab.experiment import Settings
from inscape.papers.courtois import _toys as toys

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
DIRECTIONS = 8
REACH = 1.25


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks on ball against sphere, and measure all that figures 1 to 3 show."""
    for index, model, (train, test) in toys.trained("ball", cells):
        settings = cells[index]
        body = model.double()
        x, y = (part.double() for part in train)
        found: dict[str, Any] = {
            "accuracy": toys.accuracy(body, x, y),
            "test accuracy": toys.accuracy(body, *(part.double() for part in test)),
            "loss": float((body(x) - y).detach().square().mean()),
        }
        found |= _boundary(body)
        count = min(100, settings["n"] // 4)
        shown = settings["seed"] == 0 and settings["choice"] == toys.BASE
        found |= _neighbours(body, x, count, settings["seed"], shown=shown)
        found |= _planes(body, x, y, settings, shown=shown)
        if shown:
            found |= {"x": x.float().numpy(), "y": y[:, 0].numpy().astype(np.int8)}
            found["map"] = values(body, toys.grid(settings["side"], REACH)).float().numpy()
        yield index, found


def values(model: nn.Module, x: Tensor) -> Float64[Tensor, " n"]:
    """Return the outputs as numbers."""
    found: Tensor = model(x).detach()[:, 0]
    return found


def _boundary(model: nn.Module) -> dict[str, Any]:
    radii = toys.crossings(model)
    whole = len(radii) == 64
    return {
        "radius": float(radii.mean()) if whole else None,
        "radii": [float(radii.min()), float(radii.max())] if whole else None,
    }


def _neighbours(
    model: nn.Module, x: Tensor, count: int, seed: int, *, shown: bool
) -> dict[str, Any]:
    """Compare the nearest points of lambda u by kernel and by distance, over directions u."""
    rays = toys.directions(DIRECTIONS, seed)
    asked = (torch.tensor(LAMBDAS, dtype=torch.float64)[None, :, None] * rays[:, None]).flatten(
        0, 1
    )
    near = neighbours(model, x, queries=asked, count=count)
    assert isinstance(near, Neighbours)  # there are trainable parameters
    shape = (DIRECTIONS, len(LAMBDAS))
    found: dict[str, Any] = {
        "agreement": toys.numbers(near.agreement.view(shape).mean(0)),
        "correlation": toys.numbers(near.correlation.view(shape).mean(0)),
        "chance": near.chance,
    }
    if shown:
        rows = slice(0, len(LAMBDAS))
        found |= {
            "u": rays[0].tolist(),
            "by kernel": _small(near.by_kernel[rows]),
            "by distance": _small(near.by_distance[rows]),
        }
    return found


def _small(rows: Int64[Tensor, "q k"]) -> Any:
    return rows.numpy().astype(np.int16)


def _planes(
    model: nn.Module, x: Tensor, y: Tensor, settings: Settings, *, shown: bool
) -> dict[str, Any]:
    """Separate inputs and tangent features by planes, those of the untrained network as well."""
    classes = (y[:, 0] > 0).long()
    places = toys.grid(settings["side"], REACH)
    sides = (values(model, places) > 0).long()
    gram, cross = kernel(model, x), kernel(model, places, x)
    plane = separability(gram, classes, test=(cross, sides))
    start = toys.first_network(settings["choice"], settings["seed"]).double()
    found: dict[str, Any] = {
        "SVM on inputs": separability(x @ x.T, classes, penalty=1.0).accuracy,
        "SVM on features": plane.accuracy,
        "margin": float(plane.margins[0]),
        "like the network": plane.test_accuracy,
        "SVM untrained": separability(kernel(start, x), classes).accuracy,
    }
    if shown:
        found["map of inputs"] = decisions(x @ x.T, classes, places @ x.T, 1.0)
        found["map of features"] = decisions(gram, classes, cross, 1e3)
    return found


def kernel(model: nn.Module, x: Tensor, others: Tensor | None = None) -> Float64[Tensor, "n m"]:
    """Return the tangent kernel of the one output."""
    found = tangent_kernel(model, x, others=others, outputs="trace", projections=0)
    assert isinstance(found, TangentKernel)  # there are trainable parameters
    return found.kernel.detach()


def decisions(
    gram: Float64[Tensor, "n n"], classes: Tensor, cross: Float64[Tensor, "m n"], penalty: float
) -> Any:
    """Return on which side of the plane of :func:`separability` other points lie."""
    from sklearn.svm import SVC

    size = float(gram.diagonal().mean())
    machine = SVC(C=penalty, kernel="precomputed", tol=1e-6)
    machine.fit((gram / size).numpy(), classes.numpy())
    return machine.predict((cross / size).numpy()).astype(np.int8)
