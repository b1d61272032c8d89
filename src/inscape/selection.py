"""Which instruments a list of names and families stands for."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from inscape import index
from inscape.errors import did_you_mean

if TYPE_CHECKING:
    from inscape._core import Instrument

#: What instruments need that one network and its data do not provide.
NEEDED = {"trajectory": "a recorded training", "pair": "two networks"}


def selected(
    only: str | Sequence[str], *, also: Sequence[str] = (), usual: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the selected instruments; a family selects its instruments.

    A family selects those of its instruments that measure one network.

    Args:
        only: Names of instruments and families, as one text separated by commas or as several.
        also: Further names that may be selected, beside those of instruments.
        usual: Instruments that a family is restricted to if it has any of them.

    >>> selected("path_length,gradient_norm")
    ('path_length', 'gradient_norm')
    >>> selected(["robustness", "path_length"])
    ('robustness', 'path_length')
    """
    texts = [only] if isinstance(only, str) else list(only)
    words = [word.strip() for text in texts for word in text.split(",")]
    if not all(words):
        raise ValueError(
            "only must be names of instruments or families separated by commas, found "
            f"{', '.join(texts)!r}: write for example path_length,regions."
        )
    families = index.families()
    known = [*(entry.name for entry in index.entries()), *also]
    names: list[str] = []
    for word in words:
        if word in families:
            names += _of_family(word, usual)
        elif word in known:
            names.append(word)
        else:
            offer = did_you_mean(word, [*known, *families])
            raise ValueError(f"no instrument or family is called {word!r}: {offer}")
    return tuple(dict.fromkeys(names))


def _of_family(family: str, usual: Collection[str]) -> list[str]:
    names = [
        entry.name
        for entry in index.entries()
        if entry.family == family and entry.reads not in NEEDED
    ]
    if not names:
        raise ValueError(
            f"the family {family!r} has no instrument that measures one network and its data: "
            f"name one of it, see inscape list {family}."
        )
    return [name for name in names if name in usual] or names


def selected_instruments(
    only: str | Sequence[str] | None, *, also: Sequence[str] = (), usual_of_families: bool = False
) -> "dict[str, Instrument]":
    """Return the selected instruments by name, in their order; None selects the defaults.

    Args:
        only: Names of instruments and families, which must measure one network; None for none.
        also: Further names that may be selected, beside those of instruments.
        usual_of_families: Whether a family selects only its instruments that run by default, if
            it has any.
    """
    from inscape._core import instruments

    known = {
        name: instrument
        for name, instrument in instruments().items()
        if instrument.reads not in NEEDED
    }
    usual = [name for name, instrument in known.items() if instrument.by_default]
    names = usual
    if only is not None:
        names = list(selected(only, also=also, usual=usual if usual_of_families else ()))
    for name in names:
        if name not in known and name not in also:
            raise ValueError(
                f"only must name instruments that measure one network on data, found {name!r}, "
                f"which needs {NEEDED[instruments()[name].reads]}: leave it out."
            )
    return {name: instrument for name, instrument in known.items() if name in names}
