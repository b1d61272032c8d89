"""Recurrent layers, step by step with plain operators; and attention."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape.loaders.keras.activations import activation
from inscape.loaders.keras.config import KerasLayer
from inscape.loaders.keras.layers_dense import Builder, Weights, parameter, sized, unpacked

_GATES = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}


class Recurrent(nn.Module):
    """A recurrent layer: reads a sequence, returns its last state or all of them."""

    def __init__(self, layer: KerasLayer, weights: Weights) -> None:
        super().__init__()
        biased = layer.flag("use_bias", True)
        self.kind, self.units = layer.kind, layer.integer("units", 1)
        self._after = self.kind == "GRU" and bool(layer.settings.get("reset_after", True))
        shapes = (2, 2, 2 if self._after else 1) if biased else (2, 2)
        kernel, inner, *bias = unpacked(layer, weights, *shapes)
        width = _GATES[self.kind] * self.units
        sized(layer, kernel, (kernel.shape[0], width), "a kernel")
        sized(layer, inner, (self.units, width), "a recurrent kernel")
        for vector in bias:
            sized(layer, vector, (2, width) if self._after else (width,), "biases")
        self.kernel, self.recurrent = parameter(kernel, 1, 0), parameter(inner, 1, 0)
        self.bias = parameter(bias[0]) if bias else None
        self.activation = activation(layer, "activation", "tanh")
        self.gate = activation(layer, "recurrent_activation", "sigmoid")
        self.sequences = layer.flag("return_sequences", False)
        self.backwards = layer.flag("go_backwards", False)
        for key in ("return_state", "stateful", "time_major"):
            layer.only(key, False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the last state, or the states after each step."""
        steps = list(x.unbind(1))
        state = x.new_zeros(x.shape[0], self.units)
        memory = state
        states = []
        for step in steps[::-1] if self.backwards else steps:
            state, memory = self._next(step, state, memory)
            states.append(state)
        return torch.stack(states, 1) if self.sequences else state

    def _next(self, step: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        first = self.bias if self.bias is None or not self._after else self.bias[0]
        second = self.bias[1] if self.bias is not None and self._after else None
        entering = functional.linear(step, self.kernel, first)
        if self.kind == "GRU":
            return self._gated(entering, state, second), memory
        total = entering + functional.linear(state, self.recurrent)
        if self.kind == "SimpleRNN":
            output: Tensor = self.activation(total)
            return output, memory
        into, forget, fresh, out = total.chunk(4, 1)
        memory = self.gate(forget) * memory + self.gate(into) * self.activation(fresh)
        return self.gate(out) * self.activation(memory), memory

    def _gated(self, entering: Tensor, state: Tensor, second: Tensor | None) -> Tensor:
        update, reset, fresh = entering.chunk(3, 1)
        if self._after:
            more = functional.linear(state, self.recurrent, second).chunk(3, 1)
            keep, old = self.gate(update + more[0]), self.gate(reset + more[1]) * more[2]
        else:
            up, re, new = self.recurrent.chunk(3, 0)
            keep = self.gate(update + functional.linear(state, up))
            opened = self.gate(reset + functional.linear(state, re))
            old = functional.linear(opened * state, new)
        output: Tensor = keep * state + (1 - keep) * self.activation(fresh + old)
        return output


class BothWays(nn.Module):
    """A recurrent layer forwards and one backwards, joined."""

    def __init__(self, forwards: Recurrent, backwards: Recurrent, join: str | None) -> None:
        super().__init__()
        self.forwards, self.backwards, self._join = forwards, backwards, join
        backwards.backwards = not forwards.backwards

    def forward(self, x: Tensor) -> Tensor:
        """Return both results as one."""
        first, second = self.forwards(x), self.backwards(x)
        if self.backwards.sequences:
            second = second.flip(1)
        if self._join == "concat":
            return torch.cat([first, second], -1)
        joined: Tensor = first * second if self._join == "mul" else first + second
        return joined / 2 if self._join == "ave" else joined


def _bidirectional(layer: KerasLayer, weights: Weights) -> nn.Module:
    inner = layer.inner
    if not isinstance(inner, KerasLayer) or inner.kind not in _GATES or len(weights) % 2:
        layer.refuse("a recurrent layer inside, with weights for both directions", len(weights))
    join = layer.text("merge_mode", "concat")
    if join not in ("concat", "sum", "mul", "ave"):
        layer.refuse("merge_mode 'concat', 'sum', 'mul' or 'ave'", join)
    half = len(weights) // 2
    return BothWays(Recurrent(inner, weights[:half]), Recurrent(inner, weights[half:]), join)


class Attention(nn.Module):
    """Keras' multi-head attention."""

    def __init__(self, layer: KerasLayer, weights: Weights) -> None:
        super().__init__()
        shapes = (3, 2) * 3 + (3, 1) if layer.flag("use_bias", True) else (3,) * 4
        parts = unpacked(layer, weights, *shapes)
        step = len(parts) // 4
        heads, keys = layer.integer("num_heads", 1), layer.integer("key_dim", 1)
        for key in ("output_shape", "attention_axes"):
            layer.only(key, None, [1])
        sized(layer, parts[0], (parts[0].shape[0], heads, keys), "a kernel of queries")
        self.heads, self.scale = heads, keys**-0.5
        layers = []
        for place in range(3):
            kernel = parts[place * step]
            flat = kernel.reshape(kernel.shape[0], -1)
            bias = parts[place * step + 1].reshape(-1) if step == 2 else None
            layers.append(_linear(flat, bias))
        self.query, self.key, self.value = layers
        kernel = parts[3 * step]
        self.out = _linear(kernel.reshape(-1, kernel.shape[-1]), parts[-1] if step == 2 else None)

    def forward(
        self, query: Tensor, value: Tensor, key: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """Return what each place of the query attends to."""
        key = value if key is None else key
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = (q * self.scale) @ k.transpose(-1, -2)
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        output: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return output


def _linear(kernel: Any, bias: Any) -> nn.Linear:
    module = nn.Linear(kernel.shape[0], kernel.shape[1], bias=bias is not None, device="meta")
    module.weight = parameter(kernel, 1, 0)
    if bias is not None:
        module.bias = parameter(bias)
    return module


class EachStep(nn.Module):
    """A layer that is applied to each step of a sequence."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Return the results, step by step."""
        output: Tensor = self.layer(x.flatten(0, 1))
        return output.reshape(-1, x.shape[1], *output.shape[1:])


RECURRENT: dict[str, Builder] = {
    **dict.fromkeys(_GATES, Recurrent),
    "Bidirectional": _bidirectional,
    "MultiHeadAttention": Attention,
}
