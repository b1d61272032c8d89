"""Hostile files of ``torch.save`` and safetensors."""

import io
import json
import pickle
import struct
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hostile.array_files import declared, packed
from hostile.kinds import Payload, kind

_rebuild = torch._utils._rebuild_tensor_v2


class Call:
    """Pickled as a call."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return (self.function, self.args)


class Storage:
    """Pickled as a reference to stored numbers."""

    def __init__(self, numel: Any = 1, kind: Any = torch.FloatStorage) -> None:
        self.numel, self.kind = numel, kind


class _Pickler(pickle.Pickler):
    def persistent_id(self, found: object) -> Any:
        if not isinstance(found, Storage):
            return None
        return ("storage", found.kind, "0", "cpu", found.numel)


def saved(content: Any, numbers: bytes = bytes(8)) -> bytes:
    """Return a file of ``torch.save`` with any pickle and any numbers."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=2).dump(content)
    members = {"data.pkl": buffer.getvalue(), "byteorder": b"little", "data/0": numbers}
    return packed({f"a/{name}": raw for name, raw in (members | {"version": b"3"}).items()}, 0)


def tensor(
    size: Any, stride: Any, offset: Any = 0, numel: Any = 1, of: Any = torch.FloatStorage
) -> Call:
    """Return a tensor of any sizes on a storage of one number."""
    return Call(_rebuild, Storage(numel, of), offset, size, stride, False, OrderedDict())


def _deep() -> list[Any]:
    content: list[Any] = [torch.zeros(1)]
    for _ in range(40):
        content = [content] * 10  # 10^40 tensors to one that counts each
    return content


def _in_itself() -> list[Any]:
    content: list[Any] = []
    content.append(content)
    return content


_CONTENTS: dict[str, Callable[[Path], bytes]] = {
    "stride_of_zero": lambda _: saved(tensor((2**20, 2**20), (0, 0))),
    "many_views": lambda _: saved([tensor((2**14, 2**14), (0, 0)) for _ in range(50)]),
    "beyond_the_storage": lambda _: saved(tensor((100,), (1,))),
    "before_the_storage": lambda _: saved(tensor((1,), (1,), offset=-5)),
    "offset_beyond": lambda _: saved(tensor((1,), (1,), offset=2**61)),
    "sizes_below_zero": lambda _: saved(tensor((-1, 4), (1, 1))),
    "strides_below_zero": lambda _: saved(tensor((2,), (-1,))),
    "sizes_that_overflow": lambda _: saved(tensor((2**62, 2**62), (1, 1))),
    "sizes_of_text": lambda _: saved(tensor("ab", "cd")),
    "storage_that_lies": lambda _: saved(tensor((2,), (1,), numel=2**40)),
    "storage_below_zero": lambda _: saved(tensor((2,), (1,), numel=-1)),
    "storage_of_another_kind": lambda _: saved(tensor((2,), (1,), of=torch.DoubleStorage)),
    "call_of_eval": lambda m: saved(Call(eval, f"open({str(m)!r}, 'w')")),
    "call_of_touch": lambda m: saved(Payload(m)),
    "plain_pickle": lambda m: pickle.dumps(Payload(m)),
    "old_protocol": lambda m: pickle.dumps(Payload(m), protocol=0),
    "deep": lambda _: saved(_deep()),
    "in_itself": lambda _: saved(_in_itself()),
    "no_tensors": lambda _: saved({"x": "text", 3: None}),
    "numbers_cut": lambda _: saved(tensor((4,), (1,), numel=4), b""),
    "pickle_cut": lambda _: packed({"a/data.pkl": b"\x80\2}q", "a/version": b"3"}, 0),
    "bomb": lambda _: declared(saved(tensor((1,), (1,))), 4_000_000_000),
    "lying_member": lambda _: declared(saved(tensor((1,), (1,))), 2),
    "no_file_of_torch": lambda _: packed({"a/data.pkl": b"rubbish"}),
    "web_page": lambda _: b"<!DOCTYPE html><script>alert(1)</script>",
    "pointer": lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
    "empty": lambda _: b"",
}


