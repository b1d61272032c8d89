"""Why a model raised an error on data: the cause in plain words, and the line to type next."""

import inspect
import re
from collections.abc import Mapping
from inspect import isgenerator
from linecache import getline
from traceback import walk_tb
from typing import Any

from torch import Tensor, nn

from inscape.errors import UnsupportedModelError

#: Convolutions, with the number of axes of what they slide over.
_CONVOLUTIONS = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}


def refused(f: Any, x: Tensor, error: Exception) -> str:
    """Return the text of a refusal: what the model raised, why, and what to do.

    Args:
        f: The model or function.
        x: The batch that it was called with, or the first of several inputs.
        error: What it raised.
    """
    if isinstance(error, UnsupportedModelError):  # of an adapter: it says the cause itself
        return str(error)
    text, model = _first_line(error), getattr(f, "model", f) if hasattr(f, "whole_output") else f
    raised = f"{type(error).__name__}: {text}"
    for cause in (_missing, _unexpected, _dictionary, _tokens, _vocabulary, _precision):
        if (explained := cause(model, x, error, text)) is not None:
            return f"{explained} (the model raised {raised})."
    causes = (shape(model, x, text) for shape in (_recurrent, _channels, _width))
    cure = next((explained for explained in causes if explained is not None), None)
    return (
        f"the model must accept a batch of shape {tuple(x.shape)}, but it raised {raised}; "
        f"{cure or 'reshape the data (command line: --input-shape) or mend the model'}."
    )


def no_tensor(output: Any) -> str:
    """Return the text of a refusal of what a model returned in the place of one tensor."""
    kind = type(output).__name__
    if output is None:
        cure = "its forward has no return statement; add one"
    elif isgenerator(output):
        cure = "its forward has a yield; return the tensor"
    elif type(output).__module__ == "numpy":
        cure = "leave out .detach().numpy(), and return the tensor"
    elif isinstance(output, float | int):
        cure = "leave out .item() and the mean over the batch, and return the tensor"
    else:
        cure = (
            f"say which output to measure, inscape.adapt(model, take={_first_name(output)!r}), or "
            "--take on the command line"
        )
    return f"the model must return one tensor, found {kind}: {cure}."


def _first_name(output: Any) -> str | int:
    """Return the name of the first output among several, with dots where they are nested."""
    names: list[str] = []
    while isinstance(output, Mapping | tuple | list) and len(output):
        items = output.items() if isinstance(output, Mapping) else enumerate(output)
        name, output = next(iter(items))
        names.append(str(name))
    return ".".join(names) if names and names != ["0"] else 0


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no text")


