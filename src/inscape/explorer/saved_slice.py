"""A slice as one file to send: the page, a plane and its exact windows, without a server."""

import base64
import gzip
import html
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from inscape.escaping import visible
from inscape.explorer import requests as ask
from inscape.explorer.bundle import bundled, source_hash
from inscape.explorer.examples import image_grid, thumbnails
from inscape.explorer.page_files import page_files
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.raster import raster
from inscape.explorer.saved_levels import SavedWindow, saved_level, wider
from inscape.explorer.session import Session
from inscape.explorer.wire import Array, packed

#: Bytes that a file may have, and cells that are tried, the most first.
LIMIT = 5_000_000
CELLS = (40_000, 20_000, 10_000, 4000, 1000)
#: Pixels along a side of the raster behind exact regions, and seconds for it.
PIXELS, SECONDS = 160, 20.0
#: Examples whose pictures are kept: those that are listed first, and those nearest to the plane.
LISTED, NEAREST = 60, 120

Facts = dict[str, Any]
Arrays = dict[str, Array]


def saved_slice(
    session: Session, query: ask.SavedRequest
) -> Generator[None, None, tuple[bytes, Facts]]:
    """Return a page with the exact regions of a window, and what is in it.

    Fewer cells are kept, in the middle of the window, until the file is small enough.
    """
    plane = session.plane_of(query)
    window = (query.centre or plane.centre, query.half or plane.half)
    facts: Facts = {"session": _about(session), "start": query.start}
    arrays: Arrays = {}
    yield from _with_plane(session, query, facts, arrays)
    yield from _with_rasters(session, query, plane, window, facts, arrays)
    for count in CELLS:
        level = yield from _with_levels(session, query, plane, window, count)
        page = page_of(session.subject.title, facts | level[0], arrays | level[1])
        if len(page) < LIMIT:
            break
    else:
        raise ValueError(
            f"a file to send must have less than {LIMIT:,} bytes, found {len(page):,} with "
            f"{CELLS[-1]:,} regions: choose a smaller window."
        )
    cells = [entry["cells"] for entry in level[0]["levels"]]
    return page, {"bytes": len(page), "cells": cells[0] if cells else 0}


def _about(session: Session) -> Facts:
    """Return what the page shows at first; other views and networks are not in the file."""
    about = session.about()
    return about | {"offline": True, "other": "", "steps": [], "views": {}}


def _with_plane(
    session: Session, query: ask.SavedRequest, facts: Facts, arrays: Arrays
) -> Generator[None, None, None]:
    """Add the plane and pictures of examples."""
    plane_facts, plane_arrays = yield from session.plane(query)
    facts["plane"] = plane_facts
    frame = session.plane_of(query).frame
    facts["plane"]["gram"] = frame.gram.flatten().tolist()
    arrays |= {f"plane/{name}": array for name, array in plane_arrays.items()}
    near = plane_arrays["row"][:NEAREST].tolist() if image_grid(session.subject) else []
    listed = range(min(LISTED, len(session.subject.x)))
    rows = sorted({*listed, *near, *plane_facts["rows"]})
    entry, pictures = thumbnails(session.subject, rows)
    facts["examples"] = entry
    arrays |= {f"examples/{name}": array for name, array in pictures.items()}
    facts["session"]["planes"] = [query.kind]
    facts["session"]["rows"] = plane_facts["rows"]


def _with_rasters(
    session: Session,
    query: ask.SavedRequest,
    plane: ExploredPlane,
    window: tuple[tuple[float, float], tuple[float, float]],
    facts: Facts,
    arrays: Arrays,
) -> Generator[None, None, None]:
    """Add the raster of the wider window, which is seen where there are no exact regions."""
    network = session.subject.network(query.network, query.step)
    outer = wider(plane, SavedWindow(centre=window[0], half=window[1], cells=1))
    facts["rasters"] = []
    for k, half in enumerate((window[1], outer.half)):
        entry, pixels = yield from raster(
            session.subject, network, plane, centre=window[0], half=half, width=PIXELS,
            height=PIXELS, seconds=SECONDS,
        )  # fmt: skip
        facts["rasters"].append(entry)
        arrays |= {f"raster{k}/{name}": array for name, array in pixels.items()}


def _with_levels(
    session: Session,
    query: ask.SavedRequest,
    plane: ExploredPlane,
    window: tuple[tuple[float, float], tuple[float, float]],
    count: int,
) -> Generator[None, None, tuple[Facts, Arrays]]:
    """Return the exact windows: the one that is asked for, and a wider one around it."""
    network = session.subject.network(query.network, query.step)
    if network.windows is None:
        return {"levels": []}, {}
    inner = SavedWindow(centre=window[0], half=window[1], cells=count, seconds=query.seconds / 4)
    levels: list[Facts] = []
    arrays: Arrays = {}
    for k, level_window in enumerate((inner, wider(plane, inner))):
        entry, own = yield from saved_level(session.subject, network, plane, level_window)
        if k and not entry["complete"]:
            break  # the middle of the wider window is in the inner one already
        levels.append(entry)
        arrays |= {f"level{k}/{name}": array for name, array in own.items()}
    return {"levels": levels}, arrays


def page_of(title: str, facts: Facts, arrays: Mapping[str, Array]) -> bytes:
    """Return the page with its data: one script, one style, both allowed by their hashes alone."""
    script = bundled("saved.js")
    style = page_files()["style.css"][0].decode().replace("</style", "")
    data = base64.b64encode(gzip.compress(packed(facts, _contiguous(arrays)), 9, mtime=0)).decode()
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    name = html.escape(visible(f"{title}: Inscape explorer"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{name}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{style}</style>\n</head>\n<body>\n"
        '<div id="page"><p class="starting">Opening the slice …</p></div>\n'
        "<noscript>The explorer needs JavaScript.</noscript>\n"
        f'<script type="application/octet-stream" id="saved">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    ).encode()


def _contiguous(arrays: Mapping[str, Array]) -> Arrays:
    """Return arrays of kinds that travel."""
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
