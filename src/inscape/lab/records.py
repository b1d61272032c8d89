"""Records, which can be filtered and grouped: ``records.where(kind="network").by("seed")``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: How a store writes records down.
SCHEMA = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """What one cell gave.

    Attributes:
        experiment: Name of the experiment whose cell it is, ``paper/item``.
        scale: Scale under which it was run.
        key: ``cell_key`` of name, settings, version and data.
        settings: Settings of the cell.
        data: Hash of the data that it read.
        values: What the cell gave: plain values and NumPy arrays.
        claims: Hash of each claim of the experiment when the cell was run.
        provenance: Versions, device, dtype, threads, seconds, start, warnings.
        version: Schema of the experiment: what its numbers mean.
        schema: Schema of the store: how they are written down.
    """

    experiment: str
    scale: str
    key: str
    settings: Mapping[str, Any]
    data: str
    values: Mapping[str, Any]
    claims: Mapping[str, str]
    provenance: Mapping[str, Any]
    version: int = 1
    schema: int = SCHEMA


#: What is read of a record: a value or a setting by its name, or what a function makes of it.
Of = str | Callable[[Record], Any]


class Records(tuple[Record, ...]):
    """Records of one experiment, in the order of its cells."""

    __slots__ = ()

    def where(self, keep: Callable[[Record], bool] | None = None, /, **settings: Any) -> "Records":
        """Return the records that have these settings, and that ``keep`` approves of.

        Args:
            keep: Tells whether a record is kept.
            settings: What each setting must be.
        """
        return Records(
            record
            for record in self
            if all(record.settings[name] == value for name, value in settings.items())
            and (keep is None or keep(record))
        )

    def by(self, *names: str) -> dict[Any, "Records"]:
        """Return the records of each value of a setting, or of several, in the order met.

        The keys are the values, or tuples of them where several settings are named.
        """
        groups: dict[Any, list[Record]] = {}
        for record in self:
            key = tuple(record.settings[name] for name in names)
            groups.setdefault(key if len(names) > 1 else key[0], []).append(record)
        return {key: Records(group) for key, group in groups.items()}

    def different(self, name: str) -> list[Any]:
        """Return the values that a setting takes, in rising order."""
        return sorted({record.settings[name] for record in self})

    def values(self, of: Of) -> list[Any]:
        """Return one value of each record, without those that have none."""
        return [value for record in self if (value := read(record, of)) is not None]

    def column(self, of: Of, unit: str = "seed") -> dict[Any, Any]:
        """Return one value of each record by a setting that no two records share.

        Args:
            of: What is read of a record.
            unit: The setting, such as the seed of a network; keys come in rising order.
        """
        values: dict[Any, Any] = {}
        for record in sorted(self, key=lambda record: record.settings[unit]):
            key = record.settings[unit]
            if key in values:
                raise ValueError(
                    f"column needs one record for each {unit}, found several of {unit} {key!r}: "
                    "filter them with where() first."
                )
            values[key] = read(record, of)
        return {key: value for key, value in values.items() if value is not None}

    def first(self, of: str) -> Record | None:
        """Return the first record that holds a value of this name, such as a picture."""
        return next((record for record in self if of in record.values), None)


def read(record: Record, of: Of) -> Any:
    """Return a value of a record, else the setting of that name, or None where it has neither."""
    if callable(of):
        return of(record)
    return record.values[of] if of in record.values else record.settings.get(of)


def in_view(records: Iterable[Record]) -> Records:
    """Return records that can be filtered."""
    return records if isinstance(records, Records) else Records(records)
