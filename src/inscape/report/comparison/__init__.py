"""Comparisons: two or more networks on the same examples, on one page."""

from inscape.report.comparison.compare import Compare, PairMeasurement, compare

__all__ = ["Compare", "PairMeasurement", "compare"]
