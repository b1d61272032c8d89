"""Weights product: a bound on the slope variation of a two-layer ReLU network by its weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import (
    NotApplicable,
    Result,
    Row,
    Summary,
    UnsupportedModelError,
    checks,
    instrument,
)
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import probe
from inscape.piecewise import TwoLayer, two_layer


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WeightsProduct(Result):
    """Norm of the jump of the gradient across the kink of each hidden unit."""

    range: ClassVar[Range] = NONNEGATIVE

    terms: Float[Tensor, " hidden"]
    outputs: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each hidden unit."""
        for unit, term in enumerate(self.terms.tolist()):
            yield {"unit": unit, "jump": term}

    def summary(self) -> Summary:
        """Return the sum over the hidden units."""
        total = float(self.terms.double().sum())
        return Summary(value=total, kind="exact", basis=f"{len(self.terms)} hidden units")


@instrument(
    reads="parameters",
    larger="rougher at most",
    cost="instant",
    work=lambda n, c: 100,
    setup=0.5,
    meaning="Crossing every ReLU of the network once would change its slope by {value} in total.",
    cites="volhejn2020smoothness, Definition 8, Eq. (3.8)",
    exempt=("terms",),
)
@torch.no_grad()
def weights_product(model: nn.Module, x: Float[Tensor, "n *d"]) -> WeightsProduct | NotApplicable:
    r"""Sum the jumps of the gradient over all hidden units of a two-layer ReLU network.

    .. math:: WP(f) = \sum_{i=1}^{h} \lVert w_i^{(2)} \rVert \, \lVert w_i^{(1)} \rVert

    Exact. With one input it equals the total variation of :math:`f'` when all knots are distinct
    and inside the interval, otherwise it is an upper bound (V4). For several outputs
    :math:`w_i^{(2)}` is the column of unit ``i`` (the thesis has one output). The network is
    recognised from its exported graph, whatever its class; the result for anything else is
    "not applicable" with the reason. Independent of the data.

    Args:
        model: A module in eval mode.
        x: Data; only the shape of one point is used.
    """
    probed = probe(model, x)
    try:
        network = two_layer(model, x)
    except UnsupportedModelError as error:
        return NotApplicable(what="weights_product", reason=_not_two_layer(error))
    first, second = network.norms()
    return WeightsProduct(terms=(first * second).detach(), outputs=probed.outputs)


def _not_two_layer(error: UnsupportedModelError) -> str:
    return f"the model is not a two-layer ReLU network: {error}"


def weights_product_penalty(model: nn.Module, x: Float[Tensor, "n *d"]) -> Float[Tensor, ""]:
    """Return the weights product, differentiable in the weights of ``model``.

    The structure is read from the exported graph at the first call with a model and kept for as
    long as its modules stay the same. Raises ``UnsupportedModelError`` for other networks.
    """
    checks.points(x)
    first, second = _structure(model, x).norms()
    return (first * second).sum()


_STRUCTURES: WeakKeyDictionary[nn.Module, tuple[tuple[object, ...], TwoLayer]] = WeakKeyDictionary()


def _structure(model: nn.Module, x: Tensor) -> TwoLayer:
    """Return the structure of ``model``, read once: exporting takes longer than a training step."""
    fingerprint = (*_fingerprint(model), tuple(x.shape[1:]))
    if model in _STRUCTURES and _STRUCTURES[model][0] == fingerprint:
        return _STRUCTURES[model][1]
    modes = [(module, module.training) for module in model.modules()]
    try:
        network = two_layer(model.eval(), x)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(
            f"weights_product_penalty needs a two-layer ReLU network, but {error}: "
            "use another penalty."
        ) from error
    finally:
        for module, mode in modes:
            module.training = mode
    _STRUCTURES[model] = (fingerprint, network)
    return network


def _fingerprint(model: nn.Module) -> tuple[object, ...]:
    """Return all that the structure may depend on: modules, tensors and constants."""
    return (
        tuple(
            (name, type(module), module.extra_repr(), *_constants(module))
            for name, module in model.named_modules()
        ),
        tuple(map(id, (*model.parameters(), *model.buffers()))),
    )


def _constants(module: nn.Module) -> tuple[tuple[str, object], ...]:
    """Return the attributes that an export treats as constants, without the training mode."""
    values = ((key, value) for key, value in vars(module).items() if key != "training")
    return tuple(item for item in values if isinstance(item[1], bool | int | float | str))
