"""Shared checks; each error says what was expected, what was found and what to do."""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from inscape._core.finiteness import all_finite, refusal
from inscape._core.refusals import no_tensor, refused
from inscape.errors import UnsupportedModelError

Function = Callable[[Tensor], Tensor]


def at_least(minimum: float, **named: float) -> None:
    """Refuse settings that are no numbers, or below ``minimum``, naming the first."""
    for name, value in named.items():
        _number(name, value)
        if not value >= minimum:
            raise ValueError(f"{name} must be at least {minimum}, found {value}: raise {name}.")


def whole(minimum: int, **named: object) -> None:
    """Refuse counts that are no whole numbers, or below ``minimum``, naming the first."""
    for name, value in named.items():
        if not isinstance(value, Integral):
            raise ValueError(
                f"{name} must be a whole number, found {value!r}: use int, or round it."
            )
        at_least(minimum, **{name: int(value)})


def wholes(minimum: int, **named: object) -> list[int]:
    """Return one whole number, or some, as a list; refuse anything else, and none at all."""
    numbers: list[int] = []
    for name, value in named.items():
        listed = value.tolist() if isinstance(value, Tensor) else value
        if not isinstance(listed, Integral | Iterable) or isinstance(listed, str | bytes | Mapping):
            raise TypeError(
                f"{name} must be a list of whole numbers, found {listed!r}: pass for example "
                f"{name}=[{max(minimum, 1)}]."
            )
        values = [listed] if isinstance(listed, Integral) else list(listed)
        if not values:
            raise ValueError(
                f"{name} must hold at least one number, found none: pass for example "
                f"{name}=[{max(minimum, 1)}]."
            )
        for number in values:
            whole(minimum, **{name: number})
        numbers += [int(number) for number in values]
    return numbers


def number(**named: object) -> None:
    """Refuse settings that are no finite numbers, naming the first."""
    for name, value in named.items():
        _number(name, value)
        if not math.isfinite(float(value)):  # type: ignore[arg-type]
            raise ValueError(f"{name} must be finite, found {value}: choose another number.")


def _number(name: str, value: object) -> None:
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, found {value!r}: pass an int or a float.")


def seed(seed: object) -> None:
    """Refuse a seed that is no whole number, or outside of what a generator takes."""
    if not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise ValueError(
            f"seed must be a whole number from 0 to 2**64 - 1, found {seed!r}: choose another."
        )


def one_of(allowed: tuple[str, ...], **named: str) -> None:
    """Refuse a word that is not in the list, naming the list."""
    for name, value in named.items():
        if value not in allowed:
            words = ", ".join(map(repr, allowed))
            raise ValueError(f"{name} must be one of {words}, found {value!r}: choose one of them.")


