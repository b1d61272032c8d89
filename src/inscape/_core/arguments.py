"""What users pass to instruments as what instruments measure: arrays, frames, half precision."""

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core.copies import module_copy
from inscape._core.setting_types import check_settings, setting_kinds
from inscape._core.unsupported_models import (
    refuse_complex,
    refuse_other_objects,
    refuse_unreadable,
)

F = TypeVar("F", bound=Callable[..., Any])

#: Dtypes whose few digits would be all that a measure sees: such models are measured in float32.
HALF = (torch.float16, torch.bfloat16)
#: Arguments that hold labels, whose integers are class numbers.
LABELS = ("y", "answers")


def accepting(function: F, *, discrete: bool, real: bool = False) -> F:
    """Let an instrument take NumPy arrays, pandas frames and models in half precision.

    Arrays and frames become tensors where the model lies: floating-point numbers in the dtype of
    its parameters, integers too, except for labels and tokens. A model in half precision is
    measured as a copy in float32, and a warning says so. Quantised models are refused, complex
    parameters where they are read.

    Args:
        function: The instrument; its signature is kept.
        discrete: Whether it may be measured at token ids.
        real: Whether it reads parameters, as real numbers.
    """
    names = list(signature(function).parameters)
    kinds = setting_kinds(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(zip(names, args, strict=False)) | kwargs
        if len(arguments) < len(args) + len(kwargs):
            return function(*args, **kwargs)  # raises what Python raises of such a call
        arguments = accepted(arguments, discrete=discrete, real=real)
        check_settings(kinds, arguments, function.__name__)
        return function(**arguments)

    if hasattr(function, "refine"):
        refine = accepting(function.refine, discrete=discrete, real=real)
        call.refine = refine  # type: ignore[attr-defined]
    return cast(F, call)


def accepted(arguments: Mapping[str, Any], *, discrete: bool, real: bool = False) -> dict[str, Any]:
    """Return the arguments of an instrument as it measures them."""
    refuse_other_objects(arguments)
    modules = {name: value for name, value in arguments.items() if isinstance(value, nn.Module)}
    for module in modules.values():
        refuse_unreadable(module)
        if real:
            refuse_complex(module)
    first = next(iter(modules.values()), None)
    like = _like(first)
    ready = {name: _tensor(name, value, first, like) for name, value in arguments.items()}
    halves = [name for name, module in modules.items() if _dtypes(module) & set(HALF)]
    if halves and not _is_replay(arguments):
        _say_half(modules[halves[0]])
        ready |= {name: module_copy(modules[name]).float() for name in halves}
        ready = {name: _single(value) for name, value in ready.items()}
    return _with_tokens(ready, discrete=discrete) if first is not None else ready


def _is_replay(arguments: Mapping[str, Any]) -> bool:
    """Tell a recorded training that is replayed on its very data, in its own precision."""
    return arguments.get("trajectory") is not None and any(name in arguments for name in LABELS)


def in_float32(model: nn.Module) -> nn.Module:
    """Return the model, or a copy in float32 of one in half precision."""
    return module_copy(model).float() if _dtypes(model) & set(HALF) else model


def _dtypes(module: nn.Module) -> set[torch.dtype]:
    return {parameter.dtype for parameter in module.parameters()}


def _single(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in HALF else value


def _say_half(module: nn.Module) -> None:
    kinds = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in _dtypes(module)))
    warnings.warn(
        f"the model is in {kinds}: measured as a copy in float32; yours is unchanged",
        stacklevel=6,
    )


def _like(module: nn.Module | None) -> Tensor | None:
    """Return a parameter whose dtype and device arrays follow."""
    parameters = [] if module is None else list(module.parameters())
    return next((p for p in parameters if p.is_floating_point()), None)


def _tensor(name: str, value: Any, module: nn.Module | None, like: Tensor | None) -> Any:
    """Return an array or a frame as a tensor, and anything else as it is."""
    if type(value).__module__.partition(".")[0] == "pandas":
        value = _numbers(name, value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers, found an array of dtype {value.dtype}: encode them, or "
            f"convert it with {name}.astype(float)."
        )
    tensor = torch.from_numpy(np.require(value, requirements=["C", "W"]))
    if not tensor.is_floating_point() and (name in LABELS or _embeds(module)):
        tensor = tensor.long()
    elif like is not None:
        tensor = tensor.to(like.dtype)
    elif not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    return tensor if like is None else tensor.to(like.device)


def _numbers(name: str, frame: Any) -> Any:
    """Return the values of a frame or a column; refuse words, and name their column."""
    kinds = frame.dtypes.items() if hasattr(frame, "columns") else [(frame.name, frame.dtype)]
    for column, kind in kinds:
        if not hasattr(kind, "kind") or kind.kind not in "biuf":
            raise TypeError(
                f"{name} must hold numbers, found the column {column!r} of dtype {kind}: encode or "
                "drop it."
            )
    return frame.to_numpy()


def _embeds(module: nn.Module | None) -> bool:
    kinds = (nn.Embedding, nn.EmbeddingBag)
    return module is not None and any(isinstance(part, kinds) for part in module.modules())


def _with_tokens(arguments: dict[str, Any], *, discrete: bool) -> dict[str, Any]:
    """Let integers pass as rows where an instrument needs no gradients by them; else say how."""
    tokens = {
        name: value
        for name, value in arguments.items()
        if name not in LABELS and name in ("x", "queries") and _is_tokens(value)
    }
    models = {name: value for name, value in arguments.items() if isinstance(value, nn.Module)}
    if not tokens or not all(map(_embeds, models.values())):
        return arguments
    if not discrete:
        raise TypeError(
            "x must hold floating-point numbers, for this measure moves through the input, found "
            "token ids: measure in the embedding, net = inscape.adapt(model, embedding=True, "
            "inputs=x), at net.rows(x)."
        )
    like = _like(next(iter(models.values())))
    wide = torch.float32 if like is None else like.dtype
    rounded = {name: _rounding(model) for name, model in models.items()}
    return {**arguments, **rounded, **{name: value.to(wide) for name, value in tokens.items()}}


def _is_tokens(value: Any) -> bool:
    return (
        isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32) and value.ndim > 1
    )


def _rounding(model: nn.Module) -> nn.Module:
    """Return a model that takes token ids as floating-point numbers; it shares all parameters."""
    shared = copy.copy(model)
    shared._forward_pre_hooks = OrderedDict(model._forward_pre_hooks)
    shared.register_forward_pre_hook(_to_integers)
    return shared


def _to_integers(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        value.round().long() if isinstance(value, Tensor) and value.is_floating_point() else value
        for value in args
    )
