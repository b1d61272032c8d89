"""Instruments that are no part of a look, each with the command that runs it alone."""

from inscape._core import Instrument, instruments
from inscape.report.look.parts import Elsewhere
from inscape.report.look.subject import Subject
from inscape.report.words import command_for

#: What is said of instruments by what they read, and what their call needs beside model and data.
NEEDS = {
    "trajectory": ("it needs a recorded training", "trajectory=run.trajectory"),
    "pair": ("it needs a second network", "other=another"),
}
#: What is said of those that read neither, by the class of their time.
LONG = {"minutes": "it may take minutes", "hours": "it may take hours"}
#: Seconds of a budget by the class of their time.
BUDGETS = {"instant": 10.0, "seconds": 60.0, "minutes": 600.0, "hours": 7200.0}


def elsewhere(subject: Subject) -> tuple[Elsewhere, ...]:
    """Return the instruments that a look runs only if they are selected by name."""
    return tuple(
        Elsewhere(name=name, reason=_reason(instrument), command=_command(subject, instrument))
        for name, instrument in instruments().items()
        if instrument.reads in NEEDS or not instrument.by_default
    )


def _reason(instrument: Instrument) -> str:
    if instrument.reads in NEEDS:
        return NEEDS[instrument.reads][0]
    if instrument.family == "pruning":
        return "it prunes step by step, which takes long"
    return LONG.get(instrument.cost, "it answers a question of its own")


def _command(subject: Subject, instrument: Instrument) -> str:
    if instrument.reads not in NEEDS:
        return command_for(
            subject.command, instrument.name, BUDGETS[instrument.cost], seed=subject.seed
        )
    data = "x, y" if instrument.wants_labels else "x"
    name, argument = f"{instrument.family}.{instrument.name}", NEEDS[instrument.reads][1]
    call = f"inscape.{name}(model, {data}, {argument})"
    if instrument.reads != "trajectory":
        return call
    return f"run = inscape.training.fit(model, x, y, record=100); {call}"
