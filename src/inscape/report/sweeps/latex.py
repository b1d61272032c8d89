"""The table of a sweep in LaTeX (booktabs): numbers with their intervals, names escaped."""

import math

from inscape._core.result import Summary
from inscape.escaping import visible_line
from inscape.report.sweeps.table import Measurement, Sweep
from inscape.report.words import first_up, plain

#: What LaTeX would read as a command, and how to write it.
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
#: Ends of an interval that are this much alike are written as one, as a fraction of the longer.
EVEN = 0.1
#: What stands where there is no number.
NONE = "--"


def escaped(text: str) -> str:
    r"""Return a text that LaTeX sets as it stands.

    >>> escaped("net_1 & 50%")
    'net\\_1 \\& 50\\%'
    """
    return "".join(SPECIAL.get(letter, letter) for letter in visible_line(text))


def latex_table(sweep: Sweep) -> str:
    """Return a tabular of models and instruments, the longer of both downwards."""
    models = [model.name for model in sweep.models]
    instruments = list(sweep.instruments)
    down = len(models) >= len(instruments)
    heads = [escaped(first_up(plain(m))) for m in instruments] if down else [*map(escaped, models)]
    lines = [
        r"% needs \usepackage{booktabs}; intervals of 95%",
        rf"\begin{{tabular}}{{l{'r' * len(heads)}}}",
        r"\toprule",
        _line(["Model" if down else "Instrument", *heads]),
        r"\midrule",
    ]
    for row in models if down else instruments:
        name = escaped(row) if down else escaped(first_up(plain(row)))
        cells = [
            cell(sweep.measurement(*((row, m) if down else (m, row))))
            for m in (instruments if down else models)
        ]
        lines.append(_line([name, *cells]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def cell(measurement: Measurement | None) -> str:
    r"""Return a number with its interval: ``$1.23 \pm 0.04$`` or ``$1.23^{+0.05}_{-0.03}$``."""
    summary = None if measurement is None else measurement.summary
    if summary is None:
        return NONE
    side = {"lower bound": r"\geq ", "upper bound": r"\leq "}.get(summary.kind, "")
    return f"${side}{_with_interval(summary)}$"


def _with_interval(summary: Summary) -> str:
    value = summary.value
    if summary.low is None or summary.high is None or not math.isfinite(summary.high):
        return _power(f"{value:.4g}")
    up, down = summary.high - value, value - summary.low
    longer = max(up, down)
    if longer <= 0:
        return _power(f"{value:.4g}")
    size = math.floor(math.log10(max(abs(value), longer)))
    scale = size if not -4 < size < 6 else 0
    digits = max(0, 1 - math.floor(math.log10(longer)) + scale)
    parts = (value, up, down, longer)
    number, plus, minus, half = (f"{part / 10**scale:.{digits}f}" for part in parts)
    even = abs(up - down) <= EVEN * longer
    text = rf"{number} \pm {half}" if even else f"{number}^{{+{plus}}}_{{-{minus}}}"
    if not scale:
        return text
    return rf"({text}) \cdot 10^{{{scale}}}" if even else rf"{text} \cdot 10^{{{scale}}}"


def _power(text: str) -> str:
    """Return a number as LaTeX writes it: a power of ten where there is an exponent."""
    mantissa, e, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else text
