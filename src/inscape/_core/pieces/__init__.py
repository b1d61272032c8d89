"""A network as affine and piecewise-linear steps, read from its exported graph."""

from inscape._core.pieces.chain import Segment, chain
from inscape._core.pieces.graph_cache import export
from inscape._core.pieces.line import Cut, cut
from inscape._core.pieces.program import Program
from inscape._core.pieces.two_layer import TwoLayer, two_layer

__all__ = ["Cut", "Program", "Segment", "TwoLayer", "chain", "cut", "export", "two_layer"]
