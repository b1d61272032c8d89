"""What a user asks ``inscape reproduce`` for, read and checked before anything heavy loads."""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape import index
from inscape.errors import did_you_mean
from inscape.lab import catalogue

if TYPE_CHECKING:
    from inscape.lab.experiment import ScaleName

DATA_DIR = "INSCAPE_DATA_DIR"


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of ``inscape reproduce``."""

    ids: tuple[str, ...]
    scale: "ScaleName" = "laptop"
    jobs: int | None = None
    executor: str | None = None
    seeds: int | None = None
    overrides: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    fresh: bool = False
    out: Path = Path("results")

    @property
    def changes(self) -> tuple[str, ...]:
        """Return the names of the settings that are to be changed."""
        extra = {"seed": self.seeds is not None, "measures": bool(self.measures)}
        return tuple({**self.overrides, **{name: 1 for name, given in extra.items() if given}})

    def without(self, settings: Collection[str]) -> "Request":
        """Return the request with some settings left as they are."""
        return replace(
            self,
            seeds=None if "seed" in settings else self.seeds,
            measures=() if "measures" in settings else self.measures,
            overrides={k: v for k, v in self.overrides.items() if k not in settings},
        )

    @property
    def cores(self) -> int:
        """Return how many cells to run at a time."""
        if self.jobs is None:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if self.jobs < 1:
            raise ValueError(f"--jobs must be at least 1, found {self.jobs}: raise it.")
        return self.jobs


def resolved(names: Sequence[str]) -> tuple[str, ...]:
    """Return the experiments that names stand for; a paper stands for all of its own."""
    listings = catalogue.experiments()
    papers = list(dict.fromkeys(listing.paper for listing in listings))
    known = [listing.id for listing in listings]
    found: list[str] = []
    for name in names:
        if name in papers:
            found += [listing.id for listing in listings if listing.paper == name]
        elif name in known or catalogue.is_own(name):
            catalogue.path_of(name)
            found.append(name)
        else:
            offer = did_you_mean(name, [*known, *papers] if "/" in name else [*papers, *known])
            raise ValueError(f"no experiment or paper is called {name!r}: {offer}")
    return tuple(dict.fromkeys(found))


def overrides(changes: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values that ``--set key=a,b`` gives to each setting.

    >>> overrides(["width=8,16", "rate=1e-3", "init=small", "pairs=[[0, 1], [2, 3]]"])
    {'width': [8, 16], 'rate': [0.001], 'init': ['small'], 'pairs': [[0, 1], [2, 3]]}
    """
    found: dict[str, list[Any]] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not (key and equals and text):
            raise ValueError(
                f"--set must be KEY=VALUE, found {change!r}: write for example --set width=8,16."
            )
        if key in found:
            raise ValueError(
                f"--set {key} was given twice: put all values into one, separated by commas."
            )
        listed = _value(text)
        found[key] = listed if isinstance(listed, list) else [_value(p) for p in text.split(",")]
    return found


def words(option: str, text: str | None) -> tuple[str, ...]:
    """Return the words of a list separated by commas; nothing if it was not given."""
    if text is None:
        return ()
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise ValueError(f"{option} must be names separated by commas, found {text!r}.")
    return found


def instruments(option: str, text: str | None) -> tuple[str, ...]:
    """Return the instruments that a list names; refuses what is none, and offers the nearest."""
    known = [entry.name for entry in index.entries()]
    found = words(option, text)
    for name in found:
        if name not in known:
            raise ValueError(
                f"{option} must name instruments, found {name!r}: {did_you_mean(name, known)}"
            )
    return found


@contextmanager
def data_from(folder: Path | None) -> Iterator[None]:
    """Look for data in a folder first, within the block; workers inherit it."""
    before = os.environ.get(DATA_DIR)
    if folder is not None:
        if not folder.expanduser().is_dir():
            raise ValueError(
                f"--data-dir must name a folder, found {folder}, which is none: create it, or "
                "leave it out to use the cache."
            )
        os.environ[DATA_DIR] = str(folder.expanduser().absolute())
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(DATA_DIR, None)
        else:
            os.environ[DATA_DIR] = before


def _value(text: str) -> Any:
    """Return a number, true, false, null or a list as JSON reads it; else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()
