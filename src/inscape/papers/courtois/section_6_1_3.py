"""Section 6.1.3: does training find the exact structure for the completion of a row?"""

import math
from collections.abc import Callable
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Column, Difference, Mean, Quantities
from inscape.lab.records import Record, Records
from inscape.lab.statistics import proportion_difference, proportion_of

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


def few(record: Record) -> bool:
    """Tell whether a network has fewer channels than the paper needs."""
    return bool(record.settings["r"] < ENOUGH)


def many(record: Record) -> bool:
    """Tell whether a network has enough channels."""
    return not few(record)


def _groups(records: Records) -> dict[str, Records]:
    """Return the networks that the section speaks of, by a word for them."""
    plain = records.where(variant="plain")
    near, enlarged = (records.where(variant=name) for name in ("near", "enlarged"))
    return {"few": plain.where(few), "near": near, "many": plain.where(many), "enlarged": enlarged}


def found_by(records: Records) -> dict[str, Estimate]:
    """Return how often training finds the rule, and by how much more often in one group."""
    flags = {name: [solved(r) for r in group] for name, group in _groups(records).items()}
    shares = {f"found/{name}": proportion_of(own) for name, own in flags.items() if own}
    pairs = (("many", "few"), ("near", "few"), ("enlarged", "many"))
    return shares | {
        f"found/{one} minus {other}": proportion_difference(flags[one], flags[other])
        for one, other in pairs
        if flags[one] and flags[other]
    }


def _order(ones: int) -> Callable[[Record], float]:
    return lambda record: order(record, ones)


QUANTITIES = Quantities(
    {
        **{
            f"order/many/{ones}": Mean(lambda r: order(r, 20)).where(
                lambda r: many(r) and solved(r), variant="plain", ones=ones
            )
            for ones in TESTED
        },
        **{
            f"order/extra/{ones}": Mean(_order(ones)).where(variant="extra", ones=10)
            for ones in TESTED
        },
        "order/extra/growth": Difference(
            Column(lambda r: order(r, 20)), Column(lambda r: order(r, 4))
        ).where(variant="extra", ones=10),
    },
    found_by,
)


def conclude(records: Records) -> list[str]:
    """Say for each way to train and each width how many networks find the rule."""
    said = []
    for (variant, r), group in records.by("variant", "r").items():
        errors = sorted(group.values("error/20"))
        whole = sum(wrong == 0 for wrong in group.values("wrong/20"))
        said.append(
            f"{variant}, r = {r}: {sum(map(solved, group))} of {len(group)} networks find the rule "
            f"(error on 20 ones at most {FOUND:g}), {whole} round to it without a fault; errors "
            f"{errors[0]:.1e} to {errors[-1]:.1e}."
        )
    return said


def draw(records: Records) -> Figure:
    """Draw the error of every network on rows with 20 ones, by way to train and width."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, ORANGE, quiet_grid

    groups = records.by("variant", "r")
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


LAPTOP = grid(variant=list(VARIANTS), r=[2, 4, 6, 8, 16], ones=10, lr=0.03, seed=range(12))
LAPTOP = grid(LAPTOP, p=128, n=10_000, batch=32, epochs=3, tested=5000)
SMALL = grid(LAPTOP, r=[2, 8], ones=4, lr=0.01, seed=0, p=32, n=32, batch=16)


EXPERIMENT = Experiment(
    shows="Section 6.1.3",
    title="Training the exact structure on the completion of a row",
    smoke=grid(SMALL, epochs=1, tested=8),
    laptop=LAPTOP,
    paper=grid(LAPTOP, ones=[4, 10, 20], lr=[0.01, 0.03], epochs=30, tested=100_000),
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
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "few-never: found/few < 0.1": "With r < 8 the network never converges to the optimal "
            "solution (in fewer than one training of ten). | share of trainings over all r < 8, "
            "Wilson's interval",
            "near-converges: found/near > 0.5": "With r < 8 it converges from the exact weights "
            "with noise of sigma < 0.1 (most do). | share of trainings over all r < 8, Wilson's "
            "interval",
            "near-helps: found/near minus few > 0": "Starting near the exact weights is what "
            "makes r < 8 converge.",
            "many-converge: found/many > 0.5": "For any r >= 8 it converges without further help "
            "(most do). | share of trainings over all r >= 8, Wilson's interval",
            "width-decides: found/many minus few > 0": "With r >= 8 it converges more often than "
            "with r < 8.",
            "transfer: order/many/10 < -6.5": "Trained on 10 ones with r >= 8, the error on 20 "
            "ones is 1e-7 (of that order, or less). | mean decimal logarithm over the networks "
            "that found the rule, t interval",
            "enlarged-never: found/enlarged < 0.2": "With one larger kernel the network does not "
            "converge for any r (in fewer than one training of five). | share of trainings over "
            "all r >= 8, Wilson's interval",
            "enlarged-breaks: found/enlarged minus many < 0": "Enlarging one kernel is what stops "
            "convergence.",
            **{
                f"extra-{ones}: order/extra/{ones} = {published} ± 0.5, above -6.5": "With more "
                f"convolutions, trained on 10 ones, the error on {ones} ones is of order "
                f"1e{published}. | extra convolutions | D_{ones}"
                for ones, published in ((4, -4), (10, -3), (20, -2))
            },
            "extra-grows: order/extra/growth > 0": "With more convolutions the error grows with "
            "the number of ones. | decimal logarithm on 20 ones minus that on 4, paired t "
            "interval over networks",
        },
        source="section 6.1.3",
        test="difference of shares, Newcombe's interval",
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
