"""A training as a moving picture: GIF, WebP, animated PNG, or MP4 with the extra ``video``."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from inscape.figures.evolution import still
from inscape.figures.hues import Color
from inscape.figures.style import styled
from inscape.files.atomic import write
from inscape.regions.region_evolution import RegionEvolution
from inscape.runtime.extras import need
from inscape.runtime.progress import progress

#: How Pillow is to write each format.
FORMATS: dict[str, dict[str, Any]] = {
    ".gif": {"format": "GIF", "optimize": False, "disposal": 1},
    ".webp": {"format": "WEBP", "quality": 90, "method": 4},
    ".png": {"format": "PNG"},
}
#: What is encoded by ffmpeg, for which there is an extra.
VIDEO = ".mp4"
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
        path: File to write; its suffix is gif, webp, png (animated) or, with the extra ``video``,
            mp4.
        seconds: Time of one round; all but mp4 repeat for ever.
        color: What cells are coloured by, as for ``draw_regions``; colours match those of the last
            step.
        boundary: Whether to draw on top where the decision changes.
        pixels: Width of the picture.
    """
    path = Path(path)
    suffix = checked_suffix(path)
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, found {seconds}: raise seconds.")
    frames = []
    with progress(len(evolution.steps), label="drawing frames") as bar:
        for place in range(len(evolution.steps)):
            frames.append(_frame(evolution, place, color, boundary, pixels))
            bar.advance()
    write(path, moving_picture(frames, suffix, seconds=seconds))
    return path


def checked_suffix(path: Path) -> str:
    """Return the suffix of a moving picture, or raise if it is of another kind."""
    suffix = path.suffix.lower()
    if suffix not in (*FORMATS, VIDEO):
        raise ValueError(
            f"the suffix of a moving picture must be one of {', '.join((*FORMATS, VIDEO))}, found "
            f"{path.suffix!r}: rename {path}."
        )
    if suffix == VIDEO:
        _encoder()
    return suffix


def _encoder() -> Any:
    return need("imageio_ffmpeg", extra="video", why="a moving picture as MP4")


def moving_picture(frames: Sequence[Any], suffix: str, *, seconds: float) -> bytes:
    """Return images one after the other as a file; the last stays longer.

    Args:
        frames: Images of one size.
        suffix: Of ``FORMATS``, or ``VIDEO``.
        seconds: Time of one round.
    """
    if suffix == VIDEO:
        return _video(frames, seconds)
    tick = round(1000 * seconds / (len(frames) - 1 + REST))
    look = FORMATS[suffix]
    if len(frames) > 1:
        times = [tick] * (len(frames) - 1) + [REST * tick]
        look = {**look, "save_all": True, "append_images": frames[1:], "duration": times, "loop": 0}
    out = io.BytesIO()
    frames[0].save(out, **look)
    return out.getvalue()


def _video(frames: Sequence[Any], seconds: float) -> bytes:
    """Return images as H.264 in MP4; widths and heights are made even, as it requires."""
    encoder = _encoder()
    all_frames = [*frames, *[frames[-1]] * (REST - 1)]
    width, height = (side - side % 2 for side in frames[0].size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"moving{VIDEO}"
        writer = encoder.write_frames(
            str(path), (width, height), fps=len(all_frames) / seconds, codec="libx264",
            macro_block_size=2, output_params=["-movflags", "+faststart"],
        )  # fmt: skip
        writer.send(None)
        for frame in all_frames:
            writer.send(frame.crop((0, 0, width, height)).tobytes())
        writer.close()
        return path.read_bytes()


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
