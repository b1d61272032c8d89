"""The networks of chapter 7 and section 6.4: each is trained once, and its weights are kept.

A set of networks is one column of table 7.1: a linear network, and two copies each of the dense,
the simple and the complex one. Other sets have other copies, so that they are independent.
"""

import hashlib
import io
import json
from pathlib import Path
from typing import NamedTuple

import platformdirs
import torch
from torch import nn

from inscape.files import atomic
from inscape.lab.experiment import Settings
from inscape.models.image_nets import image_net
from inscape.papers.sattelberg import _images

#: Raised when training changes what the weights are.
FORM = 1
#: Images times epochs up to which a network is trained anew rather than kept.
NOT_KEPT = 5000
NETS, OPTIMIZERS = _images.NETS, tuple(_images.OPTIMIZERS)


class Member(NamedTuple):
    """One network of a set: its architecture and which copy of it, from 1."""

    net: str
    which: int
    optimizer: str

    @property
    def name(self) -> str:
        """Return the name of the dissertation's tables, such as ``dense 2 SGD``."""
        copy = "" if self.net in ("linear", "mobilenet") else f" {self.which}"
        return f"{self.net}{copy} {'SGD' if self.optimizer == 'sgd' else 'AdamW'}"

    def copy(self, of_set: int) -> int:
        """Return which of all copies it is in a set."""
        return of_set if self.net == "linear" else 2 * (of_set - 1) + self.which


#: The networks of a set in the order of the tables.
MEMBERS = tuple(
    Member(net, which, optimizer)
    for optimizer in OPTIMIZERS
    for net in NETS
    for which in ((1,) if net == "linear" else (1, 2))
)


def folder() -> Path:
    """Return the folder of the user's cache that holds weights."""
    return Path(platformdirs.user_cache_dir("inscape", appauthor=False)) / "networks"


def images_of(data: str) -> int:
    """Return the number of training images that a data set is given with.

    >>> images_of("mnist:n=20000")
    20000
    """
    parts = dict(part.split("=") for part in data.partition(":")[2].split(","))
    return int(parts["n"])


def kept(net: str, optimizer: str, data: str, epochs: int, copy: int) -> nn.Sequential:
    """Return a trained network: from the cache, or else train it and keep its weights.

    Args:
        net: One of ``NETS``.
        optimizer: ``"sgd"`` or ``"adamw"``.
        data: Data set, and number of its training images, such as ``"mnist:n=20000"``.
        epochs: Passes over the training images.
        copy: Which copy, from 1: other initial weights, other shuffles.
    """
    if images_of(data) * epochs <= NOT_KEPT:
        return _images.trained(net, optimizer, data, epochs, copy)
    about = [FORM, net, optimizer, data, _images.data_hash(data), epochs, copy]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    path = folder() / f"sattelberg-{net}-{optimizer}-{_images.kind(data)}-{key}.pt"
    if path.is_file() and (model := _loaded(net, path)) is not None:
        return model
    model = _images.trained(net, optimizer, data, epochs, copy)
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, content.getvalue())
    return model


def _loaded(net: str, path: Path) -> nn.Sequential | None:
    """Return the network of a file, or None if the file is damaged: it is then trained again."""
    model = image_net(net)
    try:
        model.load_state_dict(torch.load(path, weights_only=True))
    except Exception:
        return None
    return model


def training_seconds(settings: Settings, net: str) -> float:
    """Guess the time of training one network."""
    return float(images_of(settings["data"]) * settings["epochs"] * _images.COST[net] / 1000)
