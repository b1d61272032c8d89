"""A training as a moving picture: GIF, WebP or animated PNG."""

import io
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from inscape.figures.evolution import still
from inscape.figures.hues import Color
from inscape.figures.style import styled
from inscape.files.atomic import write
from inscape.regions.region_evolution import RegionEvolution
from inscape.runtime.progress import progress

#: How Pillow is to write each format.
FORMATS: dict[str, dict[str, Any]] = {
    ".gif": {"format": "GIF", "optimize": False, "disposal": 1},
    ".webp": {"format": "WEBP", "quality": 90, "method": 4},
    ".png": {"format": "PNG"},
}
#: The last picture stays this many times as long as the others.
REST = 5


def animate(
    evolution: RegionEvolution,
    path: str | Path,
    *,
    seconds: float = 6.0,
    color: Color = "pattern",
    boundary: bool = True,
    pixels: int = 560,
) -> Path:
    """Write the regions of a training as a moving picture, and return its path.

    Args:
        evolution: Regions at some steps; the more steps, the smoother.
        path: File to write; its suffix is gif, webp or png (animated).
        seconds: Time of one round; it repeats for ever.
        color: What cells are coloured by, as for ``draw_regions``; colours match those of the last
            step.
        boundary: Whether to draw on top where the decision changes.
        pixels: Width of the picture.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"the suffix of a moving picture must be one of {', '.join(FORMATS)}, found "
            f"{path.suffix!r}: rename {path}."
        )
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, found {seconds}: raise seconds.")
    frames = []
    with progress(len(evolution.steps), label="drawing frames") as bar:
        for place in range(len(evolution.steps)):
            frames.append(_frame(evolution, place, color, boundary, pixels))
            bar.advance()
    tick = round(1000 * seconds / (len(frames) - 1 + REST))
    look = FORMATS[suffix]
    if len(frames) > 1:
        times = [tick] * (len(frames) - 1) + [REST * tick]
        look = {**look, "save_all": True, "append_images": frames[1:], "duration": times, "loop": 0}
    out = io.BytesIO()
    frames[0].save(out, **look)
    write(path, out.getvalue())
    return path


def _frame(
    evolution: RegionEvolution, place: int, color: Color, boundary: bool, pixels: int
) -> Any:
    """Return the picture of one step on white paper."""
    from PIL import Image

    inches = 4.0
    with styled():
        figure = Figure(figsize=(inches, inches + 0.3), facecolor="white")
        ax = figure.add_axes((0.02, 0.02, 0.96, 0.9))
        still(evolution, place, ax, color=color, boundary=boundary)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=pixels / inches, transparent=False)
    return Image.open(out).convert("RGB")
