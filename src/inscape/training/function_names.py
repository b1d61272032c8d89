"""Names of functions, by which a training records them."""

from functools import partial

OWN = "own:"


def name_of(function: object) -> str:
    """Return a function's own name, or that of its class if it is an object that can be called.

    >>> name_of(partial(int, base=2))
    'int(base=2)'
    """
    if isinstance(function, partial):
        bound = [_word(value) for value in function.args]
        bound += [f"{key}={_word(value)}" for key, value in function.keywords.items()]
        return f"{name_of(function.func)}({', '.join(bound)})"
    return str(getattr(function, "__name__", type(function).__name__))


def own_name(function: object) -> str:
    """Return the name under which a function of the user's is recorded; a word stays as it is."""
    return function if isinstance(function, str) else OWN + name_of(function)


def is_own(name: str) -> bool:
    """Return whether a recorded name is that of a function of the user's."""
    return name.startswith(OWN)


def _word(value: object) -> str:
    """Return a plain value as it is written; of others the kind, for they print at length."""
    return repr(value) if isinstance(value, bool | int | float | str) else name_of(value)
