"""The tensors of an ONNX file: their sizes are compared with the bytes there are, first."""

from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from inscape.errors import UnsupportedModelError
from inscape.files.size_limits import check_size
from inscape.loaders.onnx.nodes import shown

#: Kinds of numbers that are read, by ONNX's count: bytes of each, and the list without bytes.
KINDS = {
    1: (4, "float_data"),
    2: (1, "int32_data"),
    3: (1, "int32_data"),
    5: (2, "int32_data"),
    6: (4, "int32_data"),
    7: (8, "int64_data"),
    9: (1, "int32_data"),
    10: (2, "int32_data"),
    11: (8, "double_data"),
    16: (2, "int32_data"),
}
_EXTERNAL = 1


class TensorReader:
    """Reads the tensors of one file, and no more bytes than allowed in all."""

    def __init__(self, onnx: Any, path: Path, max_size: int | None) -> None:
        self._onnx, self._path, self._max_size = onnx, path, max_size
        self._read = path.stat().st_size

    def array(self, tensor: Any) -> Any:
        """Return the numbers of a tensor."""
        if tensor.data_type not in KINDS:
            kind = "text" if tensor.data_type == 8 else f"numbers of kind {tensor.data_type}"
            self._refuse(tensor, "floats, integers or truth values", kind)
        if any(size < 0 for size in tensor.dims) or len(tensor.dims) > 16:
            self._refuse(tensor, "sizes from 0 on", list(tensor.dims))
        width, field = KINDS[tensor.data_type]
        declared = prod(tensor.dims)
        if tensor.data_location == _EXTERNAL:
            self._bring_in(tensor, declared * width)
        count_found = (
            len(tensor.raw_data) // width if tensor.raw_data else len(getattr(tensor, field))
        )
        if count_found != declared or len(tensor.raw_data) % width:
            self._refuse(tensor, f"{declared} numbers, as its sizes say", count_found)
        array = self._onnx.numpy_helper.to_array(tensor)
        return array.astype(np.float32) if tensor.data_type == 16 else array

    def _bring_in(self, tensor: Any, size: int) -> None:
        """Read the bytes of a tensor that lie in another file, beside this one."""
        location = {entry.key: entry.value for entry in tensor.external_data}
        other = self._beside(tensor, location.get("location", ""))
        try:
            start, length = int(location.get("offset", 0)), int(location.get("length", size))
        except ValueError:
            self._refuse(tensor, "integers as offset and length", location)
        file_size = other.stat().st_size
        if length != size or start < 0 or start + length > file_size:
            self._refuse(
                tensor, f"{size} bytes in {other.name}", f"{length} at {start} of {file_size}"
            )
        self._read += size
        check_size(self._path, self._read, max_size=self._max_size)
        with other.open("rb") as file:
            file.seek(start)
            tensor.raw_data = file.read(size)
        tensor.data_location = 0
        del tensor.external_data[:]

    def _beside(self, tensor: Any, location: str) -> Path:
        """Return the file of a tensor, which must lie in the model's folder, links followed."""
        folder = self._path.parent.resolve()
        named = Path(location)
        if not location or "\0" in location or named.is_absolute() or ".." in named.parts:
            self._refuse(tensor, "its numbers in the folder of the file", location)
        file = (folder / named).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            self._refuse(tensor, "its numbers in a file in the folder of the model", location)
        return file

    def _refuse(self, tensor: Any, expected: str, value: object) -> NoReturn:
        raise UnsupportedModelError(
            f"the tensor {shown(tensor.name)} of {self._path} must have {expected}, found "
            f"{shown(value)}: copy the file again, with all that belongs to it."
        )
