"""Sweeps: many models measured with the same instruments, in one table, and compared."""

from inscape.report.sweeps.run import sweep
from inscape.report.sweeps.table import Comparison, Correlation, Measurement, Sweep

__all__ = ["Comparison", "Correlation", "Measurement", "Sweep", "sweep"]
