"""Figure 3.8: how many of 1024 rows networks get right, against degree, entropy and influence."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.records import Record
from inscape.papers.sattelberg._correlation import explaining_best, rank_correlation
from inscape.papers.sattelberg._difficulty import known
from inscape.papers.sattelberg._families import KINDS, LOOKS
from inscape.papers.sattelberg._inputs import FOURIER, Group, change, dimension_groups, looks

Array = npt.NDArray[Any]
INPUTS = 10
#: Influence and degree over the number of inputs that are high: no less than random functions have.
HIGH = {"influence": 0.4, "degree": 0.8}
LABELS = {"degree": "Fourier degree", "entropy": "Fourier entropy", "influence": "influence"}


def groups(records: Sequence[Record]) -> dict[str, Group]:
    """Return the functions with the most inputs (ten, but for the smoke scale), by kind."""
    found = dimension_groups(records)
    most = max(n for n, _ in found)
    return {kind: found[most, kind] for kind in KINDS if (most, kind) in found}


def pooled(groups: Mapping[str, Group], *kinds: str) -> dict[str, Array]:
    """Return those functions of some kinds that have a high influence and a high degree."""
    some = [groups[kind] for kind in kinds if kind in groups]
    joined = {name: np.concatenate([g[name] for g in some]) for name in ("right", *FOURIER)}
    high = np.all([joined[name] >= bound - 1e-9 for name, bound in HIGH.items()], axis=0)
    return {name: values[high] for name, values in joined.items()}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return how entropy goes with the rows that are right, and how the kinds compare."""
    kinds = groups(records)
    found: dict[str, Estimate | None] = {
        f"easier/{other}": change(kinds["random"], kinds[other], "right")
        for other in ("xor", "parity")
        if {"random", other} <= set(kinds)
    }
    hard = pooled(kinds, *kinds)
    found |= {f"right/{name}": rank_correlation(hard[name], hard["right"]) for name in FOURIER}
    by_name = {name: hard[name] for name in FOURIER}
    found["entropy ahead"] = explaining_best("entropy", by_name, hard["right"])
    if "xor" in kinds:
        alone = pooled(kinds, "xor")
        found["within xor"] = rank_correlation(alone["entropy"], alone["right"])
    return known(found)


def conclude(records: Sequence[Record]) -> list[str]:
    """Say the mean number of rows that are right, by kind."""
    kinds = groups(records)
    means = ", ".join(f"{LOOKS[kind]} {kinds[kind]['right'].mean():.1%}" for kind in kinds)
    found = analyse(records)
    said = [f"Rows that are right at the end, mean over functions, trials and sizes: {means}."]
    if all(f"right/{name}" in found for name in FOURIER):
        words = ", ".join(f"{name} {found[f'right/{name}'].value:+.2f}" for name in FOURIER)
        said.append(f"Rank correlation with these where influence and degree are high: {words}.")
    return said


def draw(records: Sequence[Record]) -> Figure:
    """Draw one dot for each function in each of three panels."""
    from inscape.figures.panels import panels
    from inscape.figures.style import quiet_grid

    kinds = groups(records)
    n = max(record.settings["n"] for record in records)
    figure, axes = panels(3, columns=3, size=(2.7, 2.9))
    rng = np.random.default_rng(0)
    for ax, (name, label) in zip(axes, LABELS.items(), strict=True):
        for kind in sorted(kinds, key=lambda kind: -len(kinds[kind]["right"])):
            x = n * kinds[kind][name]
            if name == "degree":  # whole numbers: dots are spread a little, to be seen
                x = x + rng.uniform(-0.25, 0.25, len(x))
            size = 7 if kind == "parity" else 3
            look = {**looks(kind), "ms": size, "alpha": 1 if kind == "parity" else 0.6}
            ax.plot(x, 2**n * kinds[kind]["right"], ls="", mew=0, label=LOOKS[kind], **look)
        ax.set_xlabel(label)
        quiet_grid(ax)
    axes[0].set_ylabel(f"rows that are right, of {2**n}")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


EXPERIMENT = Experiment(
    shows="Figure 3.8",
    title="Rows that networks get right against the metrics of functions of ten inputs",
    same_as="figure-3.9",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"random-harder-than-{other}: easier/{other} > 0": "Random functions are "
                f"significantly harder than {LOOKS[other]}: fewer rows are right."
                for other in ("xor", "parity")
            },
            "entropy-explains: right/entropy < 0": "Given high influence and degree, functions of "
            "higher entropy are harder. | Spearman's rank correlation with rows that are right "
            "over functions with influence of at least 0.4 n and degree of at least 0.8 n, "
            "bootstrap over functions | section 3.4.3; the bounds are ours",
            "entropy-best: entropy ahead > 0": "Given these, entropy explains difficulty better "
            "than influence and degree. | size of its rank correlation less the larger of the "
            "other two, bootstrap over functions",
            "entropy-within-xor: within xor < 0": "Among the XORed functions alone, higher "
            "entropy is harder too. | Spearman's rank correlation as above, bootstrap over "
            "functions | follows from section 3.4.3; ours",
        },
        source="section 3.4.3",
        test="difference of mean shares of rows that are right, normal interval over functions",
    ),
    errata=("S1",),
    notes=(
        "The networks are those of figure 3.9 with ten inputs: 40 trials where the caption says 20 "
        "(at laptop scale fewer), and the mean over three sizes, since none is printed.",
        "Rows are counted at the end of training, which is at the first epoch with all of them "
        "right or at the last.",
    ),
)
