"""The last linear layer of a network, solved by least squares."""

import copy

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import UnsupportedModelError


def with_solved_last_layer(
    model: nn.Module, x: Tensor, y: Tensor, *, bias: str, rows: int
) -> nn.Module:
    """Return a copy whose last linear layer is the least-squares solution for some data.

    The minimum-norm solution, as by the pseudo-inverse. A parametrized last layer is replaced by an
    ordinary one.
    """
    model = copy.deepcopy(model)
    last = _last_linear(model, x)
    hidden, outputs = _features(model, last, x, rows)
    if outputs.shape[1] != last.out_features or not torch.allclose(
        outputs, last(hidden.to(last.weight)).double(), rtol=1e-3, atol=1e-5
    ):
        raise UnsupportedModelError(
            "solving the last layer needs a network that ends in a linear layer, found other "
            "operations after it: use solve=False."
        )
    targets = y.detach().double().reshape(len(y), -1)
    if targets.shape[1] != last.out_features:
        raise ValueError(
            f"labels must have as many numbers as the last layer has outputs, "
            f"{last.out_features}, found {targets.shape[1]}: reshape y."
        )
    _solve(_writable(model, last), hidden, targets, bias)
    return model


def _writable(model: nn.Module, last: nn.Linear) -> nn.Linear:
    """Return the layer if it is not parametrized, else an ordinary one that replaces it."""
    bias: Tensor | None = getattr(last, "bias", None)
    if "weight" in last._parameters and (bias is None or "bias" in last._parameters):
        return last
    weight = last.weight
    replacement = nn.Linear(
        last.in_features,
        last.out_features,
        bias=bias is not None,
        device=weight.device,
        dtype=weight.dtype,
    )
    replacement.train(last.training)
    if bias is not None:
        replacement.bias.copy_(bias)
    for module in list(model.modules()):
        for name, part in module._modules.items():
            if part is last:
                module._modules[name] = replacement
    return replacement


def _solve(last: nn.Linear, hidden: Tensor, targets: Float64[Tensor, "n c"], bias: str) -> None:
    has_bias = getattr(last, "bias", None) is not None
    old_bias = last.bias.detach().double() if has_bias else targets.new_zeros(1)
    centred = bias == "free" and has_bias
    feature_mean, target_mean = hidden.mean(0), targets.mean(0)
    if centred:
        hidden, targets = hidden - feature_mean, targets - target_mean
    elif bias == "kept":
        targets = targets - old_bias
    weights = torch.linalg.lstsq(hidden.cpu(), targets.cpu(), driver="gelsd").solution.T
    last.weight.copy_(weights)
    if has_bias and bias != "kept":
        last.bias.copy_(
            target_mean - weights.to(target_mean) @ feature_mean
            if centred
            else torch.zeros_like(old_bias)
        )


def _last_linear(model: nn.Module, x: Tensor) -> nn.Linear:
    """Return the linear layer that is called last."""
    called: list[nn.Linear] = []
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    hooks = [
        layer.register_forward_hook(lambda module, inputs, outputs: called.append(module))
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


def _features(
    model: nn.Module, last: nn.Linear, x: Tensor, rows: int
) -> tuple[Float64[Tensor, "n h"], Float64[Tensor, "n c"]]:
    """Return the inputs of the last layer and the outputs of the network."""
    features: list[Tensor] = []
    hook = last.register_forward_pre_hook(
        lambda module, inputs: features.append(inputs[0].double())
    )
    try:
        outputs = [model(part.clone()).double() for part in torch.split(x, rows)]
    finally:
        hook.remove()
    flattened = [part.reshape(len(part), -1) for part in outputs]
    return torch.cat(features), torch.cat(flattened)