def points(x: object, name: str = "x") -> None:
    """Refuse anything but a non-empty, finite, floating batch of shape (n, ...)."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, found {type(x).__name__}: "
            f"convert it with torch.as_tensor({name}, dtype=torch.float32)."
        )
    _readable(x, name)
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point numbers, found {x.dtype}: use {name}.float()."
        )
    if x.ndim < 2:
        raise ValueError(
            f"{name} must be a batch of shape (n, ...), found shape {tuple(x.shape)}: "
            f"use {name}[:, None] for n points on a line, {name}[None] for one point."
        )
    if x.numel() == 0:
        raise ValueError(
            f"{name} must hold at least one point, found shape {tuple(x.shape)}: pass some data."
        )
    if not all_finite(x):
        bad = int((~x.isfinite()).flatten(1).any(1).sum())
        raise ValueError(
            f"{name} must be finite, found NaN or Inf in {bad} of {len(x)} points: "
            f"drop or repair them, e.g. {name}[{name}.flatten(1).isfinite().all(1)]."
        )


def _readable(tensor: Tensor, name: str) -> None:
    """Refuse a tensor without values (on the meta device), and one that is not dense."""
    if tensor.is_meta:
        raise ValueError(
            f"{name} must hold values, found a tensor on the meta device, which has none: "
            "load the data to the CPU or a GPU."
        )
    if tensor.layout is not torch.strided:
        raise ValueError(
            f"{name} must be a dense tensor, found the layout {tensor.layout}: "
            f"use {name}.to_dense()."
        )


def labels(y: object, x: Tensor) -> None:
    """Refuse labels that are no tensor, not one per point, not real numbers or not finite."""
    if not isinstance(y, Tensor):
        raise TypeError(
            f"y must be a torch.Tensor, found {type(y).__name__}: convert it with torch.as_tensor."
        )
    _readable(y, "y")
    if y.is_complex():
        raise TypeError(f"y must hold real numbers, found {y.dtype}: use y.real.")
    if y.ndim == 0 or len(y) != len(x):
        raise ValueError(
            f"y must hold one label for each of the {len(x)} points, found shape "
            f"{tuple(y.shape)}: pass x and y of one length."
        )
    if y.is_floating_point() and not bool(y.isfinite().all()):
        raise ValueError("y must be finite, found NaN or Inf: drop or repair those labels.")


def class_numbers(y: Tensor, classes: int, name: str = "y") -> Tensor:
    """Return labels as one class number for each point, or say what is wrong with them."""
    numbers = y.reshape(len(y), -1)
    low, high = int(numbers.min()), int(numbers.max())
    if numbers.shape[1] == 1 and 0 <= low <= high < classes:
        return numbers[:, 0]
    one_hot = numbers.shape[1] > 1 and 0 <= low <= high <= 1 and bool((numbers.sum(1) == 1).all())
    cure = f"one-hot labels become numbers by {name}.argmax(1)" if one_hot else f"renumber {name}"
    raise ValueError(
        f"class numbers must lie between 0 and {classes - 1}, one for each point, found {low} to "
        f"{high} in shape {tuple(y.shape)}: {cure}."
    )


def module(model: object) -> None:
    """Refuse a function where a module with parameters is needed."""
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model must be a torch.nn.Module, found {type(model).__name__}: pass the module whose "
            "parameters are to be measured."
        )


def in_eval_mode(f: Function) -> None:
    """Refuse a module in training mode: dropout and batch norm would make the answer random."""
    if not isinstance(f, nn.Module):
        return
    if isinstance(f, GraphModule) and "eval" in vars(f):  # exported: its mode is in its graph
        return
    for name, module in f.named_modules():
        if module.training:
            place = f"module {name!r}" if name else "the model"
            raise ValueError(
                f"the model must be in eval mode, found {place} ({type(module).__name__}) in "
                "training mode: call model.eval() first."
            )


def weights(f: Function, x: Tensor) -> None:
    """Refuse a module whose weights are not finite, or lie elsewhere or differ in precision."""
    if not isinstance(f, nn.Module):
        return
    for name, tensor in f.named_parameters():
        if tensor.is_floating_point() and tensor.dtype != x.dtype:
            raise TypeError(
                f"model and data must have one dtype, found {name!r} in {tensor.dtype} and x in "
                f"{x.dtype}: use x.to({tensor.dtype}) or model.to({x.dtype})."
            )
        _weight(name, tensor, x)
    for name, buffer in f.named_buffers():
        _weight(name, buffer, x, mask=True)


def _weight(name: str, tensor: Tensor, x: Tensor, *, mask: bool = False) -> None:
    if tensor.device != x.device:
        raise ValueError(
            f"model and data must be on one device, found {name!r} on {tensor.device} and x on "
            f"{x.device}: use x.to({str(tensor.device)!r}) or model.to({str(x.device)!r})."
        )
    if tensor.is_floating_point() and not all_finite(tensor) and not (mask and _is_mask(tensor)):
        raise ValueError(
            f"the model's weights must be finite, found NaN or Inf in {name!r}: "
            "load an earlier checkpoint."
        )


def _is_mask(buffer: Tensor) -> bool:
    """Return whether a buffer is an additive mask, as of causal attention: zeros and infinities."""
    return bool(((buffer == 0) | buffer.isinf()).all())


def finite(values: Tensor, what: str) -> None:
    """Refuse a measurement that met NaN or Inf on its way."""
    if not all_finite(values):
        raise ValueError(refusal(values, what))


def _batch_cure(x: Tensor, y: Tensor) -> str:
    if y.ndim > 1 and y.shape[1] == len(x):
        return "keep the batch dimension first, end its forward with .transpose(0, 1)"
    if (x.ndim > 2 or y.ndim > 1) and x.ndim > 1 and y.ndim > 0 and len(y) == x.shape[1]:
        return (
            "it seems to take the batch as second dimension; use batch_first=True, or let a module "
            "around it transpose the inputs"
        )
    return "keep the batch dimension first"


def call(f: Function, x: Tensor) -> Tensor:
    """Evaluate ``f`` and refuse anything but one finite row of outputs for each row of ``x``."""
    try:
        y = f(x)
    except Exception as error:
        raise UnsupportedModelError(refused(f, x, error)) from error
    if not isinstance(y, Tensor):
        raise UnsupportedModelError(no_tensor(y))
    if y.ndim == 0 or len(y) != len(x):
        raise UnsupportedModelError(
            f"the model must return one row for each input, found shape {tuple(y.shape)} for "
            f"{len(x)} inputs: {_batch_cure(x, y)}."
        )
    if y.layout is not torch.strided:
        raise UnsupportedModelError(
            f"the model must return a dense tensor, found the layout {y.layout}: end its forward "
            "with .to_dense()."
        )
    if y.numel() == 0:
        raise UnsupportedModelError(
            f"the model must return at least one output for each input, found shape "
            f"{tuple(y.shape)}: measure it before its outputs are dropped."
        )
    if not y.is_floating_point():
        cure = "end its forward with .real, .imag or .abs()"
        raise UnsupportedModelError(
            f"the model must return floating-point numbers, found {y.dtype}: "
            f"{cure if y.is_complex() else 'measure scores or logits, not class numbers'}."
        )
    if not all_finite(y):
        raise ValueError(
            "the model must return finite numbers, found NaN or Inf: look at the weights and at "
            "the scale of the data."
        )
    return y
