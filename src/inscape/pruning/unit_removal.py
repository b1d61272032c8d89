"""Removal of units from a network: a copy with smaller tensors."""

import copy
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape.errors import UnsupportedModelError
from inscape.pruning.groups import Group, structure

#: Attributes with the sizes of layers: of their outputs, of their inputs.
MADE = ("out_features", "out_channels")
READ = ("in_features", "in_channels")


def cut(model: nn.Module, x: Float[Tensor, "n *d"], keep: Mapping[str, Sequence[int]]) -> nn.Module:
    """Return a copy of ``model`` in which layers have only some of their units.

    The copy is a plain module with smaller tensors. It gives what ``model`` gives when all weights
    that read the other units are zero, up to rounding.

    Args:
        model: A module in eval mode; it is not modified.
        x: Data; two rows of it give the shapes.
        keep: For each layer that is to be cut (by its path) the units to keep.

    >>> net = torch.nn.Sequential(nn.Linear(2, 9), nn.ReLU(), nn.Linear(9, 1)).eval()
    >>> cut(net, torch.zeros(1, 2), {"0": [0, 4]})
    Sequential(
      (0): Linear(in_features=2, out_features=2, bias=True)
      (1): ReLU()
      (2): Linear(in_features=2, out_features=1, bias=True)
    )
    """
    groups = structure(model, x)
    pairs: dict[Group, Sequence[int]] = {}
    for layer, units in keep.items():
        group = groups.group(layer)
        if sorted(pairs.setdefault(group, units)) != sorted(units):
            raise ValueError(
                f"layers {', '.join(map(repr, group.makers))} are added up and must keep the same "
                f"units, found {list(pairs[group])} and {list(units)}: name one of them."
            )
    return cut_groups(model, list(pairs.items()))


def cut_groups(model: nn.Module, pairs: Sequence[tuple[Group, Sequence[int]]]) -> nn.Module:
    """Return a copy of ``model`` with those units of each group."""
    body = copy.deepcopy(model)
    for group, units in pairs:
        cut_in_place(body, group, _checked(group, units))
    return body


def cut_in_place(body: nn.Module, group: Group, units: Int64[Tensor, " k"]) -> None:
    """Keep only ``units`` of a group in ``body`` itself."""
    for name in group.makers:
        layer = body.get_submodule(name)
        _select(layer, "weight", units, 0)
        _select(layer, "bias", units, 0)
        _resize(layer, MADE, len(units))
    for name in group.norms:
        norm = body.get_submodule(name)
        for part in ("weight", "bias", "running_mean", "running_var"):
            _select(norm, part, units, 0)
        _resize(norm, ("num_features",), len(units))
    for name, per in group.readers:
        layer = body.get_submodule(name)
        inputs = inputs_of(units, per)
        _select(layer, "weight", inputs, 1)
        _resize(layer, READ, len(inputs))


def inputs_of(units: Int64[Tensor, " k"], per: int) -> Int64[Tensor, " m"]:
    """Return which inputs of a reader stand for some units."""
    return (units[:, None] * per + torch.arange(per)).reshape(-1)


def _select(layer: nn.Module, part: str, indices: Tensor, dim: int) -> None:
    """Replace a parameter or buffer by some of its rows or columns."""
    tensor = getattr(layer, part)
    if tensor is None:
        return
    selected = tensor.detach().index_select(dim, indices.to(tensor.device))
    if isinstance(tensor, nn.Parameter):
        selected = nn.Parameter(selected, requires_grad=tensor.requires_grad)
    setattr(layer, part, selected)


def _resize(layer: nn.Module, names: tuple[str, ...], size: int) -> None:
    for name in names:
        if hasattr(layer, name):
            setattr(layer, name, size)


def _checked(group: Group, units: Sequence[int]) -> Int64[Tensor, " k"]:
    """Return the units in their order, or say what is wrong with them."""
    chosen = sorted(set(units))
    if not chosen:
        raise UnsupportedModelError(
            f"a layer needs at least one unit, found none to keep of {group.name!r}: "
            "keep one, or take the layer out of the model by hand."
        )
    if len(chosen) != len(units) or chosen[0] < 0 or chosen[-1] >= group.units:
        raise ValueError(
            f"the units to keep of {group.name!r} must be different numbers from 0 to "
            f"{group.units - 1}, found {list(units)}."
        )
    return torch.tensor(chosen)


def weights(model: nn.Module) -> int:
    """Return the number of weights that are not zero; biases and batch norms do not count."""
    return sum(int((p != 0).sum()) for p in weight_tensors(model).values())


def weight_tensors(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are matrices or filters, by name."""
    return {name: p for name, p in model.named_parameters() if p.ndim >= 2}


def flat_state(model: nn.Module) -> Float[Tensor, " s"]:
    """Return all floating parameters and buffers in one row."""
    parts = [t.detach().reshape(-1) for t in model.state_dict().values() if t.is_floating_point()]
    return torch.cat(parts).clone()


def load_flat(body: nn.Module, state: Float[Tensor, " s"]) -> nn.Module:
    """Write such a row into a module of the same shapes, and return the module."""
    tensors = [t for t in body.state_dict().values() if t.is_floating_point()]
    sizes = [t.numel() for t in tensors]
    if sum(sizes) != len(state):
        raise ValueError(
            f"the pruned network has {len(state)} numbers, found a model that gives "
            f"{sum(sizes)}: pass the model that was pruned."
        )
    with torch.no_grad():
        for tensor, part in zip(tensors, torch.split(state, sizes), strict=True):
            tensor.copy_(part.reshape(tensor.shape))
    return body
