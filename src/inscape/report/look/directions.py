"""Whether larger is better, the question that a number answers, and its distance from baselines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from inscape.report.look.parts import Measured, Reference

Better = Literal["larger", "smaller", "neither"]

#: Differences are counted in units of this fraction of the larger number, or of the interval.
UNIT = 0.05


@dataclass(frozen=True)
class Direction:
    """Whether a larger number is better, and what it means."""

    better: Better
    larger: str

    @property
    def short(self) -> str:
        """Return the direction in a few words."""
        return (
            f"larger means {self.larger}"
            if self.better == "neither"
            else f"{self.better} is better"
        )

    @property
    def sentence(self) -> str:
        """Return the direction as a sentence."""
        if self.better == "neither":
            return f"Larger means {self.larger}, in itself neither better nor worse."
        return f"{self.better.capitalize()} is better: larger means {self.larger}."


#: Of every instrument, which way its number points.
DIRECTIONS = {
    "boolean_function": Direction("neither", "a more complex function"),
    "boundary": Direction("neither", "a more intricate decision"),
    "channel_pruning": Direction("smaller", "less room to prune"),
    "closed_regions": Direction("neither", "a more intricate decision"),
    "distance_from_init": Direction("neither", "farther from where training began"),
    "effective_length_scale": Direction("neither", "smoother"),
    "exhaustive_pruning": Direction("smaller", "less room to prune"),
    "extrapolation": Direction("smaller", "more error far from the data"),
    "fisher_rao_norm": Direction("neither", "more sensitive to its parameters"),
    "gradient_deflection": Direction("neither", "less even between examples"),
    "gradient_norm": Direction("neither", "steeper"),
    "gradient_path_length": Direction("neither", "rougher"),
    "grid_regions": Direction("neither", "more linear regions"),
    "interpolation": Direction("smaller", "a higher barrier between both networks"),
    "kernel_drift": Direction("neither", "farther from the kernel at the start"),
    "line_regions": Direction("neither", "more linear regions"),
    "lipschitz": Direction("smaller", "a weaker guarantee"),
    "local_maps": Direction("neither", "more linear regions"),
    "magnitude_pruning": Direction("smaller", "less room to prune"),
    "neighbours": Direction("neither", "closer to plain distance"),
    "node_pruning": Direction("smaller", "less room to prune"),
    "path_kernel": Direction("neither", "made by more examples"),
    "path_length": Direction("neither", "rougher"),
    "plane_regions": Direction("neither", "more linear regions"),
    "region_at": Direction("neither", "a larger linear region"),
    "region_bounds": Direction("neither", "that more linear regions are possible"),
    "region_evolution": Direction("neither", "more linear regions"),
    "robustness": Direction("larger", "more answers that hold under attack"),
    "rugosity": Direction("neither", "rougher"),
    "slope_variation": Direction("neither", "rougher"),
    "spectral_norm": Direction("smaller", "a weaker guarantee"),
    "tangent_kernel": Direction("neither", "more sensitive to its parameters"),
    "total_variation": Direction("neither", "rougher"),
    "tropical": Direction("neither", "more linear regions"),
    "weights_product": Direction("neither", "rougher at most"),
}


def direction(name: str) -> Direction | None:
    """Return whether larger is better for an instrument; None for an unknown one."""
    return DIRECTIONS.get(name)


def question(family: str) -> str:
    """Return the question that a family answers: the first sentence of its docstring."""
    try:
        said = import_module(f"inscape.{family}").__doc__ or family
    except ImportError:  # a family that somebody else has added
        return family.capitalize()
    asked, mark, _ = said.partition("?")
    return asked + mark if mark else family.capitalize()


def surprise(measured: Measured) -> float:
    """Return how far a number is from the nearest baseline, in units of their intervals.

    The unit is the half width of both intervals together, at least a twentieth of the larger
    number, so that exact numbers compare with estimates; 0 without a baseline.
    """
    summary = measured.summary
    if summary is None or not math.isfinite(summary.value):
        return 0.0
    own = half_width(summary.low, summary.high)
    factors = [
        _distance(summary.value, own, reference)
        for reference in measured.references
        if reference.name != "bound" and reference.value is not None
    ]
    return min(factors, default=0.0)


def _distance(value: float, own: float, reference: Reference) -> float:
    other = reference.value if reference.value is not None else math.nan
    if not math.isfinite(other):
        return 0.0
    size = max(abs(value), abs(other))
    unit = max(math.hypot(own, half_width(reference.low, reference.high)), UNIT * size)
    return abs(value - other) / unit if unit else 0.0


def half_width(low: float | None, high: float | None) -> float:
    """Return half the width of an interval, 0 where there is none."""
    width = 0.0 if low is None or high is None else (high - low) / 2
    return width if math.isfinite(width) else 0.0


def by_question(measurements: Sequence[Measured]) -> list[tuple[str, list[Measured]]]:
    """Return measurements grouped by the question that they answer, the most surprising first."""
    ranked = sorted(measurements, key=surprise, reverse=True)
    families = dict.fromkeys(measured.family for measured in ranked)
    return [(family, [m for m in ranked if m.family == family]) for family in families]
