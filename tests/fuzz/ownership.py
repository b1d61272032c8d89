"""Which exceptions are Inscape's own.

An exception is ours if (1) its type is ValueError, TypeError or one of ``_core/errors.py``, (2) it
was raised by a ``raise`` statement in the package itself, so that no text of PyTorch, NumPy or
Python is passed through as it is, and (3) its text has our form: at least two clauses, what was
expected or found and what to do, and a full stop.
"""

import ast
import re
from functools import lru_cache
from pathlib import Path
from types import TracebackType

import inscape
from inscape import errors

PACKAGE = Path(inscape.__file__).parent
TYPES = (ValueError, TypeError, errors.UnsupportedModelError, errors.DataError, errors.BudgetError)
FORM = re.compile(
    r"\b(must|needs?|found|but|takes?|expected|belong|more than)\b.*[:;,] .*\.$", re.DOTALL
)


def ours(error: BaseException) -> bool:
    """Tell whether an exception is one of Inscape's own."""
    if type(error) not in TYPES or not FORM.search(str(error)):
        return False
    frame = _innermost(error.__traceback__)
    if frame is None:
        return False
    path = Path(frame.tb_frame.f_code.co_filename)
    return path.is_relative_to(PACKAGE) and frame.tb_lineno in _raises(path)


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


@lru_cache(maxsize=1024)
def _raises(path: Path) -> frozenset[int]:
    """Return the lines of all statements that raise."""
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return frozenset(
        line for node in nodes for line in range(node.lineno, (node.end_lineno or 0) + 1)
    )
