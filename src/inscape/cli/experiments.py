"""What ``inscape show`` says about a paper and about one of its experiments."""

from typing import TYPE_CHECKING

from inscape.lab import catalogue

if TYPE_CHECKING:
    from inscape.lab.experiment import Experiment, ScaleName

Record = dict[str, object]


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


def of_experiment(id: str) -> Record:
    """Return what an experiment shows, its claims, what each scale costs and leaves out."""
    from inscape.lab.experiment import SCALES, Value

    experiment = catalogue.experiment(id)
    runs = catalogue.experiment(catalogue.source(id))
    departures = {
        f"departures_at_{scale}": " ".join(experiment.departures.get(scale, ())) for scale in SCALES
    }
    here = [one for one in experiment.claims if "laptop" in one.scales] or experiment.claims
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
        **{scale: _cost(runs, scale) for scale in SCALES},
        **departures,
        **claims,
        "more_claims": f"{more} about other scales" if more else "",
        "errata": list(experiment.errata),
        "notes": " ".join(experiment.notes),
        "command_line": f"inscape reproduce {id} --scale laptop\ninscape reproduce {id} --dry-run",
    }


def _cost(runs: "Experiment", scale: "ScaleName") -> str:
    from inscape.report.words import listed, seconds

    axes = runs.axes(scale)
    cells = runs.cells(axes)
    time = seconds(sum(float(runs.seconds(cell)) for cell in cells))
    layout = listed([f"{len(values)} {axis}" for axis, values in axes.items()])
    return f"{len(cells):,} cells, about {time} on one core: {layout or 'no settings'}"
