"""Match labels with the outputs of a model: classes or real numbers, as many as there must be."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from inscape.errors import DataError
from inscape.loaders.data import OpenedData


def guessed_anew(data: OpenedData, output: Tensor) -> OpenedData:
    """Return data whose labels were guessed to be real numbers as classes, if the outputs say so.

    Integers from 0 on, one for each example, are class numbers of a model that has an output for
    each of them; many classes in few examples do not look like it by themselves.
    """
    outputs = output[0].numel()
    if data.task != "regression" or not data.guess or data.y is None or outputs < 2:
        return data
    both = data.y if data.y_test is None else torch.cat([data.y, data.y_test])
    if both[0].numel() != 1 or bool((both != both.round()).any()):
        return data
    if not 0 <= float(both.min()) <= float(both.max()) < outputs:
        return data
    guess = (
        f"y holds integers from {int(both.min())} to {int(both.max())} and the model has "
        f"{outputs} outputs: taken as classes (use --labels regression otherwise)"
    )
    return replace(
        data,
        task="classes",
        y=data.y.flatten().long(),
        y_test=None if data.y_test is None else data.y_test.flatten().long(),
        loss="cross_entropy" if data.settings.get("loss") == "auto" else data.loss,
        guess=guess,
        notes=tuple(guess if note == data.guess else note for note in data.notes),
        settings={**data.settings, "labels": "classes"},
    )


def with_fitting_labels(data: OpenedData, output: Tensor, *, probability: bool) -> OpenedData:
    """Return data whose labels fit the outputs, or refuse labels that do not."""
    if data.y is None:
        return data
    outputs = output[0].numel()
    if data.task == "regression":
        return _with_real_labels(data, output)
    if output.ndim > 2:
        raise DataError(
            f"the model must return one output for each class to compare with class numbers, "
            f"found shape {tuple(output.shape[1:])}: flatten it, or use --labels none."
        )
    if data.settings.get("loss") == "auto" and outputs == 1 and probability:
        data = replace(data, loss="mse", notes=(*data.notes, _ONE_PROBABILITY))
    elif data.settings.get("loss") == "auto" and outputs == 1 and data.loss != "bce_logits":
        data = replace(data, loss="bce_logits", notes=(*data.notes, _ONE_LOGIT))
    if outputs > 1 and _are_probabilities(output) and _PROBABILITIES not in data.notes:
        data = replace(data, notes=(*data.notes, _PROBABILITIES))
    return _with_class_labels(data, outputs)


_ONE_LOGIT = "the model has one output: taken as the logit of class 1 (bce_logits)"
_ONE_PROBABILITY = (
    "the model ends in a sigmoid: its output is taken as the probability of class 1, which is "
    "chosen from 0.5 on (mse)"
)
MAY_BE_PROBABILITIES = (
    "all outputs lie between 0 and 1, but are taken as logits, positive for class 1: if they are "
    "probabilities, use --loss mse"
)
_PROBABILITIES = "the outputs look like probabilities: measuring before the softmax says more"


def _are_probabilities(output: Tensor) -> bool:
    return bool((output >= 0).all()) and torch.allclose(
        output.sum(1), torch.ones_like(output[:, 0])
    )


_OF_PLACES = (
    "y holds a class for each pixel or token: not used, for labels are one for each example; the "
    "outputs are measured all together"
)


def _without_labels(data: OpenedData, reason: str) -> OpenedData:
    notes = tuple(reason if note == data.guess else note for note in data.notes)
    settings = {**data.settings, "labels": "none"}
    return replace(
        data, task="unlabelled", y=None, y_test=None, loss=None, notes=notes, settings=settings
    )


def _are_of_places(y: Tensor, shape: tuple[int, ...]) -> bool:
    """Tell whether labels are class numbers of the places (pixels, tokens) of the outputs.

    Classes are the first axis of the outputs (images) or the last one (texts).
    """
    low, high, places = float(y.min()), float(y.max()), y[0].numel()
    if len(shape) < 2 or low < 0 or bool((y != y.round()).any()):
        return False
    first = places == math.prod(shape[1:]) and high < shape[0]
    return first or (places == math.prod(shape[:-1]) and high < shape[-1])


def _with_real_labels(data: OpenedData, output: Tensor) -> OpenedData:
    assert data.y is not None
    columns, outputs = data.y[0].numel(), output[0].numel()
    if columns != outputs:
        guessed = data.guess and data.settings.get("loss") == "auto"
        if guessed and _are_of_places(data.y, tuple(output.shape[1:])):
            return _without_labels(data, _OF_PLACES)
        raise DataError(
            f"the model must have an output for each of the {columns} columns of y, found "
            f"{outputs}: use --labels classes if y holds class numbers, or give other labels."
        )
    shape = output.shape[1:]
    y_test = None if data.y_test is None else data.y_test.reshape(-1, *shape)
    return replace(data, y=data.y.reshape(-1, *shape), y_test=y_test)


def _with_class_labels(data: OpenedData, outputs: int) -> OpenedData:
    """Refuse classes beyond the outputs, unless numbering them anew makes them fit."""
    assert data.y is not None
    if data.loss == "cross_entropy" and outputs == 1:
        raise DataError(
            "loss cross_entropy must have an output for each class, found one output: say "
            "--loss bce_logits."
        )
    if data.loss == "bce_logits" and outputs > 1:
        raise DataError(
            f"loss bce_logits must have one output, found {outputs}: use --loss cross_entropy."
        )
    room = max(outputs, 2)
    both = data.y if data.y_test is None else torch.cat([data.y, data.y_test])
    values = torch.unique(both)
    if int(values[-1]) < room:
        return data
    if len(values) != room:
        raise DataError(
            f"the model must have an output for each class, found {outputs} outputs and "
            f"{len(values)} classes up to number {int(values[-1])}: give other labels, or say "
            "--labels regression."
        )
    listed = ", ".join(map(str, values.tolist()[:10])) + (", ..." if room > 10 else "")
    note = f"the classes {listed} are numbered from 0 in this order, to fit {outputs} outputs"
    y_test = None if data.y_test is None else torch.searchsorted(values, data.y_test)
    y = torch.searchsorted(values, data.y)
    return replace(data, y=y, y_test=y_test, notes=(*data.notes, note))
