"""Figure 3.9: with more inputs random functions become hard, and their entropy grows with it."""

from collections.abc import Sequence
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.papers.sattelberg._difficulty import known
from inscape.papers.sattelberg._families import KINDS, LOOKS
from inscape.papers.sattelberg._inputs import (
    FOURIER,
    Group,
    change,
    dimension_groups,
    extra_change,
    line_of,
    looks,
    or_entropy,
    spread,
)
from inscape.papers.sattelberg._trials import EPOCHS, SETTINGS_NOTE

PAPER = grid(
    n=list(range(5, 11)),
    size=["5x2", "10x2", "10x5"],
    kind=list(KINDS),
    block=[0, 1, 2, 3],
    xor=222,
    random=100,
    trials=10,
    epochs=EPOCHS,
)


def cell(
    n: int, size: str, kind: str, block: int, xor: int, random: int, trials: int, epochs: int
) -> dict[str, Any]:
    """Train a block of trials on the functions of a kind; keep sums over them, and the metrics."""
    from inscape.papers.sattelberg._families import chosen, metrics, trained

    indices = tuple(chosen(kind, xor, random))
    width, depth = size_of(size)
    trial = range(block * trials, (block + 1) * trials)
    found = trained(kind, indices, trial, n=n, width=width, depth=depth, epochs=epochs)
    measured = metrics(kind, indices, n) if block == 0 else {}
    return {
        "successes": found.solved.sum(1),
        "right": found.right.sum(1),
        "best": found.best.sum(1),
        "epochs": int(found.epochs[found.solved].sum()),
        "diverged": int(found.diverged.sum()),
        **measured,
    }


def size_of(name: str) -> tuple[int, int]:
    """Return width and depth of a size such as ``10x2``."""
    width, depth = name.split("x")
    return int(width), int(depth)


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: with many inputs most networks need all epochs."""
    from inscape.papers.sattelberg._trials import step_seconds

    networks = {"parity": 1, "xor": settings["xor"], "random": settings["random"]}[settings["kind"]]
    share = 1.0 if settings["n"] > 7 else 0.4
    steps = networks * settings["trials"] * share * settings["epochs"]
    return float(0.2 + steps * step_seconds(settings["n"], *size_of(settings["size"])))


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how success and metrics change from the fewest inputs to the most."""
    groups = dimension_groups(records)
    low, high = (rule(n for n, _ in groups) for rule in (min, max))
    found: dict[str, Estimate | None] = {"entropy of or": or_entropy(high)}
    for kind in KINDS:
        pair = groups.get((low, kind)), groups.get((high, kind))
        if low == high or pair[0] is None or pair[1] is None:
            continue
        for name in ("success", *FOURIER):
            found[f"{name}/{kind}"] = change(pair[0], pair[1], name)
    for other in ("xor", "parity"):
        corners = [groups.get((n, kind)) for kind in ("random", other) for n in (low, high)]
        if low < high and all(corners):
            four = [corner for corner in corners if corner is not None]
            found[f"faster than {other}"] = extra_change(four)
    return known(found)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say success at the fewest and the most inputs, by kind."""
    groups = dimension_groups(records)
    low, high = (rule(n for n, _ in groups) for rule in (min, max))
    said = []
    for kind in KINDS:
        if (low, kind) in groups and (high, kind) in groups:
            first, last = (_mean(groups[n, kind], "success") for n in (low, high))
            said.append(
                f"{LOOKS[kind].capitalize()}: {first:.0%} of the networks succeed with {low} "
                f"inputs, {last:.0%} with {high}."
            )
    return said


def _mean(group: Group, name: str) -> float:
    return spread(group, name).value


def draw(records: Sequence[Record]) -> Figure:
    """Draw success, and the metrics over the number of inputs, against that number."""
    from inscape.figures.panels import panels
    from inscape.figures.style import quiet_grid

    groups = dimension_groups(records)
    figure, axes = panels(4, columns=4, size=(2.15, 2.5))
    titles = ("success", "influence / n", "degree / n", "entropy / n")
    for ax, name, title in zip(axes, ("success", *FOURIER), titles, strict=True):
        for kind in KINDS:
            line_of(ax, groups, kind, name)
        ax.set(title=title, xlabel="inputs n", ylim=(-0.04, 1.06))
        ax.set_xticks(sorted({n for n, _ in groups}))
        quiet_grid(ax)
    handles = [axes[0].plot([], [], label=LOOKS[kind], **looks(kind))[0] for kind in KINDS]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


_INTERVAL = "difference of means over functions and sizes, normal interval"


EXPERIMENT = Experiment(
    shows="Figure 3.9",
    title="Success and Fourier metrics of functions of five to ten inputs",
    smoke=grid(PAPER, n=[5, 6], size="5x2", block=0, xor=4, random=3, trials=2, epochs=50),
    laptop=grid(PAPER, block=0, xor=56, random=30),
    paper=PAPER,
    departures={
        "smoke": ("Five and six inputs, one size, seven functions and parity, 50 epochs.",),
        "laptop": (
            "56 of the 222 XORed classes and 30 of 100 random functions.",
            "Ten trials of each function instead of 40.",
        ),
    },
    cell=cell,
    seconds=seconds,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"faster-than-{other}: faster than {other} > 0": "From five to ten inputs the "
                "difficulty of random functions increases significantly faster than that of "
                f"{LOOKS[other]}. | "
                f"{'drop of success of random functions less that of the others; ' + _INTERVAL}"
                for other in ("xor", "parity")
            },
            "random-drop: success/random < 0": "Random functions become harder as the number of "
            "inputs increases.",
            "random-entropy: entropy/random > 0": "The entropy of random functions, over n, "
            "increases as the dimension increases.",
            **{
                f"constant-{name}-{kind}: {name}/{kind} between -0.05 and "
                "0.05": f"{LOOKS[kind].capitalize()} "
                f"functions have constant {name}, over n (it moves by less than 0.05). | | section "
                "3.4.3; the bound is ours"
                for kind in ("random", "parity")
                for name in ("degree", "influence")
            },
            **{
                f"xor-{name}: {name}/xor > 0": f"The {name} of the XORed functions, over n, "
                "increases with the dimension."
                for name in ("degree", "influence")
            },
            "or-entropy: entropy of or = 10 ± 0.01": "Fourier entropy is maximised, with value n, "
            "on OR functions. | OR of ten inputs | entropy | section 3.4.3; erratum S6",
        },
        source="section 3.4.3",
        test=_INTERVAL,
    ),
    errata=("S1", "S6"),
    notes=(
        SETTINGS_NOTE,
        "The size of the networks is not printed: widths 5 and 10 with two hidden layers, and ten "
        "by five, are trained, and their mean is judged.",
        "The same random functions are drawn at every size; XORed functions are a four-input class "
        "of the first four inputs XORed with the parity of all.",
    ),
)
