"""One input for a model that takes several, or tokens: examples that hold all of them."""

import inspect
from dataclasses import replace

import torch
from torch import Tensor

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.errors import UnsupportedModelError
from inscape.loaders.adapter import Adapted, OtherOutputError, adapt
from inscape.loaders.data import OpenedData
from inscape.loaders.matching import accepts
from inscape.loaders.model import OpenedModel
from inscape.loaders.parts import separated

#: Bytes that the embedded tokens of one split may take.
LARGEST = 2**30


def one_input(
    opened: OpenedModel, data: OpenedData, embedding: str | None = None
) -> tuple[OpenedModel, OpenedData]:
    """Return a model of one tensor and the data as its examples; what was done is said.

    Tokens are embedded where the model has an embedding, so that there are gradients by the input:
    ``tokens`` of the data then keeps the token ids, and ``on_tokens()`` of the model takes them.

    Args:
        opened: What ``open_model`` returned.
        data: What ``open_data`` returned.
        embedding: Name of the embedding to measure in; None takes the first.
    """
    if not data.parts or isinstance(opened.model, Adapted):
        if embedding is not None:
            raise ValueError(
                "an embedding must be looked up with integers (token ids), found other data: give "
                "the tokens as integers, or leave it out."
            )
        return _by_keyword(opened), data
    data = _in_one_dictionary(opened, data)
    integers = all(part.key == 0 for part in data.parts)
    if integers and embedding is None and accepts(opened, data):
        return opened, replace(data, parts=())  # integers that are measured as numbers
    checks.in_eval_mode(opened.model)
    rows = data.x.flatten(1)
    inputs = separated(data.parts, rows)
    tensor = inputs[0] if integers else inputs
    try:
        adapted = adapt(opened.model, inputs=tensor, embedding=embedding or True)
    except UnsupportedModelError as error:
        mixed = isinstance(error, OtherOutputError) and not all(p.is_integer for p in data.parts)
        if embedding is not None or integers or (_has_embedding(opened) and not mixed):
            raise
        return _several(opened, adapt(opened.model, inputs=inputs), data)
    return _embedded(opened, adapted, data)


def _in_one_dictionary(opened: OpenedModel, data: OpenedData) -> OpenedData:
    """Return inputs as entries of the only argument of a model that takes a dictionary of them."""
    name = only_argument(opened.model)
    keys = [part.key for part in data.parts]
    if name is None or name in keys or not all(isinstance(key, str) for key in keys):
        return data
    parts = tuple(replace(part, key=f"{name}.{part.key}") for part in data.parts)
    note = f"its inputs are entries of {name!r}, the only argument of the model"
    return replace(data, parts=parts, notes=(*data.notes, note))


def only_argument(model: torch.nn.Module) -> str | None:
    """Return the name of the argument of a module that takes exactly one, None for others."""
    try:
        arguments = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # it has no signature: a script, say
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return arguments[0].name if len(arguments) == 1 and arguments[0].kind in positional else None


def _by_keyword(opened: OpenedModel) -> OpenedModel:
    """Return a model whose only input must be named, so that it is passed on by that name."""
    if isinstance(opened.model, Adapted):
        return opened
    try:
        arguments = list(inspect.signature(opened.model.forward).parameters.values())
    except (TypeError, ValueError):
        return opened
    needed = [argument.name for argument in arguments if argument.default is argument.empty]
    if len(needed) != 1 or any(a.kind is not inspect.Parameter.KEYWORD_ONLY for a in arguments):
        return opened
    note = f"is called with {needed[0]}=..."
    return replace(opened, model=adapt(opened.model, inputs=needed[0]), notes=(*opened.notes, note))


def _has_embedding(opened: OpenedModel) -> bool:
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return any(isinstance(module, kinds) for module in opened.model.modules())


def _several(
    opened: OpenedModel, adapted: Adapted, data: OpenedData
) -> tuple[OpenedModel, OpenedData]:
    keys = ", ".join(str(part.key) for part in data.parts)
    note = f"takes {len(data.parts)} inputs ({keys}): an example holds the numbers of all of them"
    if len(data.parts) == 1:
        note = f"is called with {keys}=..."
    note += "".join(
        f"; {part.key} holds integers and has no gradient" for part in data.parts if part.is_integer
    )
    return replace(opened, model=adapted, notes=(*opened.notes, note)), data


def _embedded(
    opened: OpenedModel, adapted: Adapted, data: OpenedData
) -> tuple[OpenedModel, OpenedData]:
    """Return data with embedded tokens; where that takes too much memory, fewer examples."""
    embedding = adapted.embedding
    assert embedding is not None
    note = (
        f"expects tokens: measured in its embedding {embedding}, where the input has gradients; "
        "what reads the parameters alone is measured on the tokens (use --embedding NAME for "
        "another)"
    )
    opened = replace(opened, model=adapted, notes=(*opened.notes, note))
    size = max(1, embedding.size * torch.Size(embedding.shape).numel() * data.x.element_size())
    most = max(1, LARGEST // size)
    x, tokens, y, notes = _split(adapted, data, data.x, data.y, most)
    data = replace(data, x=x, tokens=tokens, y=y, notes=(*data.notes, *notes))
    if data.x_test is not None:
        x, tokens, y, notes = _split(adapted, data, data.x_test, data.y_test, most)
        data = replace(data, x_test=x, tokens_test=tokens, y_test=y, notes=(*data.notes, *notes))
    return opened, data


def _split(
    adapted: Adapted, data: OpenedData, x: Tensor, y: Tensor | None, most: int
) -> tuple[Tensor, Tensor, Tensor | None, tuple[str, ...]]:
    """Return embedded examples, the examples before, their labels, and what was left out."""
    notes: tuple[str, ...] = ()
    if len(x) > most:
        rows = torch.randperm(len(x), generator=generator(0))[:most].sort().values.to(x.device)
        notes = (
            f"kept {most} of {len(x)} examples, drawn with seed 0, for embedded they are large",
        )
        x, y = x[rows], None if y is None else y[rows]
    tokens = x.flatten(1)
    inputs = separated(data.parts, tokens)
    alone = adapted.parts is None
    embedded = adapted.rows(inputs[0] if alone else inputs)
    return embedded.to(x.dtype), tokens, y, notes
