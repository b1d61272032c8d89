"""Records that were made under other claims than today's: a claim is not changed after its run."""

from collections.abc import Mapping
from dataclasses import dataclass

from inscape.lab import catalogue
from inscape.lab.store import Record, Store

#: So many claims are named; the rest is counted.
NAMED = 5


@dataclass(frozen=True, kw_only=True)
class StaleRecord:
    """A record that was made under other claims than today's, and which they are.

    Attributes:
        experiment: Name of the experiment in the store.
        scale: Its scale.
        key: Its key.
        reason: What differs, in the middle of a sentence.
    """

    experiment: str
    scale: str
    key: str
    reason: str


def stale_records(store: Store) -> list[StaleRecord]:
    """Return the records whose claims were changed, added or dropped after the run.

    Records of files of one's own are left out: nothing says where those files are.
    """
    known = {listing.id for listing in catalogue.experiments()}
    today: dict[str, dict[str, str]] = {}
    records = []
    for name, scale, key in store.places():
        record = store.read(name, scale, key)
        if name.startswith(catalogue.OWN):
            continue
        if name not in known:
            reason = f"no experiment is called {name}"
            records.append(StaleRecord(experiment=name, scale=scale, key=key, reason=reason))
            continue
        if name not in today:
            today[name] = catalogue.claim_hashes(name)
        if record is not None and (reason := difference(record, today[name])):
            records.append(StaleRecord(experiment=name, scale=scale, key=key, reason=reason))
    return records


def difference(record: Record, today: Mapping[str, str]) -> str:
    """Return which claims of a record are not today's, in the middle of a sentence.

    Args:
        record: The record, which knows the hash of each claim when it was made.
        today: The hash of each claim of its experiment now.
    """
    then = record.claims
    changed = [name for name in then if name in today and then[name] != today[name]]
    parts = {
        "changed": changed,
        "added": [name for name in today if name not in then],
        "dropped": [name for name in then if name not in today],
    }
    return "; ".join(
        f"claim {_names(names)} {change} after the run" for change, names in parts.items() if names
    )


def _names(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