def _tensors() -> dict[str, Any]:
    return {
        "sparse": lambda: _sparse(0, 2**20),
        "sparse_beyond": lambda: _sparse(2**40, 4),
        "meta": lambda: torch.empty(2**20, 2**20, device="meta"),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(4, 6), 0.1, 0, torch.qint8),
        "half": lambda: torch.ones(4, 6, dtype=torch.float8_e4m3fn),
        "complex": lambda: torch.ones(4, 6, dtype=torch.complex64),
        "conjugate": lambda: torch.ones(4, 6, dtype=torch.complex64).conj().imag,
        "parameter": lambda: nn.Parameter(torch.full((4, 6), float("inf"))),
    }


def _sparse(index: int, size: int) -> torch.Tensor:
    places = torch.full((2, 1), index)
    return torch.sparse_coo_tensor(places, torch.ones(1), (size, size), check_invariants=False)


def _write(path: Path, content: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(content, path)


def _list() -> None:
    for opened_as in ("data", "weights", "model"):
        for name, content in _CONTENTS.items():

            def make(path: Path, mark: Path, content: Any = content) -> None:
                path.write_bytes(content(mark))

            make.__name__ = name
            kind(opened_as, ".pt")(make)
    for opened_as in ("data", "weights"):
        for name, content in _tensors().items():

            def make_tensor(path: Path, _: Path, content: Any = content) -> None:
                _write(path, {"weight": content(), "bias": torch.zeros(3)})

            make_tensor.__name__ = name
            kind(opened_as, ".pt")(make_tensor)


_list()


@kind("weights", ".pt")
def stride_of_zero_that_fits(path: Path, _: Path) -> None:
    """Write weights of the right shape, of one number."""
    _write(path, {"weight": torch.zeros(1).expand(3, 6), "bias": torch.zeros(3)})


@kind("weights", ".pt")
def names_of_python(path: Path, _: Path) -> None:
    """Write weights under names that Python knows."""
    _write(path, {"__class__": torch.zeros(3), "forward": torch.zeros(3), "weight": torch.ones(3)})


@kind("weights", ".pt")
def not_finite(path: Path, _: Path) -> None:
    """Write weights that are no numbers."""
    _write(path, {"weight": torch.full((3, 6), float("nan")), "bias": torch.zeros(3)})


@kind("model", ".pt")
def script(path: Path, mark: Path) -> None:
    """Write a TorchScript program that writes a file when it runs."""

    class Writer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mark = str(mark)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.save([x], self.mark)
            return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Writer()).save(path)


@kind("model", ".joblib")
def forest(path: Path, mark: Path) -> None:
    """Write a pickle under the name of a scikit-learn model."""
    path.write_bytes(pickle.dumps(Payload(mark)))


@kind("model", ".h5")
def keras(path: Path, _: Path) -> None:
    """Write the beginning of an HDF5 file."""
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))


@kind("weights", ".pt")
def wrong_checksum_of_the_pickle(path: Path, mark: Path) -> None:
    """Name code in a pickle whose checksum is wrong."""
    torch.save({"weight": Payload(mark)}, path)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\1\2", 0, content.rindex(b"data.pkl"))
    content[entry + 16] ^= 1
    path.write_bytes(content)


_SOUND = {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}
_HEADERS: dict[str, bytes] = {
    "offsets_beyond": json.dumps({"bias": _SOUND | {"data_offsets": [0, 2**40]}}).encode(),
    "offsets_below_zero": json.dumps({"bias": _SOUND | {"data_offsets": [-12, 0]}}).encode(),
    "offsets_that_overlap": json.dumps({"bias": _SOUND, "weight": _SOUND}).encode(),
    "shape_that_overflows": json.dumps({"bias": _SOUND | {"shape": [2**62, 2**62]}}).encode(),
    "shape_without_numbers": json.dumps({"bias": _SOUND | {"shape": [10**9]}}).encode(),
    "unknown_type": json.dumps({"bias": _SOUND | {"dtype": "F1"}}).encode(),
    "twice": b'{"bias": %s, "bias": %s}' % ((json.dumps(_SOUND).encode(),) * 2),
    "deep": b'{"a":' * 2000,
    "no_json": b"{rubbish",
}
for _name, _header in _HEADERS.items():

    def _make(path: Path, _: Path, header: bytes = _header) -> None:
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(12))

    _make.__name__ = _name
    kind("weights", ".safetensors")(_make)


@kind("weights", ".safetensors")
def length_that_lies(path: Path, _: Path) -> None:
    """Write a header that is longer than its file."""
    path.write_bytes(struct.pack("<Q", 2**60) + b"{}" + bytes(100))
