"""A network as affine and piecewise-linear operations, read from its exported graph."""

from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.lipschitz_chain import AffineSegment, chain
from inscape.piecewise.graph.program import Program
from inscape.piecewise.graph.two_layer import TwoLayer, two_layer
from inscape.piecewise.lines.segment import Cut, cut
from inscape.piecewise.planes.frame import Frame, through, whole

__all__ = [
    "AffineSegment",
    "Cut",
    "Frame",
    "Program",
    "TwoLayer",
    "chain",
    "cut",
    "export",
    "through",
    "two_layer",
    "whole",
]
