"""Circle versus annulus with XOR: which layers settle first, and the solution."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate, paired_difference
from inscape.papers.sattelberg._toy import SETTINGS_NOTE

Array = npt.NDArray[Any]
HIDDEN = (8, 8, 8)
CHECKPOINTS = 200
#: A layer is settled once at most this share of its pattern differs from the final one.
SETTLED = 0.05
#: Share of the training that is its beginning.
BEGINNING = 0.1
WHOLE = grid(n=1000, epochs=600, seed=list(range(20)))


def settling_cell(n: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train one network; keep how the patterns of its layers move and where they end."""
    import torch

    from inscape.papers.sattelberg import _toy
    from inscape.papers.sattelberg._planes import packed

    run = _toy.trained("xor", HIDDEN, n=n, epochs=epochs, seed=seed, checkpoints=CHECKPOINTS)
    shares = torch.linspace(0, 1, CHECKPOINTS + 1).tolist()
    states = _toy.states(run, shares)
    x = _toy.grid()
    on = [_toy.patterns(state, x) for state in states.values()]
    last = on[-1]
    final = [[_apart(*pair) for pair in zip(one, last, strict=True)] for one in on]
    moved = [[_apart(*pair) for pair in zip(one, two, strict=True)] for one, two in pairwise(on)]
    found = _toy.cut(run.model)
    return {
        "accuracy": _toy.accuracy(run.model, *_toy.points("xor", n, seed)),
        "times": [step / run.steps for step in states],
        "differs": np.array(final),
        "moved": np.array(moved),
        "cells": found.cells,
        "regions": found.regions,
        "maps": _toy.grid_maps(list(states.values())[-1])[0].numpy(),
        **packed(found, "cells/"),
    }


def _apart(one: Any, two: Any) -> float:
    """Return the share of places and units at which two patterns differ."""
    return float((one != two).double().mean())


def settling_time(times: Sequence[float], differs: Array) -> float:
    """Return the time from which on no more than ``SETTLED`` differs from the end."""
    late = np.nonzero(np.asarray(differs) > SETTLED)[0]
    return float(times[min(late[-1] + 1, len(times) - 1)]) if len(late) else 0.0


def analyse_settling(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return when the layers settle, and how much they move in the beginning."""
    times = [
        [settling_time(r.values["times"], column) for column in np.asarray(r.values["differs"]).T]
        for r in records
    ]
    early = [_early(r) for r in records]
    found = {
        f"settled/{k + 1}": mean_estimate([row[k] for row in times]) for k in range(len(HIDDEN))
    }
    for name, rows in (("settles later", times), ("moves more", early)):
        found[name] = paired_difference([row[-1] for row in rows], [row[0] for row in rows])
    return found


def _early(record: Record) -> list[float]:
    """Return the mean movement of each layer between checkpoints, in the beginning."""
    times, moved = np.asarray(record.values["times"]), np.asarray(record.values["moved"])
    chosen = moved[times[1:] <= BEGINNING] if (times[1:] <= BEGINNING).any() else moved[:1]
    return [float(one) for one in chosen.mean(0)]


def conclude_settling(records: Sequence[Record]) -> list[str]:
    """Say the accuracies and the mean times."""
    found = analyse_settling(records)
    times = ", ".join(f"{found[f'settled/{k + 1}'].value:.0%}" for k in range(len(HIDDEN)))
    right = [record.values["accuracy"] for record in records]
    return [
        f"Layers 1 to {len(HIDDEN)} are settled after {times} of the training on average.",
        f"The networks get {min(right):.1%} to {max(right):.1%} of the points right.",
    ]


def draw_settling(records: Sequence[Record]) -> Figure:
    """Draw how much of each layer's pattern still differs from the end, for all networks."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    figure, axes = panels(2, size=(3.2, 2.6))
    times = np.asarray(records[0].values["times"])
    for k, colour in enumerate(CATEGORIES[: len(HIDDEN)]):
        for ax, name, at in ((axes[0], "differs", times), (axes[1], "moved", times[1:])):
            rows = np.array([np.asarray(r.values[name])[:, k] for r in records])
            ax.plot(at, rows.T, color=colour, alpha=0.15, lw=0.6)
            ax.plot(at, rows.mean(0), color=colour, label=f"layer {k + 1}")
            quiet_grid(ax)
    axes[0].set(xlabel="share of training", ylabel="pattern that differs from the end")
    axes[1].set(xlabel="share of training", ylabel="pattern that moves", yscale="symlog")
    axes[1].set_yscale("symlog", linthresh=1e-3)
    axes[0].legend()
    return figure


SETTLING = Experiment(
    shows="Section 6.2, bottom-up learning",
    title="Whether early layers settle first on circle versus annulus with XOR",
    smoke=grid(n=200, epochs=3, seed=[0, 1]),
    settings=WHOLE,
    departures={"smoke": ("200 points, three epochs, two networks.",)},
    cell=settling_cell,
    seconds=lambda settings: float(5 + settings["epochs"] * settings["n"] / 32 * 1.1e-3),
    analyse=analyse_settling,
    conclude=conclude_settling,
    draw=draw_settling,
    claims=claims(
        {
            "settles-first: settles later > 0": "The earlier layers are trained first, and the "
            "later layers converge later.",
            "moves-more: moves more > 0": "As training begins, the later layers shift "
            "significantly while the first hidden layer shifts slowly. | movement of the last "
            "layer minus that of the first in the first tenth of the training, paired t interval "
            "over networks",
        },
        source="section 6.2",
        test="settling time of the last layer minus that of the first, paired t interval over "
        "networks",
    ),
    notes=(
        SETTINGS_NOTE,
        "The pattern of a layer says which of its units are on at each point of the 101 x 101 "
        "grid. A layer is settled once at most 5% of it differs from the end of training.",
    ),
)
"""Do early layers settle first? Activation patterns of each layer during training (section 6.2)."""


def conclude_solution(records: Sequence[Record]) -> list[str]:
    """Say how many regions there are."""
    best = max(records, key=lambda record: float(record.values["accuracy"]))
    counts = [record.values["regions"] for record in records]
    return [
        f"The network that is shown gets {best.values['accuracy']:.1%} of its points right with "
        f"{best.values['regions']} regions; all have {min(counts)} to {max(counts)}."
    ]


def draw_solution(records: Sequence[Record]) -> Figure:
    """Draw the network that gets most points right."""
    from inscape.papers.sattelberg._structure import structure

    best = max(records, key=lambda record: float(record.values["accuracy"]))
    return structure(best.values, len(HIDDEN))


FIGURE_6_6 = Experiment(
    shows="Figure 6.6",
    title="A solution of circle versus annulus with XOR by three hidden layers of eight units",
    same_as="settling",
    conclude=conclude_solution,
    draw=draw_solution,
    notes=(
        SETTINGS_NOTE,
        "Whether early layers settle first, as the text says of this problem, is judged in "
        "sattelberg/settling.",
    ),
)
"""Figure 6.6: circle versus annulus with XOR, by three layers of eight units."""
