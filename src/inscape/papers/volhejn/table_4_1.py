"""Table 4.1: in one dimension every measure grows with the data, more for networks than curves."""

from math import sqrt

from inscape.lab.experiment import Axes, Experiment, Trend, Value
from inscape.papers.volhejn._one_dimension import alike, analyse, seconds, together
from inscape.papers.volhejn._one_dimension_figure import draw

PRINTED = {
    "GN": ((0.72, 0.19), (0.36, 0.20)),
    "PL0": ((0.62, 0.31), (0.44, 0.22)),
    "PL1": ((0.79, 0.12), (0.51, 0.14)),
    "WP": ((0.82, 0.13), (0.38, 0.15)),
}
ONCE: Axes = {
    "scale": [0.01],
    "hidden": [256],
    "lr": [0.1],
    "stop_loss": [1e-3],
    "epochs": [50000],
    "repeats": [10],
}

EXPERIMENT = Experiment(
    shows="Table 4.1",
    title="Kendall's tau of four measures against the number of points, networks and polynomials",
    smoke={
        "kind": ["network", "polynomial"],
        "seed": [1, 2],
        "size": [2, 3, 4],
        **ONCE,
        "hidden": [16],
        "epochs": [2000],
        "repeats": [2],
    },
    laptop={
        "kind": ["network", "polynomial"],
        "seed": range(1, 21),
        "size": range(2, 11),
        **ONCE,
        "repeats": [3],
    },
    paper={
        "kind": ["network", "polynomial"],
        "seed": range(1, 21),
        "size": range(2, 11),
        **ONCE,
    },
    departures={
        "smoke": ("Two data sets, 16 hidden units: only to see that it runs.",),
        "laptop": ("3 networks for each size and data set instead of 10.",),
        "paper": (),
    },
    together=together,
    batch=45,
    schema=2,  # 2: each network is measured on pairs of its own
    alike=alike,
    seconds=seconds,
    analyse=analyse,
    draw=draw,
    claims=(
        *(
            Value(
                name=f"{column}-{measure}",
                says=f"Mean tau of {measure} for {what}s: {printed[k][0]:.2f}.",
                of=f"{'tau' if k == 0 else 'polynomial'}/{measure}",
                published=printed[k][0],
                published_se=printed[k][1] / sqrt(20),
                side="above",
                at=(measure, f"{what}s"),
                source="printed table; its spread over 20 data sets",
            )
            for measure, printed in PRINTED.items()
            for k, (column, what) in enumerate((("tau", "network"), ("polynomial", "polynomial")))
        ),
        *(
            Trend(
                name=f"grows-{measure}",
                says=f"{measure} increases with the number of points for networks.",
                of=f"tau/{measure}",
                side="above",
                test="t interval over data sets",
                source="section 4.3.1",
            )
            for measure in PRINTED
        ),
        *(
            Trend(
                name=f"above-polynomial-{measure}",
                says=f"Tau of {measure} is lower for polynomials than for networks.",
                of=f"above polynomial/{measure}",
                side="above",
                test="paired t interval over data sets",
                source="section 4.3.1",
            )
            for measure in PRINTED
        ),
        Trend(
            name="second-above-first",
            says="Second-order measures give a higher tau than first-order ones.",
            of="gap",
            side="above",
            test="paired t interval over data sets",
            source="section 4.3.3",
        ),
        Value(
            name="unconverged",
            says="In 23 of 180 settings none of the 10 networks converged.",
            of="unconverged",
            published=23,
            tolerance=7,
            at=("settings without a converged network", "of 180"),
            source="section 4.3.1; counts of one binomial draw scatter by 4.5",
            scales=("paper",),
        ),
        *(
            Trend(
                name=f"shift-{measure}",
                says=f"Keeping unconverged runs moves the mean tau of {measure} by at most 0.05.",
                of=f"shift/{measure}",
                side="between",
                bound=-0.05,
                upper=0.05,
                test="t interval over data sets",
                source="section 4.3.1",
            )
            for measure in PRINTED
        ),
        *(
            Trend(
                name=f"plateau-{measure}",
                says=f"{measure} plateaus: beyond 8 points it grows less than a third as much as "
                "up to there.",
                of=f"plateau/{measure}",
                side="below",
                bound=1 / 3,
                source="section 4.3.1: adding points soon stops forcing functions to be rough",
            )
            for measure in PRINTED
        ),
        Trend(
            name="first-order-agree",
            says="Measures of one order are strongly correlated: GN and PL0.",
            of="agreement/first order",
            side="above",
            bound=0.5,
            source="chapter 3",
        ),
        Trend(
            name="second-order-agree",
            says="Measures of one order are strongly correlated: PL1 and WP.",
            of="agreement/second order",
            side="above",
            bound=0.7,
            source="chapter 3",
        ),
    ),
    errata=("V1", "V4", "V9", "V10"),
    notes=(
        "The 20 functions are the thesis' own draws of the Gaussian process.",
        "Networks are trained 16 at a time as lanes of one register, in float32.",
        "Networks that did not reach the loss are left out, as in the thesis.",
    ),
)
