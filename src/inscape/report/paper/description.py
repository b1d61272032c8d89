"""What an experiment shows, what it claims, and what it costs, in words."""

from collections.abc import Sequence
from textwrap import shorten

from inscape.lab import catalogue
from inscape.lab.experiment import SCALES, Experiment, ScaleName, Value
from inscape.report.words import about, listed

#: Characters of a list of values in a line.
LONGEST = 80


def experiment_description(id: str, scale: ScaleName = "laptop") -> dict[str, object]:
    """Return what an experiment shows, its claims at a scale, and what each scale costs.

    Args:
        id: The experiment, or the path of a file of one's own.
        scale: The scale whose claims are described; those about other scales are counted.
    """
    experiment = catalogue.experiment(id)
    runs = catalogue.experiment(catalogue.source(id))
    departures = {
        f"departures_at_{name}": " ".join(experiment.departures.get(name, ())) for name in SCALES
    }
    at_scale = [claim for claim in experiment.claims if scale in claim.scales]
    claims = {
        f"claim {claim.name}": claim.says
        + (f" (published {claim.published:g})" if isinstance(claim, Value) else "")
        for claim in at_scale
    }
    more, other = len(experiment.claims) - len(at_scale), _other(scale)
    return {
        "name": id,
        "doc": experiment.title,
        "shows": experiment.shows,
        "records_of": experiment.same_as,
        **{name: _cost(runs, name) for name in SCALES},
        **departures,
        **claims,
        "more_claims": f"{more} about other scales: --scale {other}" if more else "",
        "errata": list(experiment.errata),
        "notes": " ".join(experiment.notes),
        "python": f"import inscape.lab\ninscape.lab.reproduce({id!r}, scale={scale!r})",
        "command_line": f"inscape reproduce {id} --scale {scale}\ninscape reproduce {id} --dry-run",
    }


def _other(scale: ScaleName) -> str:
    return "laptop" if scale == "paper" else "paper"


def _cost(runs: Experiment, scale: ScaleName) -> str:
    axes = runs.axes(scale)
    cells = runs.cells(axes)
    time = about(sum(float(runs.seconds(cell)) for cell in cells))
    layout = listed([_axis(name, values) for name, values in axes.items()])
    many = f"{len(cells):,} cell{'s' * (len(cells) != 1)}"
    return f"{many}, {time} on one core: {layout or 'no settings'}"


def _axis(name: str, values: Sequence[object]) -> str:
    """Return how many values a setting takes; where it is one, that value."""
    if len(values) != 1:
        return f"{len(values)} {name}"
    value = values[0]
    if isinstance(value, list | tuple):
        items = ", ".join(map(_written, value))
        return f"{name} ({shorten(items, LONGEST, placeholder=' ...')})"
    return f"{name} {_written(value)}"


def _written(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
    return str(value)
