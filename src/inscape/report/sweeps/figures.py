"""Small multiples of a sweep: one panel for each instrument, over the models."""

import math
import re
from collections.abc import Sequence
from itertools import takewhile

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from inscape.escaping import figure_label
from inscape.figures.panels import panels
from inscape.figures.style import BLUE, FAINT, GREEN, RULE, VERMILION, new_axes, quiet_grid, styled
from inscape.report.sweeps.table import Correlation, Sweep
from inscape.report.words import number, plain

#: Inches of a panel of the page, and of one panel among many.
PANEL, SMALL = (3.3, 2.15), (2.7, 1.9)
#: Labels of models that stand side by side without being thinned, and letters of one.
MOST_LABELS, LONGEST = 12, 11
#: Positive numbers that differ by more than this stand on a logarithmic axis.
FACTOR = 30.0


def short_labels(names: Sequence[str]) -> tuple[list[str], str]:
    """Return the parts of names that differ, and what all of them begin with.

    >>> short_labels(["epoch-2", "epoch-10"])
    (['2', '10'], 'epoch')
    >>> short_labels(["wide", "deep"])
    (['wide', 'deep'], '')
    """
    shared = _shared_start(names)
    start = re.sub(r"[0-9.]+$", "", shared)
    if not all(re.match(r"[0-9]", name[len(start) :]) for name in names):
        start = re.sub(r"[^\W_]*$", "", shared)  # whole words only
    rest = [name[len(start) :] for name in names]
    return (rest, start.strip(" _-./")) if all(rest) else (list(names), "")


def _shared_start(names: Sequence[str]) -> str:
    """Return the longest text with which all names begin."""
    alike = [letters[0] for letters in takewhile(_one_kind, zip(*names, strict=False))]
    return "".join(alike)


def _one_kind(letters: Sequence[str]) -> bool:
    return len(set(letters)) == 1


def over_models(sweep: Sweep, instrument: str, ax: Axes) -> Axes:
    """Draw an instrument over the models: a dot for each, with its interval."""
    names = [model.name for model in sweep.models]
    measurements = [sweep.measurement(name, instrument) for name in names]
    shown = [
        (i, m.summary)
        for i, m in enumerate(measurements)
        if m is not None and m.summary is not None
    ]
    ax.plot([i for i, _ in shown], [s.value for _, s in shown], color=RULE, linewidth=1.0, zorder=1)
    for i, summary in shown:
        if summary.low is not None and summary.high is not None and math.isfinite(summary.high):
            ends = [summary.low, summary.high]
            ax.plot([i, i], ends, color=BLUE, linewidth=2.6, alpha=0.45, solid_capstyle="round")
    ax.plot([i for i, _ in shown], [s.value for _, s in shown], "o", color=BLUE, markersize=4.2)
    missing = [i for i in range(len(names)) if i not in dict(shown)]
    if missing:
        bottom = ax.get_xaxis_transform()
        ax.plot(
            missing, [0.03] * len(missing), "x", color=VERMILION, markersize=4, transform=bottom
        )
    _name_models(ax, names)
    _scale_values(ax, [summary.value for _, summary in shown])
    quiet_grid(ax)
    return ax


def _scale_values(ax: Axes, values: Sequence[float]) -> None:
    """Let the axis be logarithmic where positive numbers differ by a large factor."""
    if min(values) > 0 and max(values) > FACTOR * min(values):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 2)))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(axis="y", which="minor", length=0)
    else:
        ax.margins(y=0.12)
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_label(ax, value)))


def _tick_label(ax: Axes, value: float) -> str:
    """Return a number with as many digits as tell it from the other ticks of the axis."""
    ticks = set(ax.yaxis.get_majorticklocs().tolist())
    enough = (d for d in range(3, 16) if len({number(tick, d) for tick in ticks}) == len(ticks))
    return number(value, next(enough, 16))


