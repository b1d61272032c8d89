"""Checks of arguments that the native kernels of some operators take on trust."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import torch

from inscape._core.errors import UnsupportedModelError

#: The largest entries of the arguments of a convolution; oneDNN crashes from a stride of 7,000 on.
_LARGEST = {"stride": 512, "output_padding": 512, "padding": 65_536, "dilation": 65_536}

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
    if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return _check_recurrent
    if name == "_scaled_dot_product_flash_attention_for_cpu":
        return _check_attention
    return None


def _check_convolution(given: Mapping[str, Any]) -> None:
    for name, largest in _LARGEST.items():
        values = given.get(name, ())
        for value in () if isinstance(values, str) else _listed(values):
            if value > largest:
                raise UnsupportedModelError(
                    f"a convolution must have a {name} of at most {largest}, found {value}: export "
                    "another network, or say --trust if you trust its source."
                )


def _check_recurrent(given: Mapping[str, Any]) -> None:
    """Refuse states and weights that are not those of all layers and directions."""
    count = given["num_layers"] * (2 if given["bidirectional"] else 1)
    states = _listed(given["hx"])
    if any(state.ndim not in (2, 3) or state.shape[0] != count for state in states):
        raise UnsupportedModelError(
            f"a recurrent layer must have one initial state for each of its {count} layers and "
            f"directions, found shapes {[tuple(state.shape) for state in states]}: export it anew."
        )
    weights = len(given["params"])
    each = (4, 5) if given["has_biases"] else (2, 3)  # one more where an LSTM has projections
    if weights not in (count * each[0], count * each[1]):
        raise UnsupportedModelError(
            f"a recurrent layer must have {each[0]} or {each[1]} weights for each of its {count} "
            f"layers and directions, found {weights}: export it anew."
        )


def _check_attention(given: Mapping[str, Any]) -> None:
    """Refuse queries, keys, values and a mask of which one is read beyond its end."""
    query, key, value = (tuple(given[name].shape) for name in ("query", "key", "value"))
    mask = given.get("attn_mask")
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
