"""The page of a look: one HTML file that needs no other, or the same as JSON."""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from inscape import escaping
from inscape._core import NotApplicable, Row
from inscape.extrapolation import Extrapolation
from inscape.figures import caption, draw, has_figure
from inscape.figures.slices import name_examples
from inscape.piecewise.planes.slices import SlicePicture
from inscape.regions.boundary import Boundary
from inscape.regions.plane_regions import PlaneRegions
from inscape.report.html import LIMIT, csv_text, rendered_page, stylesheet, table, write_by_suffix
from inscape.report.look.attribution import Attribution
from inscape.report.look.attribution_page import attribution_part
from inscape.report.look.directions import by_question, direction, question
from inscape.report.look.finding import CALM
from inscape.report.look.look import Look, settings
from inscape.report.look.parts import Measured
from inscape.report.look.reference_scale import SHORT, scale
from inscape.report.look.sentences import definition, introduction
from inscape.report.look.slice_section import same_plane, slice_section
from inscape.report.pictures import drawn, figure
from inscape.report.sources import citation
from inscape.report.words import plain

#: Rows of data inside the page for each instrument; fewer if the page would be too large.
ROWS = (2000, 500, 100)
#: Where points lie that are asked about.
IN_WORDS = {"domain": "inside the domain", "hull": "inside the hull"}


def save(look: Look, path: Path) -> Path:
    """Write a look as HTML or JSON, whole or not at all."""
    return write_by_suffix(
        path, {".html": lambda: page(look).encode(), ".json": lambda: _json(look).encode()}
    )


def page(look: Look) -> str:
    """Return the whole report as HTML, under two megabytes."""
    style = stylesheet("style.css", *(["attribution.css"] if look.attribution else []))
    cut, text = slice_section(look), ""
    figures = {measured.name: _figure(measured, look.slice) for measured in look.measurements}
    numbers = {measured.name: list(measured.result.rows()) for measured in look.measurements}
    for most in ROWS:
        groups = [
            {
                "question": question(family),
                "parts": [
                    _section(measured, figures[measured.name], *table(numbers[measured.name], most))
                    for measured in group
                ],
            }
            for family, group in by_question(look.measurements)
        ]
        text = rendered_page(
            "page.html.j2",
            look=look,
            version=look.provenance.inscape,
            introduction=introduction(look),
            calm=CALM,
            places=_places(look),
            slice=cut,
            groups=groups,
            references=SHORT,
            shown=[name for name in SHORT if name != "bound" or _bounded(look)],
            style=style,
            explaining=look.attribution and _attribution(look.attribution, most),
            citation=citation("courtois2025path, Eq. (9)"),
        )
        if len(text.encode()) < LIMIT:
            break
    return text


def _attribution(attribution: Attribution, rows: int) -> dict[str, Any]:
    """Return what the template needs to explain predictions, with the amounts as CSV."""
    part = attribution_part(attribution, rows)
    text = csv_text(part["data"]) if part["data"] else ""
    return {**part, "csv": base64.b64encode(text.encode()).decode()}


def _places(look: Look) -> set[str]:
    """Return what a finding can link to."""
    slice_shown = {"slice"} if look.slice is not None else set()
    return {"scores", "model"} | slice_shown | {measured.name for measured in look.measurements}


def _bounded(look: Look) -> bool:
    """Tell whether any number has a lower bound."""
    bounds = [measured.reference("bound") for measured in look.measurements]
    return any(bound is not None and bound.value is not None for bound in bounds)


def _figure(measured: Measured, cut: SlicePicture | NotApplicable | None) -> str | None:
    """Return the figure of a measurement as SVG, if there is one for its result.

    What lies in the plane of the slice is marked with the same examples.
    """
    result = measured.result
    if not has_figure(result):
        return None
    title = f"Figure of the {plain(measured.name)}"
    words = f"{title}: {measured.summary}. {caption(result)}" if measured.summary else title
    if not isinstance(result, PlaneRegions | Boundary) or not isinstance(cut, SlicePicture):
        return figure(result, prefix=measured.name, label=words)
    ax = draw(result)
    if cut.anchors and same_plane(cut, result):
        name_examples(ax, cut.anchors)
    return drawn(ax, prefix=measured.name, label=words)


def _section(measured: Measured, svg: str | None, data: Sequence[Row], note: str) -> dict[str, Any]:
    """Return what the template needs to show one measurement."""
    result = measured.result
    stated = definition(measured.doc)
    points = direction(measured.name)
    return {
        "measured": measured,
        "summary": measured.summary,
        "scale": scale(measured),
        "figure": svg and Markup(svg),
        "caption": caption(result) if svg else "",
        "rows": [] if svg else data[:10],
        "csv": base64.b64encode(csv_text(data).encode()).decode(),
        "csv_note": note,
        "formula": stated.formula and Markup(stated.formula),
        "paragraphs": [Markup(text) for text in stated.paragraphs],
        "citation": citation(measured.cites),
        "settings": {key: v for key, v in settings(measured).items() if key != "warnings"},
        "warnings": getattr(result, "warnings", ()),
        "direction": points.sentence if points else "",
        "short_direction": points.short if points else "",
        "zones": zones(result) if isinstance(result, Extrapolation) else [],
    }


def zones(result: Extrapolation) -> list[dict[str, Any]]:
    """Return one row for each zone: its name, the queries in it, and every model's mean error."""
    by_zone: dict[str, dict[str, Any]] = {}
    for row in result.by_zone():
        zone = str(row["zone"])
        if zone not in by_zone:
            name = IN_WORDS.get(zone, zone)
            by_zone[zone] = {"zone": name, "queries": row["queries"], "errors": {}}
        by_zone[zone]["errors"][str(row["model"])] = row["error"]
    return list(by_zone.values())


def notebook_page(look: Look) -> str:
    """Return the page in a frame, for notebooks."""
    document = html.escape(page(look), quote=True)
    name = escaping.visible_line(look.title)
    title = html.escape(name, quote=True)
    frame = "width:100%;height:640px;border:1px solid #8884;border-radius:6px"
    around = f'<iframe title="{title}" sandbox style="{frame}"'
    return f'{around} srcdoc="{document}"></iframe>'


def _json(look: Look) -> str:
    text = json.dumps(look.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    return escaping.visible(text) + "\n"
