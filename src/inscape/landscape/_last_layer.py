"""The last linear layer of a network, solved by least squares."""

import copy

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import UnsupportedModelError


def resolved(model: nn.Module, x: Tensor, y: Tensor, *, bias: str, rows: int) -> nn.Module:
    """Return a copy whose last linear layer is the least-squares solution for some data.

    Of equally good solutions the smallest is taken, as by the pseudo-inverse. A last layer whose
    weights are made from other tensors (a parametrization) becomes a plain one.
    """
    model = copy.deepcopy(model)
    last = _last(model, x)
    hidden, outputs = _hidden(model, last, x, rows)
    if outputs.shape[1] != last.out_features or not torch.allclose(
        outputs, last(hidden.to(last.weight)).double(), rtol=1e-3, atol=1e-5
    ):
        raise UnsupportedModelError(
            "solving the last layer needs a network that ends in a linear layer, found that more "
            "comes after it: use solve=False."
        )
    targets = y.detach().double().reshape(len(y), -1)
    if targets.shape[1] != last.out_features:
        raise ValueError(
            f"labels must have as many numbers as the last layer has outputs, "
            f"{last.out_features}, found {targets.shape[1]}: reshape y."
        )
    _solve(_plain(model, last), hidden, targets, bias)
    return model


def _plain(model: nn.Module, last: nn.Linear) -> nn.Linear:
    """Return the layer if its weights can be written, else a plain one that takes its place."""
    bias: Tensor | None = getattr(last, "bias", None)
    if "weight" in last._parameters and (bias is None or "bias" in last._parameters):
        return last
    like = last.weight
    plain = nn.Linear(
        last.in_features,
        last.out_features,
        bias=bias is not None,
        device=like.device,
        dtype=like.dtype,
    )
    plain.train(last.training)
    if bias is not None:
        plain.bias.copy_(bias)
    for module in list(model.modules()):
        for name, part in module._modules.items():
            if part is last:
                module._modules[name] = plain
    return plain


def _solve(last: nn.Linear, hidden: Tensor, targets: Float64[Tensor, "n c"], bias: str) -> None:
    has_bias = getattr(last, "bias", None) is not None
    own = last.bias.detach().double() if has_bias else targets.new_zeros(1)
    free = bias == "free" and has_bias
    middle, mean = hidden.mean(0), targets.mean(0)
    if free:
        hidden, targets = hidden - middle, targets - mean
    elif bias == "kept":
        targets = targets - own
    weights = torch.linalg.lstsq(hidden.cpu(), targets.cpu(), driver="gelsd").solution.T
    last.weight.copy_(weights)
    if has_bias and bias != "kept":
        last.bias.copy_(mean - weights.to(mean) @ middle if free else torch.zeros_like(own))


def _last(model: nn.Module, x: Tensor) -> nn.Linear:
    """Return the linear layer that is called last."""
    called: list[nn.Linear] = []
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    hooks = [
        layer.register_forward_hook(lambda module, given, made: called.append(module))
        for layer in layers
    ]
    try:
        model(x[:1].clone())
    finally:
        for hook in hooks:
            hook.remove()
    if not called:
        raise UnsupportedModelError(
            "solving the last layer needs a network that ends in a linear layer, found none: use "
            "solve=False."
        )
    if called.count(called[-1]) > 1:
        raise UnsupportedModelError(
            f"solving the last layer needs one that is used once, found it used "
            f"{called.count(called[-1])} times: use solve=False."
        )
    return called[-1]


def _hidden(
    model: nn.Module, last: nn.Linear, x: Tensor, rows: int
) -> tuple[Float64[Tensor, "n h"], Float64[Tensor, "n c"]]:
    """Return what goes into a layer, and what the network makes of it."""
    seen: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda module, given: seen.append(given[0].double()))
    try:
        outputs = [model(part.clone()).double() for part in torch.split(x, rows)]
    finally:
        hook.remove()
    flat = [part.reshape(len(part), -1) for part in outputs]
    return torch.cat(seen), torch.cat(flat)
