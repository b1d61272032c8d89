"""LSTM and GRU of one layer, forward, backward or both, as torch has them."""

from typing import Any

import torch
from torch import Tensor

from inscape.loaders.onnx.nodes import Node
from inscape.loaders.onnx.operators_pointwise import Operator

#: ONNX's order of gates in terms of torch's: torch has i f g o, and r z n.
_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}


def _recurrent(node: Node, x: Tensor, w: Tensor, r: Tensor, *more: Any) -> tuple[Any, ...]:
    bias, lengths, first, cell, peep = (*more, *[None] * 5)[:5]
    gates, direction = len(_ORDER[node.op]), node.text("direction", "forward")
    both = direction == "bidirectional"
    known = {"direction", "hidden_size", "linear_before_reset", "activations"}
    odd = [key for key in node.settings if key not in known]
    if odd or lengths is not None or peep is not None or not _usual(node, 1 + both):
        node.refuse("torch's own form, without other activations, lengths or peepholes", odd)
    size = node.integer("hidden_size", r.shape[-1])
    _check(node, w, (1 + both, gates * size, x.shape[2]))
    _check(node, r, (1 + both, gates * size, size))
    if bias is not None:
        _check(node, bias, (1 + both, 2 * gates * size))
    steps = x.flip(0) if direction == "reverse" else x
    weights = [part for at in range(1 + both) for part in _weights(node, w, r, bias, at)]
    states = [_state(x, 1 + both, size, initial) for initial in (first, cell)]
    settings = (weights, bias is not None, 1, 0.0, False, both, False)
    if node.op == "LSTM":
        output, *last = torch.lstm(steps, states, *settings)
    else:
        output, *last = torch.gru(steps, states[0], *settings)
    output = output.reshape(x.shape[0], x.shape[1], 1 + both, size).transpose(1, 2)
    return output.flip(0) if direction == "reverse" else output, *last


def _usual(node: Node, directions: int) -> bool:
    usual = ["Sigmoid", "Tanh", "Tanh"] if node.op == "LSTM" else ["Sigmoid", "Tanh"]
    activations = node.settings.get("activations", usual * directions)
    resets = node.op == "LSTM" or node.integer("linear_before_reset", 0) == 1
    return list(activations) == usual * directions and resets


def _check(node: Node, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        node.refuse(f"weights of shape {shape}", tuple(tensor.shape))


def _weights(node: Node, w: Tensor, r: Tensor, bias: Tensor | None, at: int) -> list[Tensor]:
    parts = [w[at], r[at]]
    if bias is not None:
        parts += bias[at].chunk(2)
    gates = [part.chunk(len(_ORDER[node.op])) for part in parts]
    return [torch.cat([chunks[i] for i in _ORDER[node.op]]) for chunks in gates]


def _state(x: Tensor, directions: int, size: int, initial: Tensor | None) -> Tensor:
    if initial is None:
        return x.new_zeros(directions, x.shape[1], size)
    return initial.expand(directions, x.shape[1], size).contiguous()


RECURRENT: dict[str, Operator] = {"LSTM": _recurrent, "GRU": _recurrent}