def _missing(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain a forward that wants more than one argument."""
    if not isinstance(error, TypeError) or "missing" not in text or "argument" not in text:
        return None
    names = re.findall(r"'(\w+)'", text.partition("missing")[2])
    if not names or not _is_own_signature(f, names):
        return None
    first, missing = _first_argument(f), ", ".join(map(repr, names))
    several = ", ".join(f'"{name}": {name}' for name in (first, *names))
    return (
        f"the model must be called with one tensor, but its forward needs {missing} as well: name "
        f"all inputs, inputs = {{{several}}}; net = inscape.adapt(model, inputs=inputs), and "
        f"measure net at net.rows(inputs), or give what is the same for all rows as "
        f'fixed={{"{names[0]}": ...}}; on the command line use a .npz with arrays of these names'
    )


def _is_own_signature(f: Any, names: list[str]) -> bool:
    """Tell whether these are arguments of the model itself, not of something inside of it."""
    known = _arguments(f)
    return not known or set(names) <= set(known)


def _arguments(f: Any) -> list[str]:
    call = f.forward if isinstance(f, nn.Module) else f
    try:
        return list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return []


def _first_argument(f: Any) -> str:
    return next(iter(_arguments(f)), "x")


def _unexpected(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain a name that forward does not have, or too many arguments."""
    if not isinstance(error, TypeError):
        return None
    if (unexpected := re.search(r"unexpected keyword argument '(\w+)'", text)) is not None:
        known = ", ".join(_arguments(f)) or "unknown"
        return (
            f"inputs must have the names that the model's forward has ({known}), found "
            f"{unexpected[1]!r}: rename it"
        )
    if re.search(r"takes \d+ positional arguments? but \d+ were given", text):
        known = ", ".join(_arguments(f)) or "none"
        return f"the model must take the inputs that it is given, but its forward takes {known}"
    return None


def _dictionary(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain a forward that looks up names in its one argument."""
    frames = list(walk_tb(error.__traceback__))
    if not isinstance(error, IndexError | TypeError) or not frames:
        return None
    frame, line = frames[-1]
    names = re.findall(
        r"""\b(\w+)\[["'](\w+)["']\]""", getline(frame.f_code.co_filename, line, frame.f_globals)
    )
    own = [(name, entry) for name, entry in names if name in _arguments(f)]
    if not own or not isinstance(frame.f_locals.get(own[0][0]), Tensor):
        return None
    argument = own[0][0]
    entries = ", ".join(f'"{entry}": ...' for entry in dict.fromkeys(e for _, e in own))
    return (
        f"the model must be given a dictionary, for its forward looks up {argument}[{own[0][1]!r}]"
        f': name all entries, inputs = {{"{argument}": {{{entries}}}}}; net = '
        "inscape.adapt(model, inputs=inputs), and measure net at net.rows(inputs)"
    )


_WANTS_INTEGERS = (
    "to have one of the following scalar types: Long, Int",
    "tensors used as indices must be long",
    "one_hot is only applicable to index tensor",
    "expected scalar type Long",
)


def _tokens(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain a model of tokens that was given floating-point numbers."""
    if not any(words in text for words in _WANTS_INTEGERS) or not x.is_floating_point():
        return None
    return (
        "the model takes token ids (integers), found floating-point numbers: measure it in its "
        "embedding, net = inscape.adapt(model, embedding=True, inputs=tokens) at "
        "net.rows(tokens); on the command line give the tokens as integers in a .npz"
    )


def _vocabulary(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain a token, a position or a kind that an embedding has no row for."""
    if not isinstance(error, IndexError) or "out of range" not in text or x.is_complex():
        return None
    tables = [
        f"{name or 'the model'} ({module.num_embeddings} rows)"
        for name, module in (f.named_modules() if isinstance(f, nn.Module) else ())
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
    ]
    if not tables:
        return None
    return (
        f"token ids must have a row in the embedding, found ids from {int(x.min())} to "
        f"{int(x.max())} in sequences of {x.shape[-1]} for {', '.join(tables[:3])}: use the "
        "tokenizer that the model was trained with, and sequences no longer than its positions"
    )


def _precision(f: Any, x: Tensor, error: Exception, text: str) -> str | None:
    """Explain weights and data of different precision."""
    if not re.search(
        r"same dtype|expected m1 and m2|should be the same|but got (Half|BF|Do|Fl)", text
    ):
        return None
    if "dtype" not in text and "type (" not in text and "scalar type" not in text:
        return None
    if not x.is_floating_point():
        return (
            f"the model computes with floating-point numbers, found integers ({x.dtype}): use "
            "x.float(); an embedding is only for models that look tokens up"
        )
    kinds = {p.dtype for p in f.parameters()} if isinstance(f, nn.Module) else set()
    if kinds == {x.dtype}:
        return (
            f"the model must compute in the dtype of its weights and of x, {x.dtype}: make no "
            "tensors of a fixed dtype in its forward, but with dtype=x.dtype"
        )
    wanted = ", ".join(sorted(map(str, kinds))) or "another dtype inside"
    return (
        f"model and data must have one dtype, found weights in {wanted} and x in {x.dtype}: use "
        f"model.to({x.dtype}), and make no tensors of a fixed dtype in its forward"
    )


def _recurrent(f: Any, x: Tensor, text: str) -> str | None:
    """Explain a recurrent layer whose input or state has another number of axes."""
    if "must be equal to input_size" in text:
        return (
            "a recurrent layer takes (n, length, features) with batch_first=True, and as many "
            "features as it was made for: reshape the data (command line: --input-shape)"
        )
    if not re.search(r"(RNN|LSTM|GRU)\w*: Expected", text):
        return None
    return (
        "a recurrent layer takes (n, length, features) with batch_first=True: use x[:, :, None] "
        "for numbers in a row, and let forward make the first hidden state"
    )


def _channels(f: Any, x: Tensor, text: str) -> str | None:
    """Explain images without channels, and rows where images are wanted."""
    layer = _first_layer(f)
    axes = next((d for kind, d in _CONVOLUTIONS.items() if isinstance(layer, kind)), None)
    if layer is None or axes is None or ("conv" not in text.lower() and "channels" not in text):
        return None
    channels = layer.in_channels
    if x.ndim == axes + 1 and channels == 1:
        cure = "x[:, None] puts the one channel first (command line: --input-shape)"
    elif x.ndim == axes + 2 and x.shape[-1] == channels:
        cure = "the channels are last: x.movedim(-1, 1)"
    else:
        cure = "reshape the data (command line: --input-shape)"
    return (
        f"it begins with a convolution of {channels} channel{'s' * (channels != 1)}, which takes "
        f"(n, {channels}{', size' * axes}): {cure}"
    )


def _width(f: Any, x: Tensor, text: str) -> str | None:
    """Explain rows of another width than the first linear layer has."""
    layer = _first_layer(f)
    if not isinstance(layer, nn.Linear) or "cannot be multiplied" not in text:
        return None
    width = x[0].numel() if len(x) else 0
    if x.shape[-1] == layer.in_features:
        return None
    cure = "reshape the data or pass the columns that it was trained on"
    if x.ndim > 2 and width == layer.in_features:
        cure = "x.flatten(1) makes them"
    return (
        f"it begins with a linear layer of {layer.in_features} inputs: {cure} (command line: "
        "--input-shape)"
    )


def _first_layer(f: Any) -> Any:
    """Return the first layer with weights in the order of definition, or None."""
    if not isinstance(f, nn.Module):
        return None
    layers = (module for module in f.modules() if list(module.parameters(recurse=False)))
    return next(layers, None)
