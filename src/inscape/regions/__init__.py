"""Of which exact pieces is it made? Linear regions on lines, in planes and around points."""

from inscape._core.pieces.plane import Frame, through
from inscape.regions.plane_regions import PlaneRegions, plane_regions

__all__ = ["Frame", "PlaneRegions", "plane_regions", "through"]
