"""What experiments there are, read from the sources; only ``experiment`` imports one.

``EXPERIMENT`` in ``papers/volhejn/table_4_1.py`` is ``volhejn/table-4.1``: between two digits ``_``
stands for a dot, elsewhere for a dash. Where a file defines several they are called as they are
named: ``FIGURE_4_2`` is ``figure-4.2``. An experiment of one's own is any file that defines
``EXPERIMENT``; its id is its path, and in a store it is called after its folder and its name,
``own-folder/name``.
"""

import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from inscape.errors import did_you_mean
from inscape.index import PAPERS, Listing, item_of
from inscape.index import source as source_of
from inscape.lab.experiment import Claim, Experiment, claim_hash
from inscape.lab.standing import with_standing

OWN = "own-"

#: Grids that belong to a verb instead of a paper, and the modules that define them.
OF_VERBS = {"sweep": "inscape.report.sweeps.cells"}


def papers() -> list[str]:
    """Return the papers that have an experiment."""
    return sorted({listing.paper for listing in experiments()})


def experiments(paper: str | None = None) -> list[Listing]:
    """Return the experiments of a paper, or of all; imports none of them."""
    files = PAPERS.glob("[a-z]*/[a-z]*.py")
    unordered = (listing for path in files for listing in source_of(path).experiments)
    listings = sorted(unordered, key=_order)
    if paper is None:
        return listings
    if not any(listing.paper == paper for listing in listings):
        known = sorted({listing.paper for listing in listings})
        raise ValueError(f"no paper is called {paper!r}: {_offer(paper, known)}")
    return [listing for listing in listings if listing.paper == paper]


def experiment(id: str) -> Experiment:
    """Import an experiment: ``paper/item``, or the path of a file of one's own.

    Args:
        id: As ``inscape list`` shows it, or a path that ends in ``.py``.
    """
    name = "EXPERIMENT"
    if id in OF_VERBS:
        path = Path(f"{id}.py")
        module = importlib.import_module(OF_VERBS[id])
    elif is_own(id):
        path = path_of(id)
        module = _import_file(path)
    else:
        listing = _listing(id)
        path, name = _file(listing), listing.name
        module = _import_ours(path)
    defined = getattr(module, name, None)
    if not isinstance(defined, Experiment):
        raise ValueError(
            f"{path.name} must define {name}, an inscape.lab.Experiment, found "
            f"{type(defined).__name__}: write {name} = Experiment(...) at the end of the file."
        )
    paper, _, item = id.partition("/")
    return defined if is_own(id) or id in OF_VERBS else with_standing(defined, PAPERS / paper, item)


def paper_facts(paper: str) -> dict[str, Any]:
    """Return what is known of a paper: its ``published.json``."""
    experiments(paper)
    file = PAPERS / paper / "published.json"
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return facts


def is_own(id: str) -> bool:
    """Tell whether an id is the path of a file of one's own."""
    return id.endswith(".py")


def path_of(id: str) -> Path:
    """Return the file of an experiment; an unknown id is refused with the nearest names."""
    if is_own(id):
        path = Path(id).expanduser().resolve()
        if not path.is_file():
            raise ValueError(
                f"an experiment of your own must be a Python file, found none at {id}: check "
                "the path."
            )
        return path
    return _file(_listing(id))


def _listing(id: str) -> Listing:
    """Return what is known of an experiment of ours; an unknown id is refused."""
    paper, _, item = id.partition("/")
    likely = PAPERS / paper / f"{_stem(item)}.py"
    files = [likely] if likely.is_file() else []
    for path in (*files, *sorted((PAPERS / paper).glob("[a-z]*.py"))):
        for listing in source_of(path).experiments:
            if listing.id == id:
                return listing
    known = [listing.id for listing in experiments()]
    raise ValueError(f"no experiment is called {id!r}: {_offer(id, known)}")


def _file(listing: Listing) -> Path:
    return PAPERS / listing.paper / f"{listing.module}.py"


def name_of(id: str) -> str:
    """Return the name of an experiment in a store: ``paper/item``, or ``own-folder/item``."""
    if not is_own(id):
        return id
    path = path_of(id)
    return f"{OWN}{path.parent.name}/{item_of(path.stem)}"


