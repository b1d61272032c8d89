"""Records that were made under other claims than today's: a claim is not changed after its run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from inscape.lab import catalogue
from inscape.lab.cell_code import cell_code_hash
from inscape.lab.provenance import NOT_RECORDED
from inscape.lab.store import Record, Store

#: Where rewrites of code are proven, beside the records.
REWRITES = "rewrites.json"
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
    code: dict[str, str] = {}
    later: dict[str, frozenset[str]] = {}
    proven = rewrites(store)
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
            code[name] = cell_code_hash(catalogue.experiment(name))
            later[name] = catalogue.later_claims(name)
        if record is None:
            continue
        reasons = [
            difference(record, today[name], later[name]),
            other_code(record, code[name], proven),
        ]
        if reason := "; ".join(filter(None, reasons)):
            records.append(StaleRecord(experiment=name, scale=scale, key=key, reason=reason))
    return records


def rewrites(store: Store) -> Mapping[str, str]:
    """Return the hashes of code that was rewritten without moving a number, and what by.

    ``rewrites.json`` beside the records has a row for each, with the cells that were rerun. Older
    records do not say their code: what repeated them is kept by the name of their experiment.
    """
    path = store.root / REWRITES
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {
        row["experiment"] if row["before"] == NOT_RECORDED else row["before"]: row["after"]
        for row in rows
    }


def made_by(record: Record) -> str:
    """Return the hash of the code that made a record, where it says it."""
    return str(record.provenance.get("code") or NOT_RECORDED)


def other_code(record: Record, today: str, proven: Mapping[str, str]) -> str:
    """Return that a record was made by other code than today's, if it was and says so.

    Args:
        record: The record; an older one says nothing, and counts as made by what repeated it.
        today: Hash of the code of its cell now.
        proven: Rewrites that were shown to move no number, from before to after.
    """
    code = made_by(record)
    if code == NOT_RECORDED:
        code = proven.get(record.experiment, "")
    passed: set[str] = set()
    while code != today and code in proven and code not in passed:
        passed.add(code)
        code = proven[code]
    return "made by other code than today's" if code and code != today else ""


def difference(
    record: Record, today: Mapping[str, str], later: frozenset[str] = frozenset()
) -> str:
    """Return which claims of a record are not today's, in the middle of a sentence.

    Args:
        record: The record, which knows the hash of each claim when it was made.
        today: The hash of each claim of its experiment now.
        later: Claims that say themselves that they were written after the records.
    """
    then = record.claims
    changed = [name for name in then if name in today and then[name] != today[name]]
    parts = {
        "changed": changed,
        "added": [name for name in today if name not in then and name not in later],
        "dropped": [name for name in then if name not in today],
    }
    return "; ".join(
        f"claim {_names(names)} {change} after the run" for change, names in parts.items() if names
    )


def _names(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
