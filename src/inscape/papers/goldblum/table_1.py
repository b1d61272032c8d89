"""Table 1: loss, gradient and curvature of an MLP from several initialisations."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Records
from inscape.papers.goldblum import _claims, _data, _traps

if TYPE_CHECKING:
    from torch import nn

    from inscape.papers.goldblum._training import Recipe

STARTS = {
    "default": "default",
    "lemma-1": "Lemma 1",
    "lemma-1, no decay": "Lemma 1 without weight decay",
    "lemma-1, small steps": "Lemma 1 without weight decay, small steps",
    "bias+20": "biases + 20",
    "bias-50": "biases in U(-50, 50)",
    "bias-10, no momentum": "biases in U(-10, 10) without momentum",
    "bias-10": "biases in U(-10, 10)",
}
#: Largest product of rate and curvature at small steps; momentum 0.9 is stable below 3.8.
STABLE = 1.0
#: Norm of the gradient to which the linear classifier is fitted.
FITTED = 1e-8


def cell(
    data: str, side: int, hidden: list[int], epochs: int, products: int, start: str, seed: int
) -> dict[str, Any]:
    """Train from one beginning; return loss, gradient and both ends of the spectrum, twice."""
    from inscape.papers.goldblum._training import accuracy, train

    given = _data.images(data, side=side)
    decay = decay_of(start)
    net, values = _started(given, side, hidden, start, decay, seed)
    values |= _state(net, given, decay, products, seed, "init")
    lr = _traps.LR
    if "small steps" in start:
        lr = min(lr, STABLE / values["max_ev_init"])
    train(net, given.x, given.y, recipe_of(start, epochs, lr), seed=seed)
    values |= _state(net, given, decay, products, seed, "final")
    return values | {
        "lr": lr,
        "least": _least_pre_activation(net, given.x),
        "accuracy": accuracy(net, given.x_test, given.y_test),
    }


def decay_of(start: str) -> float:
    """Return the weight decay with which a network is trained."""
    return 0.0 if start.startswith("lemma-1,") else _traps.DECAY


def recipe_of(start: str, epochs: int, lr: float) -> "Recipe":
    """Return how a network is trained from a beginning."""
    from inscape.papers.goldblum._training import Recipe

    momentum = 0.0 if "no momentum" in start else 0.9
    decay = decay_of(start)
    return Recipe(epochs=epochs, lr=lr, momentum=momentum, weight_decay=decay, drops=_traps.DROPS)


def trained(
    given: _data.Images, side: int, hidden: list[int], epochs: int, start: str, seed: int
) -> "tuple[nn.Module, float]":
    """Return the network that training from a beginning ends with, and its rate."""
    from inscape.landscape import hessian_extremes
    from inscape.papers.goldblum._training import train

    net, _ = _started(given, side, hidden, start, decay_of(start), seed)
    lr = _traps.LR
    if "small steps" in start:
        ends: Any = hessian_extremes(net, given.x, given.y, products=80, seed=seed)
        lr = min(lr, STABLE / ends.largest)
    return train(net, given.x, given.y, recipe_of(start, epochs, lr), seed=seed), lr


def _started(
    given: _data.Images, side: int, hidden: list[int], start: str, decay: float, seed: int
) -> tuple["nn.Module", dict[str, Any]]:
    """Return the network where it begins, and what the linear classifier achieves if it is one."""
    from inscape.landscape import affine_embedding, softmax_regression
    from inscape.models import image_mlp
    from inscape.models.initialisation import he_normal
    from inscape.papers.goldblum import _starts

    net = image_mlp(*hidden, side=side, seed=seed).eval()
    he_normal(net, seed=seed)
    if not start.startswith("lemma-1"):
        _starts.begin(net, start, seed=seed)
        return net, {}
    flat, flat_test = given.x.flatten(1), given.x_test.flatten(1).double()
    weight, bias = softmax_regression(flat, given.y, gradient=FITTED, weight_decay=decay)
    right = ((flat_test @ weight.T + bias).argmax(1) == given.y_test).double().mean()
    embedded, _ = affine_embedding(net.double(), given.x.double(), weight, bias)
    slopes = (flat.double() @ weight.T + bias).softmax(1)
    slopes[range(len(flat)), given.y] -= 1
    values = {
        "linear_accuracy": 100 * float(right),
        "linear_gradient": float((slopes.T @ flat.double() / len(flat)).norm()),
    }
    return embedded.float(), values


def _state(
    net: "nn.Module", given: _data.Images, decay: float, products: int, seed: int, name: str
) -> dict[str, Any]:
    """Return loss, gradient and both ends of the spectrum, without weight decay."""
    from inscape.landscape import hessian_extremes

    values: dict[str, Any] = _traps.state_of(net, given.x, given.y, decay=decay, name=name)
    ends: Any = hessian_extremes(net, given.x, given.y, products=products, seed=seed)
    return values | {
        f"min_ev_{name}": ends.smallest,
        f"max_ev_{name}": ends.largest,
        f"residuals_{name}": ends.residuals.tolist(),
        f"negative_{name}": ends.negative,
    }


def _least_pre_activation(net: "nn.Module", x: Any) -> float:
    """Return the least pre-activation of a hidden layer over all images."""
    import torch

    least = torch.inf
    with torch.no_grad():
        for layer in net.children():
            if isinstance(layer, torch.nn.ReLU):
                least = min(least, float(x.min()))
            x = layer(x)
    return least


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, and products with the Hessian twice."""
    sizes = [3 * settings["side"] ** 2, *settings["hidden"], 10]
    size = sum(a * b for a, b in pairwise(sizes))
    images, linear = _data.number_of(settings["data"]), settings["start"].startswith("lemma-1")
    work = images * size * (settings["epochs"] + 6 * settings["products"])
    return float(3 + 2e-10 * work + 20 * linear)


