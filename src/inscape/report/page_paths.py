"""The path of a report, by the model and data that were measured; needs no torch."""

import re
from collections.abc import Sequence
from pathlib import Path

from inscape.files.atomic import check_writable


def page_path(out: Path, name: str) -> Path:
    """Return the file of the report: ``out`` itself if it is named .html, else in that folder."""
    if out.suffix == ".html" and not out.is_dir():
        return out
    return out / f"{name}.html"


def page_name(model: str, weights: Path | None, data: str) -> str:
    """Return a file name that tells what was measured, from what the user wrote.

    >>> page_name("nets/conv.py:small", Path("best.pt"), "mnist-binary:4-9")
    'conv-small-best-mnist-binary-4-9'
    """
    code, _, factory = model.rpartition(":") if ":" in model else (model, "", "")
    source = code if code.endswith(".py") or not factory else code.rpartition(".")[2]
    parts = [_stem(source), factory, "" if weights is None else weights.stem, _stem(data)]
    return re.sub(r"[^\w.-]+", "-", "-".join(filter(None, parts))).strip(".-") or "report"


def comparison_name(models: Sequence[str], data: str) -> str:
    """Return the name of the page of a comparison.

    >>> comparison_name(["nets/dense.pt", "nets/conv.pt2"], "mnist")
    'dense-and-conv-mnist'
    >>> comparison_name(["ckpts/a.pt", "ckpts/b.pt", "ckpts/c.pt"], "mnist")
    '3-networks-mnist'
    >>> comparison_name(["runs/ckpts/"], "mnist")
    'runs-ckpts-networks-mnist'
    """
    if len(models) == 1:
        return page_name(f"{page_name(models[0].rstrip('/'), None, '')}-networks", None, data)
    if len(models) == 2:
        first, second = (page_name(model, None, "") for model in models)
        return page_name(f"{first}-and-{second}", None, data)
    return page_name(f"{len(models)}-networks", None, data)


def function_page_name(text: str) -> str:
    """Return the name of the page of a Boolean function.

    >>> function_page_name("27030:4"), function_page_name("x1 ^ x2 & x3")
    ('boolean-27030-4', 'boolean-x1-x2-x3')
    """
    return "boolean-" + (re.sub(r"\W+", "-", text).strip("-")[:60] or "function")


def check_page(path: Path) -> None:
    """Refuse a page that cannot be written, before any work; leave nothing behind."""
    if path.is_dir():
        raise OSError(f"cannot write the report {path}: it is a folder: choose another --out.")
    advice = "choose another with --out, or --no-page to write none."
    check_writable(path.parent, advice=advice)


def _stem(text: str) -> str:
    """Return the name of a file without folder and suffix; other words stay as they are."""
    path = Path(text)
    return path.stem if re.fullmatch(r"\.[A-Za-z]\w*", path.suffix) else text
