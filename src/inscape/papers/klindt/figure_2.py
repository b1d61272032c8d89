"""Figure 2: on the annulus a network fails in the hole and outside, a Gaussian process does not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Trend
from inscape.lab.statistics import bootstrap_estimate
from inscape.lab.store import Record
from inscape.papers.klindt import _maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

INNER, LIMIT, GRID = 0.5, 1.5, 256
ZONES = ("ring", "hole", "outside")
KINDS = ("network", "process")
#: Places of the radial profile; dots that are stored.
PLACES, DOTS = 60, 1500
ONCE: Axes = {"width": [10_000], "batch": [256], "steps": [50_000], "every": [500]}
PAPER: Axes = {"kind": list(KINDS), "seed": range(3), **ONCE}


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


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return ratios of errors between zones and models, in decades."""
    by = {
        (kind, zone): _maps.by_seed(records, f"mse {zone}", kind=kind)
        for kind in KINDS
        for zone in ZONES
    }
    found: dict[str, Estimate | None] = {
        "hole over ring": _maps.log_ratio(by["network", "hole"], by["network", "ring"]),
        "outside over hole": _maps.log_ratio(by["network", "outside"], by["network", "hole"]),
    }
    for zone in ZONES:
        found[f"network over process, {zone}"] = _maps.log_ratio(
            by["network", zone], by["process", zone]
        )
    for name, kind in (("unevenness", "network"), ("growth", "process"), ("tau", "process")):
        values = [r.values[name] for r in records if r.settings["kind"] == kind]
        found[name] = bootstrap_estimate(values) if values else None
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how large the errors are."""
    said = []
    for kind in KINDS:
        if means := _means(records, kind):
            numbers = ", ".join(f"{mean:.1e} ({zone})" for zone, mean in means.items())
            said.append(f"Mean squared error of the {kind}: {numbers}.")
    scales = [r.values["length_scale"] for r in records if "length_scale" in r.values]
    if scales:
        said.append(f"The likeliest length scales are {min(scales):.0f} to {max(scales):.0f}.")
    return said


def _means(records: Sequence[Record], kind: str) -> dict[str, float]:
    some = [r for r in records if r.settings["kind"] == kind]
    return {z: float(np.mean([r.values[f"mse {z}"] for r in some])) for z in ZONES if some}


def draw(records: Sequence[Record]) -> "Figure":
    """Draw maps, errors against the radius, and the deviation of the process."""
    from matplotlib.figure import Figure

    from inscape.figures.style import MAGNITUDE

    figure = Figure(figsize=(8.4, 4.9), layout="constrained")
    axes = figure.subplots(2, 3)
    for row, kind in zip(axes, KINDS, strict=True):
        record = _maps.first_map(records, kind=kind)
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


def _radial(ax: "Panel", record: Record) -> None:
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


def _key(ax: "Panel") -> None:
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


def _ratio(name: str, says: str, of: str) -> Trend:
    return Trend(
        name=name,
        says=says,
        of=of,
        side="above",
        test="log10 of the ratio of mean squared errors, bootstrap over seeds",
        source="section 3.2, figure 2",
    )


EXPERIMENT = Experiment(
    shows="Figure 2",
    title="Errors on the annulus, in its hole and outside: a wide network and a Gaussian process",
    smoke={
        "kind": list(KINDS),
        "seed": [0],
        "width": [32],
        "batch": [24],
        "steps": [20],
        "every": [500],
    },
    laptop={**PAPER, "steps": [10_000], "every": [100]},
    paper=PAPER,
    departures={
        "smoke": ("32 units, 24 points, 20 steps.",),
        "laptop": ("10,000 steps instead of 50,000, with the decay every 100 instead of 500.",),
    },
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="ridges",
            says="With practically unlimited data the network still leaves ridges of good and "
            "valleys of bad predictions on the ring: local errors differ tenfold.",
            of="unevenness",
            side="above",
            bound=1.0,
            test="decades between 5% and 95% of squares of side 0.09, bootstrap over seeds",
            source="section 3.2; the bound is ours",
        ),
        _ratio(
            "hole-worse",
            "The network's predictions deteriorate in the hull of the data where there are none.",
            "hole over ring",
        ),
        _ratio("outside-worst", "They deteriorate more outside the hull.", "outside over hole"),
        *(
            _ratio(
                f"process-better-{zone}",
                f"The process with 256 points has a lower error than the network: {zone}.",
                f"network over process, {zone}",
            )
            for zone in ZONES
        ),
        Trend(
            name="uncertainty-grows",
            says="The uncertainty of the process is meaningful outside the hull: larger than on "
            "the ring.",
            of="growth",
            side="above",
            test="decades between mean deviations, bootstrap over seeds",
            source="section 3.2, figure 2 bottom right",
        ),
        Trend(
            name="uncertainty-ranks",
            says="The uncertainty of the process is meaningful outside the hull: larger where the "
            "error is.",
            of="tau",
            side="above",
            test="Kendall's tau of deviation and error, bootstrap over seeds",
            source="section 3.2; our reading of meaningful",
        ),
    ),
    notes=(
        "Zones are those of the paper: by the norm, up to 1.5 in each coordinate.",
        "The process is conditioned on the 256 points of the seed, with amplitude and length scale "
        "at the largest marginal likelihood and 1e-10 on the diagonal.",
        "The radial average is a kernel mean of the logarithms, bandwidth 0.03.",
    ),
)