def resolved(names: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the experiments that names stand for; a paper stands for all of its own."""
    listings = experiments()
    papers = list(dict.fromkeys(listing.paper for listing in listings))
    known = [listing.id for listing in listings]
    ids: list[str] = []
    for name in names:
        if name in papers:
            ids += [listing.id for listing in listings if listing.paper == name]
        elif name in known or is_own(name):
            path_of(name)
            ids.append(name)
        else:
            offer = did_you_mean(name, [*known, *papers] if "/" in name else [*papers, *known])
            raise ValueError(f"no experiment or paper is called {name!r}: {offer}")
    return tuple(dict.fromkeys(ids))


def source(id: str) -> str:
    """Return the id of the experiment whose records ``id`` shows: mostly its own.

    The id of a file of one's own comes back as an absolute path.
    """
    listed: list[str] = []
    current = str(path_of(id)) if is_own(id) else id
    while (other := experiment(current).same_as) and current not in listed:
        listed.append(current)
        current = _sibling(current, other)
    if current in listed:
        raise ValueError(
            f"same_as must end at an experiment with cells, found the circle "
            f"{' -> '.join(map(name_of, [*listed, current]))}: give one of them a cell."
        )
    return current


def claims(id: str) -> dict[str, Claim]:
    """Return the claims that records of an experiment are judged by, in its own file and others.

    Those of experiments that show the same records are called ``item/claim``.
    """
    by_name = {claim.name: claim for claim in experiment(id).claims}
    for other, item in _sharers(id):
        by_name |= {f"{item}/{claim.name}": claim for claim in experiment(other).claims}
    return by_name


def claim_hashes(id: str) -> dict[str, str]:
    """Return the hash of each claim that records of an experiment are judged by."""
    return {name: claim_hash(claim) for name, claim in claims(id).items()}


def later_claims(id: str) -> frozenset[str]:
    """Return the claims that say themselves that they were written after the records."""
    return frozenset(name for name, claim in claims(id).items() if claim.added)


def _sharers(id: str) -> Iterator[tuple[str, str]]:
    """Yield the experiments beside ``id`` whose records are in the end those of ``id``."""
    own = path_of(id)
    for path in sorted(own.parent.glob("[a-z]*.py")):
        for listing in source_of(path).experiments:
            other = str(path) if is_own(id) else listing.id
            if other != id and listing.same_as and _same(source(other), id):
                yield other, listing.item


def _same(first: str, second: str) -> bool:
    """Tell whether two ids are of one experiment: paths may be written in two ways."""
    return path_of(first) == path_of(second) if is_own(first) else first == second


def _sibling(id: str, other: str) -> str:
    """Return the id of the experiment that ``same_as`` names: an item, or a whole id."""
    item = other.rpartition("/")[2]
    if is_own(id):
        return str(Path(id).with_name(f"{_stem(item)}.py"))
    return other if "/" in other else f"{id.partition('/')[0]}/{other}"


def _stem(item: str) -> str:
    return re.sub(r"[.-]", "_", item).lower()


def _order(listing: Listing) -> tuple[str, list[tuple[int, str]]]:
    """Sort 4.10 after 4.2."""
    words = re.split(r"(\d+)", _stem(listing.item))
    return listing.paper, [(int(w), "") if w.isdigit() else (-1, w) for w in words]


def _offer(name: str, known: list[str]) -> str:
    names = f"choose from {', '.join(known) or 'none'} (inscape list shows them)."
    return did_you_mean(name, known, otherwise=names)


def _import_ours(path: Path) -> ModuleType:
    return importlib.import_module(f"inscape.papers.{path.parent.name}.{path.stem}")


def _import_file(path: Path) -> ModuleType:
    """Import a file once in each process; its folder stays importable, for the files beside it."""
    name = f"inscape_own_{path.parent.name}_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(
            f"{path.name} must be importable, but it raised {type(error).__name__}: {error}; fix "
            "it, or run it with python to see the whole trace."
        ) from error
    return module
