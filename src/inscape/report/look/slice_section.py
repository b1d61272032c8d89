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
    picture = look.slice
    if picture is None:
        return None
    if isinstance(picture, NotApplicable):
        return {"reason": picture.reason}
    regions = next(
        (m.result for m in look.measurements if isinstance(m.result, PlaneRegions)), None
    )
    regions = regions if regions is not None and same_plane(picture, regions) else None
    caption = slice_caption(picture, regions)
    label = f"{slice_title(picture)}. {caption}"
    return {
        "reason": "",
        "title": slice_title(picture),
        "figure": Markup(drawn(draw_slice(picture, regions), prefix="slice", label=label)),
        "caption": caption,
        "anchors": [_anchor(picture, anchor) for anchor in picture.anchors],
    }


def slice_title(picture: SlicePicture) -> str:
    """Return the heading of the slice."""
    subject = "What it decides" if picture.classes and picture.labelled else "Its largest output"
    subject = subject if picture.classes else "Its output"
    return f"{subject} on its two inputs" if picture.whole else f"{subject} between three examples"


def slice_caption(picture: SlicePicture, regions: PlaneRegions | None) -> str:
    """Say how to read the figure, and what is on it."""
    height, width = picture.scores.shape[:2]
    plane = "" if picture.whole else "This is the plane through the examples A, B and C. "
    if not picture.classes:
        color = "Colour is the output, white lines are its levels"
    elif not picture.labelled:
        color = "Colour is the output that is largest, a strong line is where that changes"
    else:
        color = (
            "Colour is the class that the network answers, fainter where it is less sure; a "
            "strong line is the decision boundary"
        )
    lines = ""
    if regions is not None and shows_edges(regions):
        part = "" if regions.complete else f", found on {regions.covered:.1%} of the window"
        lines = f" Faint lines are the edges of its {regions.cells:,} linear regions{part}."
    elif regions is not None and regions.complete:
        lines = f" Its {regions.cells:,} linear regions are too many to be drawn on it."
    return f"{plane}{color}, from {shape((width, height))} predictions.{lines} {_dots(picture)}"


def _dots(picture: SlicePicture) -> str:
    many = len(picture.places)
    if picture.whole:
        labels = " in the colour of their labels" if picture.labelled else ""
        return f"Dots are {many:,} of the examples{labels}."
    if not many:
        return (
            f"None of {picture.searched:,} further examples lies near this plane (within "
            f"{number(picture.distance, 3)})."
        )
    labels = ", in the colour of their labels" if picture.labelled else ""
    verb = "is the one example" if many == 1 else f"are the {many:,} examples"
    return (
        f"{'A dot' if many == 1 else 'Dots'} {verb} of {picture.searched:,} within "
        f"{number(picture.distance, 3)} of this plane, projected onto it{labels}."
    )


def _anchor(picture: SlicePicture, anchor: Anchor) -> dict[str, Any]:
    """Return letter, picture and words of an example that the plane goes through."""
    sure = "" if anchor.confidence is None else f" (probability {anchor.confidence:.2f})"
    verb = "answered" if picture.labelled or not picture.classes else "largest is"
    answer = f"{verb} {anchor.answer}{sure}" if anchor.answer else ""
    label = f"labelled {anchor.label}" if anchor.label else ""
    wrong = picture.labelled and bool(anchor.label) and anchor.label != anchor.answer
    return {
        "letter": anchor.letter,
        "row": anchor.row,
        "words": listed([word for word in (label, answer) if word]),
        "wrong": wrong,
        "picture": thumbnail(anchor.input),
    }


def same_plane(picture: SlicePicture, result: PlaneRegions | Boundary) -> bool:
    """Tell whether something was found in the plane of the slice."""
    if result.axes.shape != picture.frame.axes.shape:
        return False
    size = float(torch.tensor(picture.high).sub(torch.tensor(picture.low)).abs().max())
    return torch.allclose(result.axes, picture.frame.axes, atol=1e-9) and torch.allclose(
        result.origin, picture.frame.origin, atol=1e-9 * size
    )
