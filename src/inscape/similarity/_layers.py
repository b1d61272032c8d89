"""Features of the layers of a network: what its modules return for each example."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import UnsupportedModelError, checks
from inscape._core.checks import Function
from inscape.functional.jacobians import Probe, chunks
from inscape.loaders.exported_module import AtenModule, ExportedLayer
from inscape.similarity._pair import Other, paired
from inscape.similarity.layer_matrix import OUTPUT

#: Layers of each network that are compared by default, the output among them.
MOST = 8
#: Modules that return what they are given, or only its order.
PASSING = (nn.Identity, nn.Dropout, nn.Flatten, nn.Unflatten, nn.Dropout1d, nn.Dropout2d)

Layers = Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class LayeredNetwork:
    """A probed network, the same examples as it takes them, and the layers that are compared.

    ``sizes`` are the numbers of features of each layer.
    """

    network: Function
    probe: Probe
    x: Tensor
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def features(
        self, x: Float[Tensor, "n *d"], names: Sequence[str] | None = None
    ) -> list[Float64[Tensor, "n p"]]:
        """Return the features of some examples in each layer, or in the named ones."""
        names = self.names if names is None else names
        parts = [self._batch(batch, names) for batch in chunks(x, self.probe.rows(2**26))]
        return [torch.cat(layer) for layer in zip(*parts, strict=True)]

    @torch.no_grad()
    def _batch(self, x: Tensor, names: Sequence[str]) -> list[Tensor]:
        with _returned(self.network, names) as returned:
            returned[OUTPUT] = checks.call(self.probe.f, x.clone())
        layers = [_flat(returned[name].detach()).double() for name in names]
        for name, layer in zip(names, layers, strict=True):
            checks.finite(layer.sum(1), f"features of {name}")
        return layers


def layered(
    f: Function,
    x: Float[Tensor, "n *d"],
    other: Other,
    other_x: Float[Tensor, "m *e"] | None,
    layers: Layers,
    other_layers: Layers,
) -> tuple[LayeredNetwork, LayeredNetwork]:
    """Return two networks with the layers to be compared, or raise what does not fit."""
    pair = paired(f, x, other, other_x, same_inputs=False, same_outputs=False)
    assert callable(other)
    return (
        _layered(f, pair.first, pair.x, layers, "layers"),
        _layered(other, pair.second, pair.other_x, other_layers, "other_layers"),
    )


def _layered(
    network: Function, probed: Probe, x: Tensor, wanted: Layers, argument: str
) -> LayeredNetwork:
    trial = _trial(network, probed, x[:2])
    if wanted is None:
        names = _usual(network, trial)
    else:
        names = tuple(wanted)
        if not names or isinstance(wanted, str):
            raise ValueError(f"{argument} must be names of modules, found {wanted!r}.")
        for name in names:
            if name not in trial:
                raise UnsupportedModelError(
                    f"{argument} must be modules that return one row of numbers for each example, "
                    f"found {name!r}: choose among {', '.join(trial)}."
                )
    sizes = tuple(trial[name][0].numel() for name in names)
    return LayeredNetwork(network=network, probe=probed, x=x, names=names, sizes=sizes)


@torch.no_grad()
def _trial(network: Function, probed: Probe, x: Tensor) -> dict[str, Tensor]:
    """Return what every module returns for a few examples, in the order of their calls."""
    names = [*(name for name, _ in _modules(network)), *_exported(network)]
    with _returned(network, names) as returned:
        output = checks.call(probed.f, x.clone())
    good = {
        name: value
        for name, value in returned.items()
        if isinstance(value, Tensor) and value.ndim and len(value) == len(x)
        and value.is_floating_point() and value[0].numel()
    }  # fmt: skip
    return {**good, OUTPUT: output}


def _usual(network: Function, trial: dict[str, Tensor]) -> tuple[str, ...]:
    """Return the activations, or else the layers with parameters, and the output; thinned."""
    kinds = _kinds(network)
    leaves = [n for n in trial if n in kinds]
    active = [n for n in leaves if kinds[n][0].rpartition(".")[0].endswith(".activation")]
    weighted = [n for n in leaves if kinds[n][1]]
    hidden = active or weighted
    output = _flat(trial[OUTPUT])
    hidden = [n for n in hidden if not _equal(_flat(trial[n]), output)]
    if len(hidden) > MOST - 1:
        places = torch.linspace(0, len(hidden) - 1, MOST - 1).round().long().tolist()
        hidden = [hidden[place] for place in places]
    return (*hidden, OUTPUT)


def _kinds(network: Function) -> dict[str, tuple[str, bool]]:
    """Return the class of each module without modules of its own, and whether it has weights.

    Without those that return what they are given.
    """
    modules = dict(_modules(network))
    kinds = {
        name: (f"{type(module).__module__}.{type(module).__name__}", _has_weights(module))
        for name, module in modules.items()
        if not list(module.children()) and not isinstance(module, PASSING)
    }
    passing = {kind.__name__ for kind in PASSING}
    for name, (_, layer) in _exported(network).items():
        if layer.kind.rpartition(".")[2] not in passing:
            kinds[name] = layer.kind, name in modules and _has_weights(modules[name])
    return kinds


def _has_weights(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _exported(network: Any) -> dict[str, tuple[AtenModule, ExportedLayer]]:
    """Return the layers of exported programs, which are steps instead of modules."""
    if not isinstance(network, nn.Module):
        return {}
    return {
        f"{prefix}.{name}" if prefix else name: (module, layer)
        for prefix, module in network.named_modules()
        if isinstance(module, AtenModule)
        for name, layer in module.layers.items()
    }


def _flat(values: Tensor) -> Float[Tensor, "n p"]:
    """Return one row of numbers for each example; a single number may have no axis of its own."""
    return values.reshape(len(values), -1)


def _equal(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and torch.equal(left, right.to(left.dtype))


def _modules(network: Any) -> list[tuple[str, nn.Module]]:
    if not isinstance(network, nn.Module):
        return []
    return [(name, module) for name, module in network.named_modules() if name]


@contextmanager
def _returned(network: Function, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Collect copies of what the named modules return inside this context, the last call of each.

    Copies, since the next module may work in place.
    """
    returned: dict[str, Any] = {}
    wanted = set(names)

    def keep(name: str, *called: Any) -> None:
        output = called[-1]
        returned.pop(name, None)
        returned[name] = output.clone() if isinstance(output, Tensor) else output

    with ExitStack() as stack:
        for name, module in _modules(network):
            if name in wanted:
                handle = module.register_forward_hook(partial(keep, name))
                stack.callback(handle.remove)
        taps: dict[AtenModule, dict[str, Any]] = {}
        for name, (program, layer) in _exported(network).items():
            if name in wanted:
                taps.setdefault(program, {})[layer.result] = partial(keep, name)
        for program, own in taps.items():
            stack.enter_context(program.tapped(own))
        yield returned
