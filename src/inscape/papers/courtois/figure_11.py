"""Figure 11: two rows of pixels with two peaks, of label 0 and 1."""

from typing import Any

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Exact, Quantities
from inscape.lab.records import Records

WHOLE = grid(seed=0)


def cell(seed: int) -> dict[str, Any]:
    """Count all inputs, and the labels of the nearest ones of each."""
    from inscape.papers.courtois import _peaks as peaks

    pairs = peaks.all_pairs()
    labels, x = peaks.labels(pairs), peaks.inputs(pairs)
    nearest = (x @ x.T).round() == 1  # one peak in common: at a distance of the root of two
    votes = (nearest.double() @ labels.double()) / nearest.sum(1)
    mixed, _ = peaks.draw(2, 64, seed)
    kinds = peaks.labels(mixed)
    return {
        "inputs": len(pairs),
        "of label 1": int(labels.sum()),
        "nearest": int(nearest.sum(1)[0]),
        "mixed": float(((votes > 0) & (votes < 1)).double().mean()),
        "vote": float(((votes > 0.5) == labels).double().mean()),
        "examples": [mixed[kinds == kind][0].tolist() for kind in (False, True)],
    }


def conclude(records: Records) -> list[str]:
    """Say how the nearest inputs vote."""
    values = records[0].values
    return [
        f"{values['of label 1']} of the {values['inputs']} inputs have label 1.",
        f"Each input has {values['nearest']} nearest others, which share one peak with it; for "
        f"{values['mixed']:.1%} of the inputs these have both labels.",
        f"Their majority is right for {values['vote']:.1%} of the inputs; who always says 1 is "
        f"right for {values['of label 1'] / values['inputs']:.1%}.",
    ]


def draw(records: Records) -> Figure:
    """Draw one row of pixels of either label."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, RULE, VERMILION

    figure, axes = panels(2, columns=2, size=(3.1, 1.7))
    examples = records[0].values["examples"]
    for label, (ax, places) in enumerate(zip(axes, examples, strict=True)):
        row = np.zeros(64)
        row[np.array(places) - 1] = 1
        ax.axvline(32, color=RULE, lw=3, zorder=0)
        ax.step(np.arange(1, 65), row, where="mid", color=(VERMILION, BLUE)[label], lw=1.2)
        ax.set(title=f"label {label}", xlabel="pixel", yticks=[0, 1], xticks=[1, 32, 64])
    return figure


EXPERIMENT = Experiment(
    shows="Figure 11",
    title="Rows of pixels with two peaks: does the middle lie between them?",
    settings=WHOLE,
    cell=cell,
    analyse=Quantities({name: Exact(name) for name in ("inputs", "mixed", "vote")}),
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "inputs: inputs = 2016 ± 0": "There are 2016 inputs. | two peaks, p = 64 | number of "
            "inputs",
            "mixed: mixed > 0.5": "Two points at the same Euclidean distance to a given point can "
            "have different labels (for most points the nearest ones have).",
        },
        source="section 6.3",
        test="counted over all inputs",
    ),
    notes=(
        "The nearest inputs of an input, by Euclidean distance, are exactly those that share one "
        "peak with it: what the text says of the tangent kernel (see figure 12) is true of the "
        "inputs themselves.",
    ),
)