QUANTITIES = Quantities(
    {
        **_traps.quantities(STARTS, ("loss", "grad", "min_ev", "max_ev")),
        **{
            f"{name}/{start}": Mean(of).where(start=start)
            for start in STARTS
            if start.startswith("lemma-1")
            for name, of in (("fall", _traps.fall), ("least", "least"))
        },
        "grad_init/lemma-1, decay": Mean("grad_decay_init").where(start="lemma-1"),
        "freed/bias-10": _traps.freed("bias-10, no momentum", "bias-10"),
        "sharper/lemma-1": _traps.sharper("lemma-1"),
        "sharper/lemma-1, small steps": _traps.sharper("lemma-1, small steps"),
        "linear loss": Mean("loss_init").where(start="lemma-1"),
        "linear accuracy": Mean("linear_accuracy").where(start="lemma-1"),
    }
)


def of_text(records: Records) -> Records:
    """Return the records of the widths that the text has, which come first."""
    return records.where(hidden=records[0].settings["hidden"]) if records else records


def analyse(records: Records) -> dict[str, Estimate]:
    """Return the quantities of networks of the text's widths."""
    return QUANTITIES(of_text(records))


def conclude(records: Records) -> list[str]:
    """Say where each beginning ends, and what the step size is beside the curvature."""
    said = _traps.rows(of_text(records), STARTS, QUANTITIES)
    others = records.where(lambda record: record not in of_text(records))
    said += [f"Widths of the code: {line}" for line in _traps.rows(others, STARTS, QUANTITIES)]
    known = analyse(records)
    for start in ("lemma-1", "lemma-1, no decay"):
        top = known.get(f"max_ev_init/{start}")
        if top is not None:
            said.append(
                f"{STARTS[start]}: the largest eigenvalue at the start is {top.value:.3g}, "
                f"{_traps.LR * top.value:.3g} times the inverse of the rate; steps with momentum "
                "0.9 are stable up to 3.8 times (G11)."
            )
    proved = [record for record in records if record.values.get("negative_final")]
    if proved:
        starts = sorted({STARTS[record.settings["start"]] for record in proved})
        said.append(f"Negative curvature is proved after training from: {', '.join(starts)}.")
    return said


def draw(records: Records) -> Figure:
    """Draw loss and smallest eigenvalue before and after training, a row for each beginning."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid

    figure, axes = panels(3, columns=3, size=(2.9, 3.0))
    records = of_text(records)
    starts = [start for start in STARTS if records.where(start=start)]
    for row, start in enumerate(starts):
        own = records.where(start=start)
        for ax, name in zip(axes, ("loss", "grad", "min_ev"), strict=True):
            pairs = [own.values(f"{name}_{probe}") for probe in _traps.PROBES]
            ax.plot(pairs, [[row - 0.12] * len(own), [row + 0.12] * len(own)], color=FAINT, lw=0.7)
            for values, at, colour in zip(pairs, (-0.12, 0.12), (BLUE, VERMILION), strict=True):
                ax.plot(values, [row + at] * len(values), "o", ms=3.5, color=colour)
    for ax, title in zip(
        axes, ("loss", "norm of the gradient", "smallest eigenvalue"), strict=True
    ):
        scale: Any = {"linthresh": 1e-2} if "smallest" in title else {}
        ax.set_xscale("symlog" if scale else "log", **scale)
        ax.set(
            title=title, yticks=range(len(starts)), yticklabels=[], ylim=(len(starts) - 0.5, -0.5)
        )
        quiet_grid(ax)
    axes[0].axvline(_traps.LOG10, color="0.5", linewidth=0.8)
    axes[0].set_yticklabels([STARTS[start] for start in starts], fontsize=7)
    axes[0].plot([], [], "o", color=BLUE, label="before")
    axes[0].plot([], [], "o", color=VERMILION, label="after training")
    axes[0].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    shows="Table 1",
    title="MLPs from eight initialisations: loss, gradient and smallest eigenvalue",
    smoke=grid(
        data="digits:n=600", side=4, hidden=[[12, 12]], epochs=2, products=8,
        start=["default", "lemma-1", "lemma-1, small steps", "bias+20"],
        seed=0,
    ),
    laptop=grid(
        data="cifar10:n=5000", side=8, hidden=[[256, 256, 256]], epochs=120, products=80,
        start=list(STARTS), seed=range(5),
    ),
    paper=grid(
        data="cifar10:n=50000", side=32, hidden=[[2048, 2048, 2048], [2048, 2048, 1024]],
        epochs=600, products=500, start=list(STARTS), seed=range(5),
    ),
    departures={
        "smoke": ("600 of the embedded digits at 4 x 4 pixels, 12 hidden units, two epochs.",),
        "laptop": (
            "5,000 images, averaged to 8 x 8 pixels; 256 hidden units in each layer instead of "
            "2048; 120 epochs instead of 600, the rate falling at the same fractions of them.",
        ),
        "paper": ("Five runs instead of one of each beginning; widths of text and code.",),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=_claims.TABLE_1,
    errata=("G5", "G7", "G8", "G9", "G10", "G11"),
    notes=(
        "Weights are He's normal ones (A.3); biases, zero by it, are raised or drawn.",
        "Loss, gradient and eigenvalues are those of the loss without weight decay: the released "
        "code divides the decay by the number of batches, and the printed loss holds none.",
        "Eigenvalues are found by Lanczos with residuals in float64, not by a shifted power "
        "iteration (G9).",
        "Lemma 1 embeds the linear minimum with weight decay, as the paper has it; then that "
        "without, and without at a rate of at most 1 over the largest eigenvalue (G5, G11).",
    ),
)  # fmt: skip
