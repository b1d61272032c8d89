"""Calls allowed operators with hostile arguments, through the reader of exported programs.

Run in a process of its own: ``python operator_calls.py DRAWS PART PARTS ADDRESSES``. It prints
the operator before it is called, so that the last line of a process that died names the culprit,
and at the end how often each was called and how often it answered.
"""

import json
import random
import resource
import signal
import sys
import zlib
from typing import Any

import torch
from torch import Tensor

from hostile.programs import members, node
from hostile.sound_calls import SOUND, B, I
from inscape.loaders.exported_module import AtenModule
from inscape.loaders.exported_program import Archive, read_program
from inscape.loaders.operators import OPERATORS

_SHAPES: tuple[tuple[int, ...], ...] = (
    (4, 6), (6, 6), (6,), (4,), (4, 6, 8), (4, 6, 8, 8), (4, 6, 4, 4, 4), (6, 6, 3), (6, 6, 3, 3),
    (6, 6, 2, 2, 2), (2, 2, 4, 6), (3, 4), (4, 2, 3), (), (1,), (0,), (4, 0), (0, 6), (1, 1, 1, 1),
    (24, 6), (18, 6),
)  # fmt: skip
_DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip
_INTS = (0, 1, 2, 3, -1, -2, 4, 6, 7, 100, 2**15, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, 0.5, 1.0, 2.0, -1.0, float("nan"), float("inf"), float("-inf"), 1e300, 1e-300)
_TEXTS = (
    "", "none", "mean", "sum", "tanh", "reflect", "constant", "replicate", "circular", "same",
    "valid", "ij", "xy", "bogus", "fro", "nuc", "floor", "trunc", "backward", "ortho", "linear",
    "ij,jk->ik", "...i,...j->...", "ii->i", "bij,bjk->bik",
)  # fmt: skip


