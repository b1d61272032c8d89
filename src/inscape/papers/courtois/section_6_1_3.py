"""Section 6.1.3: does training find the exact structure for the completion of a row?"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Settings, Trend, Value
from inscape.lab.statistics import mean_estimate, paired_difference, proportion_of
from inscape.lab.store import Record
from inscape.papers.courtois._shares import difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Ways to train: the structure of figure 8, from near its exact weights, with one larger kernel,
#: with more convolutions, and, as a choice that the paper leaves open, with biases.
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "near": {},
    "enlarged": {"kernel": 3},
    "extra": {"extra": 2},
    "biased": {"bias": True},
}
#: Channels from which on training finds the exact rule, by the paper.
ENOUGH = 8
#: Ones of the rows on which every network is tested.
TESTED = (4, 10, 20)
#: Largest error on rows with 20 ones at which the rule counts as found: 100 times the paper's 1e-7.
FOUND = 1e-5
#: Errors are not told apart below this: the square of single precision, nearly.
FLOOR = 1e-14
#: Noise on the exact weights; the paper says below 0.1.
SIGMA = 0.09


def cell(
    variant: str,
    r: int,
    ones: int,
    lr: float,
    seed: int,
    p: int,
    n: int,
    batch: int,
    epochs: int,
    tested: int,
) -> dict[str, Any]:
    """Train one network on rows with so many ones, and test it on rows with fewer and with more."""
    import torch

    from inscape.papers.courtois._completion import Completion, completed, rows, set_by_hand
    from inscape.training import cosine, fit

    model = Completion(p, r, seed=seed, **VARIANTS[variant])
    if variant == "near":
        set_by_hand(model, sigma=SIGMA, seed=seed)
    x = rows(n, p, ones, seed=seed)
    settings: dict[str, Any] = {"optimizer": "adam", "lr": lr, "batch": batch, "epochs": epochs}
    schedule = cosine(epochs * -(-n // batch))
    run = fit(model, x, completed(x), **settings, schedule=schedule, seed=seed, progress=False)
    found: dict[str, Any] = {"loss": run.loss, "losses": run.losses.float().numpy()}
    for count in TESTED:
        fresh = rows(tested, p, count, seed=10_000 + seed)
        truth = completed(fresh)
        with torch.no_grad():
            off = torch.cat([model(part) for part in torch.split(fresh, 1000)]) - truth
        found[f"error/{count}"] = float(off.double().square().mean())
        found[f"wrong/{count}"] = float((off.abs() >= 0.5).double().mean())
    return found


def solved(record: Record) -> bool:
    """Tell whether a network has found the exact rule."""
    return bool(record.values["error/20"] <= FOUND)


def order(record: Record, ones: int) -> float:
    """Return the decimal logarithm of the error on rows with so many ones."""
    return math.log10(max(record.values[f"error/{ones}"], FLOOR))


def chosen(records: Sequence[Record], variant: str, *, enough: bool | None = None) -> list[Record]:
    """Return the records of one way to train, of narrow or of wide networks."""
    return [
        record
        for record in records
        if record.settings["variant"] == variant
        and (enough is None or (record.settings["r"] >= ENOUGH) == enough)
    ]


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how often training finds the rule, and how large the errors are."""
    groups = {
        "few": chosen(records, "plain", enough=False),
        "near": chosen(records, "near"),
        "many": chosen(records, "plain", enough=True),
        "enlarged": chosen(records, "enlarged"),
    }
    found = {
        f"found/{name}": proportion_of([solved(record) for record in group])
        for name, group in groups.items()
        if group
    }
    for name, (one, other) in {
        "found/many minus few": ("many", "few"),
        "found/near minus few": ("near", "few"),
        "found/enlarged minus many": ("enlarged", "many"),
    }.items():
        if groups[one] and groups[other]:
            found[name] = difference(*([solved(r) for r in groups[g]] for g in (one, other)))
    for record_ones in sorted({record.settings["ones"] for record in groups["many"]}):
        if right := [r for r in groups["many"] if r.settings["ones"] == record_ones and solved(r)]:
            found[f"order/many/{record_ones}"] = mean_estimate([order(r, 20) for r in right])
    if extra := [r for r in chosen(records, "extra") if r.settings["ones"] == 10]:
        for ones in TESTED:
            found[f"order/extra/{ones}"] = mean_estimate([order(r, ones) for r in extra])
        ends = ([order(record, ones) for record in extra] for ones in (20, 4))
        found["order/extra/growth"] = paired_difference(*ends)
    return found


