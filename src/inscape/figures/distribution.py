"""A histogram with the number that sums it up."""

from matplotlib.axes import Axes
from torch import Tensor

from inscape._core.result import Summary
from inscape.figures.style import BLUE, VERMILION, quiet_grid


def distribution(ax: Axes, values: Tensor, summary: Summary, *, mark: str = "mean") -> None:
    """Draw a histogram of nonnegative values, with their mean and its confidence interval."""
    numbers = values.double().cpu().numpy()
    extent = float(numbers.max() - numbers.min())
    narrow = extent <= 1e-6 * float(abs(numbers).max())
    high = 1.05 * float(numbers.max()) or 1.0
    bins = [k * high / 40 for k in range(41)] if narrow else min(60, max(8, len(numbers) // 20))
    ax.hist(numbers, bins=bins, color=BLUE, alpha=0.6, linewidth=0)
    ax.set(xlim=(0, high), ylim=(0, 1.15 * ax.get_ylim()[1]))
    _mark(ax, summary, mark, to_the_left=summary.value > 0.6 * high)
    quiet_grid(ax)


def _mark(ax: Axes, summary: Summary, mark: str, *, to_the_left: bool) -> None:
    """Mark the summary by a dashed line, and its confidence interval by a bar at the top."""
    ax.axvline(summary.value, ymax=0.93, color=VERMILION, linewidth=1.4, linestyle=(0, (5, 2)))
    at, ends = ax.get_xaxis_transform(), [summary.value, summary.value]
    if summary.low is not None and summary.high is not None:
        ends = [summary.low, summary.high]
        ax.plot(ends, [0.93, 0.93], color=VERMILION, linewidth=3.5, transform=at)
    ax.annotate(
        f"{mark} {summary.value:.4g}",
        (ends[0] if to_the_left else ends[1], 0.93),
        xycoords=at,
        xytext=(-5 if to_the_left else 5, 0),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        va="center",
    )
