"""Damaged and malicious archives: named, and nothing in them runs."""

import pickle
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from inscape.errors import UnsupportedModelError
from inscape.loaders import open_model
from inscape.loaders.operators import operation


@pytest.mark.parametrize("keep", [0.3, 0.999])
def test_truncated_archive(linear, tmp_path, keep):
    data = linear.read_bytes()
    (tmp_path / "cut.pt2").write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ValueError, match=r"whole \.pt2 archive, found one that cannot be read"):
        open_model(tmp_path / "cut.pt2")


def node(found: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = found["graph_module"]["graph"]["nodes"][0]
    return first


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "no graph": ({"models__model_json": None}, "holds no graph under models/model.json"),
    "no weights": ({"data__weights__model_weights_config_json": None}, "holds no data/weights/mo"),
    "not json": ({"models__model_json": b"{"}, r"description is damaged \(JSONDecodeError"),
    "deep json": ({"models__model_json": b"[" * 100_000}, r"damaged \(RecursionError"),
    "lost key": (
        {"models__model_json": lambda m: m["graph_module"]["graph"].pop("nodes")},
        r"description is damaged \(KeyError: 'nodes'\)",
    ),
    "version": (
        {"models__model_json": lambda m: m["schema_version"].update(major=99)},
        "its format has version 99",
    ),
    "byte order": ({"byteorder": b"big"}, "another byte order"),
    "unmade": (
        {"models__model_json": lambda m: node(m)["inputs"][0]["arg"]["as_tensor"].update(name="z")},
        "reads 'z' unmade",
    ),
    "no output": (
        {"models__model_json": lambda m: m["graph_module"]["graph"]["nodes"].clear()},
        "no step makes its output",
    ),
    "input kind": (
        {
            "models__model_json": lambda m: m["graph_module"]["signature"]["input_specs"].append(
                {"token": {}}
            )
        },
        "takes an input of the kind 'token'",
    ),
    "argument kind": (
        {"models__model_json": lambda m: node(m)["inputs"][0].update(arg={"as_graph": {}})},
        "argument of the kind 'as_graph'",
    ),
    "dtype": (
        {
            "data__weights__model_weights_config_json": lambda m: m["config"]["0.bias"][
                "tensor_meta"
            ].update(dtype=29)
        },
        "the number format 29",
    ),
    "pickle": (
        {
            "data__weights__model_weights_config_json": lambda m: m["config"]["0.bias"].update(
                use_pickle=True
            )
        },
        "keeps '0.bias' as a pickle, which can run code",
    ),
    "size": (
        {
            "data__weights__model_weights_config_json": lambda m: m["config"]["0.bias"][
                "tensor_meta"
            ].update(sizes=[{"as_int": 10**6}])
        },
        r"description is damaged \(RuntimeError",
    ),
}


@pytest.mark.skipif(sys.byteorder == "big", reason="the archive is little-endian")
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_description_is_named(changed, linear, tmp_path, name):
    members, text = DAMAGE[name]
    path = changed(linear, tmp_path / "bad.pt2", **members)
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(path)


def test_trust_does_not_hide_why_a_damaged_file_cannot_be_read(changed, linear, tmp_path):
    path = changed(linear, tmp_path / "bad.pt2", models__model_json=b"{")
    with pytest.raises(UnsupportedModelError, match=r"damaged.*and torch\.export\.load raised"):
        open_model(path, trust=True)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(changed, linear, tmp_path):
    path = changed(linear, tmp_path / "twice.pt2")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{archive.namelist()[0].partition('/')[0]}/models/model.json", b"{}")
    with pytest.raises(UnsupportedModelError, match="two members of one name"):
        open_model(path)


