"""The page of a paper: every table and figure beside ours, made from records alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inscape import __version__
from inscape.lab.catalogue import experiments, name_of, paper_facts, papers
from inscape.lab.experiment import ScaleName
from inscape.lab.findings import Finding, find
from inscape.lab.store import Store
from inscape.lab.verdict import RULE, VERDICTS, Judgement
from inscape.report.page import LIMIT, environment, stylesheet, write
from inscape.report.paper_section import Section, section, untouched
from inscape.report.words import listed

#: A figure with more bytes than this is shown as pixels; less if the page would be too large.
FIGURES = (250_000, 60_000, 0)


def paper_page(paper: str, store: Store, scale: ScaleName | None = None) -> str:
    """Return the page of a paper as one HTML file that needs nothing else.

    Args:
        paper: Name of the paper, e.g. ``"volhejn"``.
        store: Where the records are.
        scale: The scale to show; by default the largest that has all of its cells, for each
            experiment on its own.
    """
    found = [find(listing.id, store, scale) for listing in experiments(paper)]
    return page_of(paper, found, command=f"inscape reproduce {paper}", whole=True)


def page_of(paper: str, found: Sequence[Finding], *, command: str, whole: bool = False) -> str:
    """Return a page about some findings.

    Args:
        paper: Name of the paper.
        found: What is known about each experiment.
        command: What to type to repeat it all.
        whole: Whether entries of the paper without an experiment are shown, too.
    """
    facts = paper_facts(paper) if paper in papers() else {}
    judgements = [judgement for finding in found for judgement in finding.here]
    template = environment().get_template("paper.html.j2")
    text = ""
    for most in FIGURES:
        sections, further = _sections(facts, found, most, whole=whole)
        text = template.render(
            facts=citation(paper, facts),
            tally=tally(judgements),
            lead=lead(judgements, found),
            sections=sections,
            further=further,
            rule=RULE,
            command_line=command,
            version=__version__,
            style=stylesheet("style.css", "paper.css"),
        )
        if len(text.encode()) < LIMIT:
            break
    return text


def write_pages(store: Store, out: Path) -> list[Path]:
    """Write the page of every paper, and an index of them, into a folder; return their paths."""
    written = []
    rows = []
    for paper in papers():
        found = [find(listing.id, store) for listing in experiments(paper)]
        judgements = [judgement for finding in found for judgement in finding.here]
        text = page_of(paper, found, command=f"inscape reproduce {paper}", whole=True)
        written.append(out / f"{paper}.html")
        write(written[-1], text.encode())
        rows.append(
            {
                "page": f"{paper}.html",
                "facts": citation(paper, paper_facts(paper)),
                "tally": tally(judgements),
                "lead": lead(judgements, found),
            }
        )
    index = environment().get_template("papers.html.j2")
    style = stylesheet("style.css", "paper.css")
    text = index.render(papers=rows, rule=RULE, version=__version__, style=style)
    write(out / "index.html", text.encode())
    return [out / "index.html", *written]


def citation(paper: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, authors, venue and code of a paper, with nothing for what is not known."""
    code = facts.get("code", {})
    empty = {"title": paper, "authors": (), "venue": "", "repo": "", "commit": ""}
    known = {"repo": code.get("repo") or "", "commit": (code.get("commit") or "")[:7]}
    return {**empty, **known, **facts.get("paper", {})}


def tally(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Return each verdict with how often it was given and its share, in the order of the rule."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return [
        {"verdict": verdict, "count": counts[verdict], "share": counts[verdict] / len(judgements)}
        for verdict in VERDICTS
        if counts[verdict]
    ]


def lead(judgements: Sequence[Judgement], found: Sequence[Finding]) -> str:
    """Say in a sentence or two what became of the claims."""
    if not judgements:
        return "No claim of this paper was written down yet."
    counts = Counter(judgement.verdict for judgement in judgements)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    many = f"{len(judgements)} claim{'s' * (len(judgements) != 1)}"
    scales = [name for name in ("paper", "laptop", "smoke") if any(f.scale == name for f in found)]
    at = f", from records at scale {listed(scales)}" if scales else ""
    return f"Of {many}, {listed(parts)}{at}."


def _sections(
    facts: Mapping[str, Any], found: Sequence[Finding], most: int, *, whole: bool
) -> tuple[list[Section], list[Section]]:
    """Return the sections of the paper's own entries, in its order, and those beyond it."""
    by_item = {name_of(finding.id).partition("/")[2]: finding for finding in found}
    errata = {erratum["id"]: {"verified": "", **erratum} for erratum in facts.get("errata", ())}
    own = []
    for entry in facts.get("entries", ()):
        finding = by_item.pop(entry["id"], None)
        if finding is not None:
            own.append(section(finding, entry, errata, most))
        elif whole:
            own.append(untouched(entry))
    return own, [section(finding, {}, errata, most) for finding in by_item.values()]
