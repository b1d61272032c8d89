"""Files given as the model itself: what they are is said, and code runs only where trusted."""

import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.loaders import open_model

X = torch.linspace(-1, 1, 12).reshape(4, 3)


class Local(nn.Module):
    """A class of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).relu()


class Evil:
    """A pickle of this writes a file where it is loaded with code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("name", ["w.pt", "w.pth", "w.ckpt", "w.bin", "w.safetensors"])
def test_a_state_dict_has_no_architecture(tmp_path, name):
    path = tmp_path / name
    if name.endswith("safetensors"):
        save_file(nn.Linear(3, 2).state_dict(), path)
    else:
        torch.save({"epoch": 1, "state_dict": nn.Linear(3, 2).state_dict()}, path)
    text = r"found weights without their architecture: give --model FILE\.py:FACTORY --weights"
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(path)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_whole_model_needs_trust(tmp_path, wrapped):
    model = Local()
    torch.save({"model": model, "epoch": 3} if wrapped else model, tmp_path / "m.pt")
    with pytest.raises(
        UnsupportedModelError, match=r"would run code \('[\w.]*Local', .*use --trust"
    ):
        open_model(tmp_path / "m.pt")
    opened = open_model(tmp_path / "m.pt", trust=True)
    assert "unpickled with its own code, as trusted" in opened.notes
    assert_close(opened.model(X), model(X))


def test_a_whole_model_whose_class_is_gone(tmp_path, monkeypatch):
    torch.save(Local(), tmp_path / "m.pt")
    monkeypatch.delattr(sys.modules[Local.__module__], "Local")
    with pytest.raises(UnsupportedModelError, match=r"find the classes.*AttributeError.*Local"):
        open_model(tmp_path / "m.pt", trust=True)


@pytest.mark.parametrize("suffix", [".pt", ".pkl", ".joblib"])
def test_a_malicious_pickle_does_not_run(tmp_path, suffix):
    mark, path = tmp_path / "was_here", tmp_path / f"m{suffix}"
    path.write_bytes(pickle.dumps(Evil(mark)))
    with pytest.raises(UnsupportedModelError, match=r"would run code \(.*use --trust"):
        open_model(path)
    assert not mark.exists()


def test_trusted_files_that_hold_no_model(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(UnsupportedModelError, match=r"must hold an nn\.Module or a .*found a list"):
        open_model(tmp_path / "m.pkl", trust=True)
    (tmp_path / "cut.pkl").write_bytes(pickle.dumps(list(range(1000)))[:-20])
    with pytest.raises(
        ValueError, match="whole pickle of a scikit-learn model, found one that raised"
    ):
        open_model(tmp_path / "cut.pkl", trust=True)
    torch.save(torch.ones(3), tmp_path / "t.pt")
    with pytest.raises(UnsupportedModelError, match="found a Tensor"):
        open_model(tmp_path / "t.pt")


def script(path: Path) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(Local())
        model.save(path)
    return model


def test_torchscript_is_a_program_and_needs_trust(tmp_path):
    model = script(tmp_path / "m.pt")
    with pytest.raises(
        UnsupportedModelError, match="TorchScript archive, a program that can write"
    ):
        open_model(tmp_path / "m.pt")
    opened = open_model(tmp_path / "m.pt", trust=True)
    assert "TorchScript, which PyTorch has deprecated: export it as .pt2" in opened.notes
    assert not opened.model.training
    assert_close(opened.model(X), model(X))


class Writer(nn.Module):
    """What TorchScript may do."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def forward(self, x: Tensor) -> Tensor:
        torch.save([x], self.path)
        return x


def test_torchscript_can_indeed_write_files(tmp_path):
    mark = tmp_path / "was_here"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Writer(str(mark))).save(tmp_path / "m.pt")
    opened = open_model(tmp_path / "m.pt", trust=True)
    assert not mark.exists()
    opened.model(X)
    assert mark.exists()


def test_damaged_torchscript(tmp_path):
    import zipfile

    script(tmp_path / "m.pt")
    with zipfile.ZipFile(tmp_path / "m.pt") as old, zipfile.ZipFile(tmp_path / "d.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, b"?" if name.endswith("data.pkl") else old.read(name))
    with pytest.raises(
        ValueError, match="whole TorchScript archive, found one that cannot be read"
    ):
        open_model(tmp_path / "d.pt", trust=True)


@pytest.mark.parametrize("name", ["m.pb", "m.tflite"])
def test_other_frameworks_are_told_the_way(name):
    with pytest.raises(UnsupportedModelError, match=rf"\.{name[2:]}, which is not supported.*pt2"):
        open_model(name)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "found an empty file"),
        (b"PK\x03\x04 not whole", "found a truncated archive"),
        (b"some text that is no model", "found a file of another kind"),
    ],
)
def test_files_that_are_no_model(tmp_path, content, text):
    (tmp_path / "m.pt").write_bytes(content)
    with pytest.raises(ValueError, match=f"must be a model saved by PyTorch, {text}"):
        open_model(tmp_path / "m.pt")


def test_missing_file(tmp_path):
    with pytest.raises(ValueError, match="the model must be an existing file, found no"):
        open_model(tmp_path / "m.pt2")


def test_an_exported_program_under_another_name_is_known(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamic = ({0: torch.export.Dim.AUTO},)
        program = torch.export.export(Local().eval(), (X,), dynamic_shapes=dynamic)
        torch.export.save(program, tmp_path / "m.pt2")
    (tmp_path / "m.pt2").rename(tmp_path / "m.pt")
    assert_close(open_model(tmp_path / "m.pt").model(X), program.module()(X))