def _name_models(ax: Axes, names: Sequence[str]) -> None:
    labels, start = short_labels(names)
    every = max(1, -(-len(names) // MOST_LABELS))
    places = list(range(0, len(names), every))
    texts = [_shortened(labels[i]) for i in places]
    slanted = sum(map(len, texts)) > 34
    ax.set_xticks(
        places,
        texts,
        rotation=35 if slanted else 0,
        ha="right" if slanted else "center",
        rotation_mode="anchor" if slanted else "default",
    )
    ax.set_xlim(-0.5, len(names) - 0.5)
    if start:
        ax.set_xlabel(figure_label(start), color=FAINT)


def _shortened(label: str) -> str:
    return figure_label(label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…")


def panel(sweep: Sweep, instrument: str) -> Axes:
    """Return a new figure of one instrument over the models."""
    with styled():
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(*PANEL)  # type: ignore[union-attr]
        return over_models(sweep, instrument, ax)


def small_multiples(sweep: Sweep) -> Figure:
    """Return one figure with a panel for each instrument, in the order of the table."""
    with styled():
        if not sweep.instruments:
            ax = new_axes()
            ax.set_axis_off()
            ax.text(0.5, 0.5, "nothing was measured", ha="center", va="center", color=FAINT)
            figure = ax.get_figure(root=True)
            assert isinstance(figure, Figure)
            return figure
        figure, axes = panels(len(sweep.instruments), columns=4, size=SMALL)
        for instrument, ax in zip(sweep.instruments, axes, strict=True):
            over_models(sweep, instrument, ax)
            ax.set_title(plain(instrument), loc="left")
        return figure


def scatter(sweep: Sweep, correlation: Correlation) -> Axes:
    """Draw numbers against a column, a dot for each model, with Kendall's tau as the title."""
    instrument, name = correlation.instrument, correlation.column
    with styled():
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(*PANEL)  # type: ignore[union-attr]
        points = [
            (column, value, i / max(1, len(sweep.models) - 1))
            for i, model in enumerate(sweep.models)
            if (value := sweep.value(model.name, instrument)) is not None
            and (column := sweep.column(name).get(model.name)) is not None
        ]
        ax.plot([p[0] for p in points], [p[1] for p in points], color=RULE, linewidth=0.8, zorder=1)
        for x, y, late in points:
            ax.plot(x, y, "o", color=GREEN, alpha=0.3 + 0.7 * late, markersize=5)
        ax.set_xlabel(figure_label(name))
        _scale_values(ax, [p[1] for p in points])
        quiet_grid(ax)
        ax.margins(x=0.08)
    return ax


def forest(correlations: Sequence[Correlation]) -> Axes:
    """Draw Kendall's tau of each instrument with its interval, the largest first."""
    known = [correlation for correlation in correlations if math.isfinite(correlation.tau.value)]
    rows = sorted(known, key=lambda correlation: correlation.tau.value)
    with styled():
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(6.4, 0.5 + 0.24 * len(rows))  # type: ignore[union-attr]
        ax.axvline(0, color=FAINT, linewidth=0.8)
        for y, correlation in enumerate(rows):
            tau = correlation.tau
            clear = tau.low > 0 or tau.high < 0
            colour = FAINT if not clear else BLUE if tau.value > 0 else VERMILION
            if math.isfinite(tau.low):
                ends = [tau.low, tau.high]
                ax.plot(ends, [y, y], color=colour, linewidth=2.6, alpha=0.45,
                        solid_capstyle="round")  # fmt: skip
            ax.plot(tau.value, y, "o", color=colour, markersize=5)
            ax.text(1.08, y, number(tau.value, 2), va="center", ha="left", fontsize=8)
        ax.set_yticks(
            range(len(rows)), [figure_label(plain(correlation.instrument)) for correlation in rows]
        )
        ax.set_xlim(-1.05, 1.05)
        ax.set_ylim(-0.7, len(rows) - 0.3)
        ax.set_xlabel("Kendall's tau")
        quiet_grid(ax, "x")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    return ax
