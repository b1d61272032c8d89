"""Figure 2: rough and smooth functions through the same points, from two starts."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import torch

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate
from inscape.papers.volhejn._growing import own_seed

#: How each function is made, with the scale of the initial weights and the learning rate.
RUNS = (("network", 100.0, 3e-5), ("network", 0.01, 0.1), ("polynomial", 0.0, 0.0))
LARGE, SMALL = RUNS[0][1], RUNS[1][1]
AXES = grid(
    kind=["network", "polynomial"],
    scale=[LARGE, SMALL, 0.0],
    lr=[3e-5, 0.1, 0.0],
    seed=range(5),
    draw=6,
    points=7,
    hidden=256,
    stop_loss=1e-4,
    epochs=1_000_000,
    plotted=401,
)


def keeps(settings: Settings) -> bool:
    """Keep each kind with its own start and learning rate, and one polynomial."""
    run = settings["kind"], settings["scale"], settings["lr"]
    return run in RUNS and (settings["kind"] == "network" or settings["seed"] == 0)


def cell(
    kind: str,
    scale: float,
    lr: float,
    seed: int,
    draw: int,
    points: int,
    hidden: int,
    stop_loss: float,
    epochs: int,
    plotted: int,
) -> dict[str, Any]:
    """Put a function through the points, and return its curve and its two variations."""
    from inscape._core import NotApplicable
    from inscape.data import gaussian_process
    from inscape.smoothness import slope_variation, total_variation

    data = gaussian_process(n=points, seed=draw, draw="thesis")
    x, y = data.x, data.y
    if kind == "network":
        f, made = _network(data, scale, lr, seed, hidden, stop_loss, epochs)
    else:
        x, y = x.double(), y.double()
        f, made = _polynomial(x, y), {"epochs": 0, "converged": True, "loss": 0.0}
    way, bend = total_variation(f, x), slope_variation(f, x)
    assert not isinstance(way, NotApplicable)
    assert not isinstance(bend, NotApplicable)
    at = torch.linspace(-1, 1, plotted, dtype=x.dtype)[:, None]
    with torch.no_grad():
        curve = f(at)[:, 0]
    return {
        **made,
        "PL0": way.summary().value,
        "PL1": bend.summary().value,
        "pieces": len(bend.slopes) if bend.exact else None,
        "points": torch.cat([x, y], dim=1).tolist(),
        "f": _short(curve),
    }


def _short(values: torch.Tensor) -> list[float]:
    """Return numbers for a plot with six digits."""
    return [float(f"{value:.6g}") for value in values.tolist()]


def _network(
    data: Any, scale: float, lr: float, seed: int, hidden: int, stop_loss: float, epochs: int
) -> tuple[torch.nn.Module, dict[str, Any]]:
    from inscape.ensembles import fit_many
    from inscape.models import two_layer

    own = own_seed("figure 2", seed)
    model = two_layer(1, hidden, init="pytorch", scale=scale, seed=own)
    (member,) = fit_many(
        [model],
        data.x,
        data.y,
        lr=lr,
        epochs=epochs,
        stop_loss=stop_loss,
        seeds=[own],
        progress=False,
    )
    made = {"epochs": member.epochs, "converged": member.stopped == "loss", "loss": member.loss}
    return member.model, made


def _polynomial(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Return the polynomial through the points, as a function that autograd can follow."""
    from numpy.polynomial import Polynomial

    fitted = Polynomial.fit(x[:, 0].double().numpy(), y[:, 0].double().numpy(), len(x) - 1)
    coefficients = fitted.convert().coef.tolist()

    def curve(at: torch.Tensor) -> torch.Tensor:
        value = torch.zeros_like(at)
        for coefficient in reversed(coefficients):
            value = value * at + coefficient
        return value

    return curve


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: a large start takes small steps."""
    epochs = {LARGE: 200_000, SMALL: 6_000}.get(settings["scale"], 0)
    return float(1.5 + min(settings["epochs"], epochs) * settings["points"] * 1.5e-6)


def of_scale(records: Sequence[Record], scale: float) -> dict[int, Record]:
    """Return the networks of one start that fit the points, by seed."""
    return {
        record.settings["seed"]: record
        for record in records
        if record.settings["kind"] == "network"
        and record.settings["scale"] == scale
        and record.values["converged"]
    }


def analyse(records: Sequence[Record]) -> Mapping[str, Estimate]:
    """Return the logarithm of how many times rougher a large start is, network by network."""
    rough, smooth = of_scale(records, LARGE), of_scale(records, SMALL)
    shared = [seed for seed in rough if seed in smooth]
    if not shared:
        return {}
    return {
        f"log ratio/{measure}": mean_estimate(
            [log(rough[k].values[measure] / smooth[k].values[measure]) for k in shared]
        )
        for measure in ("PL0", "PL1")
    }


def draw(records: Sequence[Record]) -> Figure:
    """Draw the networks of each start, and the polynomial beside the smooth ones."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, VERMILION

    figure, (left, right) = panels(2, columns=2, size=(3.4, 2.9))
    _networks(left, records, LARGE, VERMILION)
    _networks(right, records, SMALL, BLUE)
    for record in records:
        if record.settings["kind"] == "polynomial":
            label = f"polynomial: {_measures(record)}"
            right.plot(*_curve(record), color=ORANGE, ls=(0, (5, 2)), label=label)
    left.set_title(f"rough: networks from a large start ({LARGE:g})")
    right.set_title(f"smooth: from a small start ({SMALL:g})")
    for ax in (left, right):
        ax.set(xlabel="x", ylabel="f(x)")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.3 * (high - low))  # room for the legend
        ax.legend(fontsize=7, loc="upper center")
    return figure


