"""Beyond table 1: does a scale-free sharpness rank the ends of training as the plain one does?"""

from typing import Any

from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, LogRatio, Mean, Quantities, Quantity
from inscape.lab.records import Records
from inscape.lab.statistics import kendall_tau, mean_estimate
from inscape.papers.goldblum import _beyond, _data, _traps, table_1

#: The five beginnings of table 1; that of Lemma 1 is the one that stays (G5, G11).
STARTS = (
    "default",
    "lemma-1, small steps",
    "bias+20",
    "bias-50",
    "bias-10, no momentum",
)
FORMS = ("plain", "adaptive", "filters")


def cell(
    data: str, side: int, hidden: list[int], epochs: int, products: int, start: str, seed: int
) -> dict[str, Any]:
    """Train from one beginning; return three forms of sharpness where training ends."""
    from inscape.landscape import sharpness
    from inscape.papers.goldblum._training import mean_loss

    given = _data.images(data, side=side)
    net, lr = table_1.trained(given, side, hidden, epochs, start, seed)
    found: Any = sharpness(net, given.x, given.y, products=products, seed=seed)
    return {
        **dict(zip(FORMS, found.values.tolist(), strict=True)),
        "residuals": found.residuals.tolist(),
        "rescaled": None if found.rescaled is None else found.rescaled.tolist(),
        "loss": mean_loss(net, given.x, given.y),
        "lr": lr,
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, and products for six forms."""
    like = {**settings, "products": 4 * settings["products"]}
    return table_1.seconds(like)


def over_default(form: str, start: str) -> Quantity:
    """Return how many decades sharper the end of a training is than that of default training."""
    return LogRatio(Column(form, start=start), Column(form, start="default"))


def agreement(records: Records) -> Estimate | None:
    """Return Kendall's tau of plain and adaptive sharpness over the beginnings, by seed."""
    taus = []
    for seed in records.different("seed"):
        own = records.where(seed=seed)
        if len(own) > 2:
            taus.append(kendall_tau(own.values("plain"), own.values("adaptive")))
    return mean_estimate(taus) if taus else None


QUANTITIES = Quantities(
    {
        **{f"{form}/lemma-1": over_default(form, "lemma-1, small steps") for form in FORMS},
        **{f"{form}/bias+20": over_default(form, "bias+20") for form in FORMS},
        **{
            f"{form} of {start}": Mean(form).where(start=start)
            for form in FORMS
            for start in STARTS
        },
        "agreement": agreement,
    }
)


def conclude(records: Records) -> list[str]:
    """Say the order of the ends of training by each form, the sharpest first."""
    known, said = QUANTITIES(records), []
    for form in FORMS:
        values = {
            start: known[f"{form} of {start}"].value
            for start in STARTS
            if f"{form} of {start}" in known
        }
        order = sorted(values, key=lambda start: -values[start])
        shown = ", ".join(f"{table_1.STARTS[start]} {values[start]:.3g}" for start in order)
        if shown:
            said.append(f"By the {form} form, the sharpest first: {shown}.")
    return said


def draw(records: Records) -> Figure:
    """Draw the three forms for each beginning."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, ORANGE, quiet_grid

    figure, axes = panels(3, columns=3, size=(2.9, 2.6))
    starts = [start for start in STARTS if records.where(start=start)]
    for k, (ax, form) in enumerate(zip(axes, FORMS, strict=True)):
        for row, start in enumerate(starts):
            own = records.where(start=start)
            twins = [record.values["rescaled"] for record in own]
            other = [twin[k] for twin in twins if twin is not None]
            ax.plot(other, [row + 0.15] * len(other), "D", ms=3.5, color=ORANGE)
            ax.plot(own.values(form), [row] * len(own), "o", ms=4.5, color=BLUE)
        ax.set_xscale("log")
        ax.set(title=form, yticks=range(len(starts)), ylim=(len(starts) - 0.5, -0.5))
        ax.set_yticklabels([table_1.STARTS[s] for s in starts] if k == 0 else [], fontsize=6.5)
        quiet_grid(ax)
    axes[1].set_xlabel("largest curvature; diamond: the same function, rescaled")
    return figure


EXPERIMENT = Experiment(
    shows="Table 1, beyond it",
    title="Sharpness of five ends of training, plain, adaptive and relative to filters",
    smoke=grid(
        data="digits:n=600", side=4, hidden=[[12, 12]], epochs=1, products=6,
        start=["default", "bias+20"], seed=0,
    ),
    laptop=grid(
        data="cifar10:n=2000", side=4, hidden=[[64, 64, 64]], epochs=200, products=40,
        start=list(STARTS), seed=range(5),
    ),
    paper=grid(
        data="cifar10:n=50000", side=32, hidden=[[2048, 2048, 2048]], epochs=600, products=200,
        start=list(STARTS), seed=range(5),
    ),
    departures={
        "smoke": ("600 of the embedded digits at 4 x 4 pixels, 12 hidden units, one epoch.",),
        "laptop": (
            "2,000 images, averaged to 4 x 4 pixels; 64 hidden units in each layer instead of "
            "2048; 200 epochs instead of 600.",
        ),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_beyond.ADAPTIVE_SHARPNESS,
    errata=("G5", "G11"),
    notes=(
        "An experiment of ours. Remark 2.2 compares largest eigenvalues, which rescaling of units "
        "changes at will (Dinh et al. 2017); adaptive sharpness does not change.",
        f"Trainings are those of table 1 (rate at most {_traps.LR:g}, momentum 0.9). From Lemma 1 "
        "without weight decay and at a rate that is stable at its curvature (G5, G11).",
        "Three seeds were run first; two were added because no interval of three decides anything.",
    ),
)  # fmt: skip
"""Adaptive sharpness: is the bad minimum of Lemma 1 still sharp when scale does not count?"""
