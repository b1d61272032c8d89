"""Figures: each takes a result and axes, draws without computing anew, and returns the axes."""

from inscape.figures import smoothness as smoothness
from inscape.figures import spectra as spectra
from inscape.figures.drawing import caption, draw, has_figure, rendered, save_figure

__all__ = ["caption", "draw", "has_figure", "rendered", "save_figure"]
