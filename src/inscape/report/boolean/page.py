"""The page of one Boolean function, as one HTML file that needs nothing else."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from inscape.report.boolean.summary import BooleanLook, description, hypothetical
from inscape.report.html import rendered_page, stylesheet, write_by_suffix
from inscape.report.pictures import inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save(look: BooleanLook, path: Path) -> Path:
    """Write a look as HTML or JSON, whole or not at all."""
    return write_by_suffix(
        path, {".html": lambda: page(look).encode(), ".json": lambda: _json(look).encode()}
    )


def _json(look: BooleanLook) -> str:
    return json.dumps(look.to_dict(), indent=1) + "\n"


def page(look: BooleanLook) -> str:
    """Return the whole page as HTML."""
    return rendered_page(
        "boolean.html.j2",
        look=look,
        version=look.provenance.inscape,
        lead=description(look),
        style=stylesheet("style.css"),
        pictures=_pictures(look),
        hypothetical=hypothetical(look.swaps.swaps),
        weights=" ".join(map(str, look.swaps.weights.tolist())),
    )


def _pictures(look: BooleanLook) -> dict[str, Any]:
    """Return the figures that there are, by name."""
    from inscape.figures.boolean_networks import MOST_INPUTS, draw_cube, draw_line, draw_success
    from inscape.figures.style import new_axes, styled

    pictures = {}
    with styled():
        if look.table.n <= MOST_INPUTS:
            text = "The inputs as corners of a cube; full corners are true"
            pictures["cube"] = _svg(draw_cube(look.table, new_axes()), "cube", text)
        ax = new_axes()
        ax.get_figure(root=True).set_size_inches(5.6, 1.7)  # type: ignore[union-attr]
        line = draw_line(look.table, look.swaps.weights.tolist(), ax)
        pictures["line"] = _svg(line, "line", "The function along its best line, under the network")
        if look.trials:
            rows = [vars(trial) for trial in look.trials]
            text = "Fraction of networks that learn the function, by size"
            pictures["success"] = _svg(draw_success(rows, new_axes()), "success", text)
    return pictures


def _svg(ax: "Axes", name: str, label: str) -> Markup:
    from inscape.figures import rendered

    return Markup(inline(rendered(ax).decode(), prefix=name, label=label))
