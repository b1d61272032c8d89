"""Table 2: a ResNet-18 from several initialisations ends at the loss of a constant."""

from typing import Any

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Quantities
from inscape.lab.records import Records
from inscape.papers.goldblum import _claims, _data, _traps

STARTS = {
    "default": "default",
    "zero": "zero",
    "bias+10": "biases + 10",
    "bias+20": "biases + 20",
    "bias-10": "biases in U(-10, 10), momentum 0.4",
    "bias-50": "biases in U(-50, 50), momentum 0.4",
    "bias-10, momentum 0.9": "biases in U(-10, 10), momentum 0.9",
    "bias-50, momentum 0.9": "biases in U(-50, 50), momentum 0.9",
}
#: Beginnings that are trained with the reduced momentum.
REDUCED = ("bias-10", "bias-50")


def cell(data: str, width: int, epochs: int, start: str, seed: int) -> dict[str, Any]:
    """Train from one beginning; return loss and gradient before and after."""
    from inscape.models import resnet18
    from inscape.papers.goldblum._starts import begin
    from inscape.papers.goldblum._training import Recipe, accuracy, train

    given = _data.images(data)
    net = resnet18(width=width, seed=seed).eval()
    begin(net, start, seed=seed)
    recipe = Recipe(
        epochs=epochs,
        lr=_traps.LR,
        momentum=0.4 if start in REDUCED else 0.9,
        weight_decay=_traps.DECAY,
        drops=_traps.DROPS,
    )
    values = _traps.state_of(net, given.x, given.y, decay=_traps.DECAY, name="init")
    train(net, given.x, given.y, recipe, seed=seed)
    values |= _traps.state_of(net, given.x, given.y, decay=_traps.DECAY, name="final")
    return values | {"accuracy": accuracy(net, given.x_test, given.y_test)}


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, and two gradients in float64."""
    images, width = _data.number_of(settings["data"]), settings["width"]
    each = 4e-4 + 5e-5 * width + 4e-6 * width**2
    return 5 + float(each * images * (settings["epochs"] + 10))


QUANTITIES = Quantities(_traps.quantities(STARTS, ("loss", "grad", "grad_decay")))


def conclude(records: Records) -> list[str]:
    """Say where each beginning ends."""
    return _traps.rows(records, STARTS, QUANTITIES)


def draw(records: Records) -> Figure:
    """Draw loss and gradient before and after training, a row for each beginning."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION, quiet_grid

    figure, axes = panels(2, columns=2, size=(3.4, 3.0))
    starts = [start for start in STARTS if records.where(start=start)]
    for ax, name, title in zip(
        axes, ("loss", "grad"), ("loss", "norm of the gradient"), strict=True
    ):
        for row, start in enumerate(starts):
            own = records.where(start=start)
            for probe, at, colour in zip(
                _traps.PROBES, (-0.12, 0.12), (BLUE, VERMILION), strict=True
            ):
                values = own.values(f"{name}_{probe}")
                ax.plot(values, [row + at] * len(values), "o", ms=3.5, color=colour)
        ax.set_xscale("log")
        ax.set(
            title=title, yticks=range(len(starts)), yticklabels=[], ylim=(len(starts) - 0.5, -0.5)
        )
        quiet_grid(ax)
    axes[0].axvline(_traps.LOG10, color="0.5", linewidth=0.8)
    axes[0].set_yticklabels([STARTS[start] for start in starts], fontsize=7)
    axes[1].plot([], [], "o", color=BLUE, label="before")
    axes[1].plot([], [], "o", color=VERMILION, label="after training")
    axes[1].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    shows="Table 2",
    title="ResNet-18 from eight initialisations: loss and gradient before and after training",
    smoke=grid(data="digits:n=40", width=2, epochs=1, start=["default", "bias+10"], seed=0),
    laptop=grid(data="cifar10:n=5000", width=8, epochs=25, start=list(STARTS), seed=range(5)),
    paper=grid(data="cifar10:n=50000", width=64, epochs=600, start=list(STARTS), seed=range(5)),
    departures={
        "smoke": ("40 of the embedded digits, two filters, one epoch.",),
        "laptop": (
            "5,000 images; 8 filters in the first stage instead of 64, and so all along; 25 epochs "
            "instead of 600, the rate falling at the same fractions of them.",
        ),
        "paper": ("Five runs of each beginning instead of one.",),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_claims.TABLE_2,
    errata=("G7",),
    notes=(
        "Batch norm uses its running statistics where loss and gradient are measured, as the "
        "released code does; it is trained throughout (the code freezes it after epoch 400).",
        "Biases are all parameters of that name, batch norm's shifts among them; zero sets all "
        "parameters to zero, batch norm's gains among them.",
        "Computed in float32: these numbers are about small gradients.",
    ),
)
