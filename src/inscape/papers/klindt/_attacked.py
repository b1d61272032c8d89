"""Section 3.5 and appendix A.2: classifiers of one hidden layer under noise and attacks.

``cell`` trains one network, with the standard deviation of its weights held (tanh) or with weight
decay (ReLU), and returns its accuracy over perturbations. Curves are lists that begin unperturbed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape._core.result import CORRELATION
from inscape.lab.experiment import Estimate, Panel, Settings
from inscape.lab.statistics import bootstrap_estimate, kendall_tau
from inscape.lab.store import Record

if TYPE_CHECKING:
    from inscape.data import Dataset

#: 1 / sigma of the tanh networks; the paper names the baseline 1 only.
SCALES = [0.1, 0.3, 1.0, 3.0, 10.0]
#: Weight decay of the ReLU networks; the paper names the baseline 0 only.
DECAYS = [0.0, 1e-4, 1e-3, 1e-2, 3e-2]
BASELINE = {"tanh": 1.0, "relu": 0.0}
#: L2 norms of adversarial steps, and standard deviations of noise; inputs lie in [0, 1].
STEPS = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
DEVIATIONS = [0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0]
LR, BATCH = 1e-2, 128
#: Words for the curves.
NAMES = {
    "fgsm": "FGSM, normalised gradient",
    "fgsm-sign": "FGSM, sign step",
    "noise": "white noise",
    "autoattack": "AutoAttack",
}
NOTES = (
    "The values of sigma and weight decay, the grid of perturbations, the number of epochs and the "
    "scaling of inputs are not given: here 1 / sigma from 0.1 to 10, inputs in [0, 1], Adam at "
    "1e-2 in batches of 128.",
    "How far a network reaches is the perturbation at which its accuracy falls to half of the best "
    "unperturbed one of its sweep.",
    "This reach was redefined (half of the sweep's best clean accuracy) after three MNIST tanh "
    "cells had been seen, and the learning rate 1e-2 and 20 epochs were set by short trials.",
    "Neither noisy nor attacked inputs are clipped to [0, 1], since the paper does not say so.",
    "A step of FGSM has exactly the stated length (carry=False).",
)


def cell(
    data: str, kind: str, strength: float, width: int, epochs: int, seed: int, points: int
) -> dict[str, Any]:
    """Train one network; return its accuracy under FGSM in both readings and under noise."""
    from inscape.robustness import Fgsm, Noise

    net, x, y = trained(data, kind, strength, width, epochs, seed)
    attacks = {
        "fgsm": (Fgsm(), STEPS),
        "fgsm-sign": (Fgsm(reading="sign"), STEPS),
        "noise": (Noise(draws=3), DEVIATIONS),
    }
    return {
        name: curve(net, x[:points], y[:points], attack, budgets, carry=False)
        for name, (attack, budgets) in attacks.items()
    }


def curve(
    net: Any, x: Any, y: Any, attack: Any, budgets: list[float], *, carry: bool
) -> list[float]:
    """Return the accuracy at each budget, the first of which is 0."""
    from inscape.robustness import robustness

    settings: dict[str, Any] = {"points": len(x), "examples": 0, "sanity": False}
    found: Any = robustness(net, x, y, attack=attack, budgets=budgets, carry=carry, **settings)
    return [float(share) for share in found.accuracy]


def trained(
    data: str, kind: str, strength: float, width: int, epochs: int, seed: int
) -> tuple[Any, Any, Any]:
    """Return a trained network and the test images; ``strength`` is 1 / sigma or weight decay."""
    import torch

    from inscape.controls import length_scale, release
    from inscape.models import two_layer
    from inscape.training import fit

    given = images(data)
    assert given.x_test is not None
    assert given.y_test is not None
    x, x_test = given.x.flatten(1), given.x_test.flatten(1)
    net = two_layer(x.shape[1], width, 10, activation=kind, seed=seed)
    settings: dict[str, Any] = {
        "loss": "cross_entropy",
        "optimizer": "adam",
        "lr": LR,
        "batch": BATCH,
    }
    if kind == "tanh":
        rng = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.normal_(generator=rng)
        length_scale(net, 1 / strength, bias="normalised")
        fit(net, x, given.y, epochs=epochs, seed=seed, **settings)
        release(net)
    else:
        fit(net, x, given.y, epochs=epochs, seed=seed, weight_decay=strength, **settings)
    return net, x_test, given.y_test


@lru_cache(maxsize=2)
def images(data: str) -> "Dataset":
    """Return a data set by its name."""
    from inscape.data import load

    return load(data)


def hash_of(settings: Settings) -> str:
    """Return the hash of the images that a cell reads."""
    return images(str(settings["data"])).hash


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    inputs = 3072 if "cifar" in settings["data"] else 784
    rows = int(str(settings["data"]).partition("n=")[2] or 1000) * settings["epochs"]
    return 1 + 2.5e-10 * float(inputs * settings["width"] * (rows + 20 * settings["points"]))


def curves(
    records: Sequence[Record], attack: str, **chosen: Any
) -> dict[int, dict[float, npt.NDArray[Any]]]:
    """Return curves by seed and strength, of the records with those settings."""
    found: dict[int, dict[float, npt.NDArray[Any]]] = {}
    for record in records:
        own = record.settings
        if attack in record.values and all(own[key] == value for key, value in chosen.items()):
            found.setdefault(own["seed"], {})[own["strength"]] = np.array(record.values[attack])
    return {seed: dict(sorted(by.items())) for seed, by in sorted(found.items())}


def reach(shares: npt.NDArray[Any], budgets: Sequence[float], level: float) -> float:
    """Return the perturbation at which accuracy falls to a level, interpolated.

    0 for a network that never had it, the last budget for one that keeps it.
    """
    at = np.array([0.0, *budgets])
    below = np.flatnonzero(shares <= level)
    if len(below) == 0:
        return float(at[-1])
    if (k := int(below[0])) == 0:
        return 0.0
    high, low = shares[k - 1], shares[k]
    return float(at[k - 1] + (at[k] - at[k - 1]) * (high - level) / (high - low))


def reaches(by: dict[float, npt.NDArray[Any]], budgets: Sequence[float]) -> dict[float, float]:
    """Return the reach of each network of a sweep: to half of the best unperturbed accuracy.

    One level for all, so that a network that answers the same everywhere is not the most robust.
    """
    level = max(float(one[0]) for one in by.values()) / 2
    return {strength: reach(one, budgets, level) for strength, one in by.items()}


def taus(
    by_seed: dict[int, dict[float, npt.NDArray[Any]]], budgets: Sequence[float]
) -> dict[int, float]:
    """Return how the reach goes with the strength: Kendall's tau, seed by seed."""
    found = {
        seed: kendall_tau(np.array(list(by)), np.array(list(reaches(by, budgets).values())))
        for seed, by in by_seed.items()
    }
    return {seed: 0.0 if np.isnan(tau) else tau for seed, tau in found.items()}


