"""A network of one tensor in, one tensor out, made of one that takes or returns something else."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.refusals import refused
from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders.embeddings import (
    Embedding,
    called,
    find_embedding,
    refuse_other_lengths,
    sample_tokens,
)
from inscape.loaders.outputs import selected, tensors_in
from inscape.loaders.parts import Key, Parts, joined, keyed, listed, part_of, separated

Inputs = Tensor | NDArray[Any] | Mapping[Any, Any] | Sequence[Any]

#: Rows on which an embedding is searched, and those that are embedded at a time.
EXAMPLES, CHUNK = 16, 256


class Adapted(nn.Module):
    """A network that takes rows and returns one tensor; made by :func:`adapt`.

    Attributes:
        model: The network inside.
        take: The name or place of the output that is returned; None for the only one.
        parts: The inputs that a row is made of; None if the row itself is the input.
        embedding: Where tokens are embedded; None if the input is what the network takes.
        token_parts: The inputs before the tokens among them are embedded.
        differentiates: Whether its forward takes derivatives by the input, a force, say; it is then
            called with gradients enabled.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        take: str | int | None,
        name: str | None,
        parts: Parts | None,
        fixed: Mapping[str, Any],
        embedding: Embedding | None = None,
        token_parts: Parts | None = None,
        differentiates: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.take = take
        self.parts = parts
        self.embedding = embedding
        self.token_parts = token_parts
        self.differentiates = differentiates
        self._name = name
        self._fixed = dict(fixed)
        for key, value in fixed.items():
            if isinstance(value, Tensor):  # moves with the module
                self.register_buffer(f"fixed_{key}", value, persistent=False)
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        """Return the chosen output for some rows."""
        y = selected(self.whole_output(x), self.take)
        return y if torch.is_grad_enabled() else y.detach()

    def whole_output(self, x: Tensor) -> Any:
        """Return all that the model inside returns for some rows."""
        if not self.differentiates:
            return self._output_of(x)
        with torch.enable_grad():
            return self._output_of(x if x.requires_grad else x.detach().requires_grad_())

    def _output_of(self, x: Tensor) -> Any:
        inputs = {self._key: x} if self.parts is None else separated(self.parts, x)
        if self.embedding is None:
            return called(self.model, inputs, self.fixed)
        embedded = inputs.pop(self.embedding.source)
        return self.embedding.call(self.model, embedded, inputs, self.fixed)

    @property
    def fixed(self) -> dict[str, Any]:
        """Return the inputs that are the same for all rows."""
        return {
            key: getattr(self, f"fixed_{key}") if isinstance(value, Tensor) else value
            for key, value in self._fixed.items()
        }

    def rows(self, inputs: Inputs) -> Tensor:
        """Return inputs as rows, the ones that the network is measured on; tokens are embedded."""
        if self.parts is None and self.embedding is None:
            raise ValueError(
                "rows are made of several inputs, found a network of one: pass inputs={'name': "
                "tensor, ...} to adapt, or measure it on that input itself."
            )
        alone = isinstance(inputs, Tensor | np.ndarray)
        arguments = {self._key: torch.as_tensor(inputs)} if alone else keyed(inputs)  # type: ignore[arg-type]
        if self.embedding is not None:
            arguments = embedded_inputs(self.embedding, self.model, arguments, self.fixed)
        return arguments[self._key] if self.parts is None else joined(self.parts, arguments)

    def on_tokens(self) -> "Adapted":
        """Return the same network with token ids in its rows, which have no gradients."""
        return self._changed(embedding=None, parts=self.token_parts)

    def taking(self, take: str | int | None) -> "Adapted":
        """Return the same network with another of its outputs."""
        return self._changed(take=take)

    def differentiating(self) -> "Adapted":
        """Return the same network, called with gradients enabled."""
        return self._changed(differentiates=True)

    def _changed(self, **changes: Any) -> "Adapted":
        """Return the same network, adapted otherwise."""
        same = {
            "take": self.take, "name": self._name, "parts": self.parts, "fixed": self.fixed,
            "embedding": self.embedding, "token_parts": self.token_parts,
            "differentiates": self.differentiates,
        }  # fmt: skip
        return Adapted(self.model, **{**same, **changes})

    @property
    def _key(self) -> Key:
        return 0 if self._name is None else self._name