def tables(records: Sequence[Record]) -> Mapping[tuple[str, int], list[Record]]:
    """Return the records by way to train and by channels."""
    found: dict[tuple[str, int], list[Record]] = {}
    for variant in VARIANTS:
        for record in chosen(records, variant):
            found.setdefault((variant, record.settings["r"]), []).append(record)
    return found


def conclude(records: Sequence[Record]) -> list[str]:
    """Say for each way to train and each width how many networks find the rule."""
    said = []
    for (variant, r), group in tables(records).items():
        errors = sorted(record.values["error/20"] for record in group)
        whole = sum(record.values["wrong/20"] == 0 for record in group)
        said.append(
            f"{variant}, r = {r}: {sum(map(solved, group))} of {len(group)} networks find the rule "
            f"(error on 20 ones at most {FOUND:g}), {whole} round to it without a fault; errors "
            f"{errors[0]:.1e} to {errors[-1]:.1e}."
        )
    return said


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the error of every network on rows with 20 ones, by way to train and width."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, ORANGE, quiet_grid

    groups = tables(records)
    figure, (ax,) = panels(1, size=(6.2, 3.4))
    for place, group in enumerate(groups.values()):
        for k, record in enumerate(group):
            colour = BLUE if solved(record) else ORANGE
            at = place + 0.5 * ((k + 0.5) / len(group) - 0.5)
            ax.plot(at, 10 ** order(record, 20), "o", color=colour, ms=3.5, alpha=0.8)
    ax.axhline(FOUND, color=FAINT, lw=0.8, ls="--")
    ax.annotate(
        "at most this: the rule is found",
        (len(groups) - 0.5, FOUND),
        (0, 3),
        ha="right",
        va="bottom",
        textcoords="offset points",
        fontsize=7,
        color=FAINT,
    )
    labels = [f"{variant}\nr = {r}" for variant, r in groups]
    ax.set_xticks(range(len(groups)), labels, fontsize=7)
    ax.set(yscale="log", ylabel="mean squared error, rows with 20 ones")
    quiet_grid(ax)
    return figure


def keeps(settings: Settings) -> bool:
    """Keep the widths that the section speaks of for each way to train."""
    wide = settings["r"] >= ENOUGH
    first = settings["r"] == ENOUGH
    widths: dict[str, bool] = {
        "plain": True,
        "near": not wide,
        "enlarged": wide,
        "extra": first,
        "biased": first,
    }
    return widths[settings["variant"]]


def seconds(settings: Settings) -> float:
    """Guess the time of a cell."""
    steps = settings["epochs"] * settings["n"] / settings["batch"]
    weight = settings["p"] * settings["batch"] * settings["r"] * settings["p"].bit_length()
    return float(
        1 + steps * (1.2e-3 + 2.5e-8 * weight * (3 if settings["variant"] == "extra" else 1))
    )


EVERY: Axes = {"variant": list(VARIANTS), "r": [2, 4, 6, 8, 16]}

