"""Linear layers one after the other: which they are, and what goes with the order of units."""

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

#: Modules that treat every unit alike and alone, so that its place does not matter.
ALIKE = (
    *(nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus),
    *(nn.Hardtanh, nn.ReLU6, nn.Identity, nn.Dropout),
)


@dataclass(frozen=True)
class Layer:
    """A linear map of the chain, by the names of its parameters, and what normalises its units."""

    weight: str
    bias: str | None
    norms: tuple[str, ...] = ()

    def own(self) -> list[str]:
        """Return the names of all that goes with the order of the layer's units."""
        return [*([self.bias] if self.bias else []), *self.norms]


def chain(model: nn.Module) -> list[Layer]:
    """Return the linear maps of a plain chain of layers, or say what is in their way."""
    return linked(_leaves(model))


def called(model: nn.Module, state: State, x: Float[Tensor, "n *d"]) -> list[Layer]:
    """Return the linear maps of any network that calls them one after the other.

    What it does in between is not seen; that hidden units may change places is tried out.
    """
    if _is_plain(model):
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
    layers = linked(calls)
    if len(set(layers)) < len(layers) or not _may_change_places(model, layers, state, x):
        raise UnsupportedModelError(
            "an alignment needs linear layers that are called once each, one after the other, with "
            "elementwise functions between them, found that hidden units may not change places: "
            "use align=False, or pass networks that are aligned already."
        )
    return layers


def _may_change_places(model: nn.Module, layers: list[Layer], state: State, x: Tensor) -> bool:
    """Tell whether the function stays the same when hidden units are moved, layer by layer.

    A swap of the first two and a move of all by one place make every order.
    """
    walker = copy.deepcopy(model)
    walker.load_state_dict(dict(state))
    expected = walker(x.clone())
    near = 1e-4 * float(expected.abs().max())
    for layer, above in pairwise(layers):
        units = len(state[layer.weight])
        if state[above.weight].shape[1] != units:
            return False
        places = torch.arange(units, device=state[layer.weight].device)
        for order in (places.roll(1), torch.cat([places[:2].flip(0), places[2:]])):
            moved = {name: state[name][order] for name in (layer.weight, *layer.own())}
            moved[above.weight] = state[above.weight][:, order]
            walker.load_state_dict({**state, **moved})
            if not torch.allclose(walker(x.clone()), expected, rtol=1e-4, atol=near):
                return False
    return True


def _is_plain(model: nn.Module) -> bool:
    """Tell whether all modules of a chain are known."""
    known = (nn.Linear, nn.BatchNorm1d, nn.Flatten, *ALIKE)
    return all(isinstance(module, known) for _, module in _leaves(model))


def linked(leaves: Iterable[tuple[str, nn.Module]]) -> list[Layer]:
    """Return the linear maps among modules that come one after the other."""
    layers: list[Layer] = []
    for name, module in leaves:
        match module:
            case nn.Linear():
                bias = _trained(module, name, "bias") if _biased(module) else None
                layers.append(Layer(_trained(module, name, "weight"), bias))
            case nn.BatchNorm1d() if layers:
                own = [key for key, value in module.state_dict().items() if value.ndim == 1]
                last = layers[-1]
                layers[-1] = Layer(
                    last.weight, last.bias, (*last.norms, *(f"{name}.{key}" for key in own))
                )
            case nn.Flatten() if not layers:
                pass
            case _ if isinstance(module, ALIKE):
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


def _trained(layer: nn.Linear, place: str, tensor: str) -> str:
    """Return the name of what is trained: of the tensor, or of the one that it is made from.

    For a parametrization this must go with the order of the units: made from what is in another
    order must be what was made, in that order.
    """
    if tensor in layer._parameters:
        return f"{place}.{tensor}" if place else tensor
    if parametrize.is_parametrized(layer, tensor):
        made = layer.get_submodule(f"parametrizations.{tensor}")
        value = getattr(made, "original", None)
        if isinstance(value, Tensor) and _keeps_order(made, value):
            name = f"parametrizations.{tensor}.original"
            return f"{place}.{name}" if place else name
    raise UnsupportedModelError(
        f"an alignment needs weights that are trained themselves, or scaled alike in any order of "
        f"units, found the {tensor} of layer {place!r} made from other tensors: use align=False."
    )


def _keeps_order(made: nn.Module, value: Tensor) -> bool:
    """Tell whether a list of parametrizations gives the same in another order of units."""
    orders = [torch.arange(size - 1, -1, -1, device=value.device) for size in value.shape]
    mixed = value.detach()
    expected = _applied(made, mixed)
    for dim, order in enumerate(orders):
        mixed, expected = (part.index_select(dim, order) for part in (mixed, expected))
    return torch.allclose(_applied(made, mixed), expected, rtol=1e-4, atol=1e-7)


def _applied(made: nn.Module, value: Tensor) -> Tensor:
    for part in made.children():
        value = part(value)
    return value


def _leaves(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    if not isinstance(model, nn.Sequential):
        yield prefix, model
        return
    for name, module in model.named_children():
        yield from _leaves(module, f"{prefix}.{name}" if prefix else name)
