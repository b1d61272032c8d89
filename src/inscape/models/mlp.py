"""Fully connected networks, from a row of widths."""

from itertools import pairwise

import torch
from torch import nn

from inscape._core import checks
from inscape.models.initialisation import INITIALISATIONS

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "identity": nn.Identity,
}


def mlp(
    *widths: int,
    activation: str = "relu",
    bias: bool = True,
    init: str = "pytorch",
    scale: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> nn.Sequential:
    r"""Build a multi-layer perceptron, input first: a plain ``nn.Sequential``.

    .. math:: f(x) = W_L \, \sigma(\cdots \sigma(W_1 x + b_1) \cdots) + b_L

    It comes in eval mode, ready to be measured (none of its layers knows the difference).

    >>> mlp(2, 16, 1)
    Sequential(
      (0): Linear(in_features=2, out_features=16, bias=True)
      (1): ReLU()
      (2): Linear(in_features=16, out_features=1, bias=True)
    )

    Args:
        widths: Numbers of inputs, of units in each hidden layer, and of outputs.
        activation: ``"relu"``, ``"tanh"``, ``"gelu"``, ``"leaky_relu"`` or ``"identity"``.
        bias: Whether the layers add biases.
        init: ``"pytorch"``, ``"glorot"``, ``"he_normal"`` or ``"he_uniform"``; see
            :mod:`inscape.models.initialisation`.
        scale: Factor of the variance of the initial weights (Volhejn's alpha).
        seed: Seed of the initial weights; the global random state is not used.
        dtype: Type of the weights; PyTorch's default type if None.
    """
    if len(widths) < 2:
        raise ValueError(
            f"an MLP needs at least two widths, inputs and outputs, found {widths}: "
            "write for instance mlp(2, 16, 1)."
        )
    checks.at_least(1, **{f"width {i}": width for i, width in enumerate(widths)})
    checks.one_of(tuple(ACTIVATIONS), activation=activation)
    checks.one_of(tuple(INITIALISATIONS), init=init)
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        # On the meta device a layer draws no first weights from the global random state.
        layer = nn.Linear(inputs, outputs, bias=bias, dtype=dtype, device="meta")
        modules.append(layer.to_empty(device=torch.get_default_device()))
        modules.append(ACTIVATIONS[activation]())
    model = nn.Sequential(*modules[:-1])
    INITIALISATIONS[init](model, scale=scale, seed=seed)
    return model.eval()


def two_layer(
    d: int,
    hidden: int,
    c: int = 1,
    *,
    activation: str = "relu",
    bias: bool = True,
    init: str = "pytorch",
    scale: float = 1.0,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> nn.Sequential:
    r"""Build a network with one hidden layer, the subject of most of the papers.

    .. math:: f(x) = \sum_j a_j \, \sigma(w_j \cdot x + b_j) + a_0

    Volhejn's eq. (1.7) is ``two_layer(d, 256, init="glorot", scale=0.01)``.

    Args:
        d: Number of inputs.
        hidden: Number of hidden units.
        c: Number of outputs.
        activation: As in :func:`mlp`.
        bias: As in :func:`mlp`.
        init: As in :func:`mlp`.
        scale: As in :func:`mlp`.
        seed: As in :func:`mlp`.
        dtype: As in :func:`mlp`.
    """
    return mlp(
        d,
        hidden,
        c,
        activation=activation,
        bias=bias,
        init=init,
        scale=scale,
        seed=seed,
        dtype=dtype,
    )
