"""Figure 4.1: three functions drawn from the Gaussian process of the one-dimensional runs."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.records import Record

AXES = grid(seed=[2, 3, 6], length_scale=0.5, n_test=100)


def cell(seed: int, length_scale: float, n_test: int) -> dict[str, Any]:
    """Draw one function at equally spaced points."""
    from inscape.data import gaussian_process

    data = gaussian_process(n=2, n_test=n_test, length_scale=length_scale, draw="thesis", seed=seed)
    assert data.x_test is not None
    assert data.y_test is not None
    return {"x": data.x_test[:, 0].tolist(), "f": data.y_test[:, 0].tolist()}


def draw(records: Sequence[Record]) -> Figure:
    """Draw the functions; each passes through the origin."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, DASHES, RULE

    figure, (ax,) = panels(1, size=(4.6, 3.0))
    ax.axhline(0, color=RULE, linewidth=0.7)
    for record, colour, dash in zip(records, CATEGORIES, DASHES, strict=False):
        label = f"seed {record.settings['seed']}"
        ax.plot(record.values["x"], record.values["f"], color=colour, linestyle=dash, label=label)
    ax.set(xlabel="x", ylabel="f(x)", xlim=(-1, 1))
    ax.legend()
    return figure


EXPERIMENT = Experiment(
    shows="Figure 4.1",
    title="Three functions sampled from the Gaussian process",
    smoke=grid(AXES, n_test=20),
    settings=AXES,
    departures={"smoke": ("20 points instead of 100.",)},
    cell=cell,
    draw=draw,
    notes=("These are the thesis' own draws; another LAPACK may turn one of them upside down.",),
)
