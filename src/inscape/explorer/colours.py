"""Colours of the cells of a window, by activation pattern or by affine map."""

import numpy as np

from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions


def cell_colours(regions: PlaneRegions, by: str) -> Array:
    """Return red, green and blue of every cell, one after the other, as the figures have them."""
    from inscape.figures.hues import by_map, by_pattern

    rgb = by_pattern(regions) if by == "pattern" else by_map(regions, None)
    bytes_ = (np.clip(rgb, 0.0, 1.0) * 255).round().astype(np.uint8)
    return bytes_.reshape(-1)
