"""Models from .onnx files: read, never executed, and compared with ONNX's own reference."""

from pathlib import Path

from inscape.loaders.onnx.comparison import compared
from inscape.loaders.onnx.module import OnnxNetwork
from inscape.loaders.onnx.operators_shape import FLOATS
from inscape.loaders.onnx.reader import read_graph

__all__ = ["OnnxNetwork", "open_onnx"]


def open_onnx(path: Path, *, max_size: int | None = None) -> tuple[OnnxNetwork, tuple[str, ...]]:
    """Return the network of a file, and what there is to say about it."""
    graph = read_graph(path, max_size=max_size)
    net = OnnxNetwork(graph)
    notes = compared(net, graph)
    halves = any(str(array.dtype) == "float16" for array in graph.constants.values())
    if halves:
        notes += ("converted from float16 to float32",)
    integers = [declared.name for declared in graph.inputs if declared.kind not in FLOATS]
    if integers and len(graph.inputs) == 1:
        notes += ("expects integers: inputs are rounded, and have no gradient",)
    return net, notes
