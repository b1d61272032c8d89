"""What is measured on a network of section 5.2: neighbours along the normal of the boundary."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from inscape.kernels import Neighbours, neighbours
from inscape.lab.experiment import Settings
from inscape.papers.courtois import _toys as toys

LAMBDAS = (-1.0, -0.5, -0.25, -0.1, 0.1, 0.25, 0.5, 1.0)


def together(cells: Sequence[Settings]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Train networks on the half-plane task, and measure all that figures 4 and 5 show."""
    for index, model, (train, test) in toys.trained("plane", cells):
        settings = cells[index]
        body = model.double()
        x, y = (part.double() for part in train)
        found: dict[str, Any] = {
            "accuracy": toys.accuracy(body, x, y),
            "test accuracy": toys.accuracy(body, *(part.double() for part in test)),
            "loss": float((body(x) - y).detach().square().mean()),
        }
        shown = settings["seed"] == 0 and settings["choice"] == toys.BASE
        found |= _neighbours(body, x, y, min(100, settings["n"] // 4), shown=shown)
        if shown:
            found |= {"x": x.float().numpy(), "y": y[:, 0].numpy().astype(np.int8)}
            places = toys.grid(settings["side"], 1.0)
            found["map"] = body(places).detach()[:, 0].float().numpy()
        yield index, found


def _neighbours(
    model: nn.Module, x: Tensor, y: Tensor, count: int, *, shown: bool
) -> dict[str, Any]:
    """Compare labels and spread of the nearest points of lambda a, by kernel and by distance."""
    u = torch.full((2,), 0.5, dtype=torch.float64).sqrt()
    places = torch.tensor(LAMBDAS, dtype=torch.float64)
    near = neighbours(model, x, queries=places[:, None] * u, count=count)
    assert isinstance(near, Neighbours)  # there are trainable parameters
    found: dict[str, Any] = {"agreement": toys.numbers(near.agreement)}
    for name, rows in (("by kernel", near.by_kernel), ("by distance", near.by_distance)):
        same = (y[rows, 0] * places[:, None] > 0).double().mean(1)
        found[f"same label {name}"] = toys.numbers(same)
        found[f"stretch {name}"] = toys.numbers(stretch(x, rows))
        if shown:
            found[name] = rows.numpy().astype(np.int16)
    return found


def stretch(x: Float64[Tensor, "n 2"], rows: Int64[Tensor, "q k"]) -> Float64[Tensor, " q"]:
    """Return how far lists of points spread across the diagonal, divided by along it."""
    along = (x[:, 0] + x[:, 1])[rows].std(1)
    across = (x[:, 0] - x[:, 1])[rows].std(1)
    return across / along
