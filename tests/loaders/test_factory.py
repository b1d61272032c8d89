"""Models from the user's own code, and what is said when that code fails."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.loaders import open_model

SOURCE = """
import sys
from dataclasses import dataclass

import torch
from torch import nn

from {name}_layers import Half

print("hello from the model's file")


@dataclass
class Settings:
    width: int = 4


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.inner = nn.Linear(3, width)
        self.half = Half()

    def forward(self, x):
        return self.half(self.inner(x))


class Needy(nn.Module):
    def __init__(self, width, depth):
        super().__init__()


class Group:
    @staticmethod
    def small():
        return Net(2)


ready = Net().eval()
number = 3


def build():
    from {name}_late import WIDTH
    return Net(WIDTH)


def needs(width, *, depth):
    return None


def many(*args, width=3, **kwargs):
    return Net(width)


def fails():
    raise KeyError("width")


def leaves():
    sys.exit(3)


def wrong():
    return {{"a": 1}}


def nothing():
    pass


def the_class():
    return Net
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    name = f"m{abs(hash(str(tmp_path))) % 10**8}"
    (tmp_path / f"{name}_layers.py").write_text(
        "from torch import nn\n\n\nclass Half(nn.Module):\n"
        "    def forward(self, x):\n        return x / 2\n"
    )
    (tmp_path / f"{name}_late.py").write_text("WIDTH = 6\n")
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.format(name=name))
    return path


def width(model: nn.Module) -> int:
    return int(model.inner.out_features)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("build", 6), ("Net", 4), ("Group.small", 2), ("many", 3), ("ready", 4)],
)
def test_functions_classes_and_objects(file, name, expected):
    opened = open_model(f"{file}:{name}")
    assert width(opened.model) == expected
    assert opened.source == f"{file}:{name}"
    assert not opened.model.training


def test_what_was_done_is_said(file):
    assert open_model(f"{file}:build").notes == (
        "random weights, if any, were drawn with seed 0",
        "was in training mode: switched to eval",
    )
    assert open_model(f"{file}:build").was_training
    assert open_model(f"{file}:ready").notes == ()


def test_initial_weights_are_the_same_each_time_and_the_global_seed_stays(file):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = open_model(f"{file}:build").model
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    second = open_model(f"{file}:build").model
    assert_close(first.inner.weight, second.inner.weight, rtol=0, atol=0)


def test_path_and_folder_are_left_as_they_were(file, capfd, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before, files = list(sys.path), sorted(file.parent.iterdir())
    open_model(f"{file}:build")
    assert sys.path == before
    assert sorted(file.parent.iterdir()) == files  # no bytecode
    assert not sys.dont_write_bytecode
    assert capfd.readouterr().out == ""  # stdout is for results


def test_a_module_is_found_in_the_working_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    path = list(sys.path)
    try:
        assert width(open_model("mine:build").model) == 6
    finally:
        sys.modules.pop("mine", None)
    assert sys.path == path


def test_an_installed_module_is_found():
    opened = open_model("torch.nn:Identity")
    assert isinstance(opened.model, nn.Identity)


def test_two_projects_may_each_have_a_file_of_one_name(tmp_path):
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "shared_name_of_two.py").write_text(f"WIDTH = {number}\n")
        (folder / "net.py").write_text(
            "from torch import nn\nfrom shared_name_of_two import WIDTH\n\n\n"
            "def net():\n    return nn.Linear(3, WIDTH)\n"
        )
    try:
        for number in (1, 2, 1):
            assert (
                open_model(f"{tmp_path / str(number) / 'net.py'}:net").model.out_features == number
            )
    finally:
        sys.modules.pop("shared_name_of_two", None)


def test_libraries_are_not_loaded_again(tmp_path):
    for name in ("random", "torch", "inscape"):
        (tmp_path / f"{name}.py").write_text("1 / 0\n")
    (tmp_path / "net.py").write_text(
        "import random, torch\n\n\ndef net():\n    return torch.nn.Identity()\n"
    )
    before = {name: sys.modules[name] for name in ("random", "torch", "inscape")}
    open_model(f"{tmp_path / 'net.py'}:net")
    assert {name: sys.modules[name] for name in before} == before