class Draws:
    """Random arguments for the schema of an operator: mostly sensible, some hostile."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.tensors: dict[str, Tensor] = {}
        self.dtype = torch.float32

    def spoilt(self, sound: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a sound call, most of the time with some of them spoilt."""
        self.tensors = {}
        self._main, self._shape = torch.float32, (4, 6)
        self._wild = self._random.choice((0.0, 0.1, 0.1, 0.3))
        return [self._spoilt(value) for value in sound], {}

    def _spoilt(self, value: Any) -> Any:
        choose = self._random.choice
        if isinstance(value, I | B):
            dtype = torch.int64 if isinstance(value, I) else torch.bool
            return self._constant(value.shape, choose(_DTYPES) if self._hostile() else dtype)
        if isinstance(value, tuple):
            shape = choose(_SHAPES) if self._hostile() else value
            return self._constant(shape, choose(_DTYPES) if self._hostile() else torch.float32)
        if isinstance(value, list):
            spoilt = [self._spoilt(item) for item in value]
            return spoilt + spoilt[:1] if self._hostile() else spoilt
        if not self._hostile() or value is None or isinstance(value, str):
            return value
        if isinstance(value, bool):
            return not value
        return choose(_INTS) if isinstance(value, int) else choose(_FLOATS)

    def call(self, overload: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments; tensors by the names of constants."""
        self.tensors = {}
        self._shape = self._random.choice(_SHAPES[:10])
        self._main = self._random.choice((*[torch.float32] * 9, torch.bool, *_DTYPES[1:5]))
        self._wild = self._random.choice((0.0, 0.05, 0.15, 0.4))
        args: list[Any] = []
        kwargs = {}
        for given in overload._schema.arguments:
            if given.has_default_value() and self._random.random() < 0.6:
                if not given.kwarg_only:
                    args.append(_plain(given.default_value))
                continue
            value = self._value(str(given.type), given.name)
            if given.kwarg_only:
                kwargs[given.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _value(self, kind: str, name: str) -> Any:
        if kind.startswith("Optional["):
            inner = kind.removeprefix("Optional[").removesuffix("]")
            return None if self._random.random() < 0.3 else self._value(inner, name)
        if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
            count = self._random.choice((1, 1, 2, 2, 3, 4, 0, 9))
            empty = 0.3 if "Optional" in kind else 0.0
            return [
                None if self._random.random() < empty else self._tensor(name) for _ in range(count)
            ]
        if kind.startswith("List["):
            inner = kind.removeprefix("List[").removesuffix("]")
            count = self._random.choice((1, 1, 2, 2, 3, 4, 0, 5, 6, 12))
            return [self._value(inner, name) for _ in range(count)]
        return self._single(kind, name)

    def _single(self, kind: str, name: str) -> Any:
        choose = self._random.choice
        match kind:
            case "Tensor":
                return self._tensor(name)
            case "int" | "SymInt" if name == "dtype":
                return choose(_DTYPES)
            case "int" | "SymInt" if name == "memory_format":
                return {"as_memory_format": choose((1, 2, 3, 4))}
            case "int" | "SymInt" if name == "layout":
                return {"as_layout": 7}
            case "int" | "SymInt":
                return choose(_INTS if self._hostile() else (0, 1, 1, 2, 2, 3, -1, 6))
            case "float":
                return choose(_FLOATS if self._hostile() else (0.5, 1.0, 2.0, 0.0))
            case "number":
                return choose((*_FLOATS, *_INTS) if self._hostile() else (0.5, 1, 2, 2.0))
            case "bool":
                return choose((True, False))
            case "str":
                return choose(_TEXTS)
            case "Device":
                return {"as_device": {"type": "cpu", "index": None}}
        raise ValueError(f"no draw for {kind} {name}")

    def _hostile(self) -> bool:
        return self._random.random() < self._wild

    def _tensor(self, name: str) -> str:
        if self._hostile():
            return "%x"
        shape = self._random.choice(_SHAPES) if self._random.random() < 0.3 else self._shape
        dtype = self._random.choice(_DTYPES) if self._hostile() else self._main
        if "ind" in name or self._random.random() < 0.03:
            dtype = torch.float32 if self._random.random() < 0.1 else torch.int64
        return self._constant(shape, dtype)

    def _constant(self, shape: tuple[int, ...], dtype: torch.dtype) -> str:
        place = f"%c{len(self.tensors)}"
        self.tensors[place] = self._numbers(shape, dtype)
        return place

    def _numbers(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        generator = torch.Generator().manual_seed(self._random.getrandbits(32))
        if dtype.is_floating_point or dtype.is_complex:
            numbers = torch.randn(shape, generator=generator, dtype=torch.float64)
            special = self._random.choice(_FLOATS) if self._hostile() else None
        else:
            numbers = torch.randint(0, 3, shape, generator=generator)
            special = self._random.choice(_INTS) if self._hostile() else None
        if special is not None and numbers.numel():
            numbers.view(-1)[:: self._random.choice((1, 2, 7))] = special
        return numbers.to(dtype)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def program(target: str, draws: Draws) -> AtenModule:
    """Return a program of one step with drawn arguments, as the reader makes it of an archive."""
    name, _, overload = target.removeprefix("torch.ops.aten.").partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload)
    sound = SOUND.get(target.removeprefix("torch.ops.aten."))
    args, kwargs = draws.call(function) if sound is None else draws.spoilt(sound)
    returned = [str(item.type) for item in function._schema.returns]
    results: list[Any] = [f"%r{i}" for i in range(len(returned))]
    if returned == ["List[Tensor]"]:
        results = [["%r0", "%r1", "%r2"]]
    step = node(target, args, results, **kwargs)
    return read_program(Archive(members([step], draws.tensors, output="%r0")))


def main(draws: int, part: int, parts: int, addresses: int) -> None:
    """Call every operator of one part so many times, with so many bytes of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    counts = {}
    x = torch.randn(4, 6)
    for target in sorted(OPERATORS)[part::parts]:
        answered = 0
        for i in range(draws):
            sys.stderr.write(f"{target} draw {i}\n")
            signal.alarm(300)
            drawn = Draws(seed=zlib.crc32(f"{target} {i}".encode()))
            try:
                program(target, drawn)(x)
                answered += 1
            except Exception:  # a refusal is as good as an answer; a signal is not
                pass
        counts[target] = answered
    signal.alarm(0)
    sys.stdout.write(json.dumps(counts))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:5]))
