"""Hostile ``.pt2`` archives: damaged, lying, with code in every place that PyTorch runs."""

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hostile.array_files import declared
from hostile.kinds import Payload, kind
from hostile.programs import members, node, write

_ATEN = "torch.ops.aten."
_WEIGHT = {"%w": torch.ones(3, 6)}
_LINEAR = [node(f"{_ATEN}linear.default", ["%x", "%w"], ["%y"])]

Change = Callable[[dict[str, Any], dict[str, Any], Path], Any]


def archive(path: Path, nodes: Any = None, tensors: Any = None, **changes: bytes) -> None:
    """Write a linear map, or other steps; members are replaced by those given."""
    made = members(nodes or _LINEAR, tensors or _WEIGHT, output="%y")
    write(path, made | {name.replace("__", "/"): raw for name, raw in changes.items()})


def _changed(name: str, change: Change) -> None:
    """List an archive with a change of its description or of that of its weights."""

    def make(path: Path, mark: Path) -> None:
        made = members(_LINEAR, _WEIGHT, output="%y")
        program = json.loads(made["models/model.json"])
        config = json.loads(made["data/weights/model_weights_config.json"])
        change(program, config["config"]["b0"], mark)
        made["models/model.json"] = json.dumps(program).encode()
        made["data/weights/model_weights_config.json"] = json.dumps(config).encode()
        if config["config"]["b0"]["use_pickle"]:
            made["data/weights/weight_0"] = pickle.dumps(Payload(mark))
        write(path, made)

    make.__name__ = name
    kind("model", ".pt2")(make)


def _code(mark: Path) -> str:
    return f"__import__('pathlib').Path({str(mark)!r}).touch()"


def _graph(program: dict[str, Any]) -> Any:
    return program["graph_module"]["graph"]


def _meta(**values: Any) -> Change:
    return lambda _, weight, __: weight["tensor_meta"].update(values)


def _first(**values: Any) -> Change:
    return lambda program, _, __: _graph(program)["nodes"][0].update(values)


def _argument(argument: Any) -> Change:
    return lambda program, _, __: _graph(program)["nodes"][0]["inputs"][0].update(arg=argument)


def _signature(place: str, spec: Any) -> Change:
    return lambda program, _, __: program["graph_module"]["signature"][place].append(spec)


def _ints(*values: int) -> list[dict[str, int]]:
    return [{"as_int": value} for value in values]


_CHANGES: dict[str, Change] = {
    "pickled_weights": lambda _, weight, __: weight.update(use_pickle=True),
    "size_as_code": lambda program, _, mark: _graph(program)["tensor_values"]["%x"].update(
        sizes=[{"as_expr": {"expr_str": _code(mark)}}]
    ),
    "guards": lambda program, _, mark: program.update(guards_code=[_code(mark)]),
    "symbols": lambda program, _, mark: _graph(program).update(
        sym_int_values={"s": {"as_expr": {"expr_str": _code(mark)}}}
    ),
    "ranges": lambda program, _, mark: program.update(
        range_constraints={_code(mark): {"min_val": 0, "max_val": 2**62}}
    ),
    "call_specifications": lambda program, _, mark: program["graph_module"].update(
        module_call_graph=[{"fqn": _code(mark), "signature": {"in_spec": "[" * 5000}}]
    ),
    "tree_specification": lambda program, _, mark: program["graph_module"].update(
        metadata={"in_spec": json.dumps([1, {"type": "os.system", "context": _code(mark)}])}
    ),
    "opset": lambda program, _, __: program.update(opset_version={"aten": 10**30}),
    "graph_as_argument": _argument({"as_graph": {"name": "g", "graph": {"nodes": []}}}),
    "class_as_argument": _argument({"as_custom_obj": {"name": "o", "class_fqn": "__torch__.C"}}),
    "operator_as_argument": _argument({"as_operator": "torch.os.system"}),
    "complex_as_argument": _argument({"as_complex": {"real": 1, "imag": 1}}),
    "two_tags": _argument({"as_int": 1, "as_float": 2.0}),
    "expression_as_argument": lambda program, _, mark: _argument(
        {"as_sym_int": {"as_expr": {"expr_str": _code(mark)}}}
    )(program, _, mark),
    "large_number": _argument({"as_int": 10**30}),
    "text_as_float": _argument({"as_float": "nan" * 1000}),
    "value_of_itself": _argument({"as_tensor": {"name": "%y"}}),
    "value_of_nobody": _argument({"as_tensor": {"name": "%nobody"}}),
    "system": _first(target="torch.os.system"),
    "import": _first(target="builtins.__import__"),
    "attribute": _first(target="_operator.attrgetter"),
    "target_that_is_no_text": _first(target=["a"]),
    "branch": _first(target="torch.ops.higher_order.cond"),
    "effects": _first(target="torch.ops.higher_order.with_effects"),
    "custom_class": _signature("input_specs", {"custom_obj": {"arg": {"name": "o"}}}),
    "token": _signature("input_specs", {"token": {"arg": {"name": "t"}}}),
    "change_of_itself": _signature("output_specs", {"buffer_mutation": {"arg": {"name": "%y"}}}),
    "loss": _signature("output_specs", {"loss_output": {"arg": {"name": "%y"}}}),
    "name_of_a_method": lambda program, _, __: program["graph_module"]["signature"]["input_specs"][
        0
    ]["buffer"].update(buffer_name="forward"),
    "sizes_beyond": _meta(sizes=_ints(2**20, 2**20), strides=_ints(0, 0)),
    "sizes_below_zero": _meta(sizes=_ints(-3, 6)),
    "strides_beyond": _meta(strides=_ints(2**40, 1)),
    "strides_below_zero": _meta(strides=_ints(-6, 1)),
    "offset_beyond": _meta(storage_offset={"as_int": 2**62}),
    "offset_below_zero": _meta(storage_offset={"as_int": -1}),
    "unknown_number_format": _meta(dtype=99),
    "sizes_of_text": _meta(sizes=[{"as_int": "3"}, {"as_int": "6"}]),
    "path_out_of_the_archive": lambda _, weight, __: weight.update(path_name="../../../etc/passwd"),
}
for _name, _change in _CHANGES.items():
    _changed(_name, _change)


