"""Cutting of planes: all cells of a piecewise-linear network in a polygon of its input space."""

from inscape._core.pieces.plane.budget import Budget
from inscape._core.pieces.plane.cutting import Cells, cells
from inscape._core.pieces.plane.frame import Frame, through, whole
from inscape._core.pieces.plane.tidying import Tidy, tidy

__all__ = ["Budget", "Cells", "Frame", "Tidy", "cells", "through", "tidy", "whole"]
