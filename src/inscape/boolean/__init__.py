"""How hard, how small? Boolean functions: truth tables, NPN classes, Fourier spectra, swaps."""

from inscape.boolean import families as families
from inscape.boolean import npn as npn
from inscape.boolean import orders as orders
from inscape.boolean.boolean_function import BooleanFunction, analysis, boolean_function
from inscape.boolean.constructions import (
    narrow_network,
    parity_network,
    represents,
    wide_network,
)
from inscape.boolean.formula import formula
from inscape.boolean.fourier import Fourier, fourier, metrics
from inscape.boolean.linear_programs import swaps_by_programmes
from inscape.boolean.swaps import ManySwaps, Swaps, changes, swaps, swaps_many
from inscape.boolean.swaps_bound import swaps_bound
from inscape.boolean.truth_table import (
    TruthTable,
    bent,
    disjunction,
    from_bits,
    parity,
    points,
    random,
    table,
    variable,
    with_parity,
)

__all__ = [
    "BooleanFunction",
    "Fourier",
    "ManySwaps",
    "Swaps",
    "TruthTable",
    "analysis",
    "bent",
    "boolean_function",
    "changes",
    "disjunction",
    "families",
    "formula",
    "fourier",
    "from_bits",
    "metrics",
    "narrow_network",
    "npn",
    "orders",
    "parity",
    "parity_network",
    "points",
    "random",
    "represents",
    "swaps",
    "swaps_bound",
    "swaps_by_programmes",
    "swaps_many",
    "table",
    "variable",
    "wide_network",
    "with_parity",
]
