"""The files of the page, read once; nothing else is ever served."""

from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by name, each with its type."""
    return {
        path.relative_to(STATIC).as_posix(): (path.read_bytes(), TYPES[path.suffix])
        for path in sorted(STATIC.rglob("*"))
        if path.is_file() and path.suffix in TYPES
    }
