"""One table or figure on the page of a paper: what the template needs to show it."""

import base64
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from inscape.figures import rendered
from inscape.figures.style import styled
from inscape.lab.catalogue import experiment as experiment_of
from inscape.lab.catalogue import name_of, source
from inscape.lab.experiment import Estimate, Experiment, Value
from inscape.lab.experiment_outcome import ExperimentOutcome, changed_claims
from inscape.lab.provenance import NOT_RECORDED
from inscape.lab.verdict import VERDICTS, Judgement
from inscape.report.html import csv_text
from inscape.report.paper.claims import claim, claims, formula, interval
from inscape.report.paper.table import NOT_COMPARED, PaperTable, beyond, tables
from inscape.report.pictures import inline
from inscape.report.words import listed, number, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is said of each record's making, in this order.
VERSIONS = ("inscape", "torch", "numpy", "python", "device", "dtype", "threads")
#: What newer records keep beyond that; of older ones it is said that they do not.
MADE_BY = ("commit", "processor", "blas", "code")

#: So many commits or processors are named; of more the number is.
SEVERAL = 3

#: So wide is an inch of a figure on the page: its letters are those of the text around it.
REM_PER_INCH = 7.8


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table or figure: words of the paper, our numbers, and how to get them again."""

    item: str
    kicker: str
    title: str
    outcome: ExperimentOutcome | None = None
    scale: str = ""
    state: str = ""
    tally: tuple[tuple[str, int], ...] = ()
    tables: tuple[PaperTable, ...] = ()
    beyond: Mapping[str, Sequence[tuple[str, str, str]]] = field(default_factory=dict)
    values: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()
    other_scales: tuple[Mapping[str, Any], ...] = ()
    conclusions: tuple[str, ...] = ()
    figure: Markup | None = None
    drawn: str = ""
    caption: str = ""
    departures: tuple[str, ...] = ()
    errata: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    csv: str = ""
    name: str = ""
    pending: bool = False


def _capital(text: str) -> str:
    """Return a text with a capital at its head, and the others as they were: Figure A.1."""
    return text[:1].upper() + text[1:]


def untouched(entry: Mapping[str, Any]) -> Section:
    """Return the section of an entry of the paper that no experiment is about."""
    return Section(
        item=entry["id"],
        kicker=kicker(entry),
        title=entry["title"],
        pending=True,
    )


def section(
    outcome: ExperimentOutcome,
    entry: Mapping[str, Any],
    errata: Mapping[str, Any],
    most: int | None,
    typed: str = "",
) -> Section:
    """Return the section of an experiment.

    Args:
        outcome: What is known about it.
        entry: What the paper's list of results says about it; may be empty.
        errata: All errata of the paper by identifier.
        most: Bytes above which a figure is shown as pixels; None leaves it undrawn.
        typed: The command that made the records, where it was not the plain one.
    """
    experiment, item = outcome.experiment, name_of(outcome.id).partition("/")[2]
    runs = experiment_of(source(outcome.id))
    shown = claims(outcome, entry)
    paper_tables, alone = tables(shown, entry, runs)
    judged = [row for row in shown if row["verdict"] != NOT_COMPARED]
    single = [row for row in judged if row["at"] == ("", "") or row in alone]
    concluded = outcome.conclusions if outcome.scale != "smoke" else ()
    published_finding = entry.get("finding", "")
    return Section(
        item=item,
        kicker=kicker(entry) if entry else experiment.shows,
        title=experiment.title or entry.get("title", ""),
        outcome=outcome,
        scale=outcome.label,
        state=state(outcome),
        tally=_tally(outcome.counted),
        tables=paper_tables,
        beyond=_beyond(outcome, paper_tables),
        values=tuple(row for row in judged if row not in single),
        claims=tuple(single),
        figure=None
        if most is None
        else drawn(
            outcome, f"{experiment.shows}: {experiment.title}. {published_finding}".strip(), most
        ),
        drawn=_how_drawn(outcome, entry),
        caption=_caption(concluded if experiment.same_as else (), published_finding),
        conclusions=() if experiment.same_as else concluded,
        other_scales=tuple(claim(judgement) for judgement in outcome.at_other_scales),
        departures=departures(outcome, runs),
        errata=tuple(_readable(errata[name]) for name in experiment.errata if name in errata),
        notes=tuple(map(formula, experiment.notes)),
        facts=facts(outcome),
        command=typed or command(outcome),
        csv=base64.b64encode(csv_text(csv_rows(outcome)).encode()).decode(),
        name=name_of(outcome.id).replace("/", "-"),
    )


def departures(outcome: ExperimentOutcome, runs: Experiment) -> tuple[str, ...]:
    """Return how the settings differ from the paper's: those of the records that are shown."""
    if outcome.scale is None:
        return ()
    own, published = (
        experiment.departures.get(outcome.scale, ()) for experiment in (outcome.experiment, runs)
    )
    return tuple(dict.fromkeys((*own, *published)))