def test_the_object_in_the_module_is_not_changed(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    try:
        opened = open_model("mine:ready", dtype="float64")
        assert sys.modules["mine"].ready.inner.weight.dtype == torch.float32
        assert opened.model.inner.weight.dtype == torch.float64
    finally:
        sys.modules.pop("mine", None)


def test_weights_go_into_the_factory_s_model(file, tmp_path):
    other = open_model(f"{file}:build").model
    with torch.no_grad():
        other.inner.weight.fill_(2)
    torch.save(other.state_dict(), tmp_path / "w.pt")
    opened = open_model(f"{file}:build", weights=tmp_path / "w.pt")
    assert_close(opened.model.inner.weight, torch.full((6, 3), 2.0))
    assert opened.source == f"{file}:build with the weights in {tmp_path / 'w.pt'}"
    assert opened.notes == ("was in training mode: switched to eval",)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("biuld", ValueError, r"must define 'biuld', found no 'biuld' in it: did you mean 'build'"),
        (
            "zzz",
            ValueError,
            "found no 'zzz' in it: it has Settings, Net, Needy, Group, ready, build",
        ),
        ("needs", ValueError, r"must need no arguments, found width, depth: write def model\(\)"),
        ("Needy", ValueError, "must need no arguments, found width, depth"),
        ("fails", UnsupportedModelError, r"it raised KeyError: 'width' \(mine\.py, line \d+\)"),
        ("leaves", UnsupportedModelError, r"it raised SystemExit: 3 \(mine\.py, line \d+\)"),
        (
            "wrong",
            TypeError,
            "an nn.Module or a scikit-learn model, found a dict",
        ),
        ("nothing", TypeError, "found None"),
        ("the_class", TypeError, "found the class Net itself instead of an object of it"),
        ("number", TypeError, "found a int"),
    ],
)
def test_what_is_wrong_with_a_factory_is_said(file, name, kind, text):
    with pytest.raises(kind, match=text):
        open_model(f"{file}:{name}")


def test_a_callable_without_signature_is_called():
    with pytest.raises(TypeError, match="found a dict"):
        open_model("builtins:dict")


def test_no_colon(file, tmp_path):
    with pytest.raises(
        ValueError, match=r"MODULE:FACTORY or FILE\.py:FACTORY.*e\.g\. .*mine\.py:Set"
    ):
        open_model(str(file))
    with pytest.raises(ValueError, match=r"found 'resnet': add the name of a function"):
        open_model("resnet")
    with pytest.raises(ValueError, match="add the name of a function"):
        open_model(f"{file}:")
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    with pytest.raises(ValueError, match="that returns the model\\."):
        open_model(str(broken))


def test_missing_file_and_module(file):
    with pytest.raises(ValueError, match=r"no .*mien\.py: did you mean 'mine\.py'"):
        open_model(f"{file.parent / 'mien.py'}:build")
    with pytest.raises(
        UnsupportedModelError, match=r"found no 'no_such_package\.nets' here or among"
    ):
        open_model("no_such_package.nets:build")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def f(:\n", r"must be importable, but it raised SyntaxError: .*: fix it"),
        ("import no_such_thing\n", r"raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ("raise SystemExit('usage')\n", r"raised SystemExit: usage .*under if __name__"),
        ("1 / 0\n", r"raised ZeroDivisionError: division by zero \(bad\.py, line 1\)"),
    ],
)
def test_a_file_that_cannot_be_imported(tmp_path, source, text):
    (tmp_path / "bad.py").write_text(source)
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(f"{tmp_path / 'bad.py'}:f")
    assert "inscape_intake_bad" not in sys.modules


def test_a_module_that_fails_is_told_from_one_that_is_missing(tmp_path, monkeypatch):
    (tmp_path / "bad_module_here.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsupportedModelError, match="bad_module_here must be importable, but it r"):
        open_model("bad_module_here:f")
    assert [path.name for path in tmp_path.iterdir()] == ["bad_module_here.py"]
