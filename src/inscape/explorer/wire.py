"""Arrays on the wire: a header in JSON, then the arrays themselves, one after the other."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.escaping import visible

Array = npt.NDArray[Any]

#: Arrays begin at multiples of this many bytes, so that a typed array can lie on them.
ALIGNED = 8
#: What an array may hold, by the name of its typed array.
KINDS = {"u1": "Uint8Array", "u2": "Uint16Array", "u4": "Uint32Array", "f4": "Float32Array",
         "f8": "Float64Array"}  # fmt: skip


def packed(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return facts and arrays as bytes: length of the header, header, arrays.

    >>> packed({"cells": 1}, {"x": np.zeros(1, np.float32)})[4:46]
    b'{"cells":1,"arrays":{"x":{"kind":"Float32A'
    """
    table, parts, at = {}, [], 0
    for name, array in arrays.items():
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        kind = KINDS[little.dtype.str[1:]]
        table[name] = {"kind": kind, "at": at, "length": little.size}
        data = little.tobytes()
        parts.append(data + b"\0" * (-len(data) % ALIGNED))
        at += len(parts[-1])
    shown = {**visible_facts(facts), "arrays": table}
    header = json.dumps(shown, separators=(",", ":"), allow_nan=False).encode()
    header += b" " * (-(len(header) + 4) % ALIGNED)
    return struct.pack("<I", len(header)) + header + b"".join(parts)


def visible_facts(facts: Any) -> Any:
    r"""Return facts with the control characters of all their texts escaped, as pages show them.

    >>> visible_facts({"title": "fc\u202e1", "rows": [1, "a\x00"]})
    {'title': 'fc\\u202e1', 'rows': [1, 'a\\u0000']}
    """
    if isinstance(facts, str):
        return visible(facts)
    if isinstance(facts, Mapping):
        return {visible(str(key)): visible_facts(value) for key, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [visible_facts(value) for value in facts]
    return facts


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the facts and the arrays of ``packed``.

    >>> facts, arrays = unpacked(packed({"cells": 1}, {"x": np.ones(2, np.float32)}))
    >>> facts["cells"], arrays["x"].tolist()
    (1, [1.0, 1.0])
    """
    (length,) = struct.unpack_from("<I", data)
    facts = json.loads(data[4 : 4 + length])
    names = {kind: name for name, kind in KINDS.items()}
    arrays = {
        name: np.frombuffer(data, f"<{names[e['kind']]}", e["length"], 4 + length + e["at"])
        for name, e in facts.pop("arrays").items()
    }
    return facts, arrays
