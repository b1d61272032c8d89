"""Figure 2: on the annulus a network fails in the hole and outside, a Gaussian process does not."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, LogRatio, Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.klindt import _maps

INNER, LIMIT, GRID = 0.5, 1.5, 256
ZONES = ("ring", "hole", "outside")
KINDS = ("network", "process")
#: Places of the radial profile; dots that are stored.
PLACES, DOTS = 60, 1500
ONCE = grid(width=10_000, batch=256, steps=50_000, every=500)
PAPER = grid(kind=list(KINDS), seed=range(3), **ONCE)


def cell(kind: str, seed: int, width: int, batch: int, steps: int, every: int) -> dict[str, Any]:
    """Train a network on fresh points, or condition a process on a batch; measure by zone."""
    import torch

    from inscape.data import annulus
    from inscape.papers.klindt import _addition as task

    data = annulus(n=batch, n_test=0, seed=task.FIRST_SEED + seed)
    at = task.plane(LIMIT, GRID)
    extra: dict[str, Any] = {}
    if kind == "network":
        f = task.double(_trained(data.x, width, steps, every, seed))
    else:
        f, deviation, extra = _process(data.x, data.y)
        extra |= _uncertainty(task.error(f, at).abs(), deviation(at), at)
        if seed == 0:
            line = torch.linspace(-LIMIT, LIMIT, task.SHOWN, dtype=torch.float64)
            spread = deviation(torch.cartesian_prod(line, line))
            shown = spread.reshape(task.SHOWN, task.SHOWN).T.log10()
            extra["uncertainty"] = shown.numpy().astype(np.float16)
    found = _by_radius(task.error(f, at).square(), at) | extra
    if seed == 0:
        found |= {"map": task.shown_map(f, LIMIT), "x": data.x.numpy()}
    return found


def _trained(x: Any, width: int, steps: int, every: int, seed: int) -> Any:
    """Train a ReLU network with a new batch at every step."""
    from inscape.papers.klindt import _addition as task
    from inscape.training import decay, fit_wide

    fresh = task.ring(len(x), seed, INNER)
    net = task.network(width, "relu", normal=False, seed=seed)
    first = fresh(0)
    fit_wide(net, *first, lr=task.LR, steps=steps, schedule=decay(task.DECAY, every), fresh=fresh)
    return net


def _process(x: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return mean and deviation of the process whose length scale and amplitude are likeliest."""
    from inscape.kernels import gaussian_process

    found = gaussian_process(
        x.double(), y.double(), fitted=("amplitude", "length_scale"), restarts=5
    )
    return (
        lambda at: found.predict(at.double())[0][:, 0],
        lambda at: found.predict(at.double())[1].sqrt(),
        {"length_scale": float(found.length_scale or 0)},
    )


