"""The text of RESULTS-look.md, from the runs that ``benchmarks/look.py --keep`` has kept."""

from collections.abc import Iterator
from typing import Any

Run = dict[str, Any]

OPENING = """# Looks at networks as people have them

Written by `benchmarks/look.py --write`. Allowed are 1.1 budgets and 5 s from the moment that model
and data are open to the written page (71 s at a budget of 60), for the digits 9 s instead of 5,
since they are a bare `inscape look` with interpreter and training. Where the budget counted
processor time (`--processor`, one thread), so do the seconds: what a look does on a core of its
own. Peak is the memory above that after opening. The load is that of the whole machine, the mean of
a minute, before and after a run; a look by itself makes about 1.
"""


def page(runs: list[Run]) -> str:
    """Return the whole text: conditions, times, findings, intervals at several budgets."""
    machines = sorted({run["machine"] for run in runs})
    parts = [OPENING, *(f"- {machine}" for machine in machines), "", *_times(runs)]
    parts += ["", "## What the pages open with", ""]
    for run in _longest(runs):
        parts += [f"**{run['network']}**", "", *(f"- {text}" for text in run["findings"]), ""]
    parts += ["## Intervals by budget", "", *_intervals(runs), ""]
    return "\n".join(parts)


def _times(runs: list[Run]) -> Iterator[str]:
    yield (
        "| network | budget | beside | seconds, page written | peak MB | answered | left out | "
        "without baselines | date, load |"
    )
    yield "| --- " * 9 + "|"
    for run in runs:
        answered = len(run["measurements"])
        beside = f"{run['busy']} busy processes" if run["busy"] else "-"
        cells = (
            run["network"],
            f"{run['budget']:g}",
            beside,
            f"{run['whole']:.1f}" + " of processor time" * (run.get("clock") == "processor"),
            f"{run['peak'] / 1e6:.0f}",
            f"{answered} of {answered + len(run['left_out'])}",
            ", ".join(run["left_out"]) or "-",
            ", ".join(run["no_baselines"]) or "-",
            f"{run['date']}, {run['load']}",
        )
        yield f"| {' | '.join(cells)} |"


def _longest(runs: list[Run]) -> list[Run]:
    """Return one run of each network: the undisturbed one at 60 s, or the last there is."""
    chosen: dict[str, Run] = {}
    for run in runs:
        usual = run["budget"] == 60 and not run["busy"]
        if usual or run["network"] not in chosen:
            chosen[run["network"]] = run
    return list(chosen.values())


def _intervals(runs: list[Run]) -> Iterator[str]:
    """Yield a table for the networks that were looked at with several budgets."""
    by_network: dict[str, dict[float, Run]] = {}
    for run in runs:
        if not run["busy"]:
            by_network.setdefault(run["network"], {})[run["budget"]] = run
    several = {name: looks for name, looks in by_network.items() if len(looks) > 1}
    budgets = sorted({budget for looks in several.values() for budget in looks})
    heads = ["network", "instrument", *(f"{budget:g} s" for budget in budgets)]
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for network, looks in several.items():
        names = dict.fromkeys(name for run in looks.values() for name in run["measurements"])
        for name in names:
            summaries = [_summary(looks.get(budget), name) for budget in budgets]
            yield f"| {' | '.join([network, name, *summaries])} |"


def _summary(run: Run | None, name: str) -> str:
    if run is None or name not in run["measurements"]:
        return "-"
    summary = run["measurements"][name][0]
    if summary is None:
        return "no single number"
    if summary["low"] is None:
        return f"{summary['value']:.4g} ({summary['kind']})"
    low, high = (f"{summary[end]:.4g}" for end in ("low", "high"))
    return f"{summary['value']:.4g} [{low}, {high}] ({summary['kind']})"
