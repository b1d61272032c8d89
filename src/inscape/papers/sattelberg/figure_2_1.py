"""Figure 2.1: what sigmoid and ReLU grew out of: a neuron that fires or not, and how often."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Axes, Estimate, Experiment, Trend
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHOLE: Axes = {"most": [60.0], "currents": [61], "milliseconds": [550.0]}


def cell(most: float, currents: int, milliseconds: float) -> dict[str, Any]:
    """Return how often the neuron of Hodgkin and Huxley fires at constant currents."""
    import numpy as np

    from inscape.papers.sattelberg._neuron import firing_rates

    given = np.linspace(0, most, currents)
    rates = firing_rates(given, milliseconds=milliseconds)
    return {"currents": given.tolist(), "rates": rates.round(3).tolist()}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return where firing begins, and how steadily its rate rises from there."""
    from inscape.lab.statistics import kendall_tau

    values = records[0].values
    firing = [(i, r) for i, r in zip(values["currents"], values["rates"], strict=True) if r > 20]
    if not firing:
        return {}
    currents, rates = zip(*firing, strict=True)
    found = {"threshold": exact_estimate(currents[0])}
    if len(set(rates)) > 1:
        found["rises"] = exact_estimate(kendall_tau(currents, rates))
    return found


def draw(records: Sequence[Record]) -> "Figure":
    """Draw step and sigmoid above, firing rate and ReLU below."""
    import numpy as np

    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, FAINT, VERMILION

    values = records[0].values
    x = np.linspace(-6, 6, 401)
    figure, axes = panels(4, columns=2, size=(2.9, 2.0))
    axes[0].step(x, x > 0, color=BLUE)
    axes[0].set(title="fires or does not", xlabel="input", ylabel="output")
    for w, shade in ((0.7, 0.35), (1.5, 0.6), (5.0, 1.0)):
        axes[1].plot(x, 1 / (1 + np.exp(-w * x)), color=BLUE, alpha=shade, label=f"w = {w:g}")
    axes[1].set(title="sigmoid", xlabel="input")
    axes[1].legend()
    axes[2].plot(values["currents"], values["rates"], color=VERMILION)
    axes[2].set(
        title="Hodgkin and Huxley's neuron", xlabel="current in µA/cm²", ylabel="spikes per s"
    )
    axes[3].plot(x, np.maximum(x, 0), color=VERMILION)
    axes[3].axvline(0, color=FAINT, lw=0.6)
    axes[3].set(title="ReLU", xlabel="input")
    return figure


EXPERIMENT = Experiment(
    shows="Figure 2.1",
    title="Where sigmoid and ReLU come from",
    smoke=dict(WHOLE) | {"currents": [16], "milliseconds": [120.0]},
    laptop=WHOLE,
    paper=WHOLE,
    departures={"smoke": ("16 currents, 0.12 s of simulated time.",)},
    cell=cell,
    seconds=lambda settings: settings["milliseconds"] * 0.01,
    analyse=analyse,
    draw=draw,
    claims=(
        Trend(
            name="threshold",
            says="A neuron only begins to fire after sufficient input.",
            of="threshold",
            side="above",
            bound=0.0,
            test="exact simulation",
            source="section 2.2.1",
        ),
        Trend(
            name="rises",
            says="The firing rate continues to increase with more input.",
            of="rises",
            side="above",
            bound=0.9,
            test="Kendall's tau of rate and current above the threshold",
            source="section 2.2.1",
        ),
    ),
    notes=(
        "The firing rate is simulated with the constants of the squid axon; the first 0.05 s do "
        "not count, and rates below 20 per second, which a single spike may give, are no firing.",
    ),
)
