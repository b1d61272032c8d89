"""Circle versus annulus, ball versus shell: many networks of one setting trained on it, counted.

Section 4.2 leaves open how weights are initialised and which part gets the label 1; both are
settings here. Success at the end of some epoch and success at the last are both recorded.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from inscape.papers.sattelberg._seeds import own_seed

Array = npt.NDArray[Any]

RATE = 0.01
#: Share of the points that a network must have right to succeed.
ENOUGH = 0.95
#: What a closed region may be, and what stands for no closed region.
SHAPES = ("hyperoctahedron", "expanded simplex", "between", "open")
#: Who gets the label 1; or the circle +1 and the annulus -1.
LABELS = ("circle", "annulus", "signs")
LOSSES = {"MSE": "mse", "BCE": "bce_logits"}

Points = tuple[Float[Tensor, "members n d"], Int[Tensor, "members n"]]
Others = tuple[Float[Tensor, "members m d"], Int[Tensor, "members m"]]


def drawn(
    seeds: Sequence[int],
    *,
    n: int,
    n_test: int = 0,
    dimension: int = 2,
    normalise: bool = False,
    outer: float | None = None,
) -> tuple[Points, Others]:
    """Draw points for every network, train and test; the inner part is class 1."""
    from inscape.data import circle_versus_annulus

    sets = [
        circle_versus_annulus(
            n=n, n_test=n_test, dimension=dimension, normalise=normalise, outer=outer, seed=seed
        )
        for seed in seeds
    ]
    train = torch.stack([one.x for one in sets]), torch.stack([one.y for one in sets])
    if not n_test:
        return train, train
    return train, (
        torch.stack([_given(one.x_test) for one in sets]),
        torch.stack([_given(one.y_test) for one in sets]),
    )


def _given(part: Tensor | None) -> Tensor:
    assert part is not None  # test points were asked for
    return part


def targets(y: Int[Tensor, "members n"], one: str) -> Float[Tensor, "members n"]:
    """Return what the output is trained towards: 0 and 1, or -1 and +1."""
    if one == "signs":
        return 2.0 * y - 1
    return (y if one == "circle" else 1 - y).float()


def threshold(loss: str, one: str) -> float:
    """Return the value of the output at which the decision changes."""
    return 0.5 if loss == "MSE" and one != "signs" else 0.0


def trained(
    x: Float[Tensor, "members n d"],
    y: Float[Tensor, "members n"],
    seeds: Sequence[int],
    *,
    loss: str,
    leak: float,
    batch: int,
    init: str,
    epochs: int,
    cut: float,
) -> Any:
    """Train one network of width n + 1 for each set of points, to the last epoch."""
    from inscape.ensembles.fit_tiny import fit_tiny

    inputs = x.shape[2]
    return fit_tiny(
        (inputs, inputs + 1, 1),
        x,
        y,
        seeds=seeds,
        init=init,
        activation="leaky_relu",
        slope=leak,
        loss=LOSSES[loss],
        lr=RATE,
        batch=batch,
        epochs=epochs,
        stop=None,
        threshold=cut,
        threads=1,
        progress=False,
    )


def parts(weights: Array, inputs: int) -> tuple[Array, Array, Array, float]:
    """Return the hidden weights and biases, the output weights and bias of one network."""
    units, flat = inputs + 1, np.asarray(weights, dtype=float)
    hidden, bias, out, end = np.split(flat, np.cumsum([units * inputs, units, units]))
    return hidden.reshape(units, inputs), bias, out, float(end[0])


def shape(weights: Array, inputs: int, leak: float, cut: float = 0.0) -> Any:
    """Return the closed region of one network; None where a weight is not finite."""
    from inscape.regions.closed_regions import from_weights

    if not np.isfinite(weights).all():
        return None
    hidden, bias, out, end = parts(weights, inputs)
    return from_weights(hidden, bias, out, end - cut, leak)


def shape_names(weights: Array, inputs: int, leak: float, cut: float = 0.0) -> list[str]:
    """Return the shape that each network reached: see ``SHAPES``."""
    found = (shape(row, inputs, leak, cut) for row in weights)
    return [one.shape if one is not None else "open" for one in found]


def counts(names: Sequence[str], chosen: Sequence[bool]) -> dict[str, int]:
    """Return how many of the chosen networks reached each shape."""
    found = Counter(name for name, use in zip(names, chosen, strict=True) if use)
    return {name: found[name] for name in SHAPES}


def right(
    weights: Float[Tensor, "members p"],
    x: Float[Tensor, "members n d"],
    inner: Int[Tensor, "members n"],
    *,
    leak: float,
) -> list[int]:
    """Return how many points each network has right, where the inner part is the label 1."""
    found = []
    for row, points, label in zip(weights, x, inner, strict=True):
        hidden, bias, out, end = parts(row.numpy(), x.shape[2])
        before = points.numpy().astype(float) @ hidden.T + bias
        output = np.where(before > 0, before, leak * before) @ out + end
        found.append(int(((output > 0) == (label.numpy() > 0)).sum()))
    return found


def cell(
    init: str,
    one: str,
    loss: str,
    leak: float,
    batch: int,
    normalise: bool,
    networks: int,
    epochs: int,
    points: int,
) -> dict[str, Any]:
    """Train the networks of one row of table 4.2, and count."""
    place = (
        ("pytorch", "he_normal", "glorot_uniform").index(init),
        LABELS.index(one),
        list(LOSSES).index(loss),
        round(1000 * leak),
        batch,
        int(normalise),
    )
    seeds = [own_seed(42, *place, k) for k in range(networks)]
    (x, inner), _ = drawn(seeds, n=points, normalise=normalise)
    cut = threshold(loss, one)
    done = trained(
        x,
        targets(inner, one),
        seeds,
        loss=loss,
        leak=leak,
        batch=batch,
        init=init,
        epochs=epochs,
        cut=cut,
    )
    names = shape_names(done.weights.numpy(), 2, leak, cut)
    success = (done.right >= ENOUGH * points).tolist()
    return {
        "best": done.best_right.tolist(),
        "end": done.right.tolist(),
        "epoch": done.best_epoch.tolist(),
        "diverged": int((done.diverged >= 0).sum()),
        "shapes": counts(names, [True] * networks),
        "shapes_of_successes": counts(names, success),
    }


def seconds(settings: Mapping[str, Any]) -> float:
    """Guess the time of a cell from that of a point of a network, whatever the batch size."""
    return float(1 + 1.2e-8 * settings["networks"] * settings["epochs"] * settings["points"])
