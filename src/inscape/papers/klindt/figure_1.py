"""Figure 1: maps of the error of ReLU networks by width, and of processes by length scale."""

import numpy as np

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.quantities import Column, LogRatio, Mean, Quantities, TauOfMeans
from inscape.lab.records import Records
from inscape.papers.klindt import _maps
from inscape.papers.klindt.table_1 import NETS, PROCESSES

LIMIT = 1.5
COUNTS = {
    "regions": "linear regions in the square",
    "crossings": "changes of the error's sign on a way of length 1",
}


MODELS = (*NETS, *PROCESSES)
QUANTITIES = Quantities(
    {
        **{f"{n} with width": TauOfMeans("model", n, levels=tuple(NETS)) for n in COUNTS},
        **{
            f"contrast of {model}": LogRatio(
                Column("mse_test", model=model), Column("mse_train", model=model)
            )
            for model in MODELS
        },
        **{
            f"antidiagonal of {model}": LogRatio(
                Column("antidiagonal", model=model), Column("mse_ood", model=model)
            )
            for model in MODELS
        },
        "best length scale": Mean(lambda r: float(np.log10(r.values["length_scale"]))).where(
            model="gp-fitted"
        ),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how many regions there are, and how often the error changes its sign."""
    said = []
    for name, words in COUNTS.items():
        listed = ", ".join(
            f"{model} {float(f'{np.mean(counts):.3g}'):,g}"
            for model in MODELS
            if (counts := records.where(model=model).values(name))
        )
        said += [f"Mean number of {words}: {listed}."] * bool(listed)
    return [*said, "The exact solution of Eq. (1) has 4 regions."]


def draw(records: Records) -> Figure:
    """Draw the maps of the first repeat, networks above and processes below."""
    return _maps.rows_of_maps(
        [
            {f"{sign} = {m.partition('-')[2]}": records.where(model=m).first("map") for m in models}
            for models, sign in ((NETS, "ReLU, N"), (PROCESSES, "GP, λ"))
        ],
        LIMIT,
    )


EXPERIMENT = Experiment(
    shows="Figure 1",
    title="Maps of the error: ReLU networks of four widths, processes of four length scales",
    same_as="table-1",
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "more-regions: regions with width > 0.9": "Extra width is spent on more regions. | "
            "Kendall's tau of width and mean number of regions, bootstrap over seeds",
            "finer-cut: crossings with width > 0.6": "With width the map is cut more finely, not "
            "more simply. | Kendall's tau of width and mean changes of the error's sign, "
            "bootstrap over seeds | section 3.1, figure 1",
            "ridges: contrast of relu-1024 > 1.0": "Training points lie on ridges of good "
            "performance: the widest network is more than ten times as good there as elsewhere on "
            "the disc.",
            "process-ridges: contrast of gp-0.2 > 1.0": "A process with too short a length scale "
            "emulates the ridges.",
            "no-ridges: contrast of gp-50 < 1.0": "A process with a long length scale has no "
            "ridges. | | figure 1, bottom right",
            "antidiagonal: antidiagonal of gp-0.2 < -1.0": "The process returns to zero far from "
            "data, so that the anti-diagonal is fitted. | log10 of the error there over that "
            "beside the disc, bootstrap over seeds | section 3.1, Eq. (4)",
            f"best-length-scale: best length scale = {float(np.log10(150))} ± 0.3, above "
            "1.0": "The "
            "length scale with the largest likelihood is near 150. | section 3.1 | log10 of the "
            "length scale | section 3.1; within a factor of 2",
        },
        source="section 3.1",
        test="log10 of test error over training error, bootstrap over seeds",
    ),
    errata=("K8",),
    notes=(
        "Colours are log10 of the squared error, bright where it is small (K8); each map has its "
        "own scale.",
        "The likelihood is searched with amplitudes from 1e-5 to 1e5, as scikit-learn does by "
        "default, and so for length scales.",
    ),
)
