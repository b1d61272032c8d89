"""Figure 3.10: how the sub-networks of a width-6 network learn 4-parity, epoch by epoch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate
from inscape.papers.sattelberg._parity_pruning import SETTINGS_NOTE

Array = npt.NDArray[Any]
DIGITS, WIDTH, SIZES = 4, 6, (1, 2, 3)
#: Networks of width 6 that are trained to find one.
TRIALS = 60
#: Epochs between two points of a curve that is kept.
EVERY = 10
#: A curve rests where the loss falls by less than this share over a hundred epochs.
REST, SPAN = 0.02, 100
ONCE = grid(seed=range(20), epochs=4000)


def cell(seed: int, epochs: int) -> dict[str, Any]:
    """Find a network of width 6 that a width-3 sub-network can stand for; train all small ones."""
    from inscape.boolean.truth_table import parity
    from inscape.papers.sattelberg import _parity_pruning as pruning
    from inscape.papers.sattelberg._loss_curves import loss_curves
    from inscape.papers.sattelberg._seeds import own_seed

    table = parity(DIGITS)
    seeds = [own_seed(seed, DIGITS, trial) for trial in range(TRIALS)]
    run = pruning.fitted((DIGITS, WIDTH, 1), DIGITS, epochs=epochs, seeds=seeds)
    solved = np.flatnonzero(run.stopped.numpy())
    sizes, _ = pruning.smallest(run.weights.numpy()[solved], DIGITS, WIDTH, epochs)
    good = [int(k) for k, size in zip(solved, sizes, strict=True) if size <= max(SIZES)]
    chosen = (good or solved.tolist() or [0])[0]
    weights = run.weights[chosen].numpy()
    found: dict[str, Any] = {
        "solved": len(solved),
        "containing": len(good),
        "whole": int(run.epochs[chosen]),
    }
    for size in SIZES:
        rows = pruning.sub_networks(weights, DIGITS, WIDTH, pruning.subsets(WIDTH, size))
        losses, right = loss_curves(rows, table.points, table.bits, width=size, epochs=epochs)
        found[f"losses/{size}"] = losses[::EVERY].astype(np.float16)
        found[f"solved/{size}"] = right.tolist()
    return found


def working(record: Record) -> list[int]:
    """Return which sub-networks of width 3 work."""
    return [k for k, epoch in enumerate(record.values["solved/3"]) if epoch >= 0]


def resting(losses: Array, until: int) -> float:
    """Return the share of the epochs before success in which a loss hardly moves."""
    curve = np.asarray(losses, dtype=float)[: until // EVERY + 1]
    lag = SPAN // EVERY
    if len(curve) <= lag:
        return 0.0
    falls = 1 - curve[lag:] / np.maximum(curve[:-lag], 1e-12)
    return float((np.abs(falls) < REST).mean())


def rests(losses: Array, until: int) -> int:
    """Return how many separate rests of a hundred epochs or more a curve has before success."""
    curve = np.asarray(losses, dtype=float)[: until // EVERY + 1]
    lag = SPAN // EVERY
    if len(curve) <= lag:
        return 0
    still = np.abs(1 - curve[lag:] / np.maximum(curve[:-lag], 1e-12)) < REST
    return int(still[0]) + int((still[1:] & ~still[:-1]).sum())


def place(record: Record, k: int) -> float:
    """Return the share of the other width-3 networks that are ahead at a tenth of the epochs."""
    losses = np.asarray(record.values["losses/3"], dtype=float)
    early = losses[len(losses) // 10]
    return float((np.delete(early, k) < early[k]).mean())


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how slowly the sub-networks that work are trained."""
    pairs = [(record, k) for record in records for k in working(record)]
    if not pairs:
        return {}
    slow, still, ahead = [], [], []
    for record, k in pairs:
        until = record.values["solved/3"][k]
        slow.append(float(np.log10(max(until, 1) / max(record.values["whole"], 1))))
        still.append(resting(np.asarray(record.values["losses/3"])[:, k], until))
        ahead.append(place(record, k))
    return {
        "slowness": mean_estimate(slow),
        "epochs": mean_estimate([float(r.values["solved/3"][k]) for r, k in pairs]),
        "resting": mean_estimate(still),
        "ahead": mean_estimate(ahead),
    }


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how many networks contain one that works, and how it gets there."""
    have = [record for record in records if working(record)]
    solved, containing = (
        sum(record.values[name] for record in records) for name in ("solved", "containing")
    )
    said = [
        f"{containing} of {solved} networks of width 6 that solve 4-parity contain a network of "
        f"width 3 that works; of width 1 or 2, {sum(map(_small, records))} do."
    ]
    if have:
        record = have[0]
        k = working(record)[0]
        until = record.values["solved/3"][k]
        number = rests(np.asarray(record.values["losses/3"])[:, k], until)
        said.append(
            f"In the first of them it takes {until:,} epochs, after {number} rests of the loss; "
            f"the whole network took {record.values['whole']:,}."
        )
    return said


def _small(record: Record) -> int:
    return sum(epoch >= 0 for size in (1, 2) for epoch in record.values[f"solved/{size}"])


def example(records: Sequence[Record]) -> Record:
    """Return the network to draw: one of whose width-3 networks exactly one works, if there is."""
    good = [record for record in records if len(working(record)) == 1]
    return max(good, key=lambda r: max(r.values["solved/3"])) if good else records[0]


def draw(records: Sequence[Record]) -> Figure:
    """Draw all loss curves of one network, whole and from zero to one."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, ORANGE, VERMILION, quiet_grid

    record = example(records)
    looks = {1: (FAINT, 0.7), 2: (ORANGE, 0.7), 3: (BLUE, 0.8)}
    figure, axes = panels(2, columns=2, size=(4.0, 3.0))
    for ax in axes:
        for size, (colour, thick) in looks.items():
            losses = np.asarray(record.values[f"losses/{size}"], dtype=float)
            epochs = EVERY * np.arange(len(losses))
            for k, curve in enumerate(losses.T):
                name = f"width {size}: {losses.shape[1]} networks" if k == 0 else None
                ax.plot(epochs, curve, color=colour, linewidth=thick, alpha=0.65, label=name)
        for k in working(record):
            curve = np.asarray(record.values["losses/3"], dtype=float)[:, k]
            epochs = EVERY * np.arange(len(curve))
            ax.plot(epochs, curve, color=VERMILION, linewidth=2, label="works (width 3)")
        ax.set(xlabel="epoch", ylabel="loss")
        quiet_grid(ax)
    axes[1].set(ylim=(0, 1), title="losses from zero to one")
    axes[0].set(ylim=(0, None), title="all losses")
    axes[0].legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.10",
    title="Loss curves of all sub-networks of width 1 to 3 of a width-6 network on 4-parity",
    smoke=grid(seed=0, epochs=600),
    settings=ONCE,
    departures={"smoke": ("One network, 600 epochs.",)},
    cell=cell,
    seconds=lambda settings: float(1 + settings["epochs"] * 2e-3),
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "slower-than-the-whole: slowness > 0": "Sub-networks that work do not train quickly: "
            "it takes them more epochs than the whole network took. | log10 of the ratio of "
            "epochs, t interval over sub-networks that work",
            "saddles: resting > 0.5": "They stay near saddle points for long: for most of the "
            "epochs before success the loss changes by less than 2% in a hundred epochs. | | "
            "section 3.4.4: 'where it stays for a long period'",
            "hard-to-identify: ahead > 0.25": "Good sub-networks are hard to identify: after a "
            "tenth of the epochs they are not ahead of the others (at least a quarter of the "
            "others is). | | section 3.4.4: 'identifying good subnetworks is likely to be "
            "difficult'",
        },
        source="section 3.4.4, figure 3.10",
        test="mean over sub-networks that work, t interval",
    ),
    notes=(
        SETTINGS_NOTE,
        "One network is drawn, as printed; the claims are judged over 20 networks of width 6 that "
        "solve 4-parity and contain a network of width 3 that works, each the first of 60.",
        "Sub-networks are trained for all epochs here, so that the curves are whole.",
    ),
)
