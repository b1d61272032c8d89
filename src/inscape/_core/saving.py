"""Results on disk: one JSON (and one npz for large tensors), or a table or picture by suffix."""

import base64
import contextlib
import hashlib
import html
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape._core.result import NotApplicable, Result
from inscape.escaping import csv_text, visible, visible_line
from inscape.files.archives import read_npz
from inscape.files.atomic import write, write_pair

SCHEMA = 1
#: Tensors with more numbers than this go into the npz beside the JSON.
INLINE = 1000


def save(result: Result, path: Path) -> Path:
    """Write ``result`` in the form that the suffix of ``path`` names and return the path."""
    writers: dict[str, Callable[[Result, Path], None]] = {
        ".json": _json,
        ".csv": lambda r, p: write(p, csv_text(list(r.rows())).encode()),
        ".parquet": _parquet,
        ".tex": lambda r, p: write(p, _latex(r).encode()),
        ".html": lambda r, p: write(p, html_table(r).encode()),
        ".svg": _picture,
        ".pdf": _picture,
        ".png": _picture,
    }
    if path.suffix not in writers:
        raise ValueError(
            f"the suffix must be one of {', '.join(writers)}, found {path.suffix!r}: rename {path}."
        )
    writers[path.suffix](result, path)
    return path


def load(path: str | Path) -> Result:
    """Read a result that was saved as JSON; nothing in the file is run."""
    path = Path(path)
    name, schema, stored, digest = _parts(path)
    if schema > SCHEMA:
        raise ValueError(
            f"{path} has schema {schema}, this version reads up to {SCHEMA}: update inscape."
        )
    if name not in Result.types:
        from inscape._core.instrument import instruments

        instruments()
    if name not in Result.types:
        raise ValueError(f"{path} holds a {name!r}, which this version does not know: update it.")
    arrays = _arrays(path, digest)
    try:
        return Result.types[name](**{key: _decoded(value, arrays) for key, value in stored.items()})
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{path} must hold all parts of a {name}, found others "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]:.300}): save it again "
            "with result.save('name.json')."
        ) from error


def _parts(path: Path) -> tuple[str, int, dict[str, Any], str | None]:
    """Return name, schema and fields of the result in a file, and the hash of its npz."""
    try:
        match json.loads(path.read_text(encoding="utf-8")):
            case {"result": str(name), "schema": int(schema), "fields": dict(fields), **more}:
                return name, schema, fields, _digest(more.get("npz"))
        raise TypeError("a part is missing or of another type")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be a result saved by Inscape, found something else "
            f"({type(error).__name__}): save it again with result.save('name.json')."
        ) from error


def _digest(npz: object) -> str | None:
    """Return the hash of the npz of a result; older versions stated none."""
    match npz:
        case None:
            return None
        case {"sha256": str(digest)} if re.fullmatch("[0-9a-f]{64}", digest):
            return digest
    raise TypeError("npz must have a hash")


def _hidden(path: Path, digest: str) -> Path:
    """Return where the npz of a result is until the JSON that states its hash is there."""
    return path.with_name(f".{path.stem}.{digest[:12]}.npz")


def html_table(result: Result) -> str:
    """Return headline, first rows and figure with inline styles, for notebooks."""
    rows = [row for row, _ in zip(result.rows(), range(6), strict=False)]
    return titled_table(repr(result), rows) + _image(result)


