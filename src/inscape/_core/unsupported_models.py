"""Models that cannot be measured whatever the data: quantised, without values, or none at all."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from inscape.errors import UnsupportedModelError

#: Packages whose layers compute with integers.
_QUANTISED = ("bitsandbytes", "torchao")


def refuse_other_objects(arguments: Mapping[str, Any]) -> None:
    """Refuse what stands in the place of a model and is none."""
    name, value = next(iter(arguments.items()), ("model", None))
    if name in ("f", "model"):
        refuse_other_object(name, value)


def refuse_other_object(name: str, value: Any) -> None:
    """Refuse a class, a state dict or an optimizer where a model is needed."""
    if isinstance(value, type):
        kind, cure = f"the class {value.__name__} itself", f"pass an object, {value.__name__}(...)"
    elif isinstance(value, Mapping) and any(isinstance(v, Tensor) for v in value.values()):
        kind = "a state dict, which holds weights and no computation"
        cure = "build the network, call its load_state_dict, and pass the network"
    elif isinstance(value, Optimizer):
        kind, cure = f"an optimizer ({type(value).__name__})", "pass the network that it trains"
    else:
        return
    raise TypeError(f"{name} must be a torch.nn.Module or a function, found {kind}: {cure}.")


def refuse_unreadable(model: nn.Module) -> None:
    """Refuse a model without values, and one whose layers compute with integers."""
    refuse_meta(model)
    refuse_quantised(model)


def refuse_meta(model: nn.Module) -> None:
    """Refuse a model whose weights hold no numbers."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta:
            raise UnsupportedModelError(
                f"the model's weights must hold numbers, found {name!r} on the device 'meta': "
                "build the model on a real device."
            )


def refuse_complex(model: nn.Module) -> None:
    """Refuse complex parameters where norms of, or gradients by, real ones are measured."""
    for name, parameter in model.named_parameters():
        if parameter.is_complex():
            raise UnsupportedModelError(
                f"the model's parameters must be real numbers for this measure, found {name!r} in "
                f"{parameter.dtype}: keep real and imaginary part as two parameters, or measure "
                "what reads the function alone (gradient_norm, path_length, robustness)."
            )


def refuse_quantised(model: nn.Module) -> None:
    """Refuse a model whose layers compute with integers: it is flat between steps."""
    for name, module in model.named_modules():
        package = type(module).__module__.split(".")
        if "quantized" in package or package[0] in _QUANTISED:
            kind = type(module).__name__
            place = f"{name!r} ({kind})" if name else kind
            raise UnsupportedModelError(
                f"the model must compute in floating point, found the quantised layer {place}, "
                "whose output moves by steps and has no gradients: measure the model before it was "
                "quantised."
            )
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_quantized:
            raise UnsupportedModelError(
                f"the model must compute in floating point, found the quantised tensor {name!r}: "
                "measure the model before it was quantised."
            )
