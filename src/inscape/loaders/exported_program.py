"""Reading of ``.pt2`` archives (``torch.export.save``) into a program that runs no foreign code."""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import torch
from torch import Tensor, nn

from inscape.errors import DataError, UnsupportedModelError
from inscape.files.archives import opened_zip, read_member
from inscape.files.size_limits import check_size
from inscape.loaders.exported_module import AtenModule, Wiring
from inscape.loaders.exported_nodes import AtenCall, UnfitProgramError, dtype, read_step
from inscape.loaders.files import short

_SCHEMA = 8
_JSON = 16  # bytes that one byte of JSON may become in Python
EXPORT = "torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))"


def open_exported(
    path: Path, *, trust: bool, max_size: int | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the model in a ``.pt2`` archive and what there is to say about it.

    The graph is replayed step by step. What cannot be replayed safely is left to
    ``torch.export.load``, which can run code of the file, and only if ``trust`` is set.
    """
    try:
        return read_program(Archive.read(path, max_size=max_size)), ()
    except UnsupportedModelError as error:
        if not trust or isinstance(error, UnfitProgramError):
            raise _refusal(path, error) from error
        return _loaded_with_code(path, reason=str(error))


class Archive:
    """The members of one ``.pt2`` file that can be read without running anything."""

    def __init__(
        self, members: Mapping[str, bytes], name: object = "it", *, max_size: int | None = None
    ) -> None:
        """Hold the bytes of the members; what they mean is read when asked for."""
        self._members, self._name, self._max_size = members, name, max_size

    @classmethod
    def read(cls, path: Path, *, max_size: int | None = None) -> "Archive":
        """Return the members of a file."""
        return cls(_members(path, max_size=max_size), path, max_size=max_size)

    def program(self) -> dict[str, Any]:
        """Return the description of the graph."""
        if "models/model.json" not in self._members:
            raise UnsupportedModelError(
                "it holds no graph under models/model.json (an older or compiled archive)"
            )
        if self._members.get("byteorder", b"little").decode(errors="replace") != sys.byteorder:
            raise UnsupportedModelError("it was written on a machine with another byte order")
        program: dict[str, Any] = self._json("models/model.json")
        major = program["schema_version"]["major"]
        if major != _SCHEMA:
            raise UnsupportedModelError(
                f"its format has version {major}, this reader knows version {_SCHEMA}"
            )
        return program

    def tensors(self, folder: str) -> dict[str, Tensor]:
        """Return the tensors of one folder; those that share their numbers in the file do so."""
        config = self._json(f"data/{folder}/model_{folder}_config.json")["config"]
        shared: dict[str, Tensor] = {}
        by_name = {}
        for name, entry in config.items():
            key = json.dumps(entry, sort_keys=True)
            if key not in shared:
                shared[key] = self._tensor(folder, name, entry)
            by_name[name] = shared[key]
        return by_name

    def _tensor(self, folder: str, name: str, entry: Mapping[str, Any]) -> Tensor:
        if entry["use_pickle"] or not entry["tensor_meta"]:
            raise UnsupportedModelError(f"it keeps {name!r} as a pickle, which can run code")
        meta = entry["tensor_meta"]
        sizes, strides = ([item["as_int"] for item in meta[key]] for key in ("sizes", "strides"))
        kind = dtype(meta["dtype"])
        check_size(self._name, math.prod(sizes) * kind.itemsize, max_size=self._max_size)
        raw = bytearray(self._members[f"data/{folder}/{entry['path_name']}"])
        if not raw and math.prod(sizes):
            raise UnsupportedModelError(f"it holds no numbers for {name!r}")
        if not raw:
            tensor = torch.zeros(sizes, dtype=kind)
        else:
            flat = torch.frombuffer(raw, dtype=kind)
            offset = meta["storage_offset"]["as_int"]
            tensor = flat.as_strided(sizes, strides, offset).clone()
        trains = bool(meta["requires_grad"])
        return nn.Parameter(tensor, requires_grad=trains) if entry["is_param"] else tensor

    def _json(self, name: str) -> Any:
        if name not in self._members:
            raise UnsupportedModelError(f"it holds no {name}")
        check_size(name, _JSON * len(self._members[name]), max_size=self._max_size)
        return json.loads(self._members[name])


def read_program(archive: Archive) -> AtenModule:
    """Return the program of an archive, or say what in it cannot be replayed."""
    try:
        return _program(archive).eval()
    except (UnsupportedModelError, DataError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UnsupportedModelError(
            f"its description is damaged ({type(error).__name__}: {str(error)[:200]})"
        ) from error


def _program(archive: Archive) -> AtenModule:
    module = archive.program()["graph_module"]
    wiring = _wiring(module["signature"])
    declared = module["graph"]["tensor_values"][wiring.input]
    _refuse_fixed_batch(declared["sizes"])
    read = (read_step(node, dtype(declared["dtype"])) for node in module["graph"]["nodes"])
    steps = [step for step in read if step is not None]
    _refuse_gaps(steps, wiring)
    tensors = archive.tensors("weights") | archive.tensors("constants")
    return AtenModule(steps, {name: tensors[name] for name in wiring.tensors.values()}, wiring)


def _wiring(signature: Mapping[str, Any]) -> Wiring:
    tensors, inputs, outputs = {}, [], []
    for kind, spec in _specs(signature["input_specs"]):
        if kind == "user_input":
            inputs.append(spec["arg"])
        elif kind in ("parameter", "buffer", "tensor_constant"):
            tensors[str(spec["arg"]["name"])] = str(spec[f"{kind}_name"])
        else:
            raise UnsupportedModelError(f"it takes an input of the kind {kind!r}")
    for kind, spec in _specs(signature["output_specs"]):
        if kind != "user_output":
            raise UnfitProgramError(
                f"it changes its own state when it runs ({kind!r}): call model.eval() before "
                "torch.export.export"
            )
        outputs.append(spec["arg"])
    return Wiring(tensors=tensors, input=_only(inputs, "inputs"), output=_only(outputs, "outputs"))


def _specs(specs: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [item for spec in specs for item in spec.items()]


def _only(arguments: list[Mapping[str, Any]], role: str) -> str:
    if len(arguments) != 1 or "as_tensor" not in arguments[0]:
        raise UnsupportedModelError(
            f"it has {len(arguments)} {role} where one tensor is needed: export a module that "
            "takes one tensor and returns one"
        )
    return str(arguments[0]["as_tensor"]["name"])


def _refuse_fixed_batch(sizes: list[Mapping[str, Any]]) -> None:
    if not sizes or "as_int" in sizes[0]:
        rows = sizes[0]["as_int"] if sizes else 0
        raise UnfitProgramError(
            f"it takes batches of exactly {rows} examples: export it with at least two "
            f"examples in x and {EXPORT}, then any number of examples will do"
        )


def _refuse_gaps(steps: list[AtenCall], wiring: Wiring) -> None:
    known = {wiring.input, *wiring.tensors}
    for step in steps:
        if missing := step.reads - known:
            raise UnsupportedModelError(f"its step {step.target!r} reads {min(missing)!r} unmade")
        known |= step.makes
    if wiring.output not in known:
        raise UnsupportedModelError("no step makes its output")


def _members(path: Path, *, max_size: int | None) -> dict[str, bytes]:
    """Return the files in the archive without the folder that holds them all."""
    try:
        with opened_zip(path, max_size=max_size) as archive:
            names = archive.namelist()
            members = {name.partition("/")[2]: read_member(archive, name) for name in names}
    except BadZipFile as error:
        raise ValueError(
            f"{path} must be a whole .pt2 archive, found one that cannot be read ({error}): copy "
            "it again or export it anew."
        ) from error
    if len(members) != len(names):
        raise UnsupportedModelError("it holds two members of one name")
    return members


def _refusal(path: Path, error: UnsupportedModelError) -> UnsupportedModelError:
    if isinstance(error, UnfitProgramError):
        return UnsupportedModelError(f"{path} cannot be measured: {error}.")
    return UnsupportedModelError(
        f"{path} must hold a plain exported program, but {error}; export it anew, or use --trust "
        "(trust=True) to let torch.export.load run what the file says, if you trust its source."
    )


def _loaded_with_code(path: Path, *, reason: str) -> tuple[nn.Module, tuple[str, ...]]:
    try:
        program = torch.export.load(path)
    except Exception as error:
        raise UnsupportedModelError(
            f"{path} must hold an exported program, but {reason}, and torch.export.load raised "
            f"{short(error)}; export it anew."
        ) from error
    return exported_module(program), (f"read by torch.export.load, trusting the file: {reason}",)


def exported_module(program: torch.export.ExportedProgram) -> nn.Module:
    """Return the module of an exported program that takes batches of any size."""
    names = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            rows = node.meta["val"].shape[0]
            if isinstance(rows, int):
                raise UnsupportedModelError(
                    f"the exported program must take any number of examples, found exactly {rows}: "
                    f"use {EXPORT} with at least two examples in x."
                )
    return program.module()
