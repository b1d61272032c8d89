"""The folders in which files are looked for; needs no torch."""

import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from inscape.data.files import FILE_SETS, DatasetPart, FileSet, Form


def cache_dir() -> Path:
    """Return the folder of the user's cache that holds fetched files."""
    return Path(platformdirs.user_cache_dir("inscape", appauthor=False)) / "data"


def roots(data_dir: str | Path | None = None) -> tuple[Path, ...]:
    """Return the folders to search, in order: ``data_dir`` or INSCAPE_DATA_DIR, then the cache."""
    chosen = data_dir if data_dir is not None else os.environ.get("INSCAPE_DATA_DIR") or None
    if chosen is None:
        return (cache_dir(),)
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        from inscape.errors import DataError

        source = "data_dir" if data_dir is not None else "INSCAPE_DATA_DIR"
        raise DataError(
            f"{source} must name a folder, found {folder}, which is none: create it, "
            "give another with --data-dir, or leave it out to use the cache."
        )
    return (folder, cache_dir())


def candidates(
    files: FileSet, part: DatasetPart, folders: tuple[Path, ...]
) -> Iterator[tuple[Path, Form]]:
    """Yield the files that may hold a part, in the order of the search."""
    for root in folders:
        for form in part.forms:
            for folder in files.folders:
                for name in form.names:
                    path = root / folder / name
                    if path.is_file():
                        yield path, form


def presence(name: str, folders: tuple[Path, ...]) -> str:
    """Say by the names of its files alone if a set seems to be there: ``verify`` reads them."""
    files = FILE_SETS[name]
    present = sum(any(candidates(files, part, folders)) for part in files.parts)
    return {0: "not on disk", len(files.parts): "on disk"}.get(present, "partly on disk")
