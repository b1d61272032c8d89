"""Beyond: table 4.2's design for classifiers, with and without label smoothing."""

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.papers.volhejn import _growing
from inscape.papers.volhejn._growing import ALL_SETS, RING_SETS, SIZES, dataset, hash_of, own_seed
from inscape.papers.volhejn._growing_figure import draw
from inscape.papers.volhejn._measures import NAMED, THESIS, check, measured

if TYPE_CHECKING:
    from torch import Tensor


CLASSES = 2


def excess_entropy(prediction: "Tensor", target: "Tensor", *, smoothing: float) -> "Tensor":
    """Return the cross-entropy above the least that smoothed labels allow: 0 is a perfect fit."""
    from torch.nn.functional import cross_entropy

    spread = smoothing / CLASSES
    floor = -(1 - smoothing + spread) * log(1 - smoothing + spread)
    floor -= (CLASSES - 1) * spread * log(spread) if spread else 0.0
    return cross_entropy(prediction, target, label_smoothing=smoothing) - floor


def cell(
    data: str,
    size: int,
    seed: int,
    smoothing: float,
    scale: float,
    hidden: int,
    lr: float,
    batch: int,
    stop_loss: float,
    epochs: int,
    measures: Sequence[str],
) -> dict[str, Any]:
    """Train one classifier with two outputs on the first ``size`` images, and measure it."""
    from inscape.models import two_layer
    from inscape.training import fit_in_span

    check(measures)
    whole = dataset(data)
    assert whole.x_test is not None
    assert whole.y_test is not None
    x, y = whole.x[:size], _classes(whole.y[:size])
    x_test, y_test = whole.x_test, _classes(whole.y_test)
    own = own_seed(data, size, seed)
    model = two_layer(x.shape[1], hidden, CLASSES, init="glorot", scale=scale, seed=own)
    start = deepcopy(model)
    loss = partial(excess_entropy, smoothing=smoothing)
    run = fit_in_span(
        model,
        x,
        y,
        loss=loss,
        lr=lr,
        batch=batch,
        epochs=epochs,
        stop_loss=stop_loss,
        seed=own,
        progress=False,
    )
    wrong = (model(x_test).argmax(1) != y_test).double().mean()
    return {
        "epochs": run.epochs,
        "converged": run.stopped == "loss",
        "loss": run.loss,
        "test_error": float(wrong),
        "measures": measured(model, x_test, y_test, measures=measures, start=start, seed=own),
    }


def _classes(y: "Tensor") -> "Tensor":
    return (y[:, 0] < 0).long()


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    return float(4 + min(settings["epochs"], 1500) * settings["size"] / settings["batch"] * 1e-3)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return what the first design gives, for each amount of smoothing."""
    found: dict[str, Estimate] = {}
    for smoothing in sorted({record.settings["smoothing"] for record in records}):
        some = [record for record in records if record.settings["smoothing"] == smoothing]
        found |= {f"{_name(smoothing)}: {k}": v for k, v in _growing.analyse(some).items()}
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say for each amount of smoothing which measures grow with the data."""
    said = []
    for smoothing in sorted({record.settings["smoothing"] for record in records}):
        some = [record for record in records if record.settings["smoothing"] == smoothing]
        said += [f"{_name(smoothing)}, {line}" for line in _growing.conclude(some)]
    return said


def _name(smoothing: float) -> str:
    return f"smoothing {smoothing:g}"


def draw_plain(records: Sequence[Record]) -> Any:
    """Draw the runs without smoothing."""
    return draw([record for record in records if record.settings["smoothing"] == 0])


ONCE = grid(scale=0.01, hidden=256, lr=0.1, batch=64, stop_loss=1e-3, epochs=5000)
ONCE = grid(ONCE, measures=[[*THESIS.values(), *NAMED]])
LAPTOP = grid(data=RING_SETS, size=SIZES[:5], seed=range(2), smoothing=[0.0, 0.1], **ONCE)
SMALL = grid(LAPTOP, data="digits-binary:0-1", size=[16, 32], seed=0, hidden=8, batch=16)


EXPERIMENT = Experiment(
    shows="Beyond table 4.2: classification",
    title="The same measures for classifiers trained by cross-entropy to one training loss",
    smoke=grid(SMALL, stop_loss=0.1, epochs=200),
    laptop=LAPTOP,
    paper=grid(LAPTOP, data=ALL_SETS, size=SIZES, seed=range(3), epochs=25000),
    departures={"laptop": ("Ten pairs of digits, sizes 64 to 1024, two networks each.",)},
    cell=cell,
    data=hash_of,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw_plain,
    claims=claims(
        {
            f"{what}-{smoothing:g}: smoothing {smoothing:g}: {of} > {bound}": f"{says} "
            f"(smoothing {smoothing:g})."
            for smoothing in (0.0, 0.1)
            for what, says, of, bound in (
                (
                    "second-above-first",
                    "Second-order measures follow the size more closely",
                    "gap",
                    0.0,
                ),
                ("PL1-grows", "PL1 grows with the size as far as ties allow", "share/PL1", 0.9),
                ("WP-grows", "WP grows with the size as far as ties allow", "share/WP", 0.9),
            )
        },
        source="asked by the thesis' last section; the expectation is ours, by its table 4.2",
    ),
    notes=(
        "Networks have two outputs; norms of Jacobians are Frobenius norms.",
        "The loss is the cross-entropy above its least possible value, so that one threshold fits "
        "both amounts of smoothing; a classifier cannot fit exactly, as the thesis says.",
    ),
)
