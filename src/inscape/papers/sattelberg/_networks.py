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
from torch import Tensor, nn

from inscape.errors import DataError
from inscape.files import atomic
from inscape.files.tensors import load_tensors
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


def members(mobilenet: int = 0) -> tuple[Member, ...]:
    """Return the networks of a set, with the pretrained ones if these see images at all.

    Args:
        mobilenet: Height and width of the images that MobileNetV2 sees; 0 leaves it out.
    """
    others = tuple(Member("mobilenet", 1, optimizer) for optimizer in OPTIMIZERS)
    return MEMBERS + (others if mobilenet else ())


def network(member: Member, data: str, epochs: int, of_set: int, mobilenet: int = 0) -> nn.Module:
    """Return a trained network of a set."""
    return kept(member.net, member.optimizer, data, epochs, member.copy(of_set), mobilenet)


def hash_of(settings: Settings) -> str:
    """Return the hash of the data that a cell reads, and of the weights that it needs.

    Where the weights are absent only the cells that need them fail, and say so.
    """
    found = _images.data_hash(settings["data"])
    if not settings["mobilenet"]:
        return found
    from inscape.papers.sattelberg._pretrained import weights

    try:
        return f"{found}-{weights()[1][:8]}"
    except DataError:
        return f"{found}-absent"


def kept(
    net: str, optimizer: str, data: str, epochs: int, copy: int, mobilenet: int = 0
) -> nn.Module:
    """Return a trained network: from the cache, or else train it and keep its weights.

    Args:
        net: One of ``NETS``, or ``"mobilenet"``, of which the last layer is trained and kept.
        optimizer: ``"sgd"`` or ``"adamw"``.
        data: Data set and number of its training images, such as ``"mnist:n=20000"``.
        epochs: Passes over the training images.
        copy: Which copy, from 1: other initial weights, other shuffles.
        mobilenet: Height and width of the images that MobileNetV2 sees.
    """
    if net == "mobilenet":
        return _kept_pretrained(optimizer, data, epochs, copy, mobilenet)
    if images_of(data) * epochs <= NOT_KEPT:
        return _images.trained(net, optimizer, data, epochs, copy)
    path = _path(net, optimizer, data, epochs, copy)
    state = _read(path)
    if state is not None:
        model = image_net(net)
        model.load_state_dict(state)
        return model
    model = _images.trained(net, optimizer, data, epochs, copy)
    _keep(path, model)
    return model


def _kept_pretrained(optimizer: str, data: str, epochs: int, copy: int, side: int) -> nn.Module:
    from inscape.papers.sattelberg._pretrained import pretrained
    from inscape.papers.sattelberg._seeds import own_seed

    path = _path(f"mobilenet{side}", optimizer, data, epochs, copy)
    state = _read(path)
    seed = own_seed(len(NETS), copy)
    model = pretrained(optimizer, data, side, epochs=epochs, seed=seed, state=state)
    if state is None:
        _keep(path, model.head)
    return model


def _path(net: str, optimizer: str, data: str, epochs: int, copy: int) -> Path:
    """Return the file of a network's weights: another one for anything that changes them."""
    about = [FORM, net, optimizer, data, _images.data_hash(data), epochs, copy]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    return folder() / f"sattelberg-{net}-{optimizer}-{_images.kind(data)}-{key}.pt"


def _keep(path: Path, model: nn.Module) -> None:
    content = io.BytesIO()
    torch.save(model.state_dict(), content)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, content.getvalue())


def _read(path: Path) -> dict[str, Tensor] | None:
    """Return kept weights, or None where there are none, or they are damaged: train again."""
    try:
        state: dict[str, Tensor] = load_tensors(path)
    except Exception:  # damaged bytes make the reader raise anything
        return None
    return state


def training_seconds(settings: Settings, net: str) -> float:
    """Guess the time of training one network, or of the features of a pretrained one."""
    images = images_of(settings["data"])
    if net == "mobilenet":
        return float(images * 3e-6 * settings["mobilenet"] ** 2)
    return float(images * settings["epochs"] * _images.COST[net] / 1000)