EXPERIMENT = Experiment(
    shows="Section 6.1.3",
    title="Training the exact structure on the completion of a row",
    smoke={
        "variant": list(VARIANTS),
        "r": [2, 8],
        "ones": [4],
        "lr": [0.01],
        "seed": [0],
        "p": [32],
        "n": [32],
        "batch": [16],
        "epochs": [1],
        "tested": [8],
    },
    laptop={
        **EVERY,
        "ones": [10],
        "lr": [0.03],
        "seed": range(12),
        "p": [128],
        "n": [10_000],
        "batch": [32],
        "epochs": [3],
        "tested": [5000],
    },
    paper={
        **EVERY,
        "ones": [4, 10, 20],
        "lr": [0.01, 0.03],
        "seed": range(12),
        "p": [128],
        "n": [10_000],
        "batch": [32],
        "epochs": [30],
        "tested": [100_000],
    },
    departures={
        "smoke": ("Rows of 32 pixels, one epoch on 32 of them: only to see that it runs.",),
        "laptop": (
            "Rows have 10 ones in training, not any number; three epochs and one learning rate; "
            "tests on 5000 rows of each kind instead of 100,000. Length of rows and number of "
            "training rows are the paper's.",
        ),
    },
    cell=cell,
    keeps=keeps,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Trend(
            name="few-never",
            says="With r < 8 the network never converges to the optimal solution (in fewer than "
            "one training of ten).",
            of="found/few",
            side="below",
            bound=0.1,
            test="share of trainings over all r < 8, Wilson's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="near-converges",
            says="With r < 8 it converges from the exact weights with noise of sigma < 0.1 (most "
            "do).",
            of="found/near",
            side="above",
            bound=0.5,
            test="share of trainings over all r < 8, Wilson's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="near-helps",
            says="Starting near the exact weights is what makes r < 8 converge.",
            of="found/near minus few",
            side="above",
            test="difference of shares, Newcombe's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="many-converge",
            says="For any r >= 8 it converges without further help (most do).",
            of="found/many",
            side="above",
            bound=0.5,
            test="share of trainings over all r >= 8, Wilson's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="width-decides",
            says="With r >= 8 it converges more often than with r < 8.",
            of="found/many minus few",
            side="above",
            test="difference of shares, Newcombe's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="transfer",
            says="Trained on 10 ones with r >= 8, the error on 20 ones is 1e-7 (of that order, or "
            "less).",
            of="order/many/10",
            side="below",
            bound=-6.5,
            test="mean decimal logarithm over the networks that found the rule, t interval",
            source="section 6.1.3",
        ),
        Trend(
            name="enlarged-never",
            says="With one larger kernel the network does not converge for any r (in fewer than "
            "one training of five).",
            of="found/enlarged",
            side="below",
            bound=0.2,
            test="share of trainings over all r >= 8, Wilson's interval",
            source="section 6.1.3",
        ),
        Trend(
            name="enlarged-breaks",
            says="Enlarging one kernel is what stops convergence.",
            of="found/enlarged minus many",
            side="below",
            test="difference of shares, Newcombe's interval",
            source="section 6.1.3",
        ),
        *(
            Value(
                name=f"extra-{ones}",
                says=f"With more convolutions, trained on 10 ones, the error on {ones} ones is of "
                f"order 1e{published}.",
                of=f"order/extra/{ones}",
                published=published,
                tolerance=0.5,
                side="above",
                bound=-6.5,
                at=("extra convolutions", f"D_{ones}"),
                source="section 6.1.3",
            )
            for ones, published in ((4, -4), (10, -3), (20, -2))
        ),
        Trend(
            name="extra-grows",
            says="With more convolutions the error grows with the number of ones.",
            of="order/extra/growth",
            side="above",
            test="decimal logarithm on 20 ones minus that on 4, paired t interval over networks",
            source="section 6.1.3",
        ),
    ),
    errata=("C4",),
    notes=(
        "Left open by the paper and chosen here: Adam with a learning rate that falls along half a "
        "cosine, mini-batches of 32 rows, mean squared error, He's normal initial weights, no "
        "biases (the equations of section 6.1.2 have none), no weights shared by levels.",
        "These choices were made after the claims and before this run, by trials with 16 networks "
        "on rows of 32 pixels and 8 on rows of 128: of r = 8 with biases and PyTorch's own initial "
        "weights none found the rule, with He's 2 of 16, without biases 5 to 11 of 16; three times "
        "as many steps changed nothing. With what was chosen for r = 8, r = 4 found it in 1 and "
        "r = 6 in 3 of 16 on the short rows. The way 'biased' shows the choice that moved the "
        "result most.",
        "The larger kernel has three taps instead of two in the first convolution, and can still "
        "compute the rule; more convolutions are two of width one with a ReLU each, at every "
        "level; noise near the exact weights has sigma = 0.09.",
        "The error is the mean squared error of a pixel; a rule is found when it is at most 1e-5 "
        "on rows with 20 ones.",
    ),
)
