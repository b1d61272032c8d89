"""Colours of the cells of a window: those of the page, and by activation pattern or affine map."""

import numpy as np

from inscape.explorer.subject import ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions

#: Colours of the first classes, as in ``static/colours.js``.
CLASSES = (
    *((0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0), (204, 121, 167)),
    *((86, 180, 233), (240, 228, 66), (140, 86, 75), (127, 127, 127), (148, 103, 189)),
)
#: How strong the colour of a class is on paper.
STRENGTH = 0.62
PAPER = (253, 252, 250)


def cell_colours(regions: PlaneRegions, by: str, like: PlaneRegions | None = None) -> Array:
    """Return red, green and blue of every cell, one after the other, as the figures have them."""
    from inscape.figures.hues import by_map, by_pattern

    rgb = by_pattern(regions, like) if by == "pattern" else by_map(regions, None, like)
    bytes_ = (np.clip(rgb, 0.0, 1.0) * 255).round().astype(np.uint8)
    return bytes_.reshape(-1)


def class_colour(number: int) -> tuple[int, int, int]:
    """Return the colour of a class; after ten, hues that are far from those before.

    >>> class_colour(0), class_colour(12)
    ((0, 114, 178), (64, 217, 140))
    """
    if number < len(CLASSES):
        return CLASSES[number]
    hue = (number * 0.618034) % 1
    return (_turned(0, hue), _turned(8, hue), _turned(4, hue))


def _turned(part: int, hue: float) -> int:
    t = (part + hue * 12) % 12
    return int(255 * (0.55 - 0.3 * max(-1.0, min(t - 3, 9 - t, 1.0))) + 0.5)


def on_paper(colour: tuple[int, int, int], strength: float = STRENGTH) -> tuple[float, ...]:
    """Return a colour mixed with the paper, from 0 to 1."""
    pairs = zip(PAPER, colour, strict=True)
    return tuple((paper + (own - paper) * strength) / 255 for paper, own in pairs)


def certainty(confidence: Array, classes: int) -> Array:
    """Return what probabilities of the answer are worth between guessing and certainty.

    >>> certainty(np.array([0.5, 0.75, 1.0]), 2)
    array([0. , 0.5, 1. ])
    """
    least = 1 / classes
    return np.clip((confidence - least) / (1 - least), 0, 1)


def answer_colours(
    subject: ExploredSubject, classes: Array, confidence: Array, by: str, count: int
) -> Array:
    """Return red, green and blue, from 0 to 1, of answers: by class, or also by confidence."""
    sure = certainty(confidence, count) if by == "confidence" else None
    rgb = [
        on_paper(class_colour(int(number)), STRENGTH if sure is None else 0.12 + 0.8 * sure[k])
        for k, number in enumerate(classes)
    ]
    return np.array(rgb).reshape(-1, 3)
