"""What every instrument stands on; nothing here measures anything."""

from inscape._core import checks as checks
from inscape._core.instrument import Bound, Instrument, instrument, instruments
from inscape._core.result import NotApplicable, Result, Row, Summary, mean_summary
from inscape._core.sampling import draw_pairs, draw_rows, generator
from inscape._core.saving import load
from inscape.errors import BudgetError, DataError, UnsupportedModelError

__all__ = [
    "Bound",
    "BudgetError",
    "DataError",
    "Instrument",
    "NotApplicable",
    "Result",
    "Row",
    "Summary",
    "UnsupportedModelError",
    "checks",
    "draw_pairs",
    "draw_rows",
    "generator",
    "instrument",
    "instruments",
    "load",
    "mean_summary",
]
