"""Cutting of planes: all cells of a piecewise-linear network in a polygon of its input space."""

from inscape.piecewise.planes.budget import CutBudget
from inscape.piecewise.planes.canonical_order import CanonicalCells, in_canonical_order
from inscape.piecewise.planes.cutting import Cells, cells
from inscape.piecewise.planes.frame import Frame, through, whole

__all__ = [
    "CanonicalCells",
    "Cells",
    "CutBudget",
    "Frame",
    "cells",
    "in_canonical_order",
    "through",
    "whole",
]
