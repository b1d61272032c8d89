"""Table 4.1: in one dimension every measure grows with the data, more for networks than curves."""

from math import sqrt

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.papers.volhejn._one_dimension import alike, analyse, seconds, together
from inscape.papers.volhejn._one_dimension_figure import draw

PRINTED = {
    row["measure"]: ((row["nn_mean"], row["nn_sd"]), (row["poly_mean"], row["poly_sd"]))
    for row in printed("volhejn", "table-4.1")
}
COLUMNS = {"tau": "network", "polynomial": "polynomial"}
ONCE = grid(scale=0.01, hidden=256, lr=0.1, stop_loss=1e-3, epochs=50000, repeats=10)


EXPERIMENT = Experiment(
    shows="Table 4.1",
    title="Kendall's tau of four measures against the number of points, networks and polynomials",
    smoke=grid(
        grid(kind=["network", "polynomial"], seed=[1, 2], size=[2, 3, 4], **ONCE),
        hidden=16,
        epochs=2000,
        repeats=2,
    ),
    laptop=grid(
        grid(kind=["network", "polynomial"], seed=range(1, 21), size=range(2, 11), **ONCE),
        repeats=3,
    ),
    paper=grid(kind=["network", "polynomial"], seed=range(1, 21), size=range(2, 11), **ONCE),
    departures={
        "smoke": ("Two data sets, 16 hidden units: only to see that it runs.",),
        "laptop": ("3 networks for each size and data set instead of 10.",),
        "paper": (),
    },
    together=together,
    batch=45,
    schema=2,
    alike=alike,
    seconds=seconds,
    analyse=analyse,
    draw=draw,
    claims=(
        *claims(
            {
                **{
                    f"{column}-{measure}: {column}/{measure} = {mean} ({sd / sqrt(20)}), above 0": (
                        f"Mean tau of {measure} for {what}s: {mean:.2f}. | {measure} | {what}s | "
                        "printed table; its spread over 20 data sets"
                    )
                    for measure, columns in PRINTED.items()
                    for (column, what), (mean, sd) in zip(COLUMNS.items(), columns, strict=True)
                },
                **{
                    f"grows-{measure}: tau/{measure} > 0": f"{measure} increases with the number "
                    "of points for networks. | t interval over data sets"
                    for measure in PRINTED
                },
                **{
                    f"above-polynomial-{measure}: above polynomial/{measure} > 0": "Tau of "
                    f"{measure} is lower for polynomials than for networks."
                    for measure in PRINTED
                },
                "second-above-first: gap > 0": "Second-order measures give a higher tau than "
                "first-order ones. | | section 4.3.3",
            },
            source="section 4.3.1",
            test="paired t interval over data sets",
        ),
        *claims(
            {
                "unconverged: unconverged = 23 ± 7": "In 23 of 180 settings none of the 10 "
                "networks converged. | settings without a converged network | of 180"
            },
            source="section 4.3.1; counts of one binomial draw scatter by 4.5",
            scales=("paper",),
        ),
        *claims(
            {
                **{
                    f"shift-{measure}: shift/{measure} between -0.05 and 0.05": "Keeping "
                    f"unconverged runs moves the mean tau of {measure} by at most 0.05. | | "
                    "section 4.3.1"
                    for measure in PRINTED
                },
                **{
                    f"plateau-{measure}: plateau/{measure} < {1 / 3}": f"{measure} plateaus: "
                    "beyond 8 points it grows less than a third as much as up to there. | 95% "
                    "interval from a bootstrap over data sets | section 4.3.1: adding points soon "
                    "stops forcing functions to be rough"
                    for measure in PRINTED
                },
                "first-order-agree: agreement/first order > 0.5": "Measures of one order are "
                "strongly correlated: GN and PL0. | 95% interval from a bootstrap over data sets",
                "second-order-agree: agreement/second order > 0.7": "Measures of one order are "
                "strongly correlated: PL1 and WP. | 95% interval from a bootstrap over data sets",
            },
            source="chapter 3",
            test="t interval over data sets",
        ),
    ),
    errata=("V1", "V4", "V9", "V10"),
    notes=(
        "The 20 functions are the thesis' own draws of the Gaussian process.",
        "Networks are trained 16 at a time as lanes of one register, in float32.",
        "Networks that did not reach the loss are left out, as in the thesis.",
    ),
)