class Evil:
    """A pickle of this writes a file where it is loaded with code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def evil_archives(mark: Path) -> dict[str, dict[str, Any]]:
    write = f"__import__('pathlib').Path({str(mark)!r}).touch()"

    def target(model: dict[str, Any]) -> None:
        node(model)["target"] = "torch.os.system"
        node(model)["inputs"] = [
            {"name": "", "arg": {"as_string": f"touch {mark}"}, "kind": 1},
        ]

    def file_operator(model: dict[str, Any]) -> None:
        node(model)["target"] = "torch.ops.aten.from_file.default"
        node(model)["inputs"] = [
            {"name": "filename", "arg": {"as_string": str(mark)}, "kind": 1},
            {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
            {"name": "size", "arg": {"as_int": 6}, "kind": 1},
        ]

    def expression(model: dict[str, Any]) -> None:
        sizes = model["graph_module"]["graph"]["tensor_values"]["input"]["sizes"]
        sizes[0]["as_expr"]["expr_str"] = write

    def pickled(config: dict[str, Any]) -> None:
        config["config"]["0.bias"]["use_pickle"] = True

    evil = pickle.dumps(Evil(mark))
    return {
        "target": {"models__model_json": target},
        "file operator": {"models__model_json": file_operator},
        "expression": {"models__model_json": expression},
        "guards": {"models__model_json": lambda m: m.update(guards_code=[write])},
        "sample inputs": {"data__sample_inputs__model.pt": evil},
        "weights": {
            "data__weights__model_weights_config_json": pickled,
            "data__weights__weight_1": evil,
        },
    }


WAYS = ["target", "file operator", "expression", "guards", "sample inputs", "weights"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_in_a_malicious_archive_runs(changed, linear, tmp_path, way):
    mark = tmp_path / "was_here"
    path = changed(linear, tmp_path / "evil.pt2", **evil_archives(mark)[way])
    try:
        opened = open_model(path)
    except UnsupportedModelError as error:
        assert "--trust" in str(error)  # noqa: PT017 - either end is right, a file is not
    else:
        opened.model(torch.randn(2, 3))
    assert not mark.exists()


@pytest.mark.parametrize("way", WAYS[1:])  # PyTorch's own verifier stops the first
def test_the_malicious_archives_are_malicious(changed, linear, tmp_path, way):
    mark = tmp_path / "was_here"
    path = changed(linear, tmp_path / "evil.pt2", **evil_archives(mark)[way])
    with suppress(Exception):  # it has run by then
        torch.export.load(path).module()(torch.randn(2, 3))
    assert mark.exists()


@pytest.mark.parametrize(
    "target",
    [
        "torch.os.system",
        "torch.ops.aten.save.default",
        "torch.ops.aten.from_file.default",
        "torch.ops.aten.manual_seed.default",
        "torch.ops.aten._reshape_alias.default",
        "torch.ops.aten.adaptive_max_pool2d_backward.default",
        "torch.ops.aten.max_pool2d_with_indices_backward.default",
        "torch.ops.aten.reflection_pad1d_backward.default",
        "torch.ops.aten.fractional_max_pool2d_backward.default",
        "torch.ops.aten.quantized_lstm_cell.default",
        "torch.ops.aten.view.dtype",
        "torch.ops.aten.as_strided.default",
        "torch.ops.aten.rand.default",
        "torch.ops.higher_order.cond",
        "torch.ops.aten.no_such_thing.default",
        "torch.ops.prims.add.default",
        "_operator.attrgetter",
        "math.ceil",
    ],
)
def test_only_operators_on_tensors_are_called(target):
    with pytest.raises(UnsupportedModelError, match="not among the operators that are run without"):
        operation(target)


def test_plain_operators_are_found():
    assert operation("torch.ops.aten.relu.default") is torch.ops.aten.relu.default
    assert operation("_operator.add")(2, 3) == 5
    assert operation("_operator.getitem")([2, 3], 1) == 3


def test_memory_that_nobody_filled_is_not_read():
    assert operation("torch.ops.aten.empty.memory_format")([3]).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("mul", ("a", 10**12), "compute sizes with numbers, found a str"),
        ("mod", ("%1000000000d", 1), "compute sizes with numbers, found a str"),
        ("mul", ([1], 10**12), "compute sizes with numbers, found a list"),
        ("mul", (2**62, 2**62), "of at most 64 bits, found a larger one"),
        ("getitem", ({"a": 1}, "a"), "items of lists by their number, found dict and str"),
    ],
)
def test_sizes_are_reckoned_with_numbers_of_64_bits(name, args, text):
    with pytest.raises(UnsupportedModelError, match=text):
        operation(f"_operator.{name}")(*args)
