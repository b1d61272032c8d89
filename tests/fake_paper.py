"""A small paper with experiments of every kind, for tests of pages and of ``reproduce``.

``install(folder, monkeypatch)`` writes it into a folder and lets the catalogue read that folder
instead of ``inscape.papers``.
"""

import json
from pathlib import Path

import pytest

from inscape.lab import catalogue
from inscape.lab.experiment import ScaleName
from inscape.lab.planning import plan
from inscape.lab.record import parsed, to_json
from inscape.lab.store import Record, Store

FACTS = {
    "paper": {
        "key": "fake",
        "title": "On <small> & large numbers",
        "authors": ["Ada Adder", "Carl Counter"],
        "venue": "Journal of Sums 2020",
    },
    "code": {"repo": "ada/sums", "commit": "0123456789abcdef"},
    "errata": [
        {
            "id": "F1",
            "where": "eq 1",
            "problem": "a factor 2 is missing",
            "correction": "2x",
            "verified": "algebra",
        },
        {"id": "F2", "where": "eq 9", "problem": "unrelated", "correction": "none"},
    ],
    "entries": [
        {"id": "table-1.1", "section": "1.1", "title": "Their title of table 1.1", "kind": "table"},
        {
            "id": "figure-2",
            "section": "Appendix",
            "title": "Their figure 2",
            "kind": "figure",
            "finding": "The line goes up.",
        },
        {"id": "theorem-3", "title": "Nobody runs this", "kind": "theory"},
    ],
}

TABLE = '''"""Sums of small numbers, counted twice."""

from dataclasses import replace

from inscape.lab import statistics
from inscape.lab.experiment import Experiment, Trend, Value


def mean_estimate(values):
    """Give a mean whose three sums are enough for a verdict."""
    return replace(statistics.mean_estimate(values), interval="binomial")


def cell(size, seed, shift=0.0):
    """Add."""
    return {"sum": size + 0.1 * seed + shift}


def analyse(records):
    """Give the mean for each size, and how much it grows."""
    sizes = sorted({record.settings["size"] for record in records})
    of = {n: [r.values["sum"] for r in records if r.settings["size"] == n] for n in sizes}
    found = {f"mean/{n}": mean_estimate(values) for n, values in of.items()}
    grown = [b - a for a, b in zip(of[sizes[0]], of[sizes[-1]], strict=True)]
    return {**found, "growth": mean_estimate([x + 0.01 * i for i, x in enumerate(grown)])}


def value(size, published, name="", **more):
    """Claim a mean."""
    return Value(
        name=name or f"mean-{size}",
        says=f"The mean at size {size} is {published}.",
        of=f"mean/{size}",
        published=published,
        at=(f"size {size}", "mean"),
        source="table 1.1",
        **more,
    )


EXPERIMENT = Experiment(
    shows="Table 1.1",
    title="Sums of <small> numbers",
    smoke={"size": [1, 2], "seed": [0], "shift": [0.0]},
    laptop={"size": [1, 2, 3], "seed": [0, 1, 2], "shift": [0.0]},
    paper={"size": [1, 2, 3], "seed": [0, 1, 2, 3], "shift": [0.0]},
    departures={"laptop": ("Three seeds instead of four.",)},
    cell=cell,
    seconds=lambda settings: 2.0,
    analyse=analyse,
    conclude=lambda records: [f"There are {len(records)} sums."],
    claims=(
        value(1, 1.12, published_se=0.02, tolerance=0.5),
        value(2, 2.5, tolerance=0.3, side="above"),
        value(3, 3.1, tolerance=0.3),
        value(3, 3.15, name="paper-3", tolerance=0.01, scales=("paper",)),
        Trend(name="grows", says="Sums grow.", of="growth", side="above", test="t interval"),
        Trend(name="huge", says="It is huge.", of="size", side="above"),
    ),
    errata=("F1",),
    notes=("Numbers are <not> random.",),
)
'''

FIGURE = '''"""The same sums as a line."""

from matplotlib.figure import Figure

from inscape.figures.style import BLUE
from inscape.lab.experiment import Experiment


def draw(records):
    """Draw the sums."""
    figure = Figure(figsize=(4, 2))
    ax = figure.add_subplot()
    ax.plot([r.settings["size"] for r in records], [r.values["sum"] for r in records], color=BLUE)
    ax.set_xlabel("size")
    return figure


EXPERIMENT = Experiment(shows="Figure 2", title="A line", same_as="table-1.1", draw=draw)
'''

EXTRA = '''"""Something that the paper does not have: a claim that fails."""

from inscape.lab.experiment import Estimate, Experiment, Trend


def cell(seed):
    """Count."""
    if seed == 99:
        raise RuntimeError("seed 99 does not count")
    return {"count": seed}


def analyse(records):
    """Give the largest."""
    top = float(max(record.values["count"] for record in records))
    return {"top": Estimate(value=top, low=top, high=top, se=0.0, n=1, exact=True)}


EXPERIMENT = Experiment(
    shows="Beyond",
    title="Counting",
    smoke={"seed": [0]},
    laptop={"seed": [0, 1]},
    paper={"seed": [0, 1, 2]},
    cell=cell,
    analyse=analyse,
    claims=(Trend(name="tall", says="The top is above five.", of="top", side="above", bound=5.0),),
)
'''

FILES = {"table_1_1.py": TABLE, "figure_2.py": FIGURE, "counting.py": EXTRA}
IDS = ("fake/table-1.1", "fake/figure-2", "fake/counting")


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the paper under ``folder`` and return its own folder."""
    here = folder / "fake"
    here.mkdir(parents=True)
    (here / "__init__.py").write_text('"""A paper that nobody wrote."""\n')
    (here / "published.json").write_text(json.dumps(FACTS))
    for name, text in FILES.items():
        (here / name).write_text(text)
    monkeypatch.setattr(catalogue, "PAPERS", folder)
    monkeypatch.setattr(catalogue, "_import_ours", catalogue._import_file)
    return here


def fill(store: Store, id: str, scale: ScaleName, *, leave_out: int = 0) -> None:
    """Write the records of an experiment as a run would, all but the last few."""
    made = plan(id, scale=scale, store=store)
    for index, (_, outcome) in enumerate(made.runs.run(made.cells)):
        if index < len(made.cells) - leave_out:
            store.write(
                Record(
                    experiment=made.name,
                    scale=scale,
                    key=made.keys[index],
                    settings=made.cells[index],
                    data=made.data[index],
                    values=outcome,
                    claims=made.claims,
                    provenance={"seconds": 30.0, "torch": "2.13.0", "started": "2026-11-16"},
                )
            )


def under_claims(path: Path, changes: dict[str, str | None]) -> None:
    """Write a record anew as if it had been made under other claims; None drops one."""
    content = parsed(path.read_bytes())
    claims = {**content["claims"], **changes}
    content["claims"] = {name: text for name, text in claims.items() if text is not None}
    path.write_bytes(to_json(content))
