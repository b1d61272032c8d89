"""Which instruments a sweep takes: by name, or by family."""

from collections.abc import Sequence
from difflib import get_close_matches

from inscape._core import Instrument, instruments
from inscape.report.words import listed

#: What an instrument may read to be measured on one model and its data.
READS = ("function", "parameters", "data")


def words(only: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the single words of a selection, which commas may separate.

    >>> words(["smoothness,regions", "robustness"])
    ('smoothness', 'regions', 'robustness')
    """
    parts = [only] if isinstance(only, str) else list(only or ())
    split = (word.strip() for part in parts for word in part.split(","))
    return tuple(dict.fromkeys(word for word in split if word))


def selected(only: str | Sequence[str] | None) -> dict[str, Instrument]:
    """Return the instruments of a selection, by name.

    A family stands for those of its instruments that a look takes by default, or for all where it
    takes none; no selection stands for the defaults of all families.
    """
    chosen = words(only)
    known = {
        name: instrument for name, instrument in instruments().items() if instrument.reads in READS
    }
    _refuse_unknown(chosen, known)
    if not chosen:
        return {name: instrument for name, instrument in known.items() if instrument.by_default}
    names = set(chosen)
    for family in {instrument.family for instrument in known.values()} & names:
        members = [instrument for instrument in known.values() if instrument.family == family]
        usual = [instrument.name for instrument in members if instrument.by_default]
        names |= set(usual or [instrument.name for instrument in members])
    return {name: instrument for name, instrument in known.items() if name in names}


def _refuse_unknown(chosen: Sequence[str], known: dict[str, Instrument]) -> None:
    """Refuse what is neither an instrument nor a family, or cannot be measured on one model."""
    families = list(dict.fromkeys(instrument.family for instrument in known.values()))
    others = {
        name: instrument.reads for name, instrument in instruments().items() if name not in known
    }
    for name in chosen:
        if name in others:
            needs = {"trajectory": "a recorded training", "pair": "two networks"}[others[name]]
            raise ValueError(
                f"only must name instruments that measure one model on data, found {name!r}, which "
                f"needs {needs}: leave it out."
            )
        if name not in known and name not in families:
            near = get_close_matches(name.lower(), [*families, *known], n=3, cutoff=0.5)
            offer = f"did you mean {' or '.join(near)}?"
            raise ValueError(
                f"only must name instruments or families, found {name!r}: "
                f"{offer if near else f'the families are {listed(families)}.'}"
            )
