"""The claims of a paper as it makes them, and which claims in code stand for each.

``published.json`` lists them by entry: each has an id ``paper/entry/number``, numbered through the
paper, and either the claims that judge it (``paper/item/claim``) or the reason why none does.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from inscape.index import PAPERS

#: A reason that stands until an experiment is built.
NOT_BUILT = "not built yet"


@dataclass(frozen=True, kw_only=True)
class PublishedClaim:
    """A claim as the paper makes it.

    Attributes:
        id: ``paper/entry/number``, the number in the order of the paper's file, from 1.
        says: The claim in one sentence, with its section.
        judged_by: The claims in code that stand for it, as ``paper/item/claim``.
        reason: Why there is none.
        missing: What of it they leave out.
    """

    id: str
    says: str
    judged_by: tuple[str, ...] = ()
    reason: str = ""
    missing: str = ""


def papers_with_claims() -> list[str]:
    """Return the papers whose claims are listed, those without an experiment among them."""
    return sorted(path.parent.name for path in PAPERS.glob("[a-z]*/published.json"))


def published_claims(paper: str) -> Iterator[PublishedClaim]:
    """Yield the claims of a paper, in the order of its file.

    Args:
        paper: Name of the paper.
    """
    path: Path = PAPERS / paper / "published.json"
    facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for entry in facts.get("entries", ()):
        for row in entry.get("claims", ()):
            yield PublishedClaim(**{**row, "judged_by": tuple(row.get("judged_by", ()))})


def coverage(paper: str, not_run: Collection[str] = ()) -> str:
    """Say how many claims of a paper are judged here, and why the others are not.

    Args:
        paper: Name of the paper.
        not_run: The claims in code that no record was judged by, as ``paper/item/claim``.
    """
    claims = list(published_claims(paper))
    if not claims:
        return ""
    waiting = [c for c in claims if c.judged_by and set(c.judged_by) <= set(not_run)]
    judged = sum(bool(claim.judged_by) for claim in claims) - len(waiting)
    sentence = f"Of its {len(claims)} claims in words {judged} are judged here"
    if parts := sum(bool(claim.missing) for claim in claims if claim not in waiting):
        sentence += f", {parts} of them in part"
    reasons = {"not run yet": len(waiting)} if waiting else {}
    for claim in claims:
        if claim.reason:
            reasons[claim.reason] = reasons.get(claim.reason, 0) + 1
    others = "".join(f"; {count} {reason}" for reason, count in reasons.items())
    return f"{sentence}{others}."
