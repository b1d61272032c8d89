"""Table 3.2: to which stationary points gradient descent brings a network with two ReLU units."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.grids import grid
from inscape.lab.records import Record
from inscape.lab.statistics import proportion_estimate, resampled, unrepeated

Array = npt.NDArray[Any]
LEVELS = (0.0, 8 / 3, 4.0)
#: A loss this near to one of the three counts as that.
NEAR = 0.05
#: The choice that the claims are about; the others are shown beside it.
JUDGED = ("pytorch", "sum")
#: He's normal law for the weights, over biases as PyTorch draws them.
MIXED = "he_normal over pytorch's biases"
#: Patterns that are equal up to order of units and mirror: the printed counts, how many patterns
#: there are, and their loss. The table prints the 15 most common patterns, not all of a form.
PRINTED: dict[str, tuple[tuple[int, ...], int, str]] = {
    "---;--+": ((58, 61, 67, 75), 4, "8/3"),
    "--+;--+": ((62, 66), 2, "8/3"),
    "---;---": ((64,), 1, "4"),
    "---;+++": ((26, 26), 2, "4"),
    "+++;+++": ((33,), 1, "4"),
    "--+;++-": ((26,), 4, "0"),
    "--+;+-+": ((26,), 4, "0"),
}
WHOLE = grid(
    init=["pytorch", "he_normal", MIXED], reduction=["sum", "mean"], runs=1000, epochs=500, seed=0
)


def cell(init: str, reduction: str, runs: int, epochs: int, seed: int) -> dict[str, Any]:
    """Train networks by plain gradient descent and say to which stationary points they came."""
    import numpy as np

    from inscape.boolean.matching import match
    from inscape.boolean.stationary import stationary

    rate = 0.1 if reduction == "sum" else 0.1 / 4  # the mean is over four points
    trained = descended(first_weights(init, runs, seed), rate=rate, epochs=epochs)
    going = np.isfinite(trained).all(1)
    ends = [match(one, stationary()) for one in trained[going]]
    settled = [end for end in ends if end.family is not None]
    losses = np.array([end.loss for end in ends])
    return {
        "counts": Counter(end.name for end in settled),
        "forms": {end.name: end.form for end in settled},
        "losses": {end.name: float(end.family.loss) for end in settled if end.family},
        "levels": [int((abs(losses - level) < NEAR).sum()) for level in LEVELS],
        "histogram": np.histogram(losses, bins=100, range=(0, 5))[0].tolist(),
        "diverged": int((~going).sum()),
        "median_gradient": float(np.median([end.gradient for end in settled] or [0.0])),
    }


def first_weights(init: str, runs: int, seed: int) -> Array:
    """Draw the weights of networks 1-2-1, in the order of ``parameters()``, one row for each."""
    import numpy as np
    import torch

    from inscape._core.sampling import generator

    rng = generator(seed)
    normal = torch.randn(runs, 4, generator=rng, dtype=torch.float64).numpy()
    uniform = 2 * torch.rand(runs, 7, generator=rng, dtype=torch.float64).numpy() - 1
    uniform[:, 4:] /= 2**0.5  # PyTorch's law is uniform up to one over the root of the fan-in
    he = normal * np.array([2**0.5, 2**0.5, 1.0, 1.0])  # the root of two over the fan-in
    biases = uniform if init != "he_normal" else np.zeros_like(uniform)
    if init == "pytorch":
        return uniform
    return np.concatenate([he[:, :2], biases[:, 2:4], he[:, 2:], biases[:, 6:]], axis=1)


def descended(weights: Array, *, rate: float, epochs: int) -> Array:
    """Return the weights of all networks after so many steps down the gradient of (3.25)."""
    import numpy as np

    x, y = np.array([-1.0, 0.0, 0.0, 1.0]), np.array([-1.0, 1.0, 1.0, -1.0])
    w, b, o, c = (part.copy() for part in np.split(weights, [2, 4, 6], axis=1))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(epochs):
            before = w[:, :, None] * x + b[:, :, None]
            after = np.maximum(before, 0)
            pull = 2 * ((o[:, :, None] * after).sum(1) + c - y)
            back = o[:, :, None] * (before > 0) * pull[:, None]
            o -= rate * (after * pull[:, None]).sum(2)
            c -= rate * pull.sum(1, keepdims=True)
            w -= rate * (back * x).sum(2)
            b -= rate * back.sum(2)
    return np.concatenate([w, b, o, c], axis=1)


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return shares of losses, counts of forms and what is most common, for the judged choice."""
    record = judged(records)
    if record is None:
        return {}

    runs, values = record.settings["runs"], record.values
    at_level = sum(values["levels"])
    found = {
        "near a level": proportion_estimate(at_level, runs),
        "distinct": _again(values, lambda counts: float((counts > 0).sum())),
        "most common": _again(values, lambda counts: _loss_of_each(values)[counts.argmax()]),
        "one unit": _again(values, lambda counts: _one_unit(values, counts)),
    }
    by_form = forms(values)
    for form in PRINTED:
        count = by_form.get(form, 0)
        found[f"form/{form}"] = _per_thousand(proportion_estimate(count, runs))
    return found


