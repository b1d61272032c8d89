"""The pages of the papers: each table and figure beside ours, drawn from records when asked."""

import html
import re
from collections import OrderedDict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from inscape.explorer.requests import AnyRequest, FigureFormat
from inscape.explorer.wire import Array
from inscape.figures import rendered
from inscape.figures.style import BLUE, FAINT, INK, PAPER, RULE, styled
from inscape.lab.catalogue import experiments, paper_facts, papers
from inscape.lab.experiment_outcome import ExperimentOutcome, stored_outcome
from inscape.lab.store import Store
from inscape.report.paper.section import kicker, section

#: Outcomes that are kept ready.
KEPT = 24
#: Bytes above which a figure is not sent.
LARGEST = 8_000_000
#: Colours of figures on dark paper.
DARK = {INK: "#eceae6", FAINT: "#9fa3a9", RULE: "#36393e", PAPER: "#131416", BLUE: "#56B4E9"}

Facts = dict[str, Any]
Answer = Generator[None, None, tuple[Facts, dict[str, Array]]]
Name = Annotated[str, Field(max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9.\-]*$")]


class PaperRequest(AnyRequest):
    """A paper by its name."""

    paper: Name


class ItemRequest(PaperRequest):
    """A table or figure of a paper."""

    item: Name


class PaperFigureRequest(ItemRequest):
    """The figure of an experiment; as SVG for light or dark paper."""

    dark: bool = False
    format: FigureFormat = "svg"


class PaperPages:
    """Reads outcomes of experiments from a folder of records; computes and writes nothing."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._outcomes: OrderedDict[str, ExperimentOutcome] = OrderedDict()

    def about(self) -> Facts:
        """Return the papers, and whether there are records."""
        return {
            "papers": [
                {"name": name, "title": paper_facts(name).get("paper", {}).get("title", name)}
                for name in papers()
            ],
            "records": self.results.is_dir(),
        }

    def paper(self, query: PaperRequest) -> Answer:
        """Answer with the entries of a paper: those with an experiment, and those without."""
        yield
        facts = self._facts_of(query.paper)
        entries = {entry["id"]: entry for entry in facts.get("entries", ())}
        listed = {listing.id.partition("/")[2]: listing for listing in experiments(query.paper)}
        items = [
            {"item": name, "kicker": kicker(entry), "title": entry["title"],
             "run": name in listed, "finding": entry.get("finding", "")}
            for name, entry in entries.items()
        ]  # fmt: skip
        items += [
            {"item": name, "kicker": name.replace("-", " ").capitalize(), "title": listing.title,
             "run": True, "finding": ""}
            for name, listing in listed.items() if name not in entries
        ]  # fmt: skip
        paper = facts.get("paper", {})
        return {
            "paper": query.paper,
            "title": paper.get("title", query.paper),
            "authors": list(paper.get("authors", ())),
            "venue": paper.get("venue", ""),
            "items": items,
        }, {}

    def item(self, query: ItemRequest) -> Answer:
        """Answer with the section of a table or figure: state, verdicts, numbers, claims."""
        outcome = yield from self._outcome(query)
        facts = self._facts_of(query.paper)
        entries = {entry["id"]: entry for entry in facts.get("entries", ())}
        entry: Mapping[str, Any] = entries.get(query.item, {})
        errata = {erratum["id"]: {"verified": "", **erratum} for erratum in facts.get("errata", ())}
        yield
        part = section(outcome, entry, errata, None)
        return {
            "item": query.item,
            "kicker": part.kicker,
            "title": part.title,
            "state": part.state,
            "scale": part.scale,
            "tally": [list(pair) for pair in part.tally],
            "tables": [_table(table) for table in part.tables],
            "claims": [_claim(claim) for claim in part.claims],
            "values": [_claim(claim) for claim in part.values],
            "conclusions": [_text(line) for line in part.conclusions],
            "departures": [_text(line) for line in part.departures],
            "notes": [_text(line) for line in part.notes],
            "caption": _text(part.caption),
            "drawn": part.drawn,
            "command": part.command,
            "facts": dict(part.facts),
            "hasFigure": outcome.scale is not None,
        }, {}

    def figure(self, query: PaperFigureRequest) -> Answer:
        """Answer with the figure of an experiment, drawn from its records now."""
        outcome = yield from self._outcome(query)
        with styled():
            figure = outcome.figure()
            if figure is None:
                return {"drawn": False}, {}
            if figure.get_layout_engine() is None:
                figure.set_layout_engine("constrained")
            data = rendered(figure.axes[0], f".{query.format}")
        if query.dark and query.format == "svg":
            data = on_dark_paper(data.decode()).encode()
        if len(data) > LARGEST:
            return {"drawn": False}, {}
        return {"drawn": True}, {"file": np.frombuffer(data, np.uint8)}

    def _facts_of(self, paper: str) -> Mapping[str, Any]:
        if paper not in papers():
            raise ValueError(
                f"a paper must be one of {', '.join(papers())}, found {paper}: choose one of these."
            )
        return paper_facts(paper)

    def _outcome(self, query: ItemRequest) -> Generator[None, None, ExperimentOutcome]:
        """Return the outcome of an item; only names in the catalogue are looked up."""
        self._facts_of(query.paper)
        known = [listing.id for listing in experiments(query.paper)]
        name = f"{query.paper}/{query.item}"
        if name not in known:
            raise ValueError(f"no experiment is called {name}: choose one of the paper's page.")
        outcome = self._outcomes.get(name)
        if outcome is None:
            yield
            outcome = stored_outcome(name, Store(self.results, mends=False))
            self._outcomes[name] = outcome
            while len(self._outcomes) > KEPT:
                self._outcomes.popitem(last=False)
        yield
        return outcome


def on_dark_paper(svg: str) -> str:
    """Return a figure in the colours of dark paper; letters without a colour are light."""
    drawn = re.sub("|".join(DARK), lambda m: DARK[m[0].upper()], svg, flags=re.IGNORECASE)
    return drawn.replace("<defs>", f"<defs><style>text{{fill:{DARK[INK]}}}</style>", 1)


def _table(table: Any) -> Facts:
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [
            {"name": row, "cells": [_cell(table.cells.get((row, name))) for name in table.columns]}
            for row in table.rows
        ],
        "notes": [_text(note) for note in table.notes],
    }


def _cell(cell: Mapping[str, Any] | None) -> Facts | None:
    if cell is None:
        return None
    if "given" in cell:
        return {"given": str(cell["given"])}
    return {
        "ours": str(cell.get("ours", "")),
        "interval": _text(cell.get("interval", "")),
        "published": str(cell.get("corrected") or cell.get("published", "")),
        "verdict": str(cell.get("verdict", "")),
    }


def _claim(claim: Mapping[str, Any]) -> Facts:
    return {
        "says": _text(claim["says"]),
        "verdict": str(claim["verdict"]),
        "ours": str(claim.get("ours", "")),
        "interval": _text(claim.get("interval", "")),
        "published": str(claim.get("published", "")),
        "reason": _text(claim.get("reason", "")),
    }


def _text(text: object) -> str:
    """Return a text without markup: a formula as it was written."""
    spelled = re.sub(r'<svg[^>]*aria-label="([^"]*)".*?</svg>', r"\1", str(text), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", spelled))
