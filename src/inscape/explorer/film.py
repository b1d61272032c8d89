"""Films: the regions of a window at recorded steps of a training, as one moving picture."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from inscape.explorer import requests as ask
from inscape.explorer.cells import cut
from inscape.explorer.jobs import Job
from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredSubject
from inscape.explorer.wire import Array
from inscape.regions import PlaneRegions

#: Cells of each step, at most: a film shows no more.
REGIONS = 30_000
#: Steps a second, as the page plays them.
RATE = 10.0

Answer = Generator[None, None, tuple[dict[str, Any], dict[str, Array]]]


def film_steps(steps: list[int], most: int) -> list[int]:
    """Return so many of the recorded steps, evenly spaced, with both ends.

    >>> film_steps([0, 10, 20, 30, 40], 3), film_steps([0, 5], 9)
    ([0, 20, 40], [0, 5])
    """
    count = min(most, len(steps))
    places = np.linspace(0, len(steps) - 1, count).round().astype(int)
    return [steps[place] for place in places]


def film(
    subject: ExploredSubject, plane: ExploredPlane, query: ask.FilmRequest, job: Job
) -> Answer:
    """Answer with a moving picture of a window, one frame for each step."""
    from inscape.figures.animation import checked_suffix, moving_picture

    try:
        suffix = checked_suffix(Path(f"training.{query.format}"))
    except ImportError as error:  # the extra is not installed
        raise ValueError(str(error)) from error
    steps = film_steps(subject.steps, query.steps)
    if not steps:
        raise ValueError(
            "the training must be recorded, found none: run inscape explore --trajectory FILE."
        )
    last = yield from _cut_at(subject, plane, query, steps[-1])
    frames = []
    for step in steps:
        regions = last if step == steps[-1] else (yield from _cut_at(subject, plane, query, step))
        frames.append(_frame(subject, regions, query, last, step))
        job.reached(f"step {step}", regions.cells)
        yield
    seconds = (len(frames) + 4) / RATE
    data = moving_picture(frames, suffix, seconds=seconds)
    facts = {"frames": len(frames), "bytes": len(data), "name": f"training{suffix}"}
    return facts, {"file": np.frombuffer(data, np.uint8)}


def _cut_at(
    subject: ExploredSubject, plane: ExploredPlane, query: ask.FilmRequest, step: int
) -> Generator[None, None, PlaneRegions]:
    network = subject.network("first", step)
    return (
        yield from cut(
            network, plane, centre=query.centre, half=query.half, regions=REGIONS,
            on_layer=lambda layer, cells: None,
        )
    )  # fmt: skip


def _frame(
    subject: ExploredSubject, regions: PlaneRegions, query: ask.FilmRequest, last: Any, step: int
) -> Any:
    from inscape.explorer.window_figure import window_picture

    return window_picture(
        subject, regions, colour=query.colour, edges=query.edges, like=last,
        title=f"step {step}: {regions.cells} linear regions", pixels=query.pixels,
    )  # fmt: skip
