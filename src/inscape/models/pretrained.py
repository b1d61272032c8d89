"""Networks with their published weights, from a file that the user has; told by its hash."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import torch
from torch import Tensor, nn

from inscape.errors import DataError, did_you_mean
from inscape.files.tensors import load_tensors
from inscape.models.inception_v3 import InceptionV3
from inscape.models.mobilenet_v2 import MobileNetV2
from inscape.models.resnet import ResNet


@dataclass(frozen=True)
class PublishedWeights:
    """The file names under which weights are published, which end with how their sha256 begins."""

    make: Callable[[], nn.Module]
    files: tuple[str, ...]


PUBLISHED = {
    "inception_v3": PublishedWeights(
        lambda: InceptionV3(1000, aux=True, transform_input=True),
        ("inception_v3_google-0cc3c7bd.pth", "inception_v3_google-1a9a5a14.pth"),
    ),
    "mobilenet_v2": PublishedWeights(
        lambda: MobileNetV2(3, 1000, 1.0, cifar=False), ("mobilenet_v2-b0353104.pth",)
    ),
    "resnet18": PublishedWeights(
        lambda: ResNet(18, 3, 1000), ("resnet18-f37072fd.pth", "resnet18-5c106cde.pth")
    ),
    "resnet50": PublishedWeights(
        lambda: ResNet(50, 3, 1000), ("resnet50-0676ba61.pth", "resnet50-19c8e357.pth")
    ),
    "resnet152": PublishedWeights(
        lambda: ResNet(152, 3, 1000), ("resnet152-394f9c45.pth", "resnet152-b121ed2d.pth")
    ),
}


def weights_dir() -> Path:
    """Return the folder in which weights are looked for: INSCAPE_WEIGHTS_DIR, else the cache."""
    chosen = os.environ.get("INSCAPE_WEIGHTS_DIR")
    if chosen:
        return Path(chosen).expanduser()
    return Path(platformdirs.user_cache_dir("inscape", appauthor=False)) / "weights"


def missing_weights(name: str) -> str | None:
    """Return what a network's weights need so that it can be run; None if they are there.

    >>> import os
    >>> os.environ["INSCAPE_WEIGHTS_DIR"] = "/nowhere"
    >>> missing_weights("resnet18")
    'not run: needs resnet18-f37072fd.pth, put it at /nowhere/resnet18-f37072fd.pth'
    >>> del os.environ["INSCAPE_WEIGHTS_DIR"]
    """
    if _weights_path(name) is not None:
        return None
    file = PUBLISHED[name].files[0]
    return f"not run: needs {file}, put it at {weights_dir() / file}"


def pretrained(name: str, *, file: str | Path | None = None, sha256: str = "") -> nn.Module:
    """Return a network with its published weights, in eval mode.

    The file is never fetched: it is the user's, in :func:`weights_dir` or wherever ``file`` says,
    and is read only if its hash is the published one. No code in it is run; what it would unpack
    to is known first.

    Args:
        name: ``"inception_v3"``, ``"mobilenet_v2"``, ``"resnet18"``, ``"resnet50"`` or
            ``"resnet152"``.
        file: The file, if it lies elsewhere.
        sha256: How its hash begins, in eight hexadecimal digits or more, for weights other than
            the published ones.
    """
    path = _weights_path(name) if file is None else Path(file).expanduser()
    if path is None:
        raise DataError(f"{name} needs its published weights, found none: {missing_weights(name)}.")
    if not path.is_file():
        raise DataError(f"file must be the weights of {name}, found nothing at {path}: look there.")
    _check_hash(name, path, sha256)
    model = PUBLISHED[name].make()
    model.load_state_dict(_fitting_state(name, path, model.state_dict()), assign=True)
    return model.requires_grad_(True).eval()


def _fitting_state(name: str, path: Path, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in a file, which must be those of the network in name, shape and dtype."""
    try:
        loaded = load_tensors(path)
    except DataError:
        raise
    except Exception as error:  # damage, and pickles that name code, may raise nearly anything
        fault = str(error).strip().partition("\n")[0]
        raise DataError(
            f"{path} must hold the weights of {name} and nothing else, found what cannot be read "
            f"without running code, or damage ({type(error).__name__}: {fault:.200}): pass the "
            "file as it was published."
        ) from error
    counters = {key: torch.tensor(0) for key in own if key.endswith("num_batches_tracked")}
    state = {**counters, **loaded} if isinstance(loaded, Mapping) else {}
    wrong = [key for key, tensor in own.items() if not _is_like(state.get(key), tensor)]
    wrong += sorted(map(str, state.keys() - own.keys()))
    if wrong:
        raise DataError(
            f"{path} must hold the weights of {name}, found {len(wrong)} other keys, shapes or "
            f"dtypes, the first {wrong[0]!r}: pass the file of that network."
        )
    return state


def _is_like(value: object, tensor: Tensor) -> bool:
    """Tell whether what a file holds is a tensor of the same shape and dtype."""
    return isinstance(value, Tensor) and value.shape == tensor.shape and value.dtype == tensor.dtype


def _weights_path(name: str) -> Path | None:
    if name not in PUBLISHED:
        names = list(PUBLISHED)
        raise ValueError(
            f"name must be that of a network with published weights, found {name!r}: "
            f"{did_you_mean(name, names)}"
        )
    paths = (weights_dir() / file for file in PUBLISHED[name].files)
    return next((path for path in paths if path.is_file()), None)


def _check_hash(name: str, path: Path, sha256: str) -> None:
    if sha256 and not re.fullmatch("[0-9a-fA-F]{8,64}", sha256):
        raise ValueError(
            f"sha256 must be 8 to 64 hexadecimal digits, found {sha256!r}: pass what sha256sum "
            "says of the file."
        )
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(2**20):
            digest.update(block)
    known = tuple(file.rpartition("-")[2].removesuffix(".pth") for file in PUBLISHED[name].files)
    wanted = (sha256.lower(),) if sha256 else known
    if not digest.hexdigest().startswith(wanted):
        raise DataError(
            f"the sha256 of {path} must begin with {' or '.join(wanted)}, found "
            f"{digest.hexdigest()[:8]}: get the file again, or pass sha256= with that if these are "
            "the weights that you want."
        )
