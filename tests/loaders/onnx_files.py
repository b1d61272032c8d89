"""Small ONNX files for tests."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def node(op, inputs, outputs, **settings):
    return helper.make_node(op, inputs.split(), outputs.split(), **settings)


def model(nodes, shape, *, weights=None, opset=17, outputs=("y",), inputs=None):
    """Return a model of one float input x, or of named ones, and outputs of any shape."""
    given = inputs or {"x": shape}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, FLOAT, sizes) for name, sizes in given.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def written(path: Path, proto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