def _networks(ax: Panel, records: Sequence[Record], scale: float, colour: str) -> None:
    """Draw the first network of a start in full, the others faintly, and the points."""
    from inscape.figures.style import INK

    for k, record in enumerate(of_scale(records, scale).values()):
        look: dict[str, Any] = {"lw": 0.7, "alpha": 0.35}
        if k == 0:
            look = {"lw": 1.5, "label": f"network: {_measures(record)}", "zorder": 2.5}
        ax.plot(*_curve(record), color=colour, **look)
    points = records[0].values["points"]
    ax.plot(*zip(*points, strict=True), "o", ms=5, color=INK, zorder=3)


def _curve(record: Record) -> tuple[list[float], list[float]]:
    """Return the function at equally spaced points of the interval."""
    f = record.values["f"]
    return torch.linspace(-1, 1, len(f)).tolist(), f


def _measures(record: Record) -> str:
    return "TV(f) {PL0:.3g}, TV(f') {PL1:.3g}".format(**record.values)


EXPERIMENT = Experiment(
    shows="Figure 2",
    title="Rough and smooth functions through the same points, from a large and a small start",
    smoke=grid(AXES, seed=range(2), hidden=32, stop_loss=0.1, epochs=200_000),
    settings=AXES,
    departures={
        "smoke": ("32 hidden units, two networks, loss 0.1: only to see that it runs.",),
        "laptop": ("The thesis reprints a figure of Maennel et al.; points and runs are ours.",),
        "paper": ("The thesis reprints a figure of Maennel et al.; points and runs are ours.",),
    },
    cell=cell,
    keeps=keeps,
    seconds=seconds,
    analyse=analyse,
    draw=draw,
    claims=claims(
        {
            "small-start-is-smooth: log ratio/PL1 > 0": "Gradient descent from a small start "
            "gives simple functions: the slope varies less than from a large start."
        },
        source="introduction and chapter 2, after Maennel et al.; the comparison of two starts is "
        "our reading",
        test="t interval over networks of the logarithm of the ratio",
    ),
    notes=(
        "The points are the first seven of the thesis' draw 6 of its Gaussian process.",
        "Initial weights and biases follow PyTorch's law with its variance times the start, so "
        "that kinks lie all over the interval; the thesis' own law puts them all at 0.",
        "TV is exact for networks, and a lower bound by 10,001 secants for the polynomial.",
        "Six starts and two draws were tried on networks with other seeds. Draw 6 was kept since "
        "small starts reach the loss on it, and 100 since its roughness is plain to see; PL1 grew "
        "with the start from 0.1 on in all of them.",
    ),
)
