"""What ``inscape show`` says about a paper and about one of its experiments."""

from textwrap import shorten
from typing import TYPE_CHECKING

from inscape.cli.tables import text
from inscape.lab import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inscape.lab.experiment import Experiment, ScaleName

Record = dict[str, object]

#: Characters of a list of values in a line.
LONGEST = 80


def of_paper(paper: str) -> Record:
    """Return the citation of a paper, its experiments, and how to run them."""
    facts = catalogue.paper_facts(paper).get("paper", {})
    return {
        "name": paper,
        "doc": facts.get("title", "no citation"),
        "authors": facts.get("authors", ()),
        "venue": facts.get("venue", ""),
        "experiments": [listing.item for listing in catalogue.experiments(paper)],
        "command_line": f"inscape reproduce {paper}\ninscape reproduce {paper} --dry-run",
    }


def of_experiment(id: str, scale: "ScaleName" = "laptop") -> Record:
    """Return what an experiment shows, its claims at a scale, what each costs and leaves out."""
    from inscape.lab.experiment import SCALES, Value

    experiment = catalogue.experiment(id)
    runs = catalogue.experiment(catalogue.source(id))
    departures = {
        f"departures_at_{name}": " ".join(experiment.departures.get(name, ())) for name in SCALES
    }
    here = [one for one in experiment.claims if scale in one.scales]
    claims = {
        f"claim {claim.name}": claim.says
        + (f" (published {claim.published:g})" if isinstance(claim, Value) else "")
        for claim in here
    }
    more = len(experiment.claims) - len(here)
    return {
        "name": id,
        "doc": experiment.title,
        "shows": experiment.shows,
        "records_of": experiment.same_as,
        **{name: _cost(runs, name) for name in SCALES},
        **departures,
        **claims,
        "more_claims": f"{more} about other scales: --scale {_other(scale)}" if more else "",
        "errata": list(experiment.errata),
        "notes": " ".join(experiment.notes),
        "command_line": f"inscape reproduce {id} --scale {scale}\ninscape reproduce {id} --dry-run",
    }


def _other(scale: str) -> str:
    return "laptop" if scale == "paper" else "paper"


def _cost(runs: "Experiment", scale: "ScaleName") -> str:
    from inscape.cli.verdicts import about
    from inscape.report.words import listed, seconds

    axes = runs.axes(scale)
    cells = runs.cells(axes)
    time = seconds(sum(float(runs.seconds(cell)) for cell in cells))
    layout = listed([_axis(name, values) for name, values in axes.items()])
    many = f"{len(cells):,} cell{'s' * (len(cells) != 1)}"
    return f"{many}, {about(time)} on one core: {layout or 'no settings'}"


def _axis(name: str, values: "Sequence[object]") -> str:
    """Return how many values a setting takes; where it is one, that value."""
    if len(values) != 1:
        return f"{len(values)} {name}"
    value = values[0]
    if isinstance(value, list | tuple):
        return f"{name} ({shorten(text(value), LONGEST, placeholder=' ...')})"
    return f"{name} {text(value) or 'none'}"
