"""Results on disk: one JSON (and one npz for large tensors), or a table or picture by suffix."""

import csv
import html
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inscape._core.files import written
from inscape._core.result import Result

SCHEMA = 1
#: Tensors with more numbers than this go into the npz beside the JSON.
INLINE = 1000


def save(result: Result, path: Path) -> Path:
    """Write ``result`` in the form that the suffix of ``path`` names and return the path."""
    writers: dict[str, Callable[[Result, Path], None]] = {
        ".json": _json,
        ".csv": lambda r, p: _atomic(p, csv_text(r).encode()),
        ".parquet": _parquet,
        ".tex": lambda r, p: _atomic(p, r.to_frame().to_latex(index=False).encode()),
        ".html": lambda r, p: _atomic(p, html_table(r).encode()),
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
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        name, schema, stored = record["result"], record["schema"], record["fields"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} must be a result saved by Inscape, found something else "
            f"({type(error).__name__}): save it again with result.save('name.json')."
        ) from error
    if schema > SCHEMA:
        raise ValueError(
            f"{path} has schema {schema}, this version reads up to {SCHEMA}: update inscape."
        )
    if name not in Result.types:
        from inscape._core.instrument import instruments

        instruments()
    if name not in Result.types:
        raise ValueError(f"{path} holds a {name!r}, which this version does not know: update it.")
    arrays = _arrays(path.with_suffix(".npz"))
    return Result.types[name](**{key: _decoded(value, arrays) for key, value in stored.items()})


def csv_text(result: Result) -> str:
    """Return the rows as CSV."""
    rows = list(result.rows())
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def html_table(result: Result) -> str:
    """Return headline and first rows as a small table with inline styles, for notebooks."""
    rows = [row for row, _ in zip(result.rows(), range(6), strict=False)]
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
    title = html.escape(repr(result))
    table = f"<table style='border-collapse:collapse'><tr>{head}</tr>{body}</table>"
    return f"<p><b>{title}</b></p>{table}{more}"


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _json(result: Result, path: Path) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    stored = {key: _encoded(key, value, arrays) for key, value in result.to_dict().items()}
    if arrays:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        _atomic(path.with_suffix(".npz"), buffer.getvalue())
    record = {"result": type(result).__name__, "schema": SCHEMA, "fields": stored}
    _atomic(path, json.dumps(record, indent=1, allow_nan=False).encode())


def _parquet(result: Result, path: Path) -> None:
    from inscape._core.extras import need

    need("pyarrow", extra="parquet", why="saving as parquet")
    result.to_frame().to_parquet(path)


def _picture(result: Result, path: Path) -> None:
    from inscape.figures import save_figure

    save_figure(result.plot(), path)


def _atomic(path: Path, content: bytes) -> None:
    with written(path) as file:
        file.write(content)


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
            return torch.from_numpy(arrays[key]).reshape(shape).to(getattr(torch, dtype))
        case {"tensor": {"dtype": dtype, "shape": shape}, "values": values}:
            flat = [_decoded(item, arrays) for item in values]
            return torch.tensor(flat, dtype=getattr(torch, dtype)).reshape(shape)
        case {"float": text}:
            return float(text)
        case {"tuple": items}:
            return tuple(_decoded(item, arrays) for item in items)
        case list():
            return [_decoded(item, arrays) for item in value]
    return value


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
