"""Table 4.4 and its figures: penalties cut first-order measures, second-order ones hardly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import sqrt

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.published import printed
from inscape.lab.records import Record
from inscape.papers.volhejn._growing import ALL_SETS, RING_SETS, hash_of
from inscape.papers.volhejn._measures import THESIS
from inscape.papers.volhejn._penalties import (
    AXES,
    LOWER_BOUND,
    analyse,
    cell,
    keeps,
    seconds,
    table,
    value,
)
from inscape.papers.volhejn._penalties import conclude as say_what_is_left

#: For each coefficient, one number for each data set.
Boxes = Mapping[float, Sequence[float]]
WORDS = {
    "GN": "gradient norm",
    "PL0": "function path length",
    "PL1": "gradient path length",
    "WP": "weights product",
}


def shown(records: Sequence[Record], measure: str) -> tuple[list[str], list[str]]:
    """Return the data sets on which every run of a measure converged, and the others.

    The boxes of all coefficients hold the same data sets, as in the thesis.
    """
    runs = table(records, measure)
    sets = sorted({name for by_data in runs.values() for name in by_data})
    whole = [
        name
        for name in sets
        if all(name in some and some[name].values["converged"] for some in runs.values())
    ]
    return whole, [name for name in sets if name not in whole]


def boxes(records: Sequence[Record], measure: str) -> tuple[Boxes, Boxes]:
    """Return the measure, and what is left of it above its bound, by coefficient."""
    runs = table(records, measure)
    names, _ = shown(records, measure)
    bound = LOWER_BOUND[measure]
    plain = {c: [value(some[name], measure) for name in names] for c, some in runs.items()}
    free = plain.get(0.0, [])
    left = {
        c: [(held - bound) / (unheld - bound) for held, unheld in zip(row, free, strict=True)]
        for c, row in plain.items()
    }
    return plain, left


def draw(measure: str) -> Callable[[Sequence[Record]], "Figure"]:
    """Return the function that draws the figure of a measure from the records of table 4.4."""

    def both(records: Sequence[Record]) -> Figure:
        from inscape.figures.panels import panels

        plain, left = boxes(records, measure)
        bound = LOWER_BOUND[measure]
        figure, axes = panels(2, columns=2, size=(3.1, 2.6))
        ratio = f"({measure} - {bound:g}) / that at 0" if bound else f"{measure} / that at 0"
        where = "on test images" if measure != "WP" else "of the weights alone"
        _boxes(axes[0], plain, title=f"(a) {where}", label=f"{WORDS[measure]} {measure}")
        _boxes(axes[1], left, title="(b) against the run without penalty", label=ratio)
        return figure

    return both


def conclude(measure: str) -> Callable[[Sequence[Record]], list[str]]:
    """Return the function that says how many data sets are shown, and which are not."""

    def said(records: Sequence[Record]) -> list[str]:
        names, gone = shown(records, measure)
        if not gone:
            return [f"Each box holds {len(names)} data sets; every run converged."]
        return [
            f"Each box holds {len(names)} data sets; left out, since a run did not converge: "
            f"{', '.join(gone)}."
        ]

    return said


def _boxes(ax: Panel, rows: Boxes, *, title: str, label: str) -> None:
    """Draw one box for each coefficient with its points beside each other."""
    from inscape.figures.style import BLUE, FAINT, VERMILION, quiet_grid

    where = range(1, len(rows) + 1)
    grey = {"color": FAINT, "linewidth": 0.9}
    ax.boxplot(
        list(rows.values()),
        positions=where,
        widths=0.55,
        showfliers=False,
        medianprops={"color": VERMILION, "linewidth": 1.6},
        boxprops=grey,
        whiskerprops=grey,
        capprops=grey,
    )
    for place, row in zip(where, rows.values(), strict=True):
        ax.plot(_spread(place, row), row, "o", ms=3, alpha=0.55, mew=0, color=BLUE)
    if not any(rows.values()):
        ax.text(0.5, 0.5, "no data set converged", transform=ax.transAxes, ha="center")
    ax.set_xticks(where, [_power(coefficient) for coefficient in rows])
    ax.set(title=title, xlabel="coefficient of the penalty", ylabel=label)
    quiet_grid(ax)


def _spread(place: int, row: Sequence[float]) -> list[float]:
    """Return where points stand side by side within a box, in the order of their data sets."""
    middle = (len(row) - 1) / 2
    return [place + 0.36 * (k - middle) / max(len(row) - 1, 1) for k in range(len(row))]


def _power(number: float) -> str:
    """Return a coefficient as a reader writes it.

    >>> _power(3e-05), _power(1e-4), _power(0.0)
    ('3e-5', '1e-4', '0')
    """
    if number == 0:
        return "0"
    digits, _, exponent = f"{number:e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


ONCE = grid(
    seed=0, hidden=256, batch=64, stop_loss=1e-5, epochs=25000, measures=[list(THESIS.values())]
)
#: Standard errors of the printed means, from the raw results of the thesis.
ERRORS = {
    "GN": {"free": 0.044, "held": 0.026, "left": 0.019},
    "PL0": {"free": 0.010, "held": 0.005, "left": 0.043},
    "PL1": {"free": 0.111, "held": 0.109, "left": 0.0096},
    "WP": {"free": 0.604, "held": 0.573, "left": 0.0042},
}
#: Printed mean without penalty, with it, and of what is left.
PRINTED = {
    row["measure"]: {
        "free": row["unreg_mean"], "held": row["reg_mean"], "left": row["normalised_mean"]
    }
    for row in printed("volhejn", "table-4.4")
}  # fmt: skip
#: On which side of 0.6 what is left must be for the message of the table.
MESSAGE = {"GN": ", below 0.6", "PL0": ", below 0.6", "PL1": ", above 0.6", "WP": ", above 0.6"}
COLUMNS = {"free": "without penalty", "held": "with penalty", "left": "left above the bound"}
#: Data sets whose penalised run did not converge, of 45 (V7 for the weights product).
OMITTED = {"PL0": 7, "PL1": 5, "WP": 3}


TABLE_4_4 = Experiment(
    shows="Table 4.4",
    title="Each measure without and with its largest workable penalty, and what is left of it",
    smoke=grid(
        grid(data="digits-binary:0-1", n=32, **AXES, **ONCE),
        **grid(hidden=16, batch=16, stop_loss=0.1, epochs=1000),
    ),
    laptop=grid(data=RING_SETS, n=1024, **AXES, **ONCE),
    paper=grid(data=ALL_SETS, n=10000, **AXES, **ONCE),
    departures={
        "smoke": ("Small images of two digits, 16 hidden units, loss 0.1: to see that it runs.",),
        "laptop": (
            "Ten of the 45 pairs of digits, each digit twice.",
            "1024 training images instead of 10,000: an epoch has 16 steps instead of 157, so a "
            "penalty acts for a tenth of the steps. Means are not compared; what is left is, and a "
            "miss may come from that alone.",
            "At most 25,000 epochs for every run (the thesis: 10,000 to 25,000).",
            "Runs without penalty at one learning rate serve both measures that use it.",
        ),
        "paper": (
            "At most 25,000 epochs for every run (the thesis: 10,000 to 25,000).",
            "Runs without penalty at one learning rate serve both measures that use it.",
        ),
    },
    cell=cell,
    keeps=keeps,
    data=hash_of,
    seconds=seconds,
    analyse=analyse,
    conclude=say_what_is_left,
    claims=(
        *claims(
            {
                f"{column}-{measure}: {column}/{measure} = {number} "
                f"({ERRORS[measure][column]}){MESSAGE[measure] * (column == 'left')}": (
                    f"{measure}, {COLUMNS[column]}: {number}. | {measure} | {COLUMNS[column]}"
                )
                for measure, columns in PRINTED.items()
                for column, number in columns.items()
            },
            source="printed number; standard error from the thesis' raw results",
            extra={
                f"{column}-{measure}": {"scales": ("paper",)}  # of a smaller run only what is left
                for measure in PRINTED
                for column in ("free", "held")
            },
        ),
        *claims(
            {
                (
                    f"omitted-{measure}: omitted/{measure} = {count / 45} "
                    f"({sqrt(count / 45 * (1 - count / 45) / 45)})"
                ): f"{measure}: {count} of 45 data sets did not converge. | {measure} | left out"
                for measure, count in OMITTED.items()
            },
            source="section 4.4, as corrected by the raw results",
            scales=("paper",),
        ),
        *claims(
            {
                **{
                    f"first-order-cut-{measure}: left/{measure} < 0.5": f"{measure} can be cut to "
                    "about 30% above its bound at equal training loss."
                    for measure in ("GN", "PL0")
                },
                **{
                    f"second-order-stays-{measure}: left/{measure} > 0.8": f"{measure} can only be "
                    "cut to about 90% at equal training loss."
                    for measure in ("PL1", "WP")
                },
                "orders-differ: gap > 0": "More is left of second-order measures than of "
                "first-order ones. | paired t interval over data sets",
                "carries-over-GN: left/GN < 0.8": "What is gained on training points carries over "
                "to test points: GN. | | section 4.4",
                **{
                    f"carries-over-whole-{measure}: lost/{measure} < 0.1": "The reduction on "
                    f"training points carries over to test points: of {measure} at most ten points "
                    "more are left there. | paired t interval over data sets | section 4.4"
                    for measure in ("GN", "PL0")
                },
                "carries-over-PL0: left/PL0 < 0.8": "What is gained on training points carries "
                "over to test points: PL0. | | section 4.4",
            },
            source="section 4.4.5",
            test="t interval over data sets",
        ),
    ),
    errata=("V3", "V5", "V7"),
    notes=(
        "Path-length penalties are summed over the 32 pairs of a batch, as in the thesis' code.",
        "Data sets whose penalised run did not reach the loss are left out, as in the thesis, and "
        "counted.",
    ),
)
"""Table 4.4: penalties cut first-order measures to a third, second-order ones hardly."""


FIGURE_4_2 = Experiment(
    shows="Figure 4.2",
    title="Gradient norm and its ratio to the unpenalised run, by coefficient",
    same_as="volhejn/table-4.4",
    draw=draw("GN"),
    conclude=conclude("GN"),
    errata=("V5",),
    notes=("The runs, their claims and their verdicts are those of table 4.4.",),
)
"""Figure 4.2: a penalty on the gradient norm brings it to a third."""


FIGURE_4_3 = replace(
    FIGURE_4_2,
    same_as="volhejn/table-4.4",
    shows="Figure 4.3",
    title="Function path length, and what is left of it above 1, by coefficient",
    draw=draw("PL0"),
    conclude=conclude("PL0"),
    errata=("V3", "V5"),
    notes=(
        *FIGURE_4_2.notes,
        "Panel (b) divides PL0 - 1, since no function that fits the labels goes below 1 (Eq. 4.8).",
    ),
)
"""Figure 4.3: a penalty on the function path length brings it near its bound of 1."""


FIGURE_4_4 = replace(
    FIGURE_4_2,
    same_as="volhejn/table-4.4",
    shows="Figure 4.4",
    title="Gradient path length and its ratio to the unpenalised run, by coefficient",
    draw=draw("PL1"),
    conclude=conclude("PL1"),
    errata=("V3", "V5"),
)
"""Figure 4.4: a penalty on the gradient path length hardly lowers it."""


FIGURE_4_5 = replace(
    FIGURE_4_2,
    same_as="volhejn/table-4.4",
    shows="Figure 4.5",
    title="Weights product and its ratio to the unpenalised run, by coefficient",
    draw=draw("WP"),
    conclude=conclude("WP"),
    errata=("V5", "V7"),
)
"""Figure 4.5: a penalty on the weights product hardly lowers it."""