def _loss_of_each(values: Mapping[str, Any]) -> Array:
    """Return the loss of each solution."""
    import numpy as np

    return np.array([values["losses"][name] for name in values["counts"]])


def _one_unit(values: Mapping[str, Any], counts: Array) -> float:
    """Return how many of the seven most common solutions have the loss of one active unit."""
    common = _loss_of_each(values)[(-counts).argsort(kind="stable")[:7]]
    return float((abs(common - 8 / 3) < NEAR).sum())


def _again(values: Mapping[str, Any], statistic: Callable[[Array], float]) -> Estimate:
    """Return a statistic of the counts of solutions, and of those of resampled networks."""
    import numpy as np

    counts = np.array(list(values["counts"].values()))
    if not counts.size:
        return unrepeated(float("nan"), "no network came to a known solution")
    runs = int(counts.sum())
    draws = np.random.default_rng(0).multinomial(runs, counts / runs, size=1000)
    return resampled(float(statistic(counts)), map(statistic, draws), runs)


def judged(records: Sequence[Record]) -> Record | None:
    """Return the record of the choice that the claims are about."""
    key = ("init", "reduction")
    return next((r for r in records if tuple(r.settings[k] for k in key) == JUDGED), None)


def forms(values: Mapping[str, Any]) -> Counter[str]:
    """Return how many networks came to each form, up to order of units and mirror."""
    found: Counter[str] = Counter()
    for name, count in values["counts"].items():
        found[values["forms"][name]] += count
    return found


def _per_thousand(part: Estimate) -> Estimate:
    return Estimate(
        value=1000 * part.value,
        low=1000 * part.low,
        high=1000 * part.high,
        se=1000 * part.se,
        n=part.n,
        method=part.method,
        interval=part.interval,
    )


def conclude(records: Sequence[Record]) -> list[str]:
    """Say what the open choices do, and what the theory says about the count of solutions."""
    said = []
    for record in records:
        settings, values = record.settings, record.values
        runs = settings["runs"]
        shares = [f"{100 * count / runs:.1f}%" for count in values["levels"]]
        rest = runs - sum(values["levels"]) - values["diverged"]
        said.append(
            f"With {settings['init']} weights and the {settings['reduction']} of squares, "
            f"{shares[0]} end at loss 0, {shares[1]} at 8/3, {shares[2]} at 4, {rest} of {runs} "
            f"elsewhere and {values['diverged']} diverge; they come to {len(values['counts'])} "
            f"patterns, {len(forms(values))} up to order and mirror."
        )
    nearest = min(records, key=_off).settings
    said.append(
        f"Nearest to the printed counts are {nearest['init']} weights with the "
        f"{nearest['reduction']} of squares."
    )
    said.append(
        "Solved exactly, the 36 cases hold 61 families of stationary points, all at losses 0, 8/3 "
        "and 4; 32 of them need no output weight to be zero, and only those can be found by chance."
    )
    return said


def _off(record: Record) -> float:
    """Return how far counts by form are from the printed ones, summed over forms."""
    found, scale = forms(record.values), 1000 / record.settings["runs"]
    means = {form: size * sum(c) / len(c) for form, (c, size, _) in PRINTED.items()}
    return float(sum(abs(found.get(form, 0) * scale - count) for form, count in means.items()))


def draw(records: Sequence[Record]) -> Figure:
    """Draw the most common solutions, ours beside the printed ones, and the losses at the end."""
    from matplotlib.figure import Figure

    record = judged(records) or records[0]
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.35, 1))
    _bars(left, record)
    _losses(right, record)
    return figure