def trend(by_seed: dict[int, dict[float, npt.NDArray[Any]]], budgets: Sequence[float]) -> Estimate:
    """Return how the reach goes with the strength: Kendall's tau, over seeds."""
    return bootstrap_estimate(list(taus(by_seed, budgets).values()), within=CORRELATION)


def clean_trend(by_seed: dict[int, dict[float, npt.NDArray[Any]]]) -> Estimate:
    """Return how the unperturbed accuracy goes with the strength: Kendall's tau, over seeds."""
    taus = [
        kendall_tau(np.array(list(by)), np.array([one[0] for one in by.values()]))
        for by in by_seed.values()
    ]
    return bootstrap_estimate([0.0 if np.isnan(tau) else tau for tau in taus], within=CORRELATION)


def panel(
    ax: Panel,
    by_seed: dict[int, dict[float, npt.NDArray[Any]]],
    budgets: Sequence[float],
    word: str,
) -> None:
    """Draw one curve for each strength: the mean over seeds."""
    from inscape.figures.style import CATEGORIES, DASHES, quiet_grid

    strengths = sorted({strength for by in by_seed.values() for strength in by})
    marks = zip(strengths, CATEGORIES, DASHES, strict=False)
    for strength, colour, dash in marks:
        mean = np.mean([by[strength] for by in by_seed.values() if strength in by], axis=0)
        label = f"{word} = {strength:g}"
        ax.plot([0, *budgets], 100 * mean, color=colour, linestyle=dash, label=label)
    ax.set(ylim=(0, 102), ylabel="accuracy (%)")
    quiet_grid(ax)
