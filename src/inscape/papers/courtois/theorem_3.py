"""Theorem 3: the formula for several outputs, with blocks of a kernel."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Largest, Quantities, Slope
from inscape.lab.records import Records

LOSSES = {"mse": "squared error", "cross_entropy": "cross entropy"}
WHOLE = grid(
    loss=list(LOSSES),
    eta=[0.04, 0.02, 0.01, 0.005],
    time=4.0,
    outputs=3,
    n=64,
    queries=16,
    seed=list(range(5)),
)


def cell(
    loss: str, eta: float, time: float, outputs: int, n: int, queries: int, seed: int
) -> dict[str, Any]:
    """Descend, and compare the sum over blocks with the trained network, and two ways to it."""
    from inscape.papers.courtois import _descent as d

    x, at = d.queries(n, seed + 500), d.queries(queries, seed)
    y = _targets(x, outputs, loss)
    model = d.network(outputs=outputs, seed=seed)
    run = d.descent(model, x, y, eta=eta, steps=round(time / eta), loss=loss)
    split = d.taken_apart(run, x, y, at)
    exact = d.taken_apart(run, x, y, at, mode="exact")
    change = split.final - split.initial
    summed = by_blocks(run, x, y, at)
    return {
        "residual": d.root_mean_square(split.rounding + split.residual)
        / d.root_mean_square(change),
        "exact residual": exact.unattributed,
        "blocks": float((summed - split.samples.sum(1)).abs().max() / change.abs().max()),
    }


def _targets(x: Any, outputs: int, loss: str) -> Any:
    """Return the sector of the plane in which a point lies, as a number or as one of three."""
    import math

    import torch

    angle = torch.atan2(x[:, 1], x[:, 0]) / (2 * math.pi) + 0.5
    sector = (angle * outputs).long().clamp(max=outputs - 1)
    return sector if loss == "cross_entropy" else torch.eye(outputs, dtype=x.dtype)[sector]


def by_blocks(run: Any, x: Any, y: Any, at: Any) -> Any:
    """Return the sum of theorem 3 as it is written, step by step with whole blocks."""
    import copy

    from inscape.papers.courtois._descent import machine
    from inscape.training import walk
    from inscape.training.losses import LOSSES as FUNCTIONS

    body = copy.deepcopy(run.model)
    loss = FUNCTIONS[run.settings.loss]
    total: Any = 0
    states = walk(run.trajectory, run.model, x, y, stop=run.trajectory.steps - 1)
    for state, rate in zip(states, run.trajectory.rates.tolist(), strict=True):
        body.load_state_dict(state)
        total = total + rate * machine(body, x, y, at, loss)
    return total


QUANTITIES = Quantities(
    {
        **{f"power/{loss}": Slope("eta", "residual").where(loss=loss) for loss in LOSSES},
        "blocks": Largest("blocks"),
        "exact": Largest("exact residual"),
    }
)


def draw(records: Records) -> Figure:
    """Draw the residual against the step for both losses."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._powers import powers

    figure, (ax,) = panels(1, size=(4.2, 2.8))
    lines = {name: records.where(loss=loss) for loss, name in LOSSES.items()}
    powers(ax, {name: some for name, some in lines.items() if some}, "eta", "residual", power=1)
    ax.set(xlabel="step, at a fixed time", ylabel="relative residual")
    ax.legend()
    return figure


EXPERIMENT = Experiment(
    shows="Theorem 3",
    title="The formula for several outputs, by squared error and by cross entropy",
    smoke=grid(WHOLE, eta=[0.04, 0.02], time=0.16, n=8, queries=2, seed=0),
    settings=WHOLE,
    departures={"smoke": ("Eight samples, two queries, up to eight steps, one network.",)},
    cell=cell,
    seconds=lambda settings: float(settings["time"] / settings["eta"] * 1e-2),
    analyse=QUANTITIES,
    draw=draw,
    claims=claims(
        {
            **{
                f"power-{loss.replace('_', '-')}: power/{loss} between 0.9 and 1.1": "The formula "
                "holds for several outputs up to O(sum of eta²): at a fixed time the residual "
                f"falls with the first power of the step ({name})."
                for loss, name in LOSSES.items()
            },
            "blocks: blocks < 1e-10": "The sum over samples is that of q x q kernel blocks times "
            "loss derivatives. | largest relative difference of two ways to the sum | theorem 3, "
            "definition 5",
            "exact: exact < 1e-12": "Integrated along each step, the sum closes to rounding for "
            "every output. | largest relative residual | ours",
        },
        source="theorem 3",
        test="t interval of the slope in logarithms over networks",
    ),
    errata=("C9",),
    notes=(
        "A network 2-10-10-3 learns in which third of the plane, seen from the origin, a point of "
        "the square lies. The squared error is a mean over samples and outputs.",
    ),
)
