"""The page of a paper: every table and figure beside ours, made from records alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inscape import __version__
from inscape.lab.catalogue import experiments, name_of, paper_facts, papers
from inscape.lab.changed_verdicts import BEFORE, changed_verdicts, read_before
from inscape.lab.experiment import Origin, ScaleName
from inscape.lab.experiment_outcome import ExperimentOutcome, stored_outcome
from inscape.lab.paper_claims import coverage
from inscape.lab.store import Store
from inscape.lab.verdict import RULE, RULE_VERSION, VERDICTS, Judgement, Verdict
from inscape.report.html import LIMIT, rendered_page, stylesheet, write
from inscape.report.paper.section import Section, forget_drawings, section, untouched
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
    outcomes = [stored_outcome(listing.id, store, scale) for listing in experiments(paper)]
    return page_of(paper, outcomes, command=f"inscape reproduce {paper}", complete=True)


def page_of(
    paper: str, outcomes: Sequence[ExperimentOutcome], *, command: str, complete: bool = False
) -> str:
    """Return a page about outcomes of experiments.

    Args:
        paper: Name of the paper.
        outcomes: What is known about each experiment.
        command: What to type to repeat it all.
        complete: Whether entries of the paper without an experiment are shown, too.
    """
    facts = paper_facts(paper) if paper in papers() else {}
    text, covered = "", coverage(paper, not_run(outcomes)) if complete else ""
    for most in FIGURES:
        sections, further = _sections(facts, outcomes, most, typed="" if complete else command)
        text = rendered_page(
            "paper.html.j2",
            facts=citation(paper, facts),
            bars=bars(outcomes),
            lead=f"{lead(outcomes)} {covered}".strip(),
            sections=sections,
            further=further,
            rule=RULE,
            rule_version=RULE_VERSION,
            command_line=command,
            version=__version__,
            style=stylesheet("style.css", "paper.css"),
        )
        if len(text.encode()) < LIMIT:
            break
    forget_drawings()
    return text


def write_pages(store: Store, out: Path, *, verdicts: Path | None = None) -> list[Path]:
    """Write the page of every paper, and an index of them, into a folder; return their paths.

    Args:
        store: Where the records are.
        out: The folder of the pages.
        verdicts: Where to list the verdicts that version 1 of the rule gave otherwise, if wanted.
    """
    written, rows = [], []
    judged: list[ExperimentOutcome] = []
    for paper in papers():
        outcomes = [stored_outcome(listing.id, store) for listing in experiments(paper)]
        judged += outcomes
        text = page_of(paper, outcomes, command=f"inscape reproduce {paper}", complete=True)
        written.append(out / f"{paper}.html")
        write(written[-1], text.encode())
        rows.append(
            {
                "page": f"{paper}.html",
                "facts": citation(paper, paper_facts(paper)),
                "bars": bars(outcomes),
                "lead": lead(outcomes),
            }
        )
    style = stylesheet("style.css", "paper.css")
    text = rendered_page("papers.html.j2", papers=rows, rule=RULE, version=__version__, style=style)
    write(out / "index.html", text.encode())
    if verdicts is not None:
        before = read_before(store.root / BEFORE)
        write(verdicts, changed_verdicts(judged, before).encode())
        written.append(verdicts)
    return [out / "index.html", *written]


def citation(paper: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, authors, venue, code and addresses of a paper, with nothing for the unknown."""
    code = facts.get("code", {})
    repo, commit = code.get("repo") or "", code.get("commit") or ""
    empty = {"title": paper, "authors": (), "venue": "", "url": "", "related": {}}
    address = f"https://github.com/{repo}" + (f"/tree/{commit}" if commit else "")
    known = {"repo": repo, "commit": commit[:7], "code_url": address if repo else ""}
    return {**empty, **known, **facts.get("paper", {})}


def not_run(outcomes: Sequence[ExperimentOutcome]) -> set[str]:
    """Return the claims that were not run, as ``paper/item/claim``."""
    return {
        f"{outcome.id}/{judgement.claim.name}"
        for outcome in outcomes
        for judgement in outcome.judgements
        if judgement.verdict == "not run"
    }


def weakest(judgements: Sequence[Judgement]) -> Verdict:
    """Return the verdict on a whole table or figure: that on its weakest claim."""
    order: tuple[Verdict, ...] = (
        "not reproduced", "inconclusive", "no verdict", "not run", "reproduced"
    )  # fmt: skip
    return min((judgement.verdict for judgement in judgements), key=order.index)