def titled_table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a title and the first five rows below it as HTML with inline styles."""
    cell = "padding:2px 10px;text-align:right;border-bottom:1px solid #8884"
    head = "".join(
        f'<th style="{cell}">{html.escape(key)}</th>' for key in (rows[0] if rows else ())
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{cell}">{html.escape(_text(v))}</td>' for v in row.values())
        + "</tr>"
        for row in rows[:5]
    )
    more = "<p style='margin:2px'>…</p>" if len(rows) > 5 else ""
    table = f"<table style='border-collapse:collapse'><tr>{head}</tr>{body}</table>"
    return visible(f"<p><b>{html.escape(title)}</b></p>{table}{more}")


def _image(result: Result) -> str:
    """Return the figure of a result as an image, or nothing if it has none."""
    from inscape.figures import draw, has_figure, rendered

    if not has_figure(result) or isinstance(result, NotApplicable):
        return ""
    image = base64.b64encode(rendered(draw(result), ".png")).decode()
    return f'<img alt="figure" style="max-width:36em" src="data:image/png;base64,{image}">'


def _latex(result: Result) -> str:
    """Return the rows as a LaTeX table, in which no name is a command."""
    frame = result.to_frame().map(lambda v: visible_line(v) if isinstance(v, str) else v)
    return frame.to_latex(index=False, escape=True)


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _json(result: Result, path: Path) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    stored = {key: _encoded(key, value, arrays) for key, value in result.to_dict().items()}
    record: dict[str, Any] = {"result": type(result).__name__, "schema": SCHEMA, "fields": stored}
    if not arrays:
        write_pair(path, _json_bytes(record), None, former=_former_npz(path))
        return
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    npz = _hidden(path, digest)
    record["npz"] = {"file": npz.name, "sha256": digest}
    write_pair(path, _json_bytes(record), (npz, buffer.getvalue()), former=_former_npz(path))
    with contextlib.suppress(OSError):  # it is read under either name
        npz.replace(path.with_suffix(".npz"))


def _former_npz(path: Path) -> Path | None:
    """Return where a kill may have left the npz of the result that is to be replaced."""
    try:
        digest = _parts(path)[3]
    except (OSError, ValueError):
        return None
    return None if digest is None else _hidden(path, digest)


def _json_bytes(record: dict[str, Any]) -> bytes:
    return json.dumps(record, indent=1, allow_nan=False).encode()


def _parquet(result: Result, path: Path) -> None:
    from inscape.runtime.extras import need

    need("pyarrow", extra="parquet", why="saving as parquet")
    buffer = io.BytesIO()
    result.to_frame().to_parquet(buffer)
    write(path, buffer.getvalue())


def _picture(result: Result, path: Path) -> None:
    from inscape.figures import save_figure

    save_figure(result.plot(), path)


def _encoded(key: str, value: object, arrays: dict[str, npt.NDArray[Any]]) -> object:
    match value:
        case Tensor():
            tensor = value.detach().cpu()
            about = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
            if tensor.numel() > INLINE:
                arrays[key] = tensor.numpy()
                return {"tensor": about, "npz": key}
            return {"tensor": about, "values": _encoded(key, tensor.flatten().tolist(), arrays)}
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case list() | tuple():
            items = [_encoded(key, item, arrays) for item in value]
            return {"tuple": items} if isinstance(value, tuple) else items
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(
        f"field {key!r} must be a tensor or a plain value, found {type(value).__name__}."
    )


def _decoded(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    match value:
        case {"tensor": {"dtype": dtype, "shape": shape}, "npz": key}:
            # Copied, since a BLAS may sum by address: NumPy aligns to 16 bytes, PyTorch to 64.
            tensor = torch.from_numpy(arrays[key]).clone()
            return tensor.reshape(shape).to(_dtype(dtype))
        case {"tensor": {"dtype": dtype, "shape": shape}, "values": values}:
            flat = [_decoded(item, arrays) for item in values]
            return torch.tensor(flat, dtype=_dtype(dtype)).reshape(shape)
        case {"float": text}:
            return float(text)
        case {"tuple": items}:
            return tuple(_decoded(item, arrays) for item in items)
        case list():
            return [_decoded(item, arrays) for item in value]
        case dict():
            raise TypeError(f"no value has the parts {', '.join(value)}")
    return value


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"no dtype is called {name!r}")
    return dtype


def _arrays(path: Path, digest: str | None) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the result in ``path``; older versions stated no hash to compare."""
    array_file = path.with_suffix(".npz")
    if digest is None:
        return _unpacked(array_file, array_file.read_bytes()) if array_file.exists() else {}
    for file in (array_file, _hidden(path, digest)):
        with contextlib.suppress(OSError):
            packed = file.read_bytes()
            if hashlib.sha256(packed).hexdigest() == digest:
                return _unpacked(file, packed)
    raise ValueError(
        f"{array_file} must be the file that was saved with {path.name}, found "
        f"{'one with another hash' if array_file.exists() else 'none'}: put it there, or save the "
        "result again with result.save('name.json')."
    )


def _unpacked(path: Path, packed: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        return read_npz(io.BytesIO(packed), name=path)
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{path} must be an npz without pickles, found something else "
            f"({error}): save the result again with result.save('name.json')."
        ) from error