def _readable(erratum: Mapping[str, Any]) -> dict[str, Any]:
    return {key: formula(text) for key, text in erratum.items() if isinstance(text, str)}


def _how_drawn(outcome: ExperimentOutcome, entry: Mapping[str, Any]) -> str:
    """Say where a figure is from; only what the paper shows can be drawn again."""
    records = f"from our records{f' at scale {outcome.scale}' if outcome.scale else ''}"
    if entry.get("kind") == "figure":
        return f"Redrawn {records}."
    return f"Drawn {records}; the paper has no such figure."


def _caption(concluded: Sequence[str], published_finding: str) -> Markup:
    """Return what a figure of other records shows of them, and what the paper says of it."""
    sentences = [*concluded, *([f"The paper: {published_finding}"] if published_finding else [])]
    return Markup(" ").join(map(formula, sentences))


def _beyond(
    outcome: ExperimentOutcome, paper_tables: Sequence[PaperTable]
) -> dict[str, tuple[tuple[str, str, str], ...]]:
    """Return quantities that no claim is about, kind by kind, as words."""
    quantities = {claim.of for claim in outcome.experiment.claims}
    main = [table for table in paper_tables if not table.title]
    return {
        kind: tuple((name, number(ours.value, 3), interval(ours)) for name, ours in entries)
        for kind, entries in beyond(main, outcome.quantities, quantities).items()
    }


def kicker(entry: Mapping[str, Any]) -> str:
    """Return the place of an entry in the paper: ``Table 4.2, section 4.3.2``."""
    name = _capital(str(entry["id"]).replace("-", " "))
    place = str(entry.get("section", ""))
    if not place:
        return name
    return f"{name}, section {place}" if place[0].isdigit() else f"{name}, {place}"


def state(outcome: ExperimentOutcome) -> str:
    """Say which records are shown, or what is missing for a verdict."""
    partly = {name: (a, b) for name, (a, b) in outcome.cells.items() if 0 < a < b}
    begun = listed([f"{a:,} of {b:,} cells at scale {name}" for name, (a, b) in partly.items()])
    if outcome.scale is None:
        why = next((judgement.reason for judgement in outcome.judgements), "")
        return f"Not run yet: {why}" if why else f"Not run yet{f': only {begun}' if begun else ''}."
    count = len(outcome.records)
    words = f"All {count:,} cells" if count > 1 else "The one cell"
    sentence = f"{words} of scale {outcome.scale}"
    if outcome.label != outcome.scale:
        sentence += ", whose settings are the paper's own"
    if outcome.changed:
        return f"{sentence}, with changed settings: {listed(outcome.changed)}. No verdict."
    if outcome.scale == "smoke":
        return f"{sentence}: they only show that the code runs. No verdict."
    others = [n for n, (a, b) in outcome.cells.items() if n != outcome.scale and a == b > 0]
    if also := [name for name in others if name != "smoke"]:
        sentence += f", the largest that is complete ({listed(also)} is there, too)"
    return f"{sentence}; {begun} so far." if begun else f"{sentence}."


