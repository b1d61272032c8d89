"""Theorem 1: under gradient flow a network moves as a kernel machine does."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Largest, Mean, Quantities, Slope
from inscape.lab.records import Records

WHOLE = grid(eta=[0.08, 0.04, 0.02, 0.01], time=32.0, n=64, queries=32, seed=list(range(6)))


def cell(eta: float, time: float, n: int, queries: int, seed: int) -> dict[str, Any]:
    """Descend for a given time by steps of one size, and compare both sides of eqs 5 and 6."""
    from inscape.papers.courtois import _descent as d

    (x, y), at = d.ball(n, seed), d.queries(queries, seed)
    model = d.network(seed=seed)
    errors = [_error(model, x, y, at)]
    run = d.descent(model, x, y, eta=eta, steps=round(time / eta))
    errors.append(_error(model, x, y, at))
    split = d.taken_apart(run, x, y, at)
    moved = d.root_mean_square(split.final - split.initial)
    return {
        "derivative error": max(errors),
        "residual": d.root_mean_square(split.rounding + split.residual) / moved,
        "spread": _spread(run, x, y, at, split.samples[:, :, 0]),
        "loss": run.loss,
    }


def _error(model: Any, x: Any, y: Any, at: Any) -> float:
    """Return how far the kernel machine of eq 5 is from the speed of the predictions."""
    from inscape.papers.courtois import _descent as d
    from inscape.training import mse

    speed = d.speed(model, x, y, at, mse)
    missed = (d.machine(model, x, y, at, mse) - speed).abs().max()
    return float(missed / speed.abs().max())


def _spread(run: Any, x: Any, y: Any, at: Any, added: Any) -> float:
    """Return how the weight a_n(x) of a sample varies over queries, relative to its size.

    The weight is what a sample has added, divided by the path kernel. Its mean and its deviation
    over queries are taken for each sample, and their root mean squares over samples compared.
    """
    import torch

    from inscape.papers.courtois._descent import kernel_between, network
    from inscape.training import walk

    body, total = network(seed=0), torch.zeros_like(added)
    states = walk(run.trajectory, body, x, y, stop=run.trajectory.steps - 1)
    for state, rate in zip(states, run.trajectory.rates.tolist(), strict=True):
        body.load_state_dict(state)
        total += rate * kernel_between(body, at, x)[:, :, 0, 0]
    weights = added / total
    size: float = (weights.std(0).square().mean() / weights.mean(0).square().mean()).sqrt().item()
    return size


def finest(records: Records) -> Records:
    """Return the records with the smallest steps."""
    return records.where(eta=records.different("eta")[0])


QUANTITIES = Quantities(
    {
        "derivative error": Largest("derivative error"),
        "power": Slope("eta", "residual"),
        "residual": lambda records: Mean("residual")(finest(records)),
        "spread": lambda records: Mean("spread")(finest(records)),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how small the residual gets."""
    found = QUANTITIES(records)
    return [
        f"With steps of {records.different('eta')[0]:g} the sum over samples misses the change of "
        f"a prediction by {found['residual'].value:.1%}; it would miss nothing with steps of 0.",
        "Over queries the weight of a sample deviates from its mean by "
        f"{found['spread'].value:.1%} of its size; in a kernel machine in the sense of eq 3 it "
        "would be one number.",
    ]


def draw(records: Records) -> Figure:
    """Draw the residual against the step at a fixed time."""
    from inscape.figures.panels import panels
    from inscape.papers.courtois._powers import powers

    figure, (ax,) = panels(1, size=(4.2, 2.8))
    powers(ax, {"": records}, "eta", "residual", power=1)
    time = records[0].settings["time"]
    ax.set(xlabel=f"step (total time {time:g})", ylabel="relative residual of eq 6")
    return figure


EXPERIMENT = Experiment(
    shows="Theorem 1",
    title="The continuous-time formula: exact for the speed, a limit for the trained function",
    smoke=grid(eta=[0.5, 0.25], time=2.0, n=16, queries=4, seed=0),
    settings=WHOLE,
    departures={"smoke": ("16 samples, 4 queries, up to 8 large steps, one network.",)},
    cell=cell,
    seconds=lambda settings: float(settings["time"] / settings["eta"] * 6e-3),
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "derivative: derivative error < 1e-10": "The time derivative of the network is "
            "exactly a kernel machine.",
            "limit: power between 0.9 and 1.1": "The discrete sum tends to the trained function "
            "as steps shrink at a fixed time: its residual falls with the first power of the "
            "step. | t interval of the slope in logarithms over networks | theorem 1; theorem 2 "
            "at a fixed time K eta",
            "weights: spread > 0.1": "The weights a_n depend on the query (by more than a tenth "
            "of their size). | t interval over networks | section 3.0.1; erratum C1",
        },
        source="section 3.0.1, eq 5",
        test="largest relative error over networks, before and after training",
    ),
    errata=("C1",),
    notes=(
        "The theorem has no settings: here the network of section 5.1 on 64 points of its task, in "
        "float64, from PyTorch's initial law, for a time in which most networks learn it.",
        "The left side of eq 5 is the derivative of the outputs along minus the gradient of the "
        "loss, by automatic differentiation; the right side uses the tangent kernel.",
    ),
)
