"""What a look would measure and how long it would take."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inscape.cli.opening import Subject, Wanted
from inscape.cli.tables import print_json, print_table

if TYPE_CHECKING:
    import inscape.report.explaining


@dataclass(frozen=True, eq=False, kw_only=True)
class Forecast:
    """Seconds of each instrument, the quickest first, and how predictions will be explained."""

    times: dict[str, float]
    explaining: "inscape.report.explaining.Plan | None"

    @property
    def alone(self) -> dict[str, float]:
        """Return the seconds of everything that is asked for, each alone."""
        if self.explaining is None:
            return self.times
        return {**self.times, "attribution": self.explaining.seconds}


def forecast(subject: Subject, wanted: Wanted) -> Forecast:
    """Return the seconds that everything is expected to take.

    Times one batch, and the first updates of a recorded training; refuses a model that cannot be
    measured on these data, and a training that is not its own.
    """
    from inscape._core import instruments
    from inscape.report.explaining import plan
    from inscape.report.look import explains
    from inscape.report.subject import Clock, subject_of

    clock = Clock(wanted.budget)
    timed = subject_of(
        subject.model.model, subject.fitted, clock=clock, seed=wanted.seed, command=None
    )
    times = {
        name: timed.predicted(instrument)
        for name, instrument in instruments().items()
        if instrument.reads not in ("trajectory", "pair")
        and (name in wanted.only if wanted.only else instrument.by_default)
    }
    made = None
    if explains(wanted.only, wanted.explain):
        made = plan(timed, subject.fitted, subject.trajectory, wanted.explain)
    return Forecast(
        times=dict(sorted(times.items(), key=lambda item: item[1])),
        explaining=made,
    )


def announcement(subject: Subject, wanted: Wanted, expected: Forecast) -> list[str]:
    """Say what is about to be measured and explained, where, and how long it will take."""
    import torch

    from inscape.report.words import seconds

    x = subject.fitted.x
    kind = str(x.dtype).removeprefix("torch.")
    count = torch.get_num_threads()
    threads = f", {count} thread{'s' * (count != 1)}" if x.device.type == "cpu" else ""
    many = f"{len(expected.times)} instrument{'s' * (len(expected.times) != 1)}"
    time = seconds(whole(expected, wanted))
    lines = [
        f"looking: {many} on {x.device} in {kind}{threads}; "
        f"{time if time.startswith('under') else f'about {time}'}, budget {seconds(wanted.budget)}"
    ]
    if expected.explaining is not None:
        lines.append(f"explaining: {expected.explaining.words}")
    return lines


def print_forecast(wanted: Wanted, expected: Forecast, *, as_json: bool) -> None:
    """Print what would be measured and the seconds of each measure alone."""
    from inscape.report.words import seconds

    if as_json:
        spent = whole(expected, wanted)
        print_json({"seconds": expected.alone, "whole": spent, "budget": wanted.budget})
        return
    print_table(
        {"measure": name, "predicted_time": seconds(time)} for name, time in expected.alone.items()
    )


def whole(expected: Forecast, wanted: Wanted) -> float:
    """Return the seconds of a whole look: each measure, and again for what it is held against."""
    from inscape.report.runs import DRAWS

    explaining = 0.0 if expected.explaining is None else expected.explaining.seconds
    return min(wanted.budget, explaining + (2 + DRAWS) * sum(expected.times.values()))
