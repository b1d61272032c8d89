"""Segments of the input space, cut at every breakpoint of a piecewise-linear network."""
