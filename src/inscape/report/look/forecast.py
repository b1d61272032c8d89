"""What a look will measure and how long it will take, in words."""

from inscape.report.look.session import Prepared
from inscape.report.text_table import TextTable
from inscape.report.words import about, seconds


def announcement(prepared: Prepared) -> list[str]:
    """Say what is about to be measured and explained, where, and how long it will take."""
    x = prepared.data.x
    kind = str(x.dtype).removeprefix("torch.")
    count = prepared.subject.threads
    threads = f", {count} thread{'s' * (count != 1)}" if x.device.type == "cpu" else ""
    many = f"{len(prepared.chosen)} instrument{'s' * (len(prepared.chosen) != 1)}"
    lines = [f"model: {note}" for note in prepared.opened.notes]
    lines += [f"data: {note}" for note in prepared.data.notes]
    end = f"{about(prepared.whole)}, budget {seconds(prepared.budget)}"
    if prepared.work is not None:
        end = "the work of an earlier look"
    lines.append(f"looking: {many} on {x.device} in {kind}{threads}; {end}")
    if prepared.explaining is not None:
        lines.append(f"explaining: {prepared.explaining.words}")
    return lines


def forecast_table(prepared: Prepared) -> TextTable:
    """Return what would be measured and the time of each instrument alone."""
    return TextTable(
        [
            {"instrument": name, "predicted_time": seconds(time)}
            for name, time in prepared.seconds.items()
        ]
    )


def forecast_dict(prepared: Prepared) -> dict[str, object]:
    """Return the seconds of each instrument, of all of them, and the budget."""
    return {
        "seconds": prepared.seconds,
        "whole": prepared.whole,
        "budget": prepared.budget,
    }
