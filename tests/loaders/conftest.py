"""Exported programs to open, whole and changed."""

import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

Export = Callable[..., Path]


def _export(model: nn.Module, x: Tensor, path: Path, *, any_batch: bool = True) -> Path:
    """Write a ``.pt2``, without the warnings that PyTorch gives to itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamic = ({0: torch.export.Dim.AUTO},) if any_batch else None
        torch.export.save(torch.export.export(model, (x,), dynamic_shapes=dynamic), path)
    return path


def _changed(path: Path, to: Path, **members: Any) -> Path:
    """Copy an archive with some members replaced: bytes, None to drop, or a change of its JSON."""
    renamed = {name.replace("__", "/").replace("_json", ".json"): v for name, v in members.items()}
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        names = [name.partition("/")[2] for name in old.namelist()]
        root = old.namelist()[0].partition("/")[0]
        for name in dict.fromkeys([*names, *renamed]):
            data = old.read(f"{root}/{name}") if name in names else b""
            change = renamed.get(name, data)
            if callable(change):
                printed = json.loads(data)
                change(printed)
                change = json.dumps(printed).encode()
            if change is not None:
                new.writestr(f"{root}/{name}", change)
    return to


@pytest.fixture(scope="session")
def export() -> Export:
    """Return the function that writes a ``.pt2``."""
    return _export


@pytest.fixture(scope="session")
def changed() -> Export:
    """Return the function that copies an archive with some members replaced."""
    return _changed


@pytest.fixture(scope="session")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a small exported network."""
    path = tmp_path_factory.mktemp("pt2") / "linear.pt2"
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    return _export(model, torch.randn(4, 3), path)
