"""Numbers and sentences for people; nothing here measures anything."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

#: Options of the command line that ask for one piece of a look, with the number of their values.
_OF_ONE_RUN = dict.fromkeys(
    ("--only", "--budget", "--work", "--out", "--explain"), 1
) | dict.fromkeys(("--json", "--no-page", "--dry-run", "--quiet", "-q"), 0)


#: Names that are not written as their words are.
_WRITTEN = {
    "boundary": "decision boundary",
    "conv_spectrum": "singular values of layers",
    "distance_from_init": "distance from initialisation",
    "fisher_rao_norm": "Fisher-Rao norm",
    "line_regions": "linear regions along lines",
    "lipschitz": "Lipschitz constant",
    "local_maps": "local affine maps",
    "neighbours": "nearest neighbours",
    "plane_regions": "linear regions in the plane",
    "region_at": "linear region of a point",
    "tropical": "tropical form",
}


def number(value: float, digits: int = 4) -> str:
    """Return ``value`` to so many significant digits, as one would write it by hand.

    >>> number(0.93), number(12345.6), number(2.5e7), number(-1e-5)
    ('0.93', '12,350', '2.5×10⁷', '−1×10⁻⁵')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "\N{MINUS SIGN}∞"
    if math.isnan(value):
        return str(value)
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    sign, power = ("\N{MINUS SIGN}" if value < 0 else ""), int(exponent)
    if -4 < power < 6:
        text = f"{float(f'{mantissa}e{exponent}'):,.{max(0, digits - 1 - power)}f}"
        return sign + (text.rstrip("0").rstrip(".") if "." in text else text)
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{sign}{mantissa.rstrip('0').rstrip('.')}\N{MULTIPLICATION SIGN}10{raised}"


def seconds(value: float) -> str:
    """Return a duration in words.

    >>> seconds(0.004), seconds(3.21), seconds(75), seconds(7320)
    ('under 0.1 s', '3.2 s', '1 min 15 s', '2 h 2 min')
    """
    if value < 0.1:
        return "under 0.1 s"
    if value < 10:
        return f"{value:.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def about(value: float) -> str:
    """Return an estimated duration as one would say it.

    >>> about(18.0), about(0.01)
    ('about 18 s', 'under 0.1 s')
    """
    text = seconds(value)
    return text if text.startswith("under") else f"about {text}"


def plain(name: str) -> str:
    """Return the name of an instrument as a reader would write it.

    >>> plain("gradient_path_length")
    'gradient path length'
    """
    return _WRITTEN.get(name, name.replace("_", " "))


def first_up(text: str) -> str:
    """Return a text with its first letter as a capital and the others as they are.

    >>> first_up("path length of a ReLU network")
    'Path length of a ReLU network'
    """
    return text[:1].upper() + text[1:]


def shape(sizes: Sequence[int]) -> str:
    """Return a shape as ``3 × 32 × 32``; a single number for a vector, 1 for a scalar."""
    return " \N{MULTIPLICATION SIGN} ".join(map(str, sizes)) or "1"


def setting(value: object) -> str:
    """Return the value of a setting in words; a group of settings without those not set.

    >>> setting((28, 28)), setting({"n": None, "seed": 0})
    ('28, 28', 'seed 0')
    """
    if isinstance(value, Mapping):
        set_ones = {key: item for key, item in value.items() if item is not None}
        return ", ".join(f"{plain(str(key))} {setting(item)}" for key, item in set_ones.items())
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(setting, value))
    return str(value)


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def one_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def command_for(
    command: str | None, name: str, budget: float, *, seed: int, rows: Sequence[int] = ()
) -> str:
    """Return what to type to run one instrument alone: in the shell, or in Python.

    ``rows`` are those whose predictions are to be explained.
    """
    spare = math.ceil(budget)
    if command is None:
        more = f", explain={list(rows)}, trajectory=trajectory" if rows else ""
        return f"inscape.look(model, data, only={name!r}, budget={spare}, seed={seed}{more})"
    more = f" --explain {','.join(map(str, rows))}" if rows else ""
    return f"{_stripped(command)} --only {name}{more} --budget {spare}"


def whole_command(command: str | None, work: str, *, seed: int) -> str:
    """Return what to type to take the same look again, with the same work and numbers."""
    if command is None:
        return f"inscape.look(model, data, seed={seed}, work={work!r})"
    words = shlex.split(command)
    remaining = _without(words, {"--budget": 1, "--work": 1})
    return shlex.join([*remaining, "--work", work])


def _stripped(command: str) -> str:
    """Return a command without the options that choose what to run and where to write it."""
    return shlex.join(_without(shlex.split(command), _OF_ONE_RUN))


def _without(words: Sequence[str], options: Mapping[str, int]) -> list[str]:
    """Return words without these options and so many values of each."""
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if option not in options:
            remaining.append(word)
        elif not equals:
            for _ in range(options[option]):
                next(rest, None)
    return remaining


def jsonable(value: Any) -> Any:
    """Return plain values that JSON can hold: tuples become lists, NaN and Inf become words.

    >>> jsonable({"a": (1, float("inf"))})
    {'a': [1, 'inf']}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): jsonable(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [jsonable(item) for item in value]
    return str(value)
