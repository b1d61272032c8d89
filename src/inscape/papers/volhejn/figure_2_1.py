"""Figure 2.1: risk falls, rises where the data are just fitted, and falls again: double descent."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import bootstrap_estimate, paired_difference

Array = npt.NDArray[Any]
N = 100
AXES = grid(
    features=[2, 5, 10, 15, 25, 40, 60, 80, 90, 100, 110, 125, 150, 200, 300, 500, 1000, 2000],
    n=N,
    d=10,
    noise=0.3,
    trials=20,
    seed=0,
)


def cell(features: int, n: int, d: int, noise: float, trials: int, seed: int) -> dict[str, Any]:
    """Fit random ReLU features by least squares, and return the risks of each trial."""
    risks = [_trial(features, n, d, noise, [seed, trial]) for trial in range(trials)]
    return {"train": [train for train, _ in risks], "test": [test for _, test in risks]}


def _trial(features: int, n: int, d: int, noise: float, seed: list[int]) -> tuple[float, float]:
    """Return training and test risk of the solution of least norm.

    Data and features are drawn from two streams, so that one trial has the same data for every
    number of features, and its features are the first of one endless row.
    """
    points, feature_stream = (np.random.default_rng([*seed, k]) for k in (0, 1))
    x = _on_sphere(points.normal(size=(n + 2000, d)))
    f = np.sqrt(d) * x[:, 0]
    y = f[:n] + noise * points.normal(size=n)
    phi = np.maximum(x @ _on_sphere(feature_stream.normal(size=(features, d))).T, 0)
    weights = np.linalg.lstsq(phi[:n], y, rcond=None)[0]  # of least norm where there are several
    prediction = phi @ weights
    train = float(np.mean((prediction[:n] - y) ** 2))
    return train, float(np.mean((prediction[n:] - f[n:]) ** 2)) + noise**2


def _on_sphere(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: test points times features, and a decomposition."""
    return float(0.05 + settings["trials"] * (5e-3 + 6e-5 * settings["features"]))


def risks(records: Sequence[Record], kind: str = "test") -> dict[int, list[float]]:
    """Return the risks of all trials by number of features."""
    return {
        record.settings["features"]: record.values[kind]
        for record in sorted(records, key=lambda record: int(record.settings["features"]))
    }


def analyse(records: Sequence[Record]) -> Mapping[str, Estimate]:
    """Return where the risk is largest, and how it changes between four sizes fixed beforehand."""
    logs = {size: np.log(values) for size, values in risks(records).items()}
    n = records[0].settings["n"]
    sizes = [min(logs), n // 4, n, max(logs)]
    if any(size not in logs for size in sizes):
        return {}
    table = np.array(list(logs.values()))  # features by trials

    def peak(trials: Sequence[int]) -> float:
        means = table[:, list(trials)].mean(axis=1)
        return float(list(logs)[int(means.argmax())] / n)

    steps = {"first descent": (0, 1), "ascent": (1, 2), "second descent": (2, 3)}
    return {
        "peak": bootstrap_estimate(list(range(table.shape[1])), peak),
        **{
            name: paired_difference(logs[sizes[after]], logs[sizes[before]])
            for name, (before, after) in steps.items()
        },
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say whether more features than points are better than the best number below."""
    means = {size: float(np.exp(np.mean(np.log(r)))) for size, r in risks(records).items()}
    n = records[0].settings["n"]
    best = min((size for size in means if size < n), key=lambda size: means[size])
    last = max(means)
    word = "below" if means[last] < means[best] else "not below"
    return [
        f"With {last} features the risk is {means[last]:.2f}, {word} the {means[best]:.2f} of the "
        f"best number of features under {n}, {best}."
    ]


def draw(records: Sequence[Record]) -> Figure:
    """Draw training and test risk by number of features, on both sides of the threshold."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION

    n = records[0].settings["n"]
    figure, (ax,) = panels(1, size=(5.4, 3.2))
    lines = (("train", "training", VERMILION, (0, (5, 2))), ("test", "test", BLUE, "-"))
    for kind, name, colour, dash in lines:
        rows = {k: r for k, r in risks(records, kind).items() if kind == "test" or k < n}
        low, middle, high = (
            [float(np.quantile(r, q)) for r in rows.values()] for q in (0.25, 0.5, 0.75)
        )
        ax.fill_between(list(rows), low, high, color=colour, alpha=0.18, lw=0)
        ax.plot(list(rows), middle, color=colour, linestyle=dash, label=f"{name} risk")
    ax.axvline(n, color=FAINT, linestyle=":", linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="random features", ylabel="risk")
    top = ax.get_xaxis_transform()
    place: dict[str, Any] = {"transform": top, "va": "top", "color": FAINT}
    ax.text(n * 0.85, 1.0, "classical regime", ha="right", **place)
    ax.text(n * 1.18, 1.0, "modern regime", ha="left", **place)
    ax.text(n * 1.18, 0.92, f"{n} points are fitted", ha="left", **place)
    ax.legend(loc="center right")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 2.1",
    title="Double descent of least squares on random ReLU features",
    smoke=grid(AXES, features=[2, 10, 20, 40], n=40, trials=3),
    settings=AXES,
    departures={
        "smoke": ("40 points, four sizes and three trials: only to see that it runs.",),
        "laptop": ("The thesis reprints a diagram of Belkin et al.; this is a computation.",),
        "paper": ("The thesis reprints a diagram of Belkin et al.; this is a computation.",),
    },
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "peak: peak between 0.75 and 1.25": "The test risk is largest where the features just "
            "fit the data: within a quarter of as many features as points. | bootstrap over "
            "trials of where the mean logarithm is largest",
            f"{'first descent'.replace(' ', '-')}: first descent < 0": "Up to a quarter as many "
            "features as points risk falls.",
            f"{'ascent'.replace(' ', '-')}: ascent > 0": "From there to as many features as "
            "points it rises.",
            f"{'second descent'.replace(' ', '-')}: second descent < 0": "With many more features "
            "than points it falls again.",
        },
        source="chapter 2; the thesis reprints a diagram, the computation is ours",
        test="paired t interval over trials of the logarithm of the risk",
    ),
    notes=(
        "Points lie on the sphere in ten dimensions, labels are a linear function of them and "
        "noise; the weights are those of least norm, in closed form.",
        "Test risk is the mean over 2000 new points, plus the variance of the noise; bands hold "
        "half of the 20 trials.",
        "Of four pairs of target and noise, tried on other draws, this one was kept since all "
        "parts of the diagram show; a target that the features fit badly has no first descent.",
    ),
)
