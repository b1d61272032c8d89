"""A sweep on disk, by suffix, and in a notebook."""

import base64
import html
import io
import json
from collections.abc import Callable
from pathlib import Path

from inscape import escaping
from inscape.report.html import write_by_suffix
from inscape.report.sweeps.latex import latex_table
from inscape.report.sweeps.table import Sweep
from inscape.report.words import number, plain
from inscape.runtime.extras import need

#: Rows of a table in a notebook.
SHOWN = 30


def save(sweep: Sweep, path: Path) -> Path:
    """Write a sweep in the form that the suffix of ``path`` names, whole or not at all."""
    writers: dict[str, Callable[[], bytes]] = {
        ".html": lambda: _page(sweep),
        ".csv": lambda: csv_table(sweep).encode(),
        ".parquet": lambda: _parquet(sweep),
        ".tex": lambda: latex_table(sweep).encode(),
        ".json": lambda: json_text(sweep).encode(),
        **dict.fromkeys((".svg", ".pdf", ".png"), lambda: _picture(sweep, path.suffix)),
    }
    return write_by_suffix(path, writers)


def _page(sweep: Sweep) -> bytes:
    from inscape.report.sweeps.page import page

    return page(sweep).encode()


def csv_table(sweep: Sweep) -> str:
    """Return the tidy rows as CSV; no cell is a formula."""
    return escaping.csv_text(list(sweep.rows()))


def json_text(sweep: Sweep) -> str:
    """Return everything but the single samples as JSON."""
    text = json.dumps(sweep.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    return escaping.visible(text) + "\n"


def _parquet(sweep: Sweep) -> bytes:
    need("pyarrow", extra="parquet", why="saving as parquet")
    buffer = io.BytesIO()
    sweep.to_frame().to_parquet(buffer)
    return buffer.getvalue()


def _picture(sweep: Sweep, suffix: str) -> bytes:
    from inscape.figures import rendered
    from inscape.report.sweeps.figures import small_multiples

    return rendered(small_multiples(sweep).axes[0], suffix)


def notebook_table(sweep: Sweep) -> str:
    """Return a table of models and instruments with the figure below it, for notebooks."""
    style = "padding:2px 10px;text-align:right;border-bottom:1px solid #8884"
    heads = "".join(f'<th style="{style}">{html.escape(plain(m))}</th>' for m in sweep.instruments)
    body = "".join(
        f'<tr><th style="{style}">{html.escape(model.name)}</th>'
        + "".join(
            f'<td style="{style}">{_cell(sweep, model.name, m)}</td>' for m in sweep.instruments
        )
        + "</tr>"
        for model in sweep.models[:SHOWN]
    )
    more = "<p style='margin:2px'>…</p>" if len(sweep.models) > SHOWN else ""
    table = f'<table style="border-collapse:collapse"><tr><th></th>{heads}</tr>{body}</table>'
    title = f"<p><b>{html.escape(repr(sweep))}</b></p>"
    scroll = f'<div style="overflow-x:auto">{table}</div>'
    return escaping.visible(f"{title}{scroll}{more}") + _image(sweep)


def _cell(sweep: Sweep, model: str, instrument: str) -> str:
    value = sweep.value(model, instrument)
    return "" if value is None else html.escape(number(value))


def _image(sweep: Sweep) -> str:
    if not sweep.instruments:
        return ""
    image = base64.b64encode(_picture(sweep, ".png")).decode()
    return f'<img alt="figure" style="max-width:60em" src="data:image/png;base64,{image}">'
