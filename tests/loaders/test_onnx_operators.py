"""Each operator of ONNX, in each version that differs, computes what onnx.reference computes."""

import re

import numpy as np
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from torch.testing import assert_close

from inscape.loaders import open_model
from loaders.onnx_files import draw, model, node, written

IMAGE, ROWS = (None, 4, 8, 6), (None, 6)
I64 = np.int64


def ints(*values):
    return np.array(values, dtype=I64)


def case(op, shape=ROWS, *, opset=17, inputs="x", outputs="y", weights=None, **settings):
    given = f"{op}-{opset}-" + "-".join(f"{k}={v}" for k, v in settings.items())
    nodes = [node(op, inputs, outputs, **settings)]
    made = model(nodes, shape, weights=weights, opset=opset, outputs=outputs.split())
    return pytest.param(made, shape, id=re.sub(r"[^\w=.-]", "", given))


def with_weight(op, weight, shape=ROWS, **settings):
    return case(op, shape, inputs="x w", weights={"w": weight}, **settings)


PLAIN = (
    "Relu Sigmoid Tanh Abs Neg Exp Erf Sin Cos Floor Ceil Round Sign Softplus Softsign HardSwish"
)
REDUCED = "ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceProd ReduceSumSquare"
W3, W5 = draw(3, 4, 3, 3), draw(5, 2, 3, 3)
NORM = {"a": draw(4), "b": draw(4, seed=1), "m": draw(4, seed=2), "v": draw(4, seed=3) ** 2}
CASES = [
    *(case(op) for op in PLAIN.split()),
    case("Mish", opset=18),
    *(case(op, opset=13, axes=[1], keepdims=0) for op in (*REDUCED.split(), "ReduceLogSumExp")),
    *(with_weight(op, ints(1), opset=18, keepdims=1) for op in REDUCED.split()),
    case("ReduceSum", opset=11, axes=[-1]),
    with_weight("ReduceSum", ints(-1), opset=13),
    *(case(op, alpha=0.3) for op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")),
    *(case(op) for op in ("Selu", "HardSigmoid", "LeakyRelu")),
    case("HardSigmoid", alpha=1 / 6, beta=0.5),
    case("Gelu", opset=20),
    case("Gelu", opset=20, approximate="tanh"),
    *(with_weight(op, draw(6), opset=o) for op in ("Add", "Sub", "Mul", "Div") for o in (7, 14)),
    *(with_weight(op, draw(1, 6), opset=13) for op in ("Max", "Min", "Sum", "Mean")),
    with_weight("Pow", np.float32(2.0), opset=13),
    *(with_weight("PRelu", draw(*s), IMAGE, opset=9) for s in [(4, 1, 1), (1,), (4, 8, 6)]),
    with_weight("PRelu", draw(6), opset=16),
    case("Clip", opset=10, min=0.0, max=6.0),
    case("Clip", opset=7, max=0.25),
    case("Clip", inputs="x a b", weights={"a": np.float32(-0.5), "b": np.float32(0.5)}, opset=11),
    case("Clip", inputs="x a", weights={"a": np.float32(0.0)}, opset=13),
    *(case(op, IMAGE, opset=o) for op in ("Softmax", "LogSoftmax") for o in (11, 13)),
    case("Softmax", IMAGE, opset=9, axis=2),
    with_weight("MatMul", draw(6, 3)),
    with_weight("Gemm", draw(6, 3)),
    with_weight("Einsum", draw(6, 3), equation="ni, ij -> nj"),
    with_weight("Einsum", draw(2, 3, 4), IMAGE, equation="nbcd,jkb->nkcd"),
    case("Gemm", inputs="x w b", weights={"w": draw(3, 6), "b": draw(3)}, transB=1),
    case("Gemm", inputs="x w b", weights={"w": draw(6, 3), "b": draw(3)}, alpha=0.5, beta=2.0),
    with_weight("Conv", W3, IMAGE),
    with_weight("Conv", W3, IMAGE, pads=[1, 1, 1, 1], strides=[2, 2]),
    with_weight("Conv", W3, IMAGE, pads=[0, 1, 2, 1], dilations=[1, 2]),
    *(with_weight("Conv", W3, IMAGE, auto_pad=p, strides=[2, 2]) for p in ("SAME_UPPER", "VALID")),
    with_weight("Conv", W3, IMAGE, auto_pad="SAME_LOWER", strides=[2, 2]),
    with_weight("Conv", draw(4, 2, 3, 3), IMAGE, group=2),
    with_weight("Conv", draw(3, 2, 3), (None, 2, 9), pads=[1, 1]),
    with_weight("Conv", draw(2, 2, 2, 2, 2), (None, 2, 4, 5, 3)),
    with_weight("ConvTranspose", draw(4, 2, 3, 3), IMAGE, strides=[2, 2], pads=[1, 1, 1, 1]),
    with_weight("ConvTranspose", draw(4, 2, 3, 3), IMAGE, strides=[2, 2], output_padding=[1, 1]),
    with_weight("ConvTranspose", draw(4, 2, 3, 3), IMAGE, strides=[2, 2], pads=[0, 0, 1, 1]),
    *(
        case("BatchNormalization", IMAGE, inputs="x a b m v", weights=NORM, opset=o, epsilon=1e-3)
        for o in (9, 15)
    ),
    case("InstanceNormalization", IMAGE, inputs="x a b", weights=NORM),
    case("LayerNormalization", inputs="x a b", weights={"a": draw(6), "b": draw(6)}),
    case("GroupNormalization", IMAGE, inputs="x a b", weights=NORM, opset=21, num_groups=2),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2]),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    case("MaxPool", IMAGE, kernel_shape=[2, 3], strides=[1, 1], pads=[1, 0, 0, 2]),
    case("MaxPool", (None, 2, 9), kernel_shape=[2], strides=[2]),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("AveragePool", IMAGE, kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1),
    case("AveragePool", IMAGE, kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
    *(case(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool", "Flatten", "Identity")),
    case("Dropout", opset=13),
    case("Transpose", IMAGE, perm=[0, 2, 3, 1]),
    with_weight("Reshape", ints(0, 2, -1), IMAGE),
    with_weight("Reshape", ints(-1, 12), IMAGE),
    case("Unsqueeze", opset=11, axes=[1]),
    with_weight("Unsqueeze", ints(1, -1), opset=13),
    case("Squeeze", (None, 1, 6), opset=11, axes=[1]),
    with_weight("Squeeze", ints(1), (None, 1, 6), opset=13),
    case("Concat", inputs="x x", axis=1),
    case("Split", opset=11, outputs="y z", axis=1, split=[2, 4]),
    case("Split", opset=13, inputs="x w", outputs="y z", weights={"w": ints(2, 4)}, axis=1),
    case("Split", opset=18, outputs="y z", axis=1, num_outputs=2),
    case("Slice", opset=9, axes=[1], starts=[1], ends=[-1]),
    case(
        "Slice",
        inputs="x s e a t",
        weights={"s": ints(-1), "e": ints(-100), "a": ints(1), "t": ints(-2)},
    ),
    case("Slice", inputs="x s e a", weights={"s": ints(1), "e": ints(2**62), "a": ints(1)}),
    with_weight("Gather", ints(0, -1, 2), axis=1),
    with_weight("Gather", I64(2), axis=1),
    with_weight("Gather", np.array([[0, 1], [2, 3]]), axis=1),
    case("Pad", IMAGE, opset=10, pads=[0, 0, 1, 2, 0, 0, 0, 1], value=0.5),
    *(with_weight("Pad", ints(0, 0, 1, 2, 0, 0, 0, 1), IMAGE, mode=m) for m in ("reflect", "edge")),
    with_weight("Pad", ints(0, 0, 0, 3, 0, 0, 0, 0), IMAGE, opset=18),
    with_weight("Expand", ints(1, 3, 1), (None, 1, 6)),
    with_weight("Tile", ints(1, 2)),
    case("DepthToSpace", IMAGE, blocksize=2),
    case("DepthToSpace", IMAGE, blocksize=2, mode="CRD"),
    case("SpaceToDepth", IMAGE, blocksize=2),
    *(
        case(
            "Resize",
            IMAGE,
            inputs="x r w",
            weights={"r": draw(0), "w": np.array([1, 1, *scales], np.float32)},
            opset=13,
            mode=mode,
            coordinate_transformation_mode=place,
        )
        for mode in ("nearest", "linear")
        for place in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        for scales in [(2, 3), (0.5, 1.5)]
    ),
    *(
        case(
            "Resize",
            IMAGE,
            inputs="x r w",
            weights={"r": draw(0), "w": np.array([1, 1, 1.7, 0.6], np.float32)},
            opset=13,
            nearest_mode=rounding,
        )
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    ),
    case("ArgMax", axis=1),
]


def together(name, nodes, shape=ROWS, **settings):
    return pytest.param(model(nodes, shape, **settings), shape, id=name)


GATES = {"w": draw(1, 12, 6), "r": draw(1, 12, 3, seed=1), "b": draw(1, 24, seed=2)}
TIMES = [node("Transpose", "x", "t", perm=[1, 0, 2])]
SEVERAL = [
    *(
        together(
            f"{op}-where", [node(op, "x w", "c"), node("Where", "c x w", "y")], weights={"w": w}
        )
        for op in ("Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual")
        for w in [draw(6)]
    ),
    together(
        "cast there and back",
        [node("Cast", "x", "a", to=7), node("Cast", "a", "y", to=1)],
    ),
    together(
        "truth values",
        [
            node("Greater", "x w", "a"),
            node("Not", "a", "b"),
            node("And", "a b", "c"),
            node("Or", "a c", "d"),
            node("Xor", "d b", "e"),
            node("Cast", "e", "y", to=1),
        ],
        weights={"w": draw(6)},
    ),
    together(
        "positive",
        [
            node("Abs", "x", "a"),
            node("Sqrt", "a", "b"),
            node("Log", "a", "c"),
            node("Reciprocal", "b", "d"),
            node("Add", "c d", "y"),
        ],
    ),
    together(
        "a shape made of sizes",
        [
            node("Shape", "x", "s"),
            node("Gather", "s zero", "n", axis=0),
            node("Unsqueeze", "n first", "rows"),
            node("Mul", "two two", "four"),
            node("Concat", "rows minus four", "to", axis=0),
            node("Reshape", "x to", "y"),
        ],
        IMAGE,
        weights={"zero": I64(0), "first": ints(0), "minus": ints(-1), "two": ints(2)},
    ),
    together(
        "zeros for each row",
        [
            node("Shape", "x", "s"),
            node("ConstantOfShape", "s", "zeros"),
            node("Add", "x zeros", "a"),
            node("Shape", "x", "t", start=1),
            node("Cast", "t", "u", to=1),
            node("Sqrt", "u", "v"),
            node("Div", "a v", "y"),
        ],
    ),
    together(
        "sizes of a resize",
        [
            node("Shape", "x", "s"),
            node("Slice", "s zero two", "front"),
            node("Concat", "front more", "sizes", axis=0),
            helper.make_node("Resize", ["x", "", "", "sizes"], ["y"]),
        ],
        IMAGE,
        weights={"zero": ints(0), "two": ints(2), "more": ints(9, 4)},
    ),
    together(
        "lstm",
        [
            *TIMES,
            node("LSTM", "t w r b", "h l c", hidden_size=3),
            node("Transpose", "h", "y", perm=[2, 0, 1, 3]),
        ],
        (None, 5, 6),
        weights=GATES,
    ),
    together(
        "gru",
        [
            *TIMES,
            node("GRU", "t w r b", "h l", hidden_size=3, linear_before_reset=1),
            node("Transpose", "h", "y", perm=[2, 0, 1, 3]),
        ],
        (None, 5, 6),
        weights={"w": draw(1, 9, 6), "r": draw(1, 9, 3, seed=1), "b": draw(1, 18, seed=2)},
    ),
]


def expectations(proto, x):
    """Return what the reference makes, or, where its own is known to be another, the formula."""
    first, opset = proto.graph.node[0], proto.opset_import[0].version
    if first.op_type == "BatchNormalization":  # before 14 its reference is that of training
        a, b, m, v = (NORM[key][:, None, None] for key in "abmv")
        return [a * (x - m) / np.sqrt(v + 1e-3) + b]
    if "Softmax" in first.op_type and opset < 13:  # over all axes from there on
        axis = first.attribute[0].i if first.attribute else 1
        flat = torch.from_numpy(x).flatten(axis)
        function = torch.log_softmax if "Log" in first.op_type else torch.softmax
        return [function(flat, axis).reshape(x.shape).numpy()]
    return ReferenceEvaluator(proto).run(None, {"x": x})


@pytest.mark.parametrize(("proto", "shape"), CASES + SEVERAL)
def test_an_operator_is_that_of_the_reference(tmp_path, proto, shape):
    opened = open_model(written(tmp_path / "net.onnx", proto))
    assert opened.notes[0].startswith("differs from onnx.reference by at most")
    x = draw(3, *shape[1:], seed=7)
    made = opened.model(torch.from_numpy(x))
    made = list(made.values()) if isinstance(made, dict) else [made]
    expected = expectations(proto, x)
    for one, other in zip(made, expected, strict=True):
        other = torch.from_numpy(np.ascontiguousarray(other))
        assert_close(one.to(other.dtype), other, rtol=1e-4, atol=1e-5)


def test_there_are_many_operators():
    known = {node.op_type for case in CASES + SEVERAL for node in case.values[0].graph.node}
    assert len(known) > 80


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 1.5, 0.5)])
@pytest.mark.parametrize(("op", "opset"), [("Resize", 10), ("Upsample", 9)])
def test_old_resizes_are_asymmetric_and_round_down(tmp_path, mode, scales, op, opset):
    weights = {"w": np.array(scales, np.float32), "r": draw(0)}
    old = model([node(op, "x w", "y", mode=mode)], IMAGE, weights=weights, opset=opset)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "mode": mode}
    new = model([node("Resize", "x r w", "y", **how)], IMAGE, weights=weights, opset=13)
    x = draw(3, *IMAGE[1:])
    (expected,) = ReferenceEvaluator(new).run(None, {"x": x})
    made = open_model(written(tmp_path / "net.onnx", old)).model(torch.from_numpy(x))
    assert_close(made, torch.from_numpy(expected), rtol=1e-4, atol=1e-5)


def test_negative_pads_cut(tmp_path):
    pads = {"w": ints(0, 0, 1, 0, 0, 0, 0, -1)}
    proto = model([node("Pad", "x w", "y")], IMAGE, weights=pads)
    x = torch.from_numpy(draw(3, *IMAGE[1:]))
    expected = torch.nn.functional.pad(x[..., :-1], [0, 0, 1, 0])
    assert_close(open_model(written(tmp_path / "net.onnx", proto)).model(x), expected)