def _bars(ax: Panel, record: Record) -> None:
    from inscape.figures.style import FAINT, INK, quiet_grid

    found = Counter(record.values["counts"]).most_common(15)[::-1]
    scale = 1000 / record.settings["runs"]
    for k, (name, count) in enumerate(found):
        ax.barh(k, count * scale, color=_colour(record.values["losses"][name]), height=0.72)
    for k, (name, _) in enumerate(found):
        counts, _, _ = PRINTED.get(record.values["forms"][name], ((), 0, ""))
        if counts:
            ax.plot(sum(counts) / len(counts), k, "|", color=INK, ms=11, mew=1.6)
    ax.set_yticks(range(len(found)), [name.replace("-", "\N{MINUS SIGN}") for name, _ in found])
    ax.tick_params(axis="y", length=0, labelfontfamily="monospace")
    ax.set(xlabel="networks of 1000", title="The 15 most common solutions")
    ax.text(
        0.98, 0.03, "| printed mean of its form", ha="right", color=FAINT, transform=ax.transAxes
    )
    quiet_grid(ax, "x")


def _losses(ax: Panel, record: Record) -> None:
    from inscape.figures.style import FAINT, quiet_grid

    scale = 1000 / record.settings["runs"]
    names = ("0", "8/3", "4")
    for level, count in zip(LEVELS, record.values["levels"], strict=True):
        ax.bar(level, count * scale, width=0.34, color=_colour(level))
        ax.text(level, count * scale, f"{count * scale:.0f}", ha="center", va="bottom")
    edges = [0.05 * k + 0.025 for k in range(100)]
    heights = [
        0 if min(abs(at - level) for level in LEVELS) < NEAR else count * scale
        for at, count in zip(edges, record.values["histogram"], strict=True)
    ]
    ax.bar(edges, heights, width=0.05, color=FAINT)
    ax.set_xticks(LEVELS, [f"loss {name}" for name in names])
    ax.set(title="Where they end", ylabel="networks of 1000", xlim=(-0.5, 4.8))
    quiet_grid(ax)


def _colour(loss: float) -> str:
    from inscape.figures.style import BLUE, ORANGE, VERMILION

    return BLUE if loss < 1 else ORANGE if loss < 3.3 else VERMILION


def _counts() -> dict[str, str]:
    """Return a claim for each form, with the spread of a count."""
    found = {}
    for form, (counts, members, loss) in PRINTED.items():
        each = sum(counts) / len(counts)
        spread = members * (each * (1 - each / 1000) / len(counts)) ** 0.5
        some = "" if len(counts) == members else f", {len(counts)} of {members} patterns printed"
        found[f"form {form}: form/{form} = {members * each} ({spread})"] = (
            f"About {members * each:.0f} of 1000 networks end at loss {loss} in the form {form}. "
            f"| {form} | times found | table 3.2{some}"
        )
    return found


EXPERIMENT = Experiment(
    shows="Table 3.2",
    title="The stationary points that a 1-2-1 ReLU network reaches on XOR along a line",
    smoke=grid(WHOLE, runs=60, init="pytorch", reduction="sum", epochs=200),
    settings=WHOLE,
    departures={"smoke": ("60 networks, 200 epochs, one choice.",)},
    cell=cell,
    seconds=lambda settings: 8.0,
    analyse=analyse,
    draw=draw,
    conclude=conclude,
    claims=claims(
        {
            "three levels: near a level = 1.0 ± 0.01, above 0.5": "Networks end in exactly "
            "three classes of loss: 0, 8/3 and 4. | all runs | share within 0.05 of a level",
            f"most common: most common = {8 / 3} ± 0.01": "The most common single solution has "
            "loss 8/3. | most common solution | loss | table 3.2, last row",
            "one active unit: one unit = 6 ± 1": "Six of the seven most common solutions have "
            "loss 8/3, with one side fitted. | seven most common solutions | of loss 8/3 | "
            "table 3.2, last seven rows",
            "distinct: distinct = 53 ± 5": "Networks come to 53 different solutions. | 1000 "
            "networks | different solutions",
            **_counts(),
        },
        source="section 3.4.1",
    ),
    errata=("S4", "S5"),
    notes=(
        "The text names neither the law of the first weights nor whether the loss of a step is the "
        "sum (3.25) or PyTorch's mean; both are swept. The claims are about PyTorch's own law, in "
        "which both units start dead with probability 1/16, as the 64 dead networks of 1000 in the "
        "table suggest, and about the sum, which is what (3.25) says.",
        "Rows 1 and 2 of the printed table are the same, so that the form of loss 0 with one unit "
        "on each side is not compared. Forms are compared up to the order of units and a mirror.",
        "Solutions are counted by their pattern: which points switch which unit on. A unit whose "
        "input is within 0.01 of zero may count as on or off, and a loss within 0.001 of a "
        "family's is that family's.",
    ),
)
