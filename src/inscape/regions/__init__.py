"""Of which linear regions is it made? Linear regions on lines, in planes and around points."""

from inscape.piecewise.planes import Frame, through
from inscape.regions.boundary import Boundary, boundary, decision_boundary, level_set
from inscape.regions.closed_regions import ClosedRegions, closed_regions
from inscape.regions.grid_regions import GridRegions, grid_regions
from inscape.regions.ideal_shapes import IdealShape, expanded_simplex, hyperoctahedron
from inscape.regions.line_regions import LineRegions, line_regions
from inscape.regions.local_maps import LocalMaps, local_maps
from inscape.regions.plane_regions import PlaneRegions, plane_regions
from inscape.regions.region_at import RegionAt, region_at
from inscape.regions.region_bounds import RegionBounds, region_bounds
from inscape.regions.region_evolution import RegionEvolution, region_evolution
from inscape.regions.tropical import Tropical, tropical

__all__ = [
    "Boundary",
    "ClosedRegions",
    "Frame",
    "GridRegions",
    "IdealShape",
    "LineRegions",
    "LocalMaps",
    "PlaneRegions",
    "RegionAt",
    "RegionBounds",
    "RegionEvolution",
    "Tropical",
    "boundary",
    "closed_regions",
    "decision_boundary",
    "expanded_simplex",
    "grid_regions",
    "hyperoctahedron",
    "level_set",
    "line_regions",
    "local_maps",
    "plane_regions",
    "region_at",
    "region_bounds",
    "region_evolution",
    "through",
    "tropical",
]
