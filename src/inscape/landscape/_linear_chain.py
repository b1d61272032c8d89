"""Chains of linear layers, and the parameters that are permuted with their units."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from inscape._core import UnsupportedModelError

State = Mapping[str, Tensor]

#: Elementwise modules, which commute with permutations of units.
ELEMENTWISE = (
    *(nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus),
    *(nn.Hardtanh, nn.ReLU6, nn.Identity, nn.Dropout),
)


@dataclass(frozen=True)
class LinearLayer:
    """A linear layer of a chain: names of its parameters, and of those of its batch norms."""

    weight: str
    bias: str | None
    norms: tuple[str, ...] = ()

    def per_unit(self) -> list[str]:
        """Return the names of all parameters with one entry for each unit."""
        return [*([self.bias] if self.bias else []), *self.norms]


def chain(model: nn.Module) -> list[LinearLayer]:
    """Return the linear layers of a sequential model, or raise what is unsupported."""
    return chain_of(_leaves(model))


def traced_chain(model: nn.Module, state: State, x: Float[Tensor, "n *d"]) -> list[LinearLayer]:
    """Return the linear layers of a network in the order in which it calls them.

    Operations between the layers are not traced; permutation invariance is tested instead.
    """
    if _is_sequential(model):
        return chain(model)
    calls: list[tuple[str, nn.Module]] = []
    hooks = [
        module.register_forward_pre_hook(lambda part, _, name=name: calls.append((name, part)))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) or any(True for _ in module.parameters(recurse=False))
    ]
    try:
        model(x[:1].clone())
    finally:
        for hook in hooks:
            hook.remove()
    layers = chain_of(calls)
    if len(set(layers)) < len(layers) or not _is_permutation_invariant(model, layers, state, x):
        raise UnsupportedModelError(
            "an alignment needs linear layers that are called once each, one after the other, with "
            "elementwise functions between them, found that hidden units may not change places: "
            "use align=False, or pass networks that are aligned already."
        )
    return layers


def _is_permutation_invariant(
    model: nn.Module, layers: list[LinearLayer], state: State, x: Tensor
) -> bool:
    """Tell whether permutations of hidden units leave the function unchanged, layer by layer.

    A transposition and a cyclic shift generate all permutations.
    """
    copied = copy.deepcopy(model)
    copied.load_state_dict(dict(state))
    expected = copied(x.clone())
    tolerance = 1e-4 * float(expected.abs().max())
    for layer, successor in pairwise(layers):
        units = len(state[layer.weight])
        if state[successor.weight].shape[1] != units:
            return False
        units_in_order = torch.arange(units, device=state[layer.weight].device)
        for order in (
            units_in_order.roll(1),
            torch.cat([units_in_order[:2].flip(0), units_in_order[2:]]),
        ):
            permuted = {name: state[name][order] for name in (layer.weight, *layer.per_unit())}
            permuted[successor.weight] = state[successor.weight][:, order]
            copied.load_state_dict({**state, **permuted})
            if not torch.allclose(copied(x.clone()), expected, rtol=1e-4, atol=tolerance):
                return False
    return True


def _is_sequential(model: nn.Module) -> bool:
    """Tell whether all modules of a sequential model are supported."""
    known = (nn.Linear, nn.BatchNorm1d, nn.Flatten, *ELEMENTWISE)
    return all(isinstance(module, known) for _, module in _leaves(model))


def chain_of(leaves: Iterable[tuple[str, nn.Module]]) -> list[LinearLayer]:
    """Return the linear layers among modules in the order of their calls."""
    layers: list[LinearLayer] = []
    for name, module in leaves:
        match module:
            case nn.Linear():
                bias = _parameter_name(module, name, "bias") if _biased(module) else None
                layers.append(LinearLayer(_parameter_name(module, name, "weight"), bias))
            case nn.BatchNorm1d() if layers:
                per_unit = [key for key, value in module.state_dict().items() if value.ndim == 1]
                last = layers[-1]
                layers[-1] = LinearLayer(
                    last.weight, last.bias, (*last.norms, *(f"{name}.{key}" for key in per_unit))
                )
            case nn.Flatten() if not layers:
                pass
            case _ if isinstance(module, ELEMENTWISE):
                pass
            case _:
                raise UnsupportedModelError(
                    "an alignment needs a chain of linear layers with elementwise activations, "
                    f"found {type(module).__name__} at {name or 'the top'!r}: use align=False, or "
                    "pass networks that are aligned already."
                )
    if len(layers) < 2:
        raise UnsupportedModelError(
            f"an alignment needs a hidden layer, found {len(layers)} linear layers: use "
            "align=False."
        )
    return layers


def _biased(layer: nn.Linear) -> bool:
    return getattr(layer, "bias", None) is not None


def _parameter_name(layer: nn.Linear, prefix: str, tensor: str) -> str:
    """Return the name of the trained tensor: the weight, or the original of its parametrization.

    A parametrization must commute with permutations of units.
    """
    if tensor in layer._parameters:
        return f"{prefix}.{tensor}" if prefix else tensor
    if parametrize.is_parametrized(layer, tensor):
        parametrizations = layer.get_submodule(f"parametrizations.{tensor}")
        value = getattr(parametrizations, "original", None)
        if isinstance(value, Tensor) and _commutes_with_permutation(parametrizations, value):
            name = f"parametrizations.{tensor}.original"
            return f"{prefix}.{name}" if prefix else name
    raise UnsupportedModelError(
        f"an alignment needs weights that are trained themselves, or scaled alike in any order of "
        f"units, found the {tensor} of layer {prefix!r} made from other tensors: use align=False."
    )


def _commutes_with_permutation(parametrizations: nn.Module, value: Tensor) -> bool:
    """Tell whether a list of parametrizations commutes with permutations of units."""
    orders = [torch.arange(size - 1, -1, -1, device=value.device) for size in value.shape]
    permuted = value.detach()
    expected = _applied(parametrizations, permuted)
    for dim, order in enumerate(orders):
        permuted, expected = (part.index_select(dim, order) for part in (permuted, expected))
    return torch.allclose(_applied(parametrizations, permuted), expected, rtol=1e-4, atol=1e-7)


def _applied(parametrizations: nn.Module, value: Tensor) -> Tensor:
    for parametrization in parametrizations.children():
        value = parametrization(value)
    return value


def _leaves(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    if not isinstance(model, nn.Sequential):
        yield prefix, model
        return
    for name, module in model.named_children():
        yield from _leaves(module, f"{prefix}.{name}" if prefix else name)
