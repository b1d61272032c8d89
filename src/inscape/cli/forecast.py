"""What a look would measure and how long it would take."""

from inscape.cli.opening import Subject, Wanted
from inscape.cli.tables import print_json, print_table

Times = dict[str, float]


def forecast(subject: Subject, wanted: Wanted) -> Times:
    """Return the seconds that each instrument is expected to take, the quickest first.

    Times one batch; refuses a model that cannot be measured on these data.
    """
    from inscape._core import instruments
    from inscape.report.subject import Clock, subject_of

    timed = subject_of(
        subject.model.model, subject.fitted, clock=Clock(0), seed=wanted.seed, command=None
    )
    times = {
        name: timed.predicted(instrument)
        for name, instrument in instruments().items()
        if instrument.reads not in ("trajectory", "pair")
        and (name in wanted.only if wanted.only else instrument.by_default)
    }
    return dict(sorted(times.items(), key=lambda item: item[1]))


def announcement(subject: Subject, wanted: Wanted, times: Times) -> str:
    """Say what is about to be measured, where, and how long it will take."""
    import torch

    from inscape.report.words import seconds

    x = subject.fitted.x
    kind = str(x.dtype).removeprefix("torch.")
    count = torch.get_num_threads()
    threads = f", {count} thread{'s' * (count != 1)}" if x.device.type == "cpu" else ""
    many = f"{len(times)} instrument{'s' * (len(times) != 1)}"
    time = seconds(whole(times, wanted))
    return (
        f"looking: {many} on {x.device} in {kind}{threads}; "
        f"{time if time.startswith('under') else f'about {time}'}, budget {seconds(wanted.budget)}"
    )


def print_forecast(wanted: Wanted, times: Times, *, as_json: bool) -> None:
    """Print what would be measured and the seconds of each measure alone."""
    from inscape.report.words import seconds

    if as_json:
        print_json({"seconds": times, "whole": whole(times, wanted), "budget": wanted.budget})
        return
    print_table({"measure": name, "predicted_time": seconds(time)} for name, time in times.items())


def whole(times: Times, wanted: Wanted) -> float:
    """Return the seconds of a whole look: each measure, and again for what it is held against."""
    from inscape.report.runs import DRAWS

    return min(wanted.budget, (2 + DRAWS) * sum(times.values()))
