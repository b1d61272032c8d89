"""Figure 7.5: XOR by networks of 2, 20 and 100 hidden units, and their coefficients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from inscape._core.result import PROPORTION
from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import exact_estimate, mean_estimate, paired_difference
from inscape.papers.sattelberg.xor_by_hand import BIASES, TABLE
from inscape.papers.sattelberg.xor_by_hand import xor_network as network

RATE = 0.1
TRAINED = (20, 100)
#: Points on each side of the grid on which the functions of two networks are compared.
COARSE = 21
WHOLE = grid(width=[2, *TRAINED], epochs=2000, seed=list(range(20)))


def cell(width: int, epochs: int, seed: int) -> dict[str, Any]:
    """Take the network of figure 5.2 or train one, and cut the square by it."""
    import torch

    from inscape.papers.sattelberg import _toy
    from inscape.papers.sattelberg._planes import packed

    model = network(BIASES["corrected"]).float() if width == 2 else trained(width, epochs, seed)
    x = torch.tensor(list(TABLE)).float()
    y = torch.tensor(list(TABLE.values()))[:, None].float()
    state = model.state_dict()
    maps, _ = _toy.grid_maps(state)
    dots = _maps_at(model, x)
    found = _toy.cut(model)
    with torch.no_grad():
        values = model(_toy.grid(COARSE))[:, 0].numpy()
    kept = packed(found, "cells/") | {"maps": maps.numpy()} if seed == 0 else {}
    return {
        "accuracy": _toy.accuracy(model, x, (y > 0).float()),
        "cells": found.cells,
        "regions": found.regions,
        "seen": len(maps),
        "dots": dots.tolist(),
        "values": values,
        **kept,
    }


def trained(width: int, epochs: int, seed: int) -> Any:
    """Return one hidden layer, trained on the four points."""
    import torch

    from inscape.models import mlp
    from inscape.training import fit

    x = torch.tensor(list(TABLE)).float()
    y = (torch.tensor(list(TABLE.values()))[:, None] > 0).float()
    model = mlp(2, width, 1, seed=seed)
    fit(model, x, y, loss="bce_logits", lr=RATE, epochs=epochs, seed=seed, progress=False)
    return model


def _maps_at(model: Any, x: Any) -> Any:
    """Return the maps at some points: two slopes and a constant for each."""
    import torch

    at = x.clone().requires_grad_()
    values = model(at)
    (slopes,) = torch.autograd.grad(values.sum(), at)
    return torch.cat([slopes, values - (slopes * at).sum(1, keepdim=True)], 1).detach()


def of_width(records: Sequence[Record], width: int) -> list[Record]:
    """Return the records of one width, in the order of their seeds."""
    own = (record for record in records if record.settings["width"] == width)
    return sorted(own, key=lambda record: int(record.settings["seed"]))


def agreement(records: Sequence[Record]) -> list[float]:
    """Return the correlation of the functions of the first two networks, the next two, and on."""
    values = [np.asarray(record.values["values"], dtype=float) for record in records]
    return [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(values[::2], values[1::2], strict=False)]


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the dots of the small network, accuracies, and what width changes."""
    narrow, wide = (of_width(records, width) for width in TRAINED)
    found = {
        f"accuracy/{width}": mean_estimate(
            [float(r.values["accuracy"]) for r in own], within=PROPORTION
        )
        for width, own in zip(TRAINED, (narrow, wide), strict=True)
        if own
    }
    if own := of_width(records, 2):
        found["dots"] = exact_estimate(float(len({tuple(dot) for dot in own[0].values["dots"]})))
    if narrow and len(narrow) == len(wide):
        found["finer"] = paired_difference(
            *([float(r.values["regions"]) for r in own] for own in (wide, narrow))
        )
    if len(narrow) > 1 and len(narrow) == len(wide):
        found["same function"] = paired_difference(agreement(wide), agreement(narrow))
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say the numbers of regions, and how alike two networks of one width are."""
    said = []
    for width in TRAINED:
        own = of_width(records, width)
        regions = [record.values["regions"] for record in own]
        line = f"Networks of {width} units have {min(regions)} to {max(regions)} regions"
        alike = agreement(own)
        more = f"; two of them correlate by {np.mean(alike):.3f} on average" if alike else ""
        said.append(f"{line}{more}.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw boundary, surface and coefficients of one network of each width."""
    from matplotlib.figure import Figure

    from inscape.papers.sattelberg import _planes, _toy

    shown = [record for record in records if "cells/vertices" in record.values]
    figure = Figure(figsize=(7.2, 2.3 * len(shown)), layout="constrained")
    for row, record in enumerate(shown):
        left, right = (figure.add_subplot(len(shown), 3, 3 * row + k) for k in (1, 3))
        middle: Any = figure.add_subplot(len(shown), 3, 3 * row + 2, projection="3d")
        cells = _planes.Cells.of(record.values, "cells/")
        _planes.signs(left, cells)
        _planes.bends(left, cells, linewidths=0.3)
        _planes.class_lines(left, cells, "black")
        _toy.scatter(left, np.array(list(TABLE)), np.array(list(TABLE.values())), 25)
        left.set_title(f"{record.settings['width']} units")
        _planes.surface(middle, cells)
        _planes.dual(right, np.asarray(record.values["maps"]))
        dots = np.array(record.values["dots"])
        right.plot(dots[:, 0], dots[:, 1], "x", color="black", ms=6)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 7.5",
    title="XOR networks of 2, 20 and 100 hidden units: boundary, surface and coefficients",
    smoke=grid(width=[2, *TRAINED], epochs=50, seed=0),
    settings=WHOLE,
    departures={"smoke": ("50 steps, one network of each width.",)},
    cell=cell,
    keeps=lambda settings: bool(settings["width"] > 2 or settings["seed"] == 0),
    seconds=lambda settings: 4.0,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "dots: dots = 3 ± 0": "The network of two units uses three maps for the four points. "
            "| 2 units | maps at the points | figure 7.5",
            **{
                f"accuracy-{width}: accuracy/{width} = 1 ± 0": f"Networks of {width} units get "
                f"all four points right. | {width} units | accuracy"
                for width in TRAINED
            },
            "finer: finer > 0": "Wider networks have a finer resolution: more regions with 100 "
            "units than with 20.",
            "same-function: same function > 0": "They approximate one underlying function: two "
            "networks of 100 units are more alike than two of 20. | difference of correlations on "
            "a grid, t interval over pairs of networks",
        },
        source="section 7.3.1",
        test="paired t interval over networks",
    ),
    errata=("S9",),
    notes=(
        "Cut on [-1, 1]², the square of the printed grid; crosses are the maps at the four points. "
        "How the wide networks were trained is not said: here by gradient descent with step 0.1 "
        "and binary cross entropy on the four points.",
        "With the biases of erratum S9 the third region of the small network meets this square in "
        "the corner (-1, -1) alone, so two regions have an area; a unit at exactly zero is off.",
    ),
)
