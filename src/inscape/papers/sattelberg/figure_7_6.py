"""Figure 7.6: the coefficients of one XOR network, mapped to those of another.

For each direction a 3 x 3 matrix M is fitted so that C M is near C', over the maps of 101 x 101
points (eq. 7.4). The mapped network has, at each point, its own map times M.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.sattelberg import _network_claims as claimed

Array = npt.NDArray[np.float64]
WAYS = ("there", "back")


def cell(width: int, epochs: int, side: int, pair: int) -> dict[str, Any]:
    """Train two networks on XOR, and map the coefficients of each to those of the other."""
    from inscape.papers.sattelberg.figure_7_5 import trained

    networks = [trained(width, epochs, 2 * pair + k) for k in (0, 1)]
    both = [on_grid(network, side) for network in networks]
    found: dict[str, Any] = {}
    for way, (source, target) in zip(WAYS, (both, both[::-1]), strict=True):
        mapped = source["maps"] @ np.linalg.lstsq(source["maps"], target["maps"], rcond=None)[0]
        values = (mapped * source["points"]).sum(1)
        spread = float(np.ptp(target["values"]))
        found[way] = {
            "residual": float(np.linalg.norm(mapped - target["maps"])
                              / np.linalg.norm(target["maps"])),
            "agreement": float(((values > 0) == (target["values"] > 0)).mean()),
            "jump": largest_jump(source, mapped, side) / spread,
        }  # fmt: skip
        if pair == 0:
            drawn = {"target": target["maps"][:, :2], "mapped": mapped[:, :2], "values": values}
            found |= {f"{way} {name}": np.float32(array) for name, array in drawn.items()}
    return found


def on_grid(network: Any, side: int) -> dict[str, Array]:
    """Return points with a 1 behind, and map, output and pattern of a network at each."""
    import torch

    from inscape.papers.sattelberg import _toy

    x = _toy.grid(side).double().requires_grad_()
    model = network.double()
    values = model(x)[:, 0]
    (slopes,) = torch.autograd.grad(values.sum(), x)
    with torch.no_grad():
        on = model[0](x) > 0
        constants = values - (slopes * x).sum(1)
    maps = torch.cat([slopes, constants[:, None]], 1)
    points = torch.cat([x.detach(), torch.ones(len(x), 1)], 1)
    parts = {"points": points, "maps": maps, "values": values.detach(), "on": on.double()}
    return {name: part.numpy() for name, part in parts.items()}


def largest_jump(source: dict[str, Array], mapped: Array, side: int) -> float:
    """Return the largest jump of the mapped function where neighbours differ in one unit.

    Between two such points the source bends once, where both of its maps give the same: there the
    mapped function has two values.
    """
    index = np.arange(side * side).reshape(side, side)
    steps = [(index[:-1], index[1:]), (index[:, :-1], index[:, 1:])]
    first, second = (np.concatenate([step[k].ravel() for step in steps]) for k in (0, 1))
    one_unit = np.abs(source["on"][first] - source["on"][second]).sum(1) == 1
    first, second = first[one_unit], second[one_unit]
    if not len(first):
        return 0.0
    turn = source["maps"][second] - source["maps"][first]
    start, end = source["points"][first], source["points"][second]
    gaps = [(turn * place).sum(1) for place in (start, end)]
    share = np.divide(
        gaps[0], gaps[0] - gaps[1], out=np.zeros(len(first)), where=gaps[0] != gaps[1]
    )
    bend = start + np.clip(share, 0, 1)[:, None] * (end - start)
    return float(np.abs(((mapped[second] - mapped[first]) * bend).sum(1)).max())


def both_ways(name: str) -> Mean:
    """Return the mean of a number over both directions of each pair."""

    def read(record: Record) -> float:
        return float(np.mean([record.values[way][name] for way in WAYS]))

    return Mean(read)


def conclude(records: Records) -> list[str]:
    """Say the numbers of both directions."""
    known = {name: both_ways(name)(records) for name in ("residual", "agreement", "jump")}
    shown = {name: estimate.value for name, estimate in known.items() if estimate is not None}
    if not shown:
        return []
    return [
        f"Mapped coefficients differ from the target's by {shown['residual']:.1%} of their norm, "
        f"classes agree on {shown['agreement']:.1%} of the points, and the mapped function jumps "
        f"by up to {shown['jump']:.1%} of its range."
    ]


def draw(records: Records) -> Figure:
    """Draw the mapped function, and target and mapped coefficients, in both directions."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, VERMILION

    record = records.first("there mapped")
    figure, axes = panels(4 if record else 0, columns=2, size=(3.2, 2.8))
    for way, left, right in zip(WAYS, axes[::2], axes[1::2], strict=True):
        assert record is not None  # axes are there for a record only
        values, target, mapped = (
            np.asarray(record.values[f"{way} {name}"]) for name in ("values", "target", "mapped")
        )
        side = round(len(values) ** 0.5)
        top = float(np.abs(values).max())
        image = left.imshow(
            values.reshape(side, side).T, origin="lower", extent=(-1, 1, -1, 1), cmap="PuOr",
            vmin=-top, vmax=top,
        )  # fmt: skip
        left.contour(
            np.linspace(-1, 1, side), np.linspace(-1, 1, side), values.reshape(side, side).T,
            levels=[0.0], colors="black", linewidths=0.8,
        )  # fmt: skip
        left.set_title("mapped function" if way == "there" else "mapped back")
        figure.colorbar(image, ax=left, shrink=0.8)
        right.plot(*target.T, "o", ms=4, mfc="none", color=BLUE, mew=0.6, label="target")
        right.plot(*mapped.T, ".", ms=2, color=VERMILION, label="mapped")
        right.set(xlabel="first slope", ylabel="second slope", title="coefficients")
        right.legend(fontsize=7)
    return figure


WHOLE = grid(width=20, epochs=2000, side=101, pair=range(10))

EXPERIMENT = Experiment(
    shows="Figure 7.6",
    title="Affine map between the coefficients of two XOR networks",
    smoke=grid(WHOLE, epochs=50, side=21, pair=0),
    settings=WHOLE,
    departures={
        "smoke": ("50 steps, one pair of networks, 21 x 21 points.",),
        "laptop": ("Ten pairs of networks instead of one, for intervals.",),
        "paper": ("Ten pairs of networks instead of one, for intervals.",),
    },
    cell=cell,
    seconds=lambda settings: 8.0,
    analyse=Quantities({name: both_ways(name) for name in ("residual", "agreement", "jump")}),
    conclude=conclude,
    draw=draw,
    claims=claimed.FIGURE_7_6,
    notes=(
        "Two networks of 20 hidden units each, trained as those of figure 7.5; the figure does not "
        "say which it shows. Pairs share no network.",
        "A jump is measured where the source bends between two neighbouring points that differ in "
        "one unit, exactly at the bend.",
    ),
)
