"""The steps of an exported graph: they are replayed, and nothing of the file is executed.

``torch.export.load`` runs text of the file as code in several ways: pickles beside the weights,
guards, sizes as symbolic expressions, operators that write files, compiled libraries. Here only
the operators listed in :mod:`inscape.loaders.operators` are called, with numbers and tensors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch
from torch import Tensor

from inscape.errors import UnsupportedModelError
from inscape.loaders.operators import operation

#: Checks of sizes and dtypes that the export adds; they would bind the model to one precision.
_IDLE = {
    "torch.ops.aten._assert_async.msg",
    "torch.ops.aten._assert_tensor_metadata.default",
    "torch.ops.aten._assert_scalar.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
}

_DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    9: torch.complex32,
    10: torch.complex64,
    11: torch.complex128,
    12: torch.bool,
    13: torch.bfloat16,
}

_MEMORY_FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}

_STRIDED = 7

#: What an instance norm is decomposed to, in eval mode too: it has no state to train.
_INSTANCE_NORM = "torch.ops.aten._native_batch_norm_legit.no_stats"


class UnfitProgramError(UnsupportedModelError):
    """A program that is safe to run but no function of single points; trust does not help."""


@dataclass(frozen=True)
class Ref:
    """The place of a value that an earlier step made."""

    name: str


class Here(Enum):
    """What follows the input when the model is moved or converted after the export."""

    DEVICE = auto()
    DTYPE = auto()


@dataclass(frozen=True, kw_only=True)
class AtenCall:
    """One call of an aten operator: its target, its arguments and the names of its results.

    ``module`` and ``kind`` are the name and the class of the module that made it, if known.
    """

    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[str | None, ...]
    forget: tuple[str, ...] = ()  # values that no later step reads
    module: str = ""
    kind: str = ""

    @property
    def reads(self) -> set[str]:
        """Return the names of the values that go in."""
        return set(_names([*self.args, *self.kwargs.values()]))

    @property
    def makes(self) -> set[str]:
        """Return the names of the values that come out."""
        return {name for name in self.results if name is not None}

    def run(self, values: dict[str, Any], x: Tensor) -> None:
        """Call the operator, and put what it returns among the values."""
        args = [_filled(arg, values, x) for arg in self.args]
        kwargs = {key: _filled(arg, values, x) for key, arg in self.kwargs.items()}
        outputs = operation(self.target)(*args, **kwargs)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        pairs = zip(self.results, several, strict=False)
        values.update({name: value for name, value in pairs if name is not None})
        for name in self.forget:
            values.pop(name, None)


def read_step(node: Mapping[str, Any], main: torch.dtype) -> AtenCall | None:
    """Read one node of the exported graph; checks that the export added give None.

    Args:
        node: The node as the file describes it.
        main: The precision of the exported input; where a step names it, it follows the input.
    """
    target = str(node["target"])
    if target in _IDLE:
        return None
    operation(target)
    args, kwargs = [], {}
    for argument in node["inputs"]:
        value = _argument(argument["arg"])
        value = Here.DTYPE if value is main else value
        if argument["name"] in ("train", "training") and value is True and target != _INSTANCE_NORM:
            raise UnfitProgramError(
                f"it was exported in training mode (see {target!r}): call model.eval() before "
                "torch.export.export"
            )
        if argument.get("kind") == 1 or not argument["name"]:
            args.append(value)
        else:
            kwargs[str(argument["name"])] = value
    module, kind = _maker(node.get("metadata") or {})
    return AtenCall(
        target=target,
        args=tuple(args),
        kwargs=kwargs,
        results=_results(node["outputs"]),
        module=module,
        kind=kind,
    )


def _maker(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and class of the innermost module that a step comes from: words, no code."""
    innermost = str(metadata.get("nn_module_stack") or "").rpartition(";")[2].split(",", 2)
    return (innermost[1], innermost[2]) if len(innermost) == 3 else ("", "")


def dtype(code: int) -> torch.dtype:
    """Return the dtype of a number in the file."""
    if code not in _DTYPES:
        raise UnsupportedModelError(f"it uses the number format {code}, which is not supported")
    return _DTYPES[code]


def _argument(tagged: Mapping[str, Any]) -> Any:
    ((kind, value),) = tagged.items()
    match kind:
        case "as_none":
            return None
        case "as_int" | "as_bool" | "as_string" | "as_ints" | "as_bools" | "as_strings":
            return value
        case "as_float":
            return float(value)  # the file writes "Infinity" as text
        case "as_floats":
            return [float(item) for item in value]
        case "as_tensor":
            return Ref(str(value["name"]))
        case "as_name":
            return Ref(str(value))
        case "as_tensors":
            return [Ref(str(item["name"])) for item in value]
        case "as_sym_int" | "as_sym_bool" | "as_sym_float" | "as_optional_tensor":
            return _argument(value)
        case "as_sym_ints" | "as_sym_bools" | "as_sym_floats" | "as_optional_tensors":
            return [_argument(item) for item in value]
        case "as_scalar_type":
            return dtype(value)
        case "as_memory_format" if value in _MEMORY_FORMATS:
            return _MEMORY_FORMATS[value]
        case "as_layout" if value == _STRIDED:
            return torch.strided
        case "as_device":
            return Here.DEVICE
    raise UnsupportedModelError(f"it passes an argument of the kind {kind!r} to an operator")


def _results(outputs: Sequence[Mapping[str, Any]]) -> tuple[str | None, ...]:
    if len(outputs) == 1 and "as_tensors" in outputs[0]:
        return tuple(str(item["name"]) for item in outputs[0]["as_tensors"])
    arguments = [_argument(output) for output in outputs]
    return tuple(item.name if isinstance(item, Ref) else None for item in arguments)


def _filled(arg: Any, values: Mapping[str, Any], x: Tensor) -> Any:
    if isinstance(arg, Ref):
        return values[arg.name]
    if isinstance(arg, list):
        return [_filled(item, values, x) for item in arg]
    if isinstance(arg, Here):
        return x.device if arg is Here.DEVICE else x.dtype
    return arg


def _names(args: Sequence[Any]) -> list[str]:
    flat = [item for arg in args for item in (arg if isinstance(arg, list) else [arg])]
    return [item.name for item in flat if isinstance(item, Ref)]
