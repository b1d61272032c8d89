"""What a recording refuses before the first update, and the names of what it records."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape.training.function_names import own_name
from inscape.training.losses import LOSSES, Loss

#: Losses of PyTorch that are ours under another name.
_FUNCTIONS: dict[Callable[..., Tensor], str] = {
    functional.cross_entropy: "cross_entropy",
    functional.mse_loss: "mse",
    functional.binary_cross_entropy_with_logits: "bce_logits",
}
#: Modules of PyTorch that are, with the options that must have their defaults.
_MODULES: dict[type[nn.Module], tuple[str, dict[str, Any]]] = {
    nn.CrossEntropyLoss: (
        "cross_entropy",
        {"weight": None, "label_smoothing": 0.0, "reduction": "mean", "ignore_index": -100},
    ),
    nn.MSELoss: ("mse", {"reduction": "mean"}),
    nn.BCEWithLogitsLoss: (
        "bce_logits",
        {"weight": None, "pos_weight": None, "reduction": "mean"},
    ),
}


def loss_name(loss: str | Loss) -> str:
    """Return the name of a loss: PyTorch's own functions and modules have that of ours."""
    if isinstance(loss, nn.Module) and type(loss) in _MODULES:
        name, defaults = _MODULES[type(loss)]
        if all(getattr(loss, key, None) == value for key, value in defaults.items()):
            return name
    if callable(loss):
        for named in (_FUNCTIONS, {function: name for name, function in LOSSES.items()}):
            if loss in named:
                return named[loss]
    return own_name(loss)


def bare_optimizer(optimizer: object) -> torch.optim.Optimizer:
    """Return the optimizer inside the wrappers of accelerate and Lightning; refuse LBFGS."""
    while isinstance(inner := getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = inner
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            "record_training needs the torch.optim.Optimizer of the loop, found "
            f"{type(optimizer).__name__}: pass record_training(model, optimizer, ...)."
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "record_training records one gradient for every update, found LBFGS, which calls its "
            "closure several times: choose another optimizer, or keep checkpoints yourself."
        )
    return optimizer


def bare_model(model: object) -> nn.Module:
    """Return the module inside the wrappers of PyTorch; refuse averages of weights."""
    if isinstance(model, torch.optim.swa_utils.AveragedModel):
        raise ValueError(
            "record_training records the network that the optimizer updates, found its average "
            "(AveragedModel, as SWA and EMA keep it): pass the model that is trained."
        )
    for attribute in ("_orig_mod", "module"):  # torch.compile, DataParallel and its like
        inner = getattr(model, attribute, None)
        wrapped = type(model).__name__ in (
            "OptimizedModule", "DataParallel", "DistributedDataParallel",
        )  # fmt: skip
        if wrapped and isinstance(inner, nn.Module):
            model = inner
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"record_training needs a torch.nn.Module, found {type(model).__name__}: pass the "
            "model that is trained."
        )
    return model


def trained_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """Return the names of the parameters that the optimizer updates, in the model's order."""
    updated = {id(p) for group in optimizer.param_groups for p in group["params"]}
    named = {id(p): name for name, p in model.named_parameters()}
    if strange := len(updated - named.keys()):
        raise ValueError(
            f"the optimizer must update parameters of the model, found {strange} that are not its "
            "own: make the optimizer from model.parameters() of the model that you pass."
        )
    names = tuple(n for n, p in model.named_parameters() if id(p) in updated and p.requires_grad)
    if not names:
        raise ValueError(
            "the optimizer must update parameters that require gradients, found none: call "
            "model.requires_grad_()."
        )
    for name, tensor in model.state_dict().items():
        if tensor.dtype is torch.bfloat16 or tensor.is_quantized or tensor.is_sparse:
            raise TypeError(
                f"a recording holds types that NumPy knows, found {name!r} in {tensor.dtype}: "
                "keep the weights in float32 and use torch.autocast for the arithmetic."
            )
    return names


def tensors_of(data: object) -> tuple[Tensor, Tensor] | None:
    """Return inputs and targets of the training data; None if there are none."""
    if data is None:
        return None
    if isinstance(data, Mapping) and {"x", "y"} <= set(data):
        data = (data["x"], data["y"])
    pair = getattr(data, "tensors", data)
    if isinstance(pair, tuple | list) and len(pair) == 2:
        x, y = (torch.as_tensor(part) for part in pair)
        if x.ndim and y.ndim and len(x) == len(y):
            return x.detach().cpu(), y.detach().cpu()
    raise ValueError(
        "data must be the inputs and targets of the training, two tensors of one length, found "
        f"{type(data).__name__}: pass data=(x, y), a TensorDataset, or data=None to keep every "
        "batch in the recording."
    )
