"""Figures and formulas as SVG that stands inside a page and takes its colours from there."""

import base64
import html
import io
import re
from functools import cache

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from torch import Tensor

from inscape._core import Result
from inscape.figures import draw, rendered
from inscape.figures.attribution import picture
from inscape.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    RULE,
    SKY,
    VERMILION,
)

#: Colours of the figures, and the variables of the style sheet that they become.
COLOURS = {
    BLUE: "blue",
    ORANGE: "orange",
    GREEN: "green",
    VERMILION: "vermilion",
    PURPLE: "purple",
    SKY: "sky",
    INK: "ink",
    FAINT: "faint",
    RULE: "rule",
    PAPER: "paper",
}

#: Shapes with more corners than this together are pixels on a page.
CORNERS = 4000

#: Artists that may have very many, and how matplotlib names a line without marks.
DRAWN, NO_MARKER = (Collection, Line2D), ("None", None, " ", "")

#: What LaTeX has and matplotlib's reader of formulas has not.
_DIALECT = {
    r"\lVert": r"\Vert ",
    r"\rVert": r"\Vert ",
    r"\bigl": "",
    r"\bigr": "",
    r"\tfrac": r"\frac",
    r"\qquad": r"\quad\quad",
}


def figure(result: Result, *, prefix: str, label: str) -> str:
    """Return the figure of a result as an inline SVG with ids of its own and an aria label."""
    return drawn(draw(result), prefix=prefix, label=label)


def drawn(ax: Axes, *, prefix: str, label: str) -> str:
    """Return a figure as an inline SVG, what has very many corners in it as pixels."""
    root = ax.get_figure(root=True)
    artists = [] if root is None else root.findobj(lambda artist: isinstance(artist, DRAWN))
    for artist in artists:
        if _corners(artist) > CORNERS:
            artist.set_rasterized(True)
    return inline(rendered(ax).decode(), prefix=prefix, label=label)


def _corners(artist: Artist) -> int:
    """Return about how many corners the shapes of an artist have; a new shape costs four."""
    if isinstance(artist, Line2D):
        points = len(np.atleast_1d(artist.get_xdata()))
        return points if artist.get_marker() in NO_MARKER else 4 * points
    if not isinstance(artist, Collection):
        return 0
    places = len(np.asarray(artist.get_offsets()))  # one shape at many places is written once
    return 4 * places + sum(4 + len(np.asarray(path.vertices)) for path in artist.get_paths())


def inline(svg: str, *, prefix: str, label: str) -> str:
    """Return a drawn SVG as it can stand in a page, in the colours and letters of the page."""
    box = re.search(r'viewBox="[^"]*"', svg)
    body = svg[svg.index(">", svg.index("<svg")) + 1 :].strip()
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"(data:image/png;base64,)([^\"]+)", _lighter, body)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", body)
    body = re.sub(r"font: ([\d.]+px)[^;\"]*|font-family:[^;\"]*;?", _without_face, body)
    body = re.sub("|".join(COLOURS), _variable, body, flags=re.IGNORECASE)
    attributes = f'class="plot" role="img" aria-label="{html.escape(label)}"'
    return f"<svg {box[0] if box else ''} {attributes} {_NAMESPACES}>{body}"


#: Letters of a picture above which its colours are reduced to 256, and the pixels of its longer
#: side then: one and a half for each that a page is wide enough to show.
HEAVY, SIDE = 200_000, 900


def _lighter(match: re.Match[str]) -> str:
    """Return a picture inside a figure, with fewer pixels and colours if it is large."""
    from PIL import Image

    if len(match[2]) <= HEAVY:
        return match[0]
    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(match[2]))) as image:
        rgba = image.convert("RGBA")
        rgba.thumbnail((SIDE, SIDE), Image.Resampling.BOX)
        few = rgba.quantize(256, method=Image.Quantize.FASTOCTREE)
        few.save(out, "png", compress_level=4)
    return match[1] + base64.b64encode(out.getvalue()).decode()


#: Pixels of a thumbnail, at most, on its longer side.
THUMBNAIL = 32
#: A row of numbers is taken for a picture if it is a square of at least so many pixels a side.
SMALLEST = 8


def thumbnail(x: Tensor) -> str | None:
    """Return an input as the address of a small picture, or None if it is no picture."""
    from PIL import Image

    if x.ndim == 1 and len(x) < SMALLEST**2:
        return None
    shown = picture(x[None] if x.ndim == 2 else x)
    if shown is None or not 1 / 3 <= shown.shape[0] / shown.shape[1] <= 3:
        return None
    dark = 1 - shown if shown.ndim == 2 else shown  # grey pictures stand as ink on paper
    image = Image.fromarray((255 * dark).round().astype("uint8"))
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    image.save(out, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def _without_face(match: re.Match[str]) -> str:
    """Keep the size of a text and leave its face to the page."""
    return f"font-size: {match[1]}" if match[1] else ""


def _variable(match: re.Match[str]) -> str:
    return f"var(--{COLOURS[match[0].upper()]})"


@cache
def formula(latex: str) -> str | None:
    """Return a formula as an inline SVG in the colour of the text, or None if it is too hard."""
    from matplotlib import rc_context
    from matplotlib.textpath import TextPath

    spelled = latex
    for mathtext, tex in _DIALECT.items():
        spelled = re.sub(re.escape(mathtext) + r"(?![A-Za-z])", tex.replace("\\", r"\\"), spelled)
    try:
        with rc_context({"mathtext.fontset": "stix"}):
            path = TextPath((0, 0), f"${spelled}$", size=10)
    except (ValueError, RuntimeError):
        return None
    box = path.get_extents().padded(0.3)
    drawn = "".join(_segment(ends.tolist(), int(code)) for ends, code in path.iter_segments())
    return (
        f'<svg class="formula" role="img" aria-label="{html.escape(latex)}" {_NAMESPACES} '
        f'viewBox="{box.x0:.1f} {-box.y1:.1f} {box.width:.1f} {box.height:.1f}" '
        f'style="width:{box.width / 10:.2f}em;vertical-align:{box.y0 / 10:.2f}em">'
        f'<path fill="currentColor" d="{drawn}"/></svg>'
    )


def _segment(ends: list[float], code: int) -> str:
    """Return one piece of an outline as SVG writes it; there, y points down."""
    letter = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}[code]
    if letter == "Z":
        return letter
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return letter + " ".join(f"{x:.2f} {-y:.2f}" for x, y in pairs)
