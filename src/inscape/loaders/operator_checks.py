"""Checks of arguments that the native kernels of some operators take on trust."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import torch

from inscape.errors import UnsupportedModelError

#: The largest entries of the arguments of a convolution; oneDNN crashes from a stride of 7,000 on.
_LARGEST = {"stride": 512, "output_padding": 512, "padding": 65_536, "dilation": 65_536}

#: Blocks of rows in the weights of recurrent layers.
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

Check = Callable[[Mapping[str, Any]], None]


def checked(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """Return an operator that compares its arguments first, where its kernel does not."""
    check = _check_of(overload._schema.name.removeprefix("aten::"))
    if check is None:
        return overload
    names = [argument.name for argument in overload._schema.arguments]

    @wraps(overload)
    def compared(*args: Any, **kwargs: Any) -> Any:
        check(dict(zip(names, args, strict=False)) | kwargs)
        return overload(*args, **kwargs)

    return compared


def _check_of(name: str) -> Check | None:
    if name.startswith("conv"):
        return _check_convolution
    if name.removesuffix("_cell") in _GATES:
        gates = _GATES[name.removesuffix("_cell")]
        return _check_cell(gates) if name.endswith("_cell") else _check_recurrent(gates)
    if name == "_scaled_dot_product_flash_attention_for_cpu":
        return _check_attention
    return None


def _check_convolution(arguments: Mapping[str, Any]) -> None:
    for name, largest in _LARGEST.items():
        values = arguments.get(name, ())
        for value in () if isinstance(values, str) else _listed(values):
            if value > largest:
                raise UnsupportedModelError(
                    f"a convolution must have a {name} of at most {largest}, found {value}: export "
                    "another network, or use --trust if you trust its source."
                )


def _check_recurrent(gates: int) -> Check:
    """Return a check of a recurrent layer with so many gates.

    Its kernel splits what it computes into a piece for each layer, direction and gate,
    and takes them without counting.
    """

    def check(arguments: Mapping[str, Any]) -> None:
        count = arguments["num_layers"] * (2 if arguments["bidirectional"] else 1)
        states, weights = _listed(arguments["hx"]), arguments["params"]
        _demand(arguments["input"].ndim == 3, "an input of three dimensions", [arguments["input"]])
        fits = all(state.ndim == 3 and state.shape[0] == count for state in states)
        _demand(fits, f"a state for each of its {count} layers and directions", states)
        hidden, projected = (gates * states[-1].shape[-1], states[0].shape[-1])
        weights_per_layer = 4 if arguments["has_biases"] else 2
        weights_per_layer += gates * projected != hidden  # the projection of an LSTM
        _demand(
            len(weights) == count * weights_per_layer,
            f"{count * weights_per_layer} weights",
            weights,
        )
        for place, weight in enumerate(weights):
            kind = place % weights_per_layer
            rows = projected if weights_per_layer % 2 and kind == weights_per_layer - 1 else hidden
            axes = 1 if kind in (2, 3) and weights_per_layer >= 4 else 2
            fits = weight.ndim == axes and weight.shape[0] == rows
            _demand(fits, f"weights of {axes} dimensions and {rows} rows", [weight])

    return check


def _check_cell(gates: int) -> Check:
    """Return a check of one step of a recurrent layer with so many gates."""

    def check(arguments: Mapping[str, Any]) -> None:
        states = _listed(arguments["hx"])
        fits = all(tensor.ndim == 2 for tensor in (arguments["input"], *states))
        _demand(fits, "inputs and states of two dimensions", [arguments["input"], *states])
        rows = gates * states[-1].shape[1]
        for name, axes in (("w_ih", 2), ("w_hh", 2), ("b_ih", 1), ("b_hh", 1)):
            weight = arguments.get(name)
            fits = weight is None or (weight.ndim == axes and weight.shape[0] == rows)
            _demand(fits, f"weights of {axes} dimensions and {rows} rows", [weight])

    return check


def _demand(fits: bool, expected: str, tensors: Sequence[Any]) -> None:
    if not fits:
        raise UnsupportedModelError(
            f"a recurrent layer must have {expected}, found shapes "
            f"{[tuple(tensor.shape) for tensor in tensors]}: export it anew."
        )


def _check_attention(arguments: Mapping[str, Any]) -> None:
    """Refuse queries, keys, values and a mask of which one is read beyond its end."""
    query, key, value = (tuple(arguments[name].shape) for name in ("query", "key", "value"))
    mask = arguments.get("attn_mask")
    shapes = [query, key, value, *([] if mask is None else [tuple(mask.shape)])]
    fits = len(query) == len(key) == 4 and key == value and query[:2] == key[:2]
    fits = fits and query[3] == key[3] and all(size > 0 for size in query + key)
    if fits and mask is not None:
        scores = (*query[:3], key[2])
        allowed = zip(scores[4 - mask.ndim :], mask.shape, strict=False)
        fits = mask.ndim in (2, 4) and all(size in (1, full) for full, size in allowed)
    if not fits:
        raise UnsupportedModelError(
            f"attention must have queries, keys, values and a mask that fit each other, found "
            f"shapes {shapes}: export it anew."
        )


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else (values,)
