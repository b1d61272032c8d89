"""Networks in .onnx files: modules that every instrument takes, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn
from torch.testing import assert_close

import inscape
from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import arguments_of, one_input, open_data, open_model
from inscape.loaders.matching import one_output
from inscape.loaders.onnx import comparison
from inscape.regions import LineRegions, line_regions, local_maps
from loaders.onnx_files import FLOAT, draw, model, node, written


def layers(first, last, **settings):
    """Return a network of two layers with a bend between them."""
    nodes = [node("Gemm", "x a b", "h", transB=1), first, node("Gemm", "k c d", last, transB=1)]
    weights = {"a": draw(8, 4), "b": draw(8, seed=1), "c": draw(3, 8, seed=2), "d": draw(3, seed=3)}
    return model(nodes, (None, 4), weights={**weights, **settings})


@pytest.fixture
def small(tmp_path):
    return written(tmp_path / "small.onnx", layers(node("Relu", "h", "k"), "y"))


def test_weights_are_parameters_and_the_module_is_in_eval_mode(small):
    opened = open_model(small)
    assert {name: tuple(p.shape) for name, p in opened.model.named_parameters()} == {
        "a": (8, 4),
        "b": (8,),
        "c": (3, 8),
        "d": (3,),
    }
    assert not opened.was_training
    assert "differs from onnx.reference by at most" in opened.notes[0]


def test_it_is_copied_pickled_and_computed_in_another_precision(small):
    net = open_model(small, dtype="float64").model
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert_close(other(x), net(x), rtol=0, atol=0)
    a, b, c, d = net.parameters()
    assert_close(net(x), torch.relu(x @ a.T + b) @ c.T + d)


CNN = [
    node("Conv", "x w v", "c", auto_pad="SAME_UPPER", strides=[1, 1], kernel_shape=[3, 3]),
    node("BatchNormalization", "c s t m n", "d"),
    node("PRelu", "d p", "e"),
    node("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    node("Resize", "f r q", "g"),
    node("Flatten", "g", "h"),
    node("Gemm", "h a b", "i"),
    node("Clip", "i low high", "y"),
]
CNN_WEIGHTS = {
    **{"w": draw(3, 1, 3, 3), "v": draw(3), "s": draw(3), "t": draw(3), "m": draw(3)},
    **{"n": draw(3) ** 2 + 1, "p": 0.2 + 0 * draw(3, 1, 1), "r": draw(0), "b": draw(2)},
    **{"q": np.array([1, 1, 2, 2], np.float32), "a": draw(108, 2)},
    **{"low": np.float32(0), "high": np.float32(6)},
}


@pytest.mark.parametrize(
    ("proto", "shape"),
    [
        (layers(node("Relu", "h", "k"), "y"), (4,)),
        (layers(node("PRelu", "h s", "k"), "y", s=np.float32([0.1] * 8)), (4,)),
        (layers(node("Clip", "h s t", "k"), "y", s=np.float32(0), t=np.float32(6)), (4,)),
        (layers(node("HardSigmoid", "h", "k"), "y"), (4,)),
        (model(CNN, (1, 1, 5, 5), weights=CNN_WEIGHTS), (1, 5, 5)),
    ],
    ids=["relu", "prelu", "clip", "hard sigmoid", "convolutions"],
)
def test_piecewise_linear_networks_reach_the_exact_engine(tmp_path, proto, shape):
    net = open_model(written(tmp_path / "net.onnx", proto), dtype="float64").model
    start, end = (torch.from_numpy(draw(*shape, seed=s)).double() for s in (4, 5))
    result = line_regions(net, torch.stack([-5 * start, 5 * end]))
    assert isinstance(result, LineRegions), result
    assert len(result.t) > 4
    places = torch.linspace(0, 1, 1001, dtype=torch.float64)
    with torch.no_grad():
        values = net(torch.stack([-5 * start + t * 5 * (start + end) for t in places])).T
    for made, knots in zip(values, result.values.T, strict=True):  # linear between the breakpoints
        assert_close(made.numpy(), np.interp(places, result.t, knots), rtol=0, atol=1e-9)
    jacobian = torch.autograd.functional.jacobian(lambda x: net(x[None])[0], start)
    maps = local_maps(net, start[None])
    assert_close(maps.jacobians[0], jacobian.flatten(1))


def test_a_file_for_one_row_takes_any_number(tmp_path):
    nodes = [
        node("Reshape", "x s", "a"),
        node("Relu", "a", "b"),
        node("Reshape", "b t", "y"),
    ]
    weights = {"s": np.array([1, 2, -1]), "t": np.array([1, 6])}
    opened = open_model(written(tmp_path / "net.onnx", model(nodes, (1, 6), weights=weights)))
    assert "written for 1 example at a time, takes any number: 2 shapes" in opened.notes[0]
    x = torch.from_numpy(draw(7, 6))
    assert_close(opened.model(x), torch.relu(x))
    program = torch.export.export(
        opened.model, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)
    )
    assert program.module()(x[:3]).shape == (3, 6)


def test_a_file_that_mixes_rows_says_so(tmp_path):
    nodes = [node("Transpose", "x", "t"), node("MatMul", "t x", "y")]
    opened = open_model(written(tmp_path / "net.onnx", model(nodes, (2, 3))))
    assert opened.notes[0] == "written for 2 examples at a time, and takes no others"


def test_several_outputs_are_taken_by_name(tmp_path):
    nodes = [node("Relu", "x", "up"), node("Neg", "x", "down")]
    path = written(tmp_path / "net.onnx", model(nodes, (None, 3), outputs=("up", "down")))
    opened, x = open_model(path), torch.from_numpy(draw(4, 3))
    assert list(opened.model(x)) == ["up", "down"]
    taken = one_output(opened, open_data(x), take="down")
    assert_close(taken.model(x), -x)


def test_several_inputs_are_told_the_line_to_type(tmp_path):
    inputs = {"left": (None, 3), "right": (None, 3)}
    proto = model([node("Sub", "left right", "y")], None, inputs=inputs)
    net = open_model(written(tmp_path / "net.onnx", proto)).model
    a, b = (torch.from_numpy(draw(4, 3, seed=s)) for s in (0, 1))
    with pytest.raises(UnsupportedModelError, match=r"adapt\(.*inputs=\{'left': ..., 'right'"):
        net(a)
    both = {"left": a, "right": b}
    adapted = inscape.adapt(net, inputs=both)
    assert_close(adapted(adapted.rows(both)), a - b)


def test_arrays_with_the_names_of_its_inputs_are_its_inputs(tmp_path):
    proto = model([node("Add", "a b", "y")], None, inputs={"a": ["n", 3], "b": ["n", 3]})
    opened = open_model(str(written(tmp_path / "two.onnx", proto)))
    assert arguments_of(opened.model) == ("a", "b")
    a, b, y = draw(5, 3), draw(5, 3, seed=1), np.arange(5) % 2
    np.savez(tmp_path / "two.npz", b=b, a=a, y=y)
    data = open_data(str(tmp_path / "two.npz"), arguments=arguments_of(opened.model))
    single, joined = one_input(opened, data, None)
    assert_close(single.model(joined.x), torch.from_numpy(a + b))


def test_rows_of_another_shape_are_refused(small):
    with pytest.raises(ValueError, match=r"'x' must have samples of shape 4, found \(2, 5\)"):
        open_model(small).model(torch.zeros(2, 5))


def test_weights_beside_the_file_are_read_and_others_are_not(tmp_path):
    proto = layers(node("Relu", "h", "k"), "y")
    tensor = proto.graph.initializer[0]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.bin").write_bytes(tensor.raw_data)
    (tmp_path / "a.bin").write_bytes(tensor.raw_data)
    (tmp_path / "in" / "link.bin").symlink_to(tmp_path / "a.bin")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add(key="location", value="a.bin")
    path = written(tmp_path / "in" / "net.onnx", proto)
    assert_close(open_model(path).model.a, nn.Parameter(torch.from_numpy(draw(8, 4))))
    for location in ("../a.bin", str(tmp_path / "a.bin"), "link.bin", "none.bin", ""):
        entry.value = location
        with pytest.raises(UnsupportedModelError, match=r"numbers in .*folder"):
            open_model(written(path, proto))


def refused(*nodes, opset=17, **settings):
    return model(list(nodes), (None, 4), opset=opset, **settings)


BRANCH = helper.make_graph([], "branch", [], [helper.make_tensor_value_info("x", FLOAT, None)])


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (refused(node("Det", "x", "y", name="here")), "'Det at node here'"),
        (
            refused(node("Relu", "x", "y", domain="my.own")),
            "standard operators, found 'my.own.Relu",
        ),
        (
            refused(node("Scaler", "x", "y", domain="ai.onnx.ml")),
            "'ai.onnx.ml.Scaler at node y': open the model that it was made from",
        ),
        (
            refused(node("Loop", "x", "y", body=BRANCH)),
            "no control flow, found 'Loop at node y'",
        ),
        (refused(node("Relu", "x", "y"), opset=6), "from 7 to 28, found 'version 6'"),
        (refused(node("Relu", "x", "y"), opset=99), "found 'version 99'"),
        (refused(node("Relu", "z", "y")), "each after what .* reads, found 'z'"),
        (refused(node("Relu", "x", "z")), "outputs that are made, found 'y'"),
        (refused(node("Shape", "", "y")), "steps with 1 inputs, found 'fewer for Shape"),
        (refused(node("PRelu", "x", "y")), "steps with 2 inputs"),
        (refused(node("LayerNormalization", "x", "y")), "LayerNormalization"),
        (refused(node("Relu", "x", "x")), "a name for each result"),
        (
            refused(
                node("Resize", "x r s", "y", mode="cubic"),
                weights={"r": draw(0), "s": draw(2) ** 2},
            ),
            "nearest or linear",
        ),
        (refused(node("Reshape", "x x", "y")), "does not depend on the values of the input"),
        (refused(node("Add", "x w", "y"), weights={"w": draw(7)}), r"node 'y' \(Add\)"),
    ],
)
def test_what_is_not_known_is_refused_by_name(tmp_path, proto, text):
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(written(tmp_path / "net.onnx", proto))


def test_damaged_and_large_files_are_refused(small):
    with pytest.raises(DataError, match="must unpack to at most"):
        open_model(small, max_size=10)
    small.write_bytes(small.read_bytes()[:-20])
    with pytest.raises(UnsupportedModelError):
        open_model(small)


def test_an_import_that_differs_is_refused(small, monkeypatch):
    reference = comparison._reference
    monkeypatch.setattr(comparison, "_reference", lambda *a: [v + 1 for v in reference(*a)])
    with pytest.raises(UnsupportedModelError, match=r"must agree with onnx\.reference"):
        open_model(small)


def test_without_the_package_the_extra_is_named(small, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'inscape\[onnx\]'"):
        open_model(small)


def branch(name, *nodes):
    output = [helper.make_tensor_value_info(name, FLOAT, None)]
    return helper.make_graph(list(nodes), name, [], output)


def choosing(condition, given):
    """Return a model that doubles where a condition holds, and else negates."""
    sides = {
        "then_branch": branch("t", node("Mul", "x two", "t")),
        "else_branch": branch("e", node("Neg", "x", "e")),
    }
    steps = [*condition, helper.make_node("If", ["c"], ["y"], **sides)]
    return model(steps, (None, 3), weights={"two": np.float32([2]), **given})


def test_an_if_follows_the_sizes(tmp_path):
    condition = [node("Shape", "x", "s"), node("Gather", "s one", "n"), node("Equal", "n k", "c")]
    x = torch.from_numpy(draw(4, 3))
    for size, factor in ((3, 2), (5, -1)):
        proto = choosing(condition, {"one": np.int64(1), "k": np.int64(size)})
        opened = open_model(written(tmp_path / f"{size}.onnx", proto))
        assert_close(opened.model(x), factor * x)
        assert "differs from onnx.reference by at most 0" in opened.notes[-1]


def test_an_if_follows_a_single_integer_which_is_fixed(tmp_path):
    proto = choosing([node("Equal", "rate k", "c")], {"k": np.int64(16000)})
    proto.graph.input.append(helper.make_tensor_value_info("rate", TensorProto.INT64, []))
    net = open_model(written(tmp_path / "net.onnx", proto)).model
    x = torch.from_numpy(draw(4, 3))
    for rate, factor in ((16000, 2), (8000, -1)):
        fixed = inscape.adapt(net, inputs="x", fixed={"rate": rate})
        assert_close(fixed(x), factor * x)
        regions = line_regions(fixed.double(), x[:2].double())
        assert isinstance(regions, LineRegions), regions


def test_an_if_that_depends_on_the_row_is_refused(tmp_path):
    condition = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s two", "c")]
    path = written(tmp_path / "net.onnx", choosing(condition, {}))
    with pytest.raises(UnsupportedModelError, match=r"condition that does not depend on the val"):
        open_model(path)
