"""Printed numbers, looked up in the ``published.json`` of a paper and never typed twice."""

import json
from functools import cache
from typing import Any

from inscape.index import PAPERS


@cache
def _entries(paper: str) -> dict[str, Any]:
    text = (PAPERS / paper / "published.json").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in json.loads(text)["entries"]}


def entry(paper: str, name: str) -> dict[str, Any]:
    """Return what is known of one table or figure, such as its printed numbers.

    Args:
        paper: Key of the paper, such as ``volhejn``.
        name: The table or figure, such as ``figure-2.1``.

    >>> entry("sattelberg", "figure-7.9")["target_original_accuracy"][0]
    25.43
    """
    entries = _entries(paper)
    if name not in entries:
        raise ValueError(
            f"published.json of {paper} has no entry {name!r}: it has {', '.join(entries)}."
        )
    return dict(entries[name])


def printed(paper: str, entry: str) -> list[dict[str, Any]]:
    """Return the rows of a printed table, each by the names of its columns.

    Args:
        paper: Key of the paper, such as ``volhejn``.
        entry: The table, such as ``table-4.1``.

    >>> printed("volhejn", "table-4.1")[0]["nn_mean"]
    0.72
    """
    table = _entries(paper).get(entry, {})
    if "rows" not in table:
        raise ValueError(
            f"published.json of {paper} has no table {entry!r}: enter its columns and rows there."
        )
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
