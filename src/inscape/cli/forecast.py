"""What a look would measure and how long it would take."""

from typing import TYPE_CHECKING

from inscape.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from inscape.report.look.session import Prepared


def announcement(prepared: "Prepared") -> list[str]:
    """Say what is about to be measured and explained, where, and how long it will take."""
    from inscape.report.words import seconds

    x = prepared.data.x
    kind = str(x.dtype).removeprefix("torch.")
    count = prepared.subject.threads
    threads = f", {count} thread{'s' * (count != 1)}" if x.device.type == "cpu" else ""
    many = f"{len(prepared.chosen)} instrument{'s' * (len(prepared.chosen) != 1)}"
    lines = [f"model: {note}" for note in prepared.opened.notes]
    lines += [f"data: {note}" for note in prepared.data.notes]
    time = seconds(prepared.whole)
    about = time if time.startswith("under") else f"about {time}"
    end = f"{about}, budget {seconds(prepared.budget)}"
    if prepared.work is not None:
        end = "the work of an earlier look"
    lines.append(f"looking: {many} on {x.device} in {kind}{threads}; {end}")
    if prepared.explaining is not None:
        lines.append(f"explaining: {prepared.explaining.words}")
    return lines


def print_forecast(prepared: "Prepared", *, as_json: bool) -> None:
    """Print what would be measured and the seconds of each measure alone."""
    from inscape.report.words import seconds

    budget = prepared.budget
    if as_json:
        print_json({"seconds": prepared.seconds, "whole": prepared.whole, "budget": budget})
        return
    print_table(
        {"measure": name, "predicted_time": seconds(time)}
        for name, time in prepared.seconds.items()
    )
