"""Figures: each takes a result and axes, draws without computing anew, and returns the axes."""

from inscape.figures import boolean as boolean
from inscape.figures import controls as controls
from inscape.figures import evolution as evolution
from inscape.figures import extrapolation as extrapolation
from inscape.figures import kernels as kernels
from inscape.figures import landscape as landscape
from inscape.figures import pruning as pruning
from inscape.figures import regions as regions
from inscape.figures import regions_closed as regions_closed
from inscape.figures import regions_lines as regions_lines
from inscape.figures import regions_points as regions_points
from inscape.figures import robustness as robustness
from inscape.figures import sensitivity as sensitivity
from inscape.figures import similarity as similarity
from inscape.figures import smoothness as smoothness
from inscape.figures import spectra as spectra
from inscape.figures.drawing import caption, draw, has_figure, rendered, save_figure
from inscape.figures.notebook import show

__all__ = ["caption", "draw", "has_figure", "rendered", "save_figure", "show"]
