"""Alignment: the units of one network in the order in which they are most like those of another."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn
from torch.nn.utils import parametrize

from inscape._core import Result, Row, Summary, UnsupportedModelError

State = Mapping[str, Tensor]

#: Modules that treat every unit alike and alone, so that its place does not matter.
ALIKE = (
    *(nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus),
    *(nn.Hardtanh, nn.ReLU6, nn.Identity, nn.Dropout),
)
#: Rounds over all layers; each raises the likeness, and a handful is the rule.
ROUNDS = 100


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Alignment(Result):
    """For each hidden layer, which unit of the second network takes which place.

    ``likeness`` is the inner product of all weights and biases of both networks, as a share of
    the product of their norms: before and after.
    """

    orders: tuple[Int64[Tensor, " _"], ...]
    before: float
    likeness: float
    rounds: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each hidden layer."""
        for layer, order in enumerate(self.orders):
            moved = int((order != torch.arange(len(order))).sum())
            yield {"layer": layer, "units": len(order), "moved": moved}

    def summary(self) -> Summary:
        """Return the cosine of both vectors of parameters, after the alignment."""
        basis = f"{len(self.orders)} hidden layers, {self.rounds} rounds, before {self.before:.3g}"
        return Summary(value=self.likeness, kind="lower bound", basis=basis)


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
    layers: list[Layer] = []
    for name, module in _leaves(model):
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


@torch.no_grad()
def aligned(model: nn.Module, start: State, stop: State) -> tuple[dict[str, Tensor], Alignment]:
    r"""Return ``stop`` with its hidden units in the order that makes it most like ``start``.

    .. math:: \max_{P_1, \ldots, P_{L-1}} \sum_l
              \langle W_l, P_l W'_l P_{l-1}^T \rangle + \langle b_l, P_l b'_l \rangle

    The function stays the same. Each layer in turn is ordered as is best while the others stay (a
    linear assignment), until nothing moves; the first pass goes from input to output and knows
    only what is below. A copy with its units in another order is found exactly, unless units are
    equal; else the answer is a local maximum (Ainsworth et al. 2023).

    Args:
        model: The architecture: an ``nn.Sequential`` of linear layers and activations.
        start: Parameters that stay.
        stop: Parameters whose units are put in order.
    """
    layers = chain(model)
    state = {name: value.detach().clone() for name, value in stop.items()}
    before = likeness(start, state)
    orders = [torch.arange(len(state[layer.weight])) for layer in layers[:-1]]
    rounds = 0
    for rounds in range(1, ROUNDS + 1):
        moved = False
        for k, (layer, above) in enumerate(pairwise(layers)):
            order = _best(start, state, layer, above if rounds > 1 else None)
            if torch.equal(order, torch.arange(len(order))):
                continue
            moved = True
            orders[k] = orders[k][order]
            for name in (layer.weight, *layer.own()):
                state[name] = state[name][order.to(state[name].device)]
            state[above.weight] = state[above.weight][:, order.to(state[above.weight].device)]
        if not moved and rounds > 1:
            break
    found = Alignment(
        orders=tuple(orders), before=before, likeness=likeness(start, state), rounds=rounds
    )
    return state, found


def _best(start: State, stop: State, layer: Layer, above: Layer | None) -> Int64[Tensor, " units"]:
    """Return which unit of ``stop`` should take each place of a layer; as they are if none gain."""
    from scipy.optimize import linear_sum_assignment

    def both(name: str) -> tuple[Float64[Tensor, "u w"], Float64[Tensor, "u w"]]:
        one, two = (side[name].detach().double().cpu() for side in (start, stop))
        return one.reshape(len(one), -1), two.reshape(len(two), -1)

    one, two = both(layer.weight)
    gain = one @ two.T
    for name in layer.own():
        one, two = both(name)
        gain = gain + one @ two.T
    if above is not None:
        one, two = both(above.weight)
        gain = gain + one.T @ two
    places = torch.arange(len(gain))
    order = torch.from_numpy(linear_sum_assignment(gain.numpy(), maximize=True)[1]).long()
    better = float(gain[places, order].sum() - gain.diagonal().sum())
    return order if better > 1e-12 * float(gain.abs().sum()) else places


def likeness(start: State, stop: State) -> float:
    """Return the cosine of two vectors of all floating parameters."""
    names = [name for name, value in start.items() if value.is_floating_point()]
    one, two = (
        torch.cat([side[name].detach().double().flatten().cpu() for name in names])
        for side in (start, stop)
    )
    return float(one @ two / (one.norm() * two.norm()).clamp(min=1e-300))
