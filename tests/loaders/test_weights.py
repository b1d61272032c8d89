"""Weights: state dicts, checkpoints and safetensors, with nothing executed on the way."""

import pickle
import zipfile
from collections import OrderedDict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.loaders import open_data, open_model
from inscape.loaders.files import globals_in, kind_of


def network(width: int = 5, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))


@pytest.fixture
def trained() -> nn.Sequential:
    model = network(seed=1)
    model.train()(torch.randn(16, 3))  # running statistics that are not the initial ones
    return model.eval()


X = torch.linspace(-1, 1, 12).reshape(4, 3)


class Evil:
    """A pickle of this writes a file where it is loaded with code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_state_dict_and_safetensors_give_the_same_model(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    for name in ("w.pt", "w.safetensors"):
        opened = open_model(network(), weights=tmp_path / name)
        assert_close(opened.model(X), trained(X), rtol=0, atol=0)
        assert opened.source == f"Sequential object with the weights in {tmp_path / name}"


def test_the_object_of_the_user_is_left_alone(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    mine = network()
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    opened = open_model(mine, weights=tmp_path / "w.pt", dtype="float64")
    assert mine.training
    assert opened.model is not mine
    for name, value in mine.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0)


def test_the_old_file_format_of_torch_is_read(trained, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(trained.state_dict(), path, _use_new_zipfile_serialization=False)
    assert kind_of(path) == "pickle"
    assert_close(open_model(network(), weights=path).model(X), trained(X), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("trail", "said"),
    [
        (("state_dict",), "state_dict"),
        (("model",), "model"),
        (("model_state_dict",), "model_state_dict"),
        (("net",), "net"),
        (("model", "state_dict"), "model/state_dict"),
    ],
)
def test_checkpoints_are_searched(trained, tmp_path, trail, said):
    result: Any = trained.state_dict()
    for key in reversed(trail):
        result = {"epoch": 3, "optimizer": {"lr": 0.1}, key: result}
    torch.save(result, tmp_path / "c.ckpt")
    opened = open_model(network(), weights=tmp_path / "c.ckpt")
    assert f"read the weights under the key {said!r}" in opened.notes
    assert_close(opened.model(X), trained(X), rtol=0, atol=0)


def renamed(state: dict[str, Any], before: str) -> dict[str, Any]:
    return {before + key: value for key, value in state.items()}


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("module.", ["stripped the prefix 'module.' from 9 keys"]),
        ("_orig_mod.", ["stripped the prefix '_orig_mod.' from 9 keys"]),
        ("module.module.", ["stripped the prefix 'module.' from 9 keys"]),
        (
            "_orig_mod.module.",
            [
                "stripped the prefix '_orig_mod.' from 9 keys",
                "stripped the prefix 'module.' from 9 keys",
            ],
        ),
        ("model.", ["stripped the prefix 'model.' from 9 keys"]),
    ],
)
def test_prefixes_are_stripped_and_said(trained, tmp_path, before, said):
    torch.save(renamed(trained.state_dict(), before), tmp_path / "w.pt")
    opened = open_model(network(), weights=tmp_path / "w.pt")
    assert sorted(note for note in opened.notes if "stripped" in note) == said
    assert_close(opened.model(X), trained(X), rtol=0, atol=0)


def test_a_compiled_part_is_found_in_the_middle_of_a_name(tmp_path):
    model = nn.ModuleDict({"net": nn.Linear(2, 1)})
    state = {"net._orig_mod.weight": torch.ones(1, 2), "net._orig_mod.bias": torch.zeros(1)}
    torch.save(state, tmp_path / "w.pt")
    opened = open_model(model, weights=tmp_path / "w.pt")
    assert_close(opened.model.state_dict()["net.weight"], torch.ones(1, 2))


def test_a_module_that_is_called_module_keeps_its_name(tmp_path):
    model = nn.ModuleDict({"module": nn.Linear(2, 1)})
    torch.save(model.state_dict(), tmp_path / "w.pt")
    opened = open_model(model, weights=tmp_path / "w.pt")
    assert not [note for note in opened.notes if "stripped" in note]


def test_stripping_never_makes_one_key_of_two(tmp_path):
    state = {"module.weight": torch.ones(1, 2), "weight": torch.zeros(1, 2)}
    torch.save(state, tmp_path / "w.pt")
    with pytest.raises(UnsupportedModelError, match=r"the file has 'module\.weight' \(1, 2\)"):
        open_model(nn.Linear(2, 1), weights=tmp_path / "w.pt")


def test_old_files_may_lack_the_batch_counters(trained, tmp_path):
    state = {k: v for k, v in trained.state_dict().items() if "num_batches" not in k}
    torch.save(state, tmp_path / "w.pt")
    assert_close(open_model(network(), weights=tmp_path / "w.pt").model(X), trained(X))


def test_another_width_names_the_first_keys_with_both_shapes(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    text = r"'0\.weight' is \(7, 3\) in the model and \(5, 3\) in the file, .* and \d more: give"
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(network(width=7), weights=tmp_path / "w.pt")


def test_another_architecture_names_the_keys_of_both_sides(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    other = nn.ModuleDict({"fc": nn.Linear(3, 2)})
    text = r"the model has 'fc\.weight' \(2, 3\), 'fc\.bias' \(2,\), which the file lacks; the fil"
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(other, weights=tmp_path / "w.pt")


def test_lazy_layers_take_their_shapes_from_the_weights(tmp_path):
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "w.pt")
    lazy = nn.LazyLinear(2)
    assert open_model(lazy, weights=tmp_path / "w.pt").model.weight.shape == (2, 3)
    with pytest.raises(UnsupportedModelError, match="found 'weight' of a lazy layer"):
        open_model(lazy)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ([1, 2], "a list"),
        ({"epoch": 3, "lr": 0.1}, "a dict with the keys 'epoch', 'lr'"),
        ({}, "a dict with the keys"),
    ],
)
def test_a_file_without_weights(tmp_path, content, found):
    torch.save(content, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=f"must hold a state_dict, alone or under.*found {found}"):
        open_model(network(), weights=tmp_path / "w.pt")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("keep", [0.4, 0.97])
def test_truncated_files(trained, tmp_path, keep, old):
    path = tmp_path / "w.pt"
    torch.save(trained.state_dict(), path, _use_new_zipfile_serialization=not old)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(ValueError, match="truncated"):
        open_model(network(), weights=path)


def broken_archive(path: Path, pickled: bytes) -> Path:
    """Write a whole archive of torch.save around a broken pickle."""
    torch.save({"a": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for name, data in members.items():
            new.writestr(name, pickled if name.endswith("data.pkl") else data)
    return path


@pytest.mark.parametrize("pickled", [b"", b"\x80\x02}", b"garbage"])
@pytest.mark.parametrize("trust", [False, True])
def test_a_whole_archive_with_a_broken_pickle(tmp_path, pickled, trust):
    path = broken_archive(tmp_path / "w.pt", pickled)
    with pytest.raises(ValueError, match=r"damaged or truncated \(\w+: "):
        open_model(network(), weights=path, trust=trust)
    with pytest.raises(ValueError, match="damaged or truncated"):
        open_data(path)


def test_truncated_safetensors(trained, tmp_path):
    path = tmp_path / "w.safetensors"
    save_file(trained.state_dict(), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"damaged or truncated \(SafetensorError"):
        open_model(network(), weights=path)


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "an empty file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
    "page": (b"<!DOCTYPE html><html><body>404</body></html>", "a web page"),
    "keras": (b"\x89HDF\r\n\x1a\n" + bytes(80), "an HDF5 file"),
    "text": (b"hello, these are no weights at all", "a file of another kind"),
    "array": (b"\x93NUMPY\x01\x00", "a NumPy array"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_kinds_are_named(tmp_path, name):
    content, found = FILES[name]
    (tmp_path / "w.pt").write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"state_dict \(\.pt, \.pth\) or \.safetensors, found {found}"
    ):
        open_model(network(), weights=tmp_path / "w.pt")


def test_a_numpy_archive_is_named(tmp_path):
    np.savez(tmp_path / "w.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match=r"found a NumPy archive \(\.npz\)"):
        open_model(network(), weights=tmp_path / "w.npz")


def test_missing_file_offers_the_nearest_name(tmp_path):
    (tmp_path / "weights_best.pt").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"no .*weights_bst\.pt: did you mean 'weights_best\.pt'"):
        open_model(network(), weights=tmp_path / "weights_bst.pt")
    with pytest.raises(ValueError, match=r"no .*nowhere.*: check the path"):
        open_model(network(), weights=tmp_path / "nowhere" / "w.pt")
    with pytest.raises(ValueError, match="weights must be a file, found the folder"):
        open_model(network(), weights=tmp_path)


@pytest.mark.parametrize("form", ["torch", "old torch", "pickle"])
def test_a_malicious_pickle_does_not_run(tmp_path, form):
    mark, path = tmp_path / "was_here", tmp_path / "w.pt"
    content = OrderedDict(weight=Evil(mark))
    if form == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=4))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "torch")
    text = r"would run code \(.*'pathlib\.Path.*save model\.state_dict\(\) instead, or use --trust"
    with pytest.raises(UnsupportedModelError, match=text):
        open_model(nn.Linear(2, 1), weights=path)
    assert not mark.exists()


def test_a_damaged_pickle_is_not_offered_to_trust(tmp_path):
    path = tmp_path / "w.pt"
    torch.save(OrderedDict(weight=Evil(tmp_path / "mark")), path)
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\1\2", 0, content.rindex(b"data.pkl")) + 16] ^= 1  # its checksum
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or truncated") as caught:
        open_model(nn.Linear(2, 1), weights=path)
    assert "trust" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_the_malicious_pickle_is_malicious(tmp_path):
    mark, path = tmp_path / "was_here", tmp_path / "w.pt"
    torch.save(OrderedDict(weight=Evil(mark)), path)
    with pytest.raises(ValueError, match="must hold a state_dict"):
        open_model(nn.Linear(2, 1), weights=path, trust=True)
    assert mark.exists()


def test_trust_takes_the_weights_of_a_whole_model(trained, tmp_path):
    torch.save(trained, tmp_path / "m.pt")
    with pytest.raises(
        UnsupportedModelError, match=r"run code \('torch\.nn\.modules\.container\.Seq"
    ):
        open_model(network(), weights=tmp_path / "m.pt")
    opened = open_model(network(), weights=tmp_path / "m.pt", trust=True)
    assert "took the weights of a whole saved model" in opened.notes
    torch.save({"epoch": 3, "net": trained}, tmp_path / "c.pt")
    assert_close(open_model(network(), weights=tmp_path / "c.pt", trust=True).model(X), trained(X))
    assert_close(opened.model(X), trained(X), rtol=0, atol=0)


@pytest.mark.parametrize("protocol", [2, 4])
def test_names_are_read_where_the_module_is_not_repeated(tmp_path, protocol):
    path = tmp_path / "p.pkl"
    path.write_bytes(pickle.dumps([date(2026, 1, 2), timedelta(3)], protocol))
    assert [name for name in globals_in(path) if "codecs" not in name] == [
        "datetime.date",
        "datetime.timedelta",
    ]


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_names_are_read_from_every_protocol(tmp_path, protocol):
    path = tmp_path / "p.pkl"
    path.write_bytes(pickle.dumps([Evil(tmp_path), Evil(tmp_path), OrderedDict()], protocol))
    names = globals_in(path)
    assert "collections.OrderedDict" not in names
    assert any("Path" in name for name in names)
    assert len(names) == len(set(names))
