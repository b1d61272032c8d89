"""Which instruments a list of names and families stands for."""

from collections.abc import Sequence

from inscape import index
from inscape.errors import did_you_mean

#: What instruments read that no single network and its data give them.
NOT_OF_ONE_NETWORK = ("trajectory", "pair", "data")


def selected(only: str | Sequence[str], *, also: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of instruments in a selection; a family stands for all that it holds.

    Of a family those are taken that measure one network; a name is taken as it is.

    Args:
        only: Names of instruments and of families, each text a name or several between commas.
        also: Further names that may be selected, beside those of instruments.

    >>> selected("path_length,gradient_norm")
    ('path_length', 'gradient_norm')
    >>> selected(["spectra", "path_length"])
    ('distance_from_init', 'fisher_rao_norm', 'spectral_norm', 'path_length')
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
            names += _of_family(word)
        elif word in known:
            names.append(word)
        else:
            offer = did_you_mean(word, [*known, *families])
            raise ValueError(f"no instrument or family is called {word!r}: {offer}")
    return tuple(dict.fromkeys(names))


def _of_family(family: str) -> list[str]:
    names = [
        entry.name
        for entry in index.entries()
        if entry.family == family and entry.reads not in NOT_OF_ONE_NETWORK
    ]
    if not names:
        raise ValueError(
            f"the family {family!r} has no instrument that measures one network and its data: "
            f"name one of it, see inscape list {family}."
        )
    return names
