"""Cutting of planes: all cells of a piecewise-linear network in a polygon of its input space."""

from inscape.piecewise.planes.budget import Budget
from inscape.piecewise.planes.canonical_order import Tidy, tidy
from inscape.piecewise.planes.cutting import Cells, cells
from inscape.piecewise.planes.frame import Frame, through, whole

__all__ = ["Budget", "Cells", "Frame", "Tidy", "cells", "through", "tidy", "whole"]