#: What is counted, by whose claim it is.
OF_ORIGIN: Mapping[Origin, str] = {
    "paper": "claim of the paper",
    "raw data": "number of its raw data",
    "ours": "expectation of our own",
}
#: What the bars are called.
BARS = {
    "table or figure": "Tables and figures, each by its weakest claim",
    "claim of the paper": "Claims of the paper, every number of its tables among them",
    "number of its raw data": "Numbers that follow from its raw data",
    "expectation of our own": "Expectations of our own",
}


def counts(outcomes: Sequence[ExperimentOutcome]) -> dict[str, Counter[Verdict]]:
    """Return how often each verdict was given: by item, and by whose claim it is.

    What holds by construction is counted as such among the claims, and not at all in an item.
    """
    counted: dict[str, Counter[Verdict]] = {name: Counter() for name in BARS}
    for outcome in outcomes:
        for judgement in outcome.counted:
            counted[OF_ORIGIN[judgement.claim.origin]][judgement.verdict] += 1
        if own := [
            judgement
            for judgement in outcome.counted
            if judgement.claim.origin != "ours" and judgement.verdict != "by construction"
        ]:
            counted["table or figure"][weakest(own)] += 1
    return {kind: counter for kind, counter in counted.items() if counter}


def bars(outcomes: Sequence[ExperimentOutcome]) -> list[dict[str, Any]]:
    """Return the counts of each verdict: by item, and by whose claim it is."""
    return [
        {
            "label": BARS[kind],
            "tally": [
                {"verdict": verdict, "count": counter[verdict]}
                for verdict in VERDICTS
                if counter[verdict]
            ],
        }
        for kind, counter in counts(outcomes).items()
    ]


def by_chance(outcomes: Sequence[ExperimentOutcome]) -> str:
    """Say how many verdicts may be wrong by chance alone, and what those left open would be."""
    judgements = [judgement for outcome in outcomes for judgement in outcome.counted]
    decided = [judgement for judgement in judgements if judgement.by_chance]
    sentences = []
    if decided:
        expected = sum(judgement.by_chance for judgement in decided)
        sentences.append(
            f"Of {len(decided)} verdicts with an interval at most {expected:.1f} are expected to "
            "be wrong by chance alone."
        )
    if left := Counter(judged.otherwise for judged in judgements if judged.otherwise):
        parts = [f"{left[verdict]} {verdict}" for verdict in VERDICTS if left[verdict]]
        sentences.append(
            f"Where there is no verdict, the numbers alone would give {listed(parts)}."
        )
    return " ".join(sentences)


def lead(outcomes: Sequence[ExperimentOutcome]) -> str:
    """Summarise the verdicts in a few sentences: on the paper's claims, then on our own."""
    counted = counts(outcomes)
    if not counted:
        return "No claim of this paper was written down yet."
    clauses = []
    if items := counted.pop("table or figure", None):
        reproduced = items["reproduced"]
        many = (
            f"{items.total()} {'table or figure' if items.total() == 1 else 'tables and figures'}"
        )
        clauses.append(
            f"{reproduced} of {many} with claims {'has' if reproduced == 1 else 'have'} "
            "all of them reproduced."
        )
    for kind, counter in counted.items():
        parts = [f"{counter[verdict]} {verdict}" for verdict in VERDICTS if counter[verdict]]
        many = kind if counter.total() == 1 else kind.replace(" of ", "s of ", 1)
        clauses.append(f"Of {counter.total()} {many}: {listed(parts)}.")
    scales = [name for name in ("paper", "laptop", "smoke") if name in {f.label for f in outcomes}]
    if scales:
        clauses.append(f"From records at scale {listed(scales)}.")
    clauses += [sentence] if (sentence := by_chance(outcomes)) else []
    return " ".join(clauses)


def _sections(
    facts: Mapping[str, Any], outcomes: Sequence[ExperimentOutcome], most: int, *, typed: str
) -> tuple[list[Section], list[Section]]:
    """Return the sections of the paper's own entries, in its order, and those beyond it."""
    by_item = {name_of(outcome.id).partition("/")[2]: outcome for outcome in outcomes}
    errata = {erratum["id"]: {"verified": "", **erratum} for erratum in facts.get("errata", ())}
    own = []
    for entry in facts.get("entries", ()):
        outcome = by_item.pop(entry["id"], None)
        if outcome is not None:
            own.append(section(outcome, entry, errata, most, typed))
        elif not typed:
            own.append(untouched(entry))
    return own, [section(outcome, {}, errata, most, typed) for outcome in by_item.values()]