def _steps(name: str, *calls: tuple[Any, ...], **tensors: torch.Tensor) -> None:
    """List a program of some steps; the last one makes the output."""

    def make(path: Path, _: Path) -> None:
        nodes = [node(target, args, results) for target, args, results in calls]
        constants = {f"%{key}": value for key, value in tensors.items()} or _WEIGHT
        archive(path, nodes, constants)

    make.__name__ = name
    kind("model", ".pt2")(make)


def _aten(name: str, *args: Any, to: str = "%y") -> tuple[Any, ...]:
    return (f"{_ATEN}{name}", args, [to])


_IMAGE, _PLACES = torch.ones(2, 1, 4, 4), torch.full((2, 1, 2, 2), 2**40)
_SMALL = torch.ones(2, 1, 2, 2)
_steps("pool_backward", _aten("adaptive_max_pool2d_backward.default", "%s", "%i", "%p"),
       s=_SMALL, i=_IMAGE, p=_PLACES)  # fmt: skip
_steps("pad_backward", _aten("reflection_pad2d_backward.default", "%s", "%i", [2**40] * 4),
       s=_SMALL, i=_IMAGE)  # fmt: skip
_steps("view_of_another_type", _aten("view.dtype", "%x", torch.float64))
_steps("view_by_strides", _aten("as_strided.default", "%x", [4, 6], [10**9, 1]))
_steps("from_a_file", _aten("from_file.default", "/etc/passwd", True, 100))
_steps("print", _aten("_print.default", "text"))
_steps("seed", _aten("manual_seed.default", 0))
_steps("a_terabyte_of_zeros", _aten("zeros.default", [2**20, 2**18]))
_steps("a_terabyte_by_repeating", _aten("repeat.default", "%x", [2**20, 2**15]))
_steps("a_terabyte_by_padding", _aten("constant_pad_nd.default", "%x", [0, 2**36]))
_steps("a_terabyte_by_a_view",
       _aten("expand.default", "%o", [2**20, 2**20], to="%a"), _aten("neg.default", "%a"),
       o=torch.ones(1, 1))  # fmt: skip
_steps("a_terabyte_by_doubling", _aten("cat.default", ["%x", "%x"], to="%0"),
       *(_aten("cat.default", [f"%{i}", f"%{i}"], to=f"%{i + 1}") for i in range(36)),
       _aten("neg.default", "%36"))  # fmt: skip
_steps("a_terabyte_by_an_outer_product", _aten("arange.default", 2**20, to="%a"),
       _aten("outer.default", "%a", "%a"))  # fmt: skip
