"""Figure 6: points of the disc and of the annulus."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Mean, Quantities
from inscape.lab.records import Records

AREAS = {"disc": 0.0, "annulus": 0.5}
WHOLE = grid(area=list(AREAS), n=1024, seed=range(5))


def cell(area: str, n: int, seed: int) -> dict[str, Any]:
    """Draw the points, and compare the law of their radius with that of even sampling."""
    from scipy.stats import kstest

    from inscape.data import annulus, disc

    x = {"disc": disc, "annulus": annulus}[area](n=n, n_test=0, seed=seed).x.double()
    square, low = x.square().sum(1).numpy(), AREAS[area] ** 2
    distance = kstest((square - low) / (1 - low), "uniform").statistic
    shown = {"x": x.float().numpy()} if seed == 0 else {}
    return {"distance": float(distance) * n**0.5, "low": float(square.min()) ** 0.5, **shown}


def draw(records: Records) -> Figure:
    """Draw the points of both."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE

    shown = [record for record in records if "x" in record.values]
    figure, axes = panels(len(shown), size=(2.7, 2.7))
    for ax, record in zip(axes, shown, strict=True):
        x = record.values["x"]
        ax.plot(x[:, 0], x[:, 1], ".", color=BLUE, markersize=2, markeredgewidth=0)
        ax.set(title=record.settings["area"], xlabel="x1", ylabel="x2", aspect="equal")
        ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    return figure


EXPERIMENT = Experiment(
    shows="Figure 6",
    title="Points drawn evenly on the disc and on the annulus",
    smoke=grid(area=list(AREAS), n=64, seed=[0, 1]),
    settings=WHOLE,
    departures={"smoke": ("64 points.",)},
    cell=cell,
    analyse=Quantities(
        {f"distance of the {area}": Mean("distance").where(area=area) for area in AREAS}
    ),
    draw=draw,
    claims=claims(
        {
            f"even-{area}: distance of the {area} < 1.36": f"Points of the {area} are drawn "
            "evenly: their squared radius is uniform."
            for area in AREAS
        },
        source="A.1",
        test="Kolmogorov's distance times the root of n, below its 95% point, t interval",
    ),
    notes=("The number of points in the figure is not printed; here it is 1024.",),
)
