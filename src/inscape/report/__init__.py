"""Reports: every instrument that applies to a model on one page, with its baselines."""

from inscape.report.comparison.compare import Compare, compare
from inscape.report.look.look import Look, look
from inscape.report.look.parts import Measured, Reference
from inscape.report.look.session import Prepared, prepare
from inscape.report.sweeps import Sweep, sweep

__all__ = [
    "Compare",
    "Look",
    "Measured",
    "Prepared",
    "Reference",
    "Sweep",
    "compare",
    "look",
    "prepare",
    "sweep",
]