def drawn(outcome: ExperimentOutcome, label: str, most: int) -> Markup | None:
    """Return the figure of an experiment, drawn from its records; as pixels if it is large."""
    figure, svg = _drawing(outcome)
    if figure is None:
        return None
    if len(svg) <= most:
        picture = Markup(inline(svg, prefix=name_of(outcome.id).replace("/", "-"), label=label))
    else:
        picture = Markup('<img class="plot pixels" alt="{}" src="data:image/png;base64,{}">')
        picture = picture.format(label, base64.b64encode(_pixels(outcome)).decode())
    width = figure.get_figwidth() * REM_PER_INCH
    return Markup('<div style="max-width:{}rem">{}</div>').format(f"{width:.1f}", picture)


@lru_cache(maxsize=256)
def _drawing(outcome: ExperimentOutcome) -> tuple["Figure | None", str]:
    """Return the figure of an outcome and its SVG: a page that becomes too large asks again."""
    with styled():
        figure = outcome.figure()
        if figure is None:
            return None, ""
        if figure.get_layout_engine() is None:  # labels must not be cut off
            figure.set_layout_engine("constrained")
    return figure, rendered(figure.axes[0]).decode()


@lru_cache(maxsize=256)
def _pixels(outcome: ExperimentOutcome) -> bytes:
    figure, _ = _drawing(outcome)
    assert figure is not None  # it was drawn before
    content = io.BytesIO()
    with styled():
        figure.savefig(content, format="png", dpi=110, transparent=False, metadata=_UNDATED)
    return content.getvalue()


def forget_drawings() -> None:
    """Let go of the figures that were drawn for a page."""
    _drawing.cache_clear()
    _pixels.cache_clear()


_UNDATED = {"Software": None}


def facts(outcome: ExperimentOutcome) -> dict[str, str]:
    """Return how the records were made."""
    if not outcome.records:
        return {}
    departures: dict[str, list[str]] = {
        name: sorted({str(r.provenance[name]) for r in outcome.records if name in r.provenance})
        for name in VERSIONS
    }
    known = {
        "scale": outcome.scale or "",
        "records": f"{len(outcome.records):,}",
        "time": f"{seconds(outcome.seconds)} in all cells together",
        **{name: listed(versions) for name, versions in departures.items() if versions},
    }
    for name in MADE_BY:
        words = {str(r.provenance.get(name, NOT_RECORDED)) for r in outcome.records}
        known[name] = listed(sorted(words)) if len(words) <= SEVERAL else f"{len(words)} different"
    if (owner := name_of(source(outcome.id))) != name_of(outcome.id):
        known["runs of"] = owner
    if other := changed_claims(outcome.id, outcome.records):
        known["claims"] = "; ".join(
            f"{count:,} records were made under another text of {name!r}"
            for name, count in sorted(other.items())
        )
    return known


def command(outcome: ExperimentOutcome) -> str:
    """Return what to type to run an experiment again."""
    command = f"inscape reproduce {outcome.id} --scale {outcome.scale or 'laptop'}"
    return outcome.command or command


def csv_rows(outcome: ExperimentOutcome) -> list[dict[str, Any]]:
    """Return every quantity with its interval, as it is judged, and the claims about it."""
    about: dict[str, list[Judgement | None]] = {name: [] for name in outcome.quantities}
    for judgement in outcome.judgements:
        about.setdefault(judgement.claim.of, []).append(judgement)
    return [
        {
            "quantity": name,
            **_numbers(judgement.ours if judgement and judgement.ours else ours),
            **_published(judgement),
        }
        for name, ours in outcome.quantities.items()
        for judgement in about[name] or [None]
    ]


def _numbers(ours: Estimate) -> dict[str, Any]:
    names = ("value", "low", "high", "se", "n", "exact", "method")
    return {name: getattr(ours, name) for name in names}


def _published(judgement: Judgement | None) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(
        ("claim", "origin", "published", "published_se", "verdict", "same_trend"), ""
    )
    if judgement is None:
        return empty
    known = {
        **empty,
        "claim": judgement.claim.name,
        "origin": judgement.claim.origin,
        "verdict": judgement.verdict,
        "same_trend": judgement.same_trend,
    }
    if isinstance(judgement.claim, Value):
        known["published"] = judgement.claim.published
        known["published_se"] = judgement.claim.published_se
    return known


def _tally(judgements: Sequence[Judgement]) -> tuple[tuple[str, int], ...]:
    """Return how often each verdict was given, in the order of all pages."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return tuple((verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict])