_steps("a_size_that_grows", _aten("sym_size.int", "%x", 0, to="%0"),
       *(("_operator.mul", (f"%{i}", f"%{i}"), [f"%{i + 1}"]) for i in range(60)),
       _aten("neg.default", "%x"))  # fmt: skip
_steps("text_that_grows", ("_operator.mul", ("text", 2**40), ["%a"]), _aten("neg.default", "%x"))
_steps("text_that_is_filled_in", ("_operator.mod", ("%9999999999d", 1), ["%a"]),
       _aten("neg.default", "%x"))  # fmt: skip
_steps("list_that_grows", _aten("unbind.int", "%x", to="%l"),
       ("_operator.mul", ("%l", 2**40), ["%a"]), _aten("neg.default", "%x"))  # fmt: skip
_steps("index_beyond", _aten("index_select.default", "%x", 0, "%i"), i=torch.tensor([2**40] * 4))
_steps("index_before", _aten("index.Tensor", "%x", ["%i"]), i=torch.tensor([-(2**40)] * 4))
_steps("word_beyond", _aten("embedding.default", "%e", "%i"),
       e=torch.ones(3, 2), i=torch.tensor([10**6]))  # fmt: skip
_steps("gather_beyond", _aten("gather.default", "%x", 1, "%i"), i=torch.full((4, 6), 7))
_steps("scatter_beyond", _aten("scatter_add.default", "%x", 1, "%i", "%x"),
       i=torch.full((4, 6), 2**33))  # fmt: skip
_steps("memory_of_others", _aten("empty.memory_format", [4, 6]))
_steps("weight_norm_of_other_shapes", _aten("_weight_norm.default", "%v", "%g", 0),
       v=torch.ones(64, 6), g=torch.ones(1))  # fmt: skip
_steps("division_of_sizes_by_zero", ("_operator.floordiv", (1, 0), ["%a"]),
       _aten("neg.default", "%x"))  # fmt: skip
_steps("name_twice", _aten("neg.default", "%x", to="%x"), _aten("neg.default", "%x"))


@kind("model", ".pt2")
def sample_inputs(path: Path, mark: Path) -> None:
    """Write a pickle beside the weights."""
    archive(path, data__sample_inputs__model=pickle.dumps(Payload(mark)))


@kind("model", ".pt2")
def compiled_library(path: Path, _: Path) -> None:
    """Write a member that PyTorch would load as a library."""
    archive(path, **{"data__aotinductor__model__model.so": b"\x7fELF" + bytes(100)})


@kind("model", ".pt2")
def bomb(path: Path, _: Path) -> None:
    """Write an archive that declares 4 GB."""
    archive(path)
    path.write_bytes(declared(path.read_bytes(), 4_000_000_000))


@kind("model", ".pt2")
def silent_bomb(path: Path, _: Path) -> None:
    """Write an archive of 200 MB that declares a kilobyte."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("m/models/model.json", b" " * 200_000_000)
    path.write_bytes(declared(path.read_bytes(), 1000))


@kind("model", ".pt2")
def long_description(path: Path, _: Path) -> None:
    """Write a description that would become gigabytes in Python."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("m/models/model.json", b"[" + b"[]," * 50_000_000)


@kind("model", ".pt2")
def deep_description(path: Path, _: Path) -> None:
    """Write brackets in brackets."""
    archive(path, **{"models__model.json": b"[" * 100_000})


@kind("model", ".pt2")
def description_of_another_kind(path: Path, _: Path) -> None:
    """Write a list where an object is expected."""
    archive(path, **{"models__model.json": b"[1, 2, 3]"})


@kind("model", ".pt2")
def weights_without_numbers(path: Path, _: Path) -> None:
    """Write an empty member for weights that have a size."""
    archive(path, **{"data__weights__weight_0": b""})


@kind("model", ".pt2")
def deep_name(path: Path, _: Path) -> None:
    """Write a parameter that lies in ten thousand modules."""
    made = members(_LINEAR, _WEIGHT, output="%y")
    name = ".".join("a" * 10_000).encode()
    made = {key: raw.replace(b'"b0"', b'"' + name + b'"') for key, raw in made.items()}
    write(path, made)


@kind("model", ".pt2")
def no_archive(path: Path, _: Path) -> None:
    """Write no archive at all."""
    path.write_bytes(b"rubbish")


@kind("model", ".pt2")
def pipe(path: Path, _: Path) -> None:
    """Write a link to a device without end."""
    path.symlink_to("/dev/zero")
