"""Exported programs written by hand: any graph, also such as ``torch.export`` never writes."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_CODES = {
    torch.uint8: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.complex64: 10,
    torch.complex128: 11,
    torch.bool: 12,
    torch.bfloat16: 13,
}

#: Names of values are text that starts with this; other text is text.
VALUE = "%"


def argument(value: Any) -> dict[str, Any]:
    """Return a value as the format tags it; ``"%name"`` is the value of that name."""
    if isinstance(value, str) and value.startswith(VALUE):
        return {"as_tensor": {"name": value}}
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": _CODES[value]}
    for kind, tag in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
        if isinstance(value, kind):
            return {tag: value}
    if value is None:
        return {"as_none": True}
    if isinstance(value, dict):  # tagged already
        return value
    items = list(value)
    for kind, tag in ((bool, "as_bools"), (int, "as_ints"), (float, "as_floats")):
        if items and all(type(item) is kind for item in items):
            return {tag: items}
    if any(item is None for item in items):
        return {"as_optional_tensors": [argument(item) for item in items]}
    if items:
        return {"as_tensors": [{"name": item} for item in items]}
    return {"as_ints": []}


def node(target: str, args: Sequence[Any], results: Sequence[Any], **kwargs: Any) -> dict[str, Any]:
    """Return a step; a list among the results is a list of tensors."""
    inputs = [{"name": "", "arg": argument(value), "kind": 1} for value in args]
    inputs += [{"name": k, "arg": argument(value), "kind": 2} for k, value in kwargs.items()]
    return {"target": target, "inputs": inputs, "outputs": [argument(name) for name in results]}


def members(
    nodes: Sequence[Mapping[str, Any]],
    tensors: Mapping[str, Tensor],
    *,
    output: str,
    dtype: torch.dtype = torch.float32,
) -> dict[str, bytes]:
    """Return the members of an archive with these steps, constants and one input ``%x``."""
    graph = {
        "nodes": list(nodes),
        "tensor_values": {
            "%x": {"dtype": _CODES[dtype], "sizes": [{"as_expr": {"expr_str": "s0"}}]}
        },
    }
    inputs: list[dict[str, Any]] = [
        {"buffer": {"arg": {"name": name}, "buffer_name": f"b{i}", "persistent": True}}
        for i, name in enumerate(tensors)
    ]
    inputs.append({"user_input": {"arg": {"as_tensor": {"name": "%x"}}}})
    outputs = [{"user_output": {"arg": {"as_tensor": {"name": output}}}}]
    signature = {"input_specs": inputs, "output_specs": outputs}
    program = {
        "schema_version": {"major": 8, "minor": 0},
        "graph_module": {"graph": graph, "signature": signature},
    }
    config = {f"b{i}": entry(f"weight_{i}", tensor) for i, tensor in enumerate(tensors.values())}
    found = {
        "models/model.json": json.dumps(program).encode(),
        "data/weights/model_weights_config.json": json.dumps({"config": config}).encode(),
        "data/constants/model_constants_config.json": b'{"config": {}}',
    }
    for i, tensor in enumerate(tensors.values()):
        raw = tensor.contiguous().flatten().view(torch.uint8) if tensor.numel() else tensor
        found[f"data/weights/weight_{i}"] = bytes(raw.tolist()) if tensor.numel() else b""
    return found


def entry(path_name: str, tensor: Tensor) -> dict[str, Any]:
    """Return the description of a contiguous tensor."""
    plain = torch.empty(tensor.shape).contiguous()
    return {
        "path_name": path_name,
        "is_param": False,
        "use_pickle": False,
        "tensor_meta": {
            "dtype": _CODES[tensor.dtype],
            "sizes": [{"as_int": size} for size in plain.shape],
            "strides": [{"as_int": stride} for stride in plain.stride()],
            "storage_offset": {"as_int": 0},
            "requires_grad": False,
        },
    }


def write(path: Path, found: Mapping[str, bytes]) -> Path:
    """Write members as an archive."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in found.items():
            archive.writestr(f"{path.stem}/{name}", raw)
    return path
