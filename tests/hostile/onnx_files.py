"""Hostile .onnx files: graphs that would take all memory, read other files, or run code."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from hostile.kinds import kind

FLOAT = TensorProto.FLOAT


def _write(path, nodes, weights=None, opset=17, shape=(None, 6)):
    made = {
        name: numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        list(made.values()),
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(proto.SerializeToString())
    return proto


def _node(op, inputs, outputs="y", **settings):
    return helper.make_node(op, inputs.split(), outputs.split(), **settings)


def _bomb(op, values, **settings):
    """Return a maker of a file whose operator would make a tensor of any size."""

    def make(path: Path, _: Path) -> None:
        _write(path, [_node(op, "x s", **settings)], {"s": values})

    return make


for name, op, values in [
    ("expand", "Expand", np.array([10**6, 10**6, 1, 6])),
    ("tile", "Tile", np.array([10**6, 10**7])),
    ("pad", "Pad", np.array([0, 0, 0, 10**13])),
    ("far_beyond", "Expand", np.array([2**62, 2**62, 1, 6])),
    ("negative_sizes", "Expand", np.array([-5, 1, 6])),
    ("other_shape", "Reshape", np.array([2**62, 2**62, -1])),
    ("index_out_of_range", "Gather", np.array([2**62, -(2**62)])),
]:
    make = _bomb(op, values)
    make.__name__ = name
    kind("model", ".onnx")(make)


@kind("model", ".onnx")
def doubled_forever(path: Path, _: Path) -> None:
    """Double the columns fifty times."""
    names = ["x", *(f"h{i}" for i in range(49)), "y"]
    _write(path, [_node("Concat", f"{a} {a}", b, axis=1) for a, b in pairwise(names)])


@kind("model", ".onnx")
def resize(path: Path, _: Path) -> None:
    """Resize by two thousand million."""
    weights = {"r": np.zeros(0, np.float32), "s": np.array([1, 2e9], np.float32)}
    _write(path, [_node("Resize", "x r s")], weights)


@kind("model", ".onnx")
def constant_of_shape(path: Path, _: Path) -> None:
    """Make a constant of a million million numbers."""
    nodes = [_node("ConstantOfShape", "s", "h"), _node("Add", "x h")]
    _write(path, nodes, {"s": np.array([10**6, 10**6, 6])})


@kind("model", ".onnx")
def endless_range(path: Path, _: Path) -> None:
    """Count to 2^62."""
    nodes = [_node("Range", "a b c", "h"), _node("Reshape", "x h")]
    _write(path, nodes, {"a": np.int64(0), "b": np.int64(2**62), "c": np.int64(1)})


@kind("model", ".onnx")
def huge_strides(path: Path, _: Path) -> None:
    """Convolve with strides that crash the native kernel."""
    nodes = [_node("Conv", "x w", strides=[7001])]
    _write(path, nodes, {"w": np.ones((1, 6, 1), np.float32)}, shape=(None, 6, 1))


@kind("model", ".onnx")
def recurrent_weights(path: Path, _: Path) -> None:
    """Bring weights of an LSTM that do not fit together."""
    weights = {"w": np.ones((1, 3, 6), np.float32), "r": np.ones((1, 999, 1), np.float32)}
    nodes = [_node("Unsqueeze", "x one", "t"), _node("LSTM", "t w r", hidden_size=500)]
    _write(path, nodes, {**weights, "one": np.array([1])})


@kind("model", ".onnx")
def more_than_there_is(path: Path, _: Path) -> None:
    """Declare a tensor of 10^15 numbers, and bring four bytes."""
    proto = _write(path, [_node("Add", "x w")], {"w": np.ones(1, np.float32)})
    proto.graph.initializer[0].dims[:] = [10**15]
    path.write_bytes(proto.SerializeToString())


@kind("model", ".onnx")
def negative_dimensions(path: Path, _: Path) -> None:
    """Declare two negative sizes, whose product fits."""
    proto = _write(path, [_node("Add", "x w")], {"w": np.ones(1, np.float32)})
    proto.graph.initializer[0].dims[:] = [-1, -1]
    path.write_bytes(proto.SerializeToString())


@kind("model", ".onnx")
def password_file(path: Path, _: Path) -> None:
    """Ask for the numbers of a tensor from a file of the system."""
    proto = _write(path, [_node("Add", "x w")], {"w": np.ones(1, np.float32)})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")
    path.write_bytes(proto.SerializeToString())


@kind("model", ".onnx")
def own_domain(path: Path, _: Path) -> None:
    """Name an operator of another domain, with code beside it."""
    _write(path, [_node("PythonOp", "x", domain="com.microsoft")])


@kind("model", ".onnx")
def text_tensor(path: Path, _: Path) -> None:
    """Bring a tensor of text."""
    _write(path, [_node("Add", "x w")], {"w": np.array(["a", "b"], dtype=object)})


@kind("model", ".onnx")
def long_names(path: Path, _: Path) -> None:
    """Give an unknown operator a name of a million letters and lines."""
    _write(path, [helper.make_node("Nothing\n" * 1000, ["x"], ["y"], name="line\n" * 10**6)])


@kind("model", ".onnx")
def no_protobuf(path: Path, _: Path) -> None:
    """Hold bytes that are no protobuf."""
    path.write_bytes(bytes(range(256)) * 100)
