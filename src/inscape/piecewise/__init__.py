"""A network as affine and piecewise-linear steps, read from its exported graph."""

from inscape.piecewise.graph.cache import export
from inscape.piecewise.graph.lipschitz_chain import Segment, chain
from inscape.piecewise.graph.program import Program
from inscape.piecewise.graph.two_layer import TwoLayer, two_layer
from inscape.piecewise.lines.segment import Cut, cut

__all__ = ["Cut", "Program", "Segment", "TwoLayer", "chain", "cut", "export", "two_layer"]
