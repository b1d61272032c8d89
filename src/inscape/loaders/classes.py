"""Labels by the names of the classes that a model was fitted to, where it knows them."""

from dataclasses import replace

import torch
from torch import Tensor

from inscape.errors import DataError
from inscape.loaders.data import OpenedData
from inscape.loaders.labels import Name, listed


def by_name(data: OpenedData, classes: tuple[Name, ...]) -> OpenedData:
    """Return the data with labels as numbers of the classes in their order, which is said.

    A guess that the labels are real numbers is taken back: the model knows better. Labels that
    are no names of classes may be their numbers; names that the model knows nothing of are left as
    they were numbered.

    Args:
        data: What ``open_data`` returned.
        classes: What the model calls its classes; nothing if it does not know.
    """
    if not classes or data.y is None or not _may_be_names(data):
        return data
    both = data.y if data.y_test is None else torch.cat([data.y, data.y_test])
    values = torch.unique(both)
    names = [data.names[int(v)] if data.names else _integer_if_equal(v) for v in values.tolist()]
    indices = _numbers(names, classes)
    if None not in indices:
        return _numbered(data, values, [k for k in indices if k is not None], classes)
    if data.names and indices.count(None) == len(indices):
        return data
    if data.task == "classes" and not data.names and int(values[-1]) < len(classes):
        note = f"y is taken as numbers of the model's classes {listed(classes, 5)}, from 0 on"
        return replace(data, notes=(*data.notes, note))
    strange = names[indices.index(None)]
    raise DataError(
        f"labels must be among the classes that the model was fitted to, {listed(classes, 10)}, "
        f"found {strange!r}: give other labels, or use --labels regression or none."
    )


def _may_be_names(data: OpenedData) -> bool:
    guessed = bool(data.guess) and data.y is not None and data.y[0].numel() == 1
    return data.task == "classes" or guessed


def _integer_if_equal(value: float) -> Name:
    return int(value) if value == int(value) else value


def _numbers(names: list[Name], classes: tuple[Name, ...]) -> list[int | None]:
    """Return the number of each name, or None; a number is found in words too, as from a .csv."""
    known = {name: k for k, name in enumerate(classes)}
    words = {str(name): k for k, name in enumerate(classes)}
    return [known.get(name, words.get(str(name))) for name in names]


def _numbered(
    data: OpenedData, values: Tensor, numbers: list[int], classes: tuple[Name, ...]
) -> OpenedData:
    if data.task == "classes" and values.tolist() == numbers:
        return data
    codes = torch.tensor(numbers, device=values.device)

    def coded(y: Tensor | None) -> Tensor | None:
        return None if y is None else codes[torch.searchsorted(values, y.flatten())]

    before = f"the classes {listed(data.names, 5)} are numbered from 0 in this order"
    notes = [note for note in data.notes if note not in (data.guess, before)]
    sentence = (
        f"y holds classes of the model: {listed(classes, 5)} are numbered from 0 in this order"
    )
    free = data.settings.get("loss") == "auto"
    return replace(
        data,
        y=coded(data.y),
        y_test=coded(data.y_test),
        task="classes",
        loss="cross_entropy" if free else data.loss,
        notes=(*notes, sentence),
        settings={**data.settings, "labels": "classes"},
        guess="",
        names=classes,
    )
