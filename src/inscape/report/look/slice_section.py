"""The slice on a page: its figure, the examples that span it, and what it shows in words."""

from typing import Any

import torch
from markupsafe import Markup

from inscape._core import NotApplicable
from inscape.figures.slices import draw_slice, shows_edges
from inscape.piecewise.planes.slices import Anchor, SlicePicture
from inscape.regions.boundary import Boundary
from inscape.regions.plane_regions import PlaneRegions
from inscape.report.look.look import Look
from inscape.report.pictures import drawn, thumbnail
from inscape.report.words import listed, number, shape


def slice_section(look: Look) -> dict[str, Any] | None:
    """Return what the template needs to show the slice, or why there is none; None if not asked."""
    found = look.slice
    if found is None:
        return None
    if isinstance(found, NotApplicable):
        return {"reason": found.reason}
    regions = next((m.result for m in look.measures if isinstance(m.result, PlaneRegions)), None)
    regions = regions if regions is not None and same_plane(found, regions) else None
    caption = slice_caption(found, regions)
    label = f"{slice_title(found)}. {caption}"
    return {
        "reason": "",
        "title": slice_title(found),
        "figure": Markup(drawn(draw_slice(found, regions), prefix="slice", label=label)),
        "caption": caption,
        "anchors": [_anchor(found, anchor) for anchor in found.anchors],
    }


def slice_title(found: SlicePicture) -> str:
    """Return the heading of the slice."""
    what = "What it decides" if found.classes and found.labelled else "Its largest output"
    what = what if found.classes else "Its output"
    return f"{what} on its two inputs" if found.whole else f"{what} between three examples"


def slice_caption(found: SlicePicture, regions: PlaneRegions | None) -> str:
    """Say how to read the figure, and what is on it."""
    height, width = found.scores.shape[:2]
    plane = "" if found.whole else "This is the plane through the examples A, B and C. "
    if not found.classes:
        color = "Colour is the output, white lines are its levels"
    elif not found.labelled:
        color = "Colour is the output that is largest, a strong line is where that changes"
    else:
        color = (
            "Colour is the class that the network answers, paler where it is less sure; a "
            "strong line is the decision boundary"
        )
    lines = ""
    if regions is not None and shows_edges(regions):
        part = "" if regions.complete else f", found on {regions.covered:.1%} of the window"
        lines = f" Faint lines are the edges of its {regions.cells:,} linear regions{part}."
    elif regions is not None and regions.complete:
        lines = f" Its {regions.cells:,} linear regions are too many to be drawn on it."
    return f"{plane}{color}, from {shape((width, height))} predictions.{lines} {_dots(found)}"


def _dots(found: SlicePicture) -> str:
    many = len(found.places)
    if found.whole:
        labels = " in the colour of their labels" if found.labelled else ""
        return f"Dots are {many:,} of the examples{labels}."
    if not many:
        return (
            f"None of {found.searched:,} further examples lies near this plane (within "
            f"{number(found.distance, 3)})."
        )
    labels = ", in the colour of their labels" if found.labelled else ""
    verb = "is the one example" if many == 1 else f"are the {many:,} examples"
    return (
        f"{'A dot' if many == 1 else 'Dots'} {verb} of {found.searched:,} within "
        f"{number(found.distance, 3)} of this plane, projected onto it{labels}."
    )


def _anchor(found: SlicePicture, anchor: Anchor) -> dict[str, Any]:
    """Return letter, picture and words of an example that the plane goes through."""
    sure = "" if anchor.confidence is None else f" (probability {anchor.confidence:.2f})"
    said = "answered" if found.labelled or not found.classes else "largest is"
    answer = f"{said} {anchor.answer}{sure}" if anchor.answer else ""
    label = f"labelled {anchor.label}" if anchor.label else ""
    wrong = found.labelled and bool(anchor.label) and anchor.label != anchor.answer
    return {
        "letter": anchor.letter,
        "row": anchor.row,
        "words": listed([word for word in (label, answer) if word]),
        "wrong": wrong,
        "picture": thumbnail(anchor.input),
    }


def same_plane(found: SlicePicture, result: PlaneRegions | Boundary) -> bool:
    """Tell whether something was found in the plane of the slice."""
    if result.axes.shape != found.frame.axes.shape:
        return False
    size = float(torch.tensor(found.high).sub(torch.tensor(found.low)).abs().max())
    return torch.allclose(result.axes, found.frame.axes, atol=1e-9) and torch.allclose(
        result.origin, found.frame.origin, atol=1e-9 * size
    )
