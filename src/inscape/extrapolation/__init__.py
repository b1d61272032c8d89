"""How far to trust it? Errors by zone and distance, beside simple models of the same data."""

from inscape.extrapolation.convex_hull import ConvexHull, convex_hull
from inscape.extrapolation.error_map import ErrorMap, error_map
from inscape.extrapolation.extrapolation import ZONES, Extrapolation, extrapolation
from inscape.extrapolation.profile import Profile, log_errors, profile

__all__ = [
    "ZONES",
    "ConvexHull",
    "ErrorMap",
    "Extrapolation",
    "Profile",
    "convex_hull",
    "error_map",
    "extrapolation",
    "log_errors",
    "profile",
]