def adapt(
    model: nn.Module,
    *,
    take: str | int | None = None,
    inputs: str | Inputs | None = None,
    fixed: Mapping[str, Any] | None = None,
    embedding: str | bool | None = None,
) -> Adapted:
    """Return a module of one tensor in, one tensor out, that every instrument can measure.

    It has the parameters of the model, which is not copied, and its mode. Several inputs become
    one: a row holds the numbers of all of them, one input after the other, and ``rows(inputs)``
    makes such rows. Integers in them are rounded on the way in and have no gradient, unless they
    are tokens and ``embedding`` asks for the module whose input is the embedded sequence.

    Args:
        model: A module that takes something else, or returns something else.
        take: Which output: a name (``"logits"``) or a place (``0``). None takes the only one there
            is, or the one that is called logits.
        inputs: How the rows are passed on: as the input of a name (``"pixel_values"``); or several
            inputs, by name or in order, as examples of what they look like; or tokens alone. None
            passes the rows on as they are.
        fixed: Inputs that are the same for every row, by name: ``{"adjacency": a}``.
        embedding: True measures in the first embedding that tokens are looked up in, a name
            (``"bert.embeddings.word_embeddings"``) in that one: rows are embedded tokens, which
            have gradients.

    >>> class Pair(nn.Module):
    ...     def forward(self, a, b, scale):
    ...         return {"sum": scale * (a + b), "difference": a - b}
    >>> a, b = torch.ones(3, 2), torch.full((3, 2), 4.0)
    >>> net = adapt(Pair(), take="sum", inputs={"a": a, "b": b}, fixed={"scale": 10.0})
    >>> net.rows({"a": a, "b": b}).shape, net(net.rows({"a": a, "b": b}))[0]
    (torch.Size([3, 4]), tensor([50., 50.]))

    >>> words = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(24, 1)).eval()
    >>> tokens = torch.arange(16).reshape(2, 8) % 5
    >>> net = adapt(words, embedding=True)
    >>> net.rows(tokens).shape, torch.equal(net(net.rows(tokens)), words(tokens))
    (torch.Size([2, 8, 3]), True)
    """
    name = inputs if isinstance(inputs, str) else None
    alone = isinstance(inputs, Tensor | np.ndarray)
    arguments: dict[Key, Tensor] = {}
    if inputs is not None and name is None:
        arguments = keyed((inputs,) if alone else inputs)  # type: ignore[arg-type]
    parts = tuple(part_of(key, tensor) for key, tensor in arguments.items()) or None
    tokens = Adapted(model, take=take, name=name, parts=parts, fixed=fixed or {})
    if not embedding:
        return tokens
    checks.in_eval_mode(model)
    examples = {key: _spaced(tensor) for key, tensor in arguments.items()}
    examples = examples or {tokens._key: sample_tokens(model)}
    lookup_embedding = _embedding_of(tokens, examples, None if embedding is True else embedding)
    _refuse_other_outputs(tokens, lookup_embedding, examples)
    return tokens._changed(
        embedding=lookup_embedding,
        token_parts=parts,
        parts=None if alone or parts is None else lookup_embedding.embedded_parts(parts),
    )


def embedded_inputs(
    embedding: Embedding, model: nn.Module, inputs: Mapping[Key, Tensor], fixed: Mapping[str, Any]
) -> dict[Key, Tensor]:
    """Return inputs with the embedded tokens in the place of the tokens."""
    if embedding.source not in inputs:
        raise DataError(
            f"inputs must hold the tokens, {embedding.source!r}, found {listed(inputs)}: pass them."
        )
    refuse_other_lengths(inputs)
    rows = [
        embedding.rows(model, dict(zip(inputs, chunk, strict=True)), fixed)
        for chunk in zip(*(torch.split(t, CHUNK) for t in inputs.values()), strict=True)
    ]
    return {**inputs, embedding.source: torch.cat(rows)}


def _spaced(tensor: Tensor) -> Tensor:
    """Return a few rows from all over a tensor."""
    rows = torch.linspace(0, len(tensor) - 1, min(EXAMPLES, len(tensor)))
    return tensor[rows.round().long()]


def _embedding_of(tokens: Adapted, examples: Mapping[Key, Tensor], named: str | None) -> Embedding:
    """Return where a network embeds tokens, or say why it could not be seen."""
    refuse_other_lengths(examples)
    try:
        embedding = find_embedding(tokens.model, examples, tokens.fixed, named=named)
    except UnsupportedModelError:
        raise
    except Exception as error:
        first = next(iter(examples.values()))
        raise UnsupportedModelError(refused(tokens.model, first, error)) from error
    if embedding is None:
        raise UnsupportedModelError(
            "the model must look its tokens up in an embedding (nn.Embedding, F.embedding, "
            "table[tokens], F.one_hot), found no lookup whose ids change with the input: leave out "
            "embedding, and measure what needs no gradients by the input."
        )
    return embedding


@torch.no_grad()
def _refuse_other_outputs(
    tokens: Adapted, embedding: Embedding, examples: Mapping[Key, Tensor]
) -> None:
    """Refuse a network that computes something else from embedded tokens than from tokens."""
    embedded = embedded_inputs(embedding, tokens.model, examples, tokens.fixed)
    rows = embedded.pop(embedding.source)
    outputs = tensors_in(embedding.call(tokens.model, rows, embedded, tokens.fixed))
    for key, expected in tensors_in(called(tokens.model, examples, tokens.fixed)).items():
        values = outputs.get(key)
        if values is None or values.shape != expected.shape:
            raise _other(embedding)
        if not torch.allclose(values, expected, rtol=1e-3, atol=1e-5, equal_nan=True):
            raise _other(embedding)


class OtherOutputError(UnsupportedModelError):
    """A model that computes something else from embedded tokens than from the tokens."""


def _other(embedding: Embedding) -> UnsupportedModelError:
    return OtherOutputError(
        f"the model must compute the same from the tokens embedded in {embedding.name!r} as from "
        "the tokens, found another output, for it reads the tokens in another way too: name "
        "another embedding, or leave it out and measure what needs no gradients by the input."
    )