def _by_radius(square: Any, at: Any) -> dict[str, Any]:
    """Return the error by zone, smoothed over the radius, and how uneven it is on the ring."""
    from inscape.extrapolation import log_errors, profile

    radius = at.norm(dim=1)
    zones = {"hole": radius < INNER, "outside": radius > 1}
    zones["ring"] = ~(zones["hole"] | zones["outside"])
    logs = log_errors(square) / np.log(10)
    line = profile(radius, logs, bandwidth=0.03)
    some = np.linspace(0, len(at) - 1, min(DOTS, len(at))).astype(int)
    found = {f"mse {zone}": float(square[inside].mean()) for zone, inside in zones.items()}
    blocks = square.where(zones["ring"], square.new_tensor(float("nan")))
    blocks = blocks.reshape(GRID // 8, 8, GRID // 8, 8).mean((1, 3)).flatten()
    whole = np.log10(np.maximum(blocks[blocks.isfinite()].numpy(), 1e-300))
    return {
        **found,
        "unevenness": float(np.subtract(*np.quantile(whole, [0.95, 0.05]))),
        "profile": np.stack([line.at, line.mean]).astype(np.float32),
        "dots": np.stack([radius[some], logs[some], _angle(at[some])]).astype(np.float32),
    }


def _angle(at: Any) -> npt.NDArray[Any]:
    return np.asarray(np.arctan2(at[:, 1], at[:, 0]))


def _uncertainty(error: Any, deviation: Any, at: Any) -> dict[str, float]:
    """Return how the deviation grows outwards, and how it goes with the error there."""
    from inscape.lab.statistics import kendall_tau

    radius = at.norm(dim=1)
    outside, ring = radius > 1, (radius >= INNER) & (radius <= 1)
    some = outside.nonzero()[::40, 0]
    return {
        "growth": float((deviation[outside].mean() / deviation[ring].mean()).log10()),
        "tau": kendall_tau(deviation[some].numpy(), error[some].numpy()),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    if settings["kind"] == "process":
        return 10.0
    return 3 + 8e-10 * float(settings["width"] * settings["batch"] * settings["steps"])


def _error(kind: str, zone: str) -> Column:
    return Column(f"mse {zone}", kind=kind)


QUANTITIES = Quantities(
    {
        "hole over ring": LogRatio(_error("network", "hole"), _error("network", "ring")),
        "outside over hole": LogRatio(_error("network", "outside"), _error("network", "hole")),
        **{
            f"network over process, {zone}": LogRatio(
                _error("network", zone), _error("process", zone)
            )
            for zone in ZONES
        },
        "unevenness": Mean("unevenness", interval="bootstrap").where(kind="network"),
        "growth": Mean("growth", interval="bootstrap").where(kind="process"),
        "tau": Mean("tau", interval="bootstrap").where(kind="process"),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how large the errors are."""
    said = []
    for kind, own in records.by("kind").items():
        means = ", ".join(f"{np.mean(own.values(f'mse {z}')):.1e} ({z})" for z in ZONES)
        said.append(f"Mean squared error of the {kind}: {means}.")
    if scales := records.values("length_scale"):
        said.append(f"The likeliest length scales are {min(scales):.0f} to {max(scales):.0f}.")
    return said


def draw(records: Records) -> Figure:
    """Draw maps, errors against the radius, and the deviation of the process."""
    from matplotlib.figure import Figure

    from inscape.figures.style import MAGNITUDE

    figure = Figure(figsize=(8.4, 4.9), layout="constrained")
    axes = figure.subplots(2, 3)
    for row, kind in zip(axes, KINDS, strict=True):
        record = records.where(kind=kind).first("map")
        if record is None:
            continue
        shown = np.asarray(record.values["map"], float)
        low, high = np.floor(np.quantile(shown, 0.01)), np.ceil(np.quantile(shown, 0.99))
        image = _maps.error_map(row[0], shown, LIMIT, low=float(low), high=float(high))
        figure.colorbar(image, ax=row[0], shrink=0.85, label="log10 squared error")
        if kind == "process":
            _maps.dots(row[0], record.values["x"])
        row[0].set(title=kind, xlabel="x1", ylabel="x2")
        _radial(row[1], record)
        if "uncertainty" in record.values:
            spread = np.asarray(record.values["uncertainty"], float)
            picture = row[2].imshow(
                spread, extent=(-LIMIT, LIMIT) * 2, origin="lower", cmap=MAGNITUDE, rasterized=True
            )
            figure.colorbar(picture, ax=row[2], shrink=0.85, label="log10 deviation")
            row[2].set(title="uncertainty of the process", xlabel="x1")
    _key(axes[0, 2])
    return figure


def _radial(ax: Panel, record: Record) -> None:
    """Draw the negative log error against the radius, in three zones."""
    from inscape.figures.style import GREEN, INK, ORANGE, VERMILION

    ends = (0.0, INNER, 1.0, LIMIT * 2**0.5)
    for k, color in enumerate((ORANGE, GREEN, VERMILION)):
        ax.axvspan(ends[k], ends[k + 1], color=color, alpha=0.12, linewidth=0)
    radius, logs, angle = record.values["dots"]
    ax.scatter(radius, -logs, c=angle, cmap="twilight", s=1.5, linewidths=0, rasterized=True)
    at, mean = record.values["profile"]
    ax.plot(at, -mean, color=INK, linestyle=":", linewidth=1.3)
    ax.set(xlabel="norm of the input", ylabel="-log10 squared error", xlim=(0, ends[-1]))


def _key(ax: Panel) -> None:
    """Draw which colour stands for which angle, and for which zone."""
    from matplotlib.patches import Patch

    from inscape.figures.style import GREEN, ORANGE, VERMILION

    turn = np.linspace(-np.pi, np.pi, 200)
    ax.scatter(np.cos(turn), np.sin(turn), c=turn, cmap="twilight", s=12, linewidths=0)
    names = (("in the hull, unseen", ORANGE), ("ring of the data", GREEN), ("outside", VERMILION))
    patches = [Patch(color=color, alpha=0.25, label=name) for name, color in names]
    ax.legend(handles=patches, loc="center", fontsize=7)
    ax.set(aspect="equal", title="colours: angle of the input, zone")
    ax.set_axis_off()


EXPERIMENT = Experiment(
    shows="Figure 2",
    title="Errors on the annulus, in its hole and outside: a wide network and a Gaussian process",
    smoke=grid(kind=list(KINDS), seed=0, width=32, batch=24, steps=20, every=500),
    laptop=grid(PAPER, steps=10_000, every=100),
    paper=PAPER,
    departures={
        "smoke": ("32 units, 24 points, 20 steps.",),
        "laptop": ("10,000 steps instead of 50,000, with the decay every 100 instead of 500.",),
    },
    cell=cell,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "ridges: unevenness > 1.0": "With practically unlimited data the network still leaves "
            "ridges of good and valleys of bad predictions on the ring: local errors differ "
            "tenfold. | decades between 5% and 95% of squares of side 0.09, bootstrap over seeds "
            "| section 3.2; the bound is ours",
            "hole-worse: hole over ring > 0": "The network's predictions deteriorate in the hull "
            "of the data where there are none.",
            "outside-worst: outside over hole > 0": "They deteriorate more outside the hull.",
            **{
                f"process-better-{zone}: network over process, {zone} > 0": "The process with 256 "
                f"points has a lower error than the network: {zone}."
                for zone in ZONES
            },
            "uncertainty-grows: growth > 0": "The uncertainty of the process is meaningful "
            "outside the hull: larger than on the ring. | decades between mean deviations, "
            "bootstrap over seeds | section 3.2, figure 2 bottom right",
            "uncertainty-ranks: tau > 0": "The uncertainty of the process is meaningful outside "
            "the hull: larger where the error is. | Kendall's tau of deviation and error, "
            "bootstrap over seeds | section 3.2; our reading of meaningful",
        },
        source="section 3.2, figure 2",
        test="log10 of the ratio of mean squared errors, bootstrap over seeds",
    ),
    notes=(
        "Zones are those of the paper: by the norm, up to 1.5 in each coordinate.",
        "The process is conditioned on the 256 points of the seed, with amplitude and length scale "
        "at the largest marginal likelihood and 1e-10 on the diagonal.",
        "The radial average is a kernel mean of the logarithms, bandwidth 0.03.",
    ),
)
