"""What each training example has added to the answer at a point: the path kernel of a training."""

from collections.abc import Generator
from dataclasses import asdict
from typing import Any

import torch

from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredSubject
from inscape.report.look.attribution import Explained, Prediction
from inscape.report.look.explanation import explained_one
from inscape.report.look.recorded_training import PredictionQuery, RecordedTraining

#: Seconds that going through the training may take.
LONGEST = 60.0

Facts = dict[str, Any]


def made_by(
    subject: ExploredSubject, plane: ExploredPlane, u: float, v: float
) -> Generator[None, None, Facts]:
    """Return the answer at a point as a sum: its value before training, and what was added to it.

    Exact where the whole training can be gone through in a minute, else to first order.
    """
    if subject.trajectory is None:
        raise ValueError(
            "what made a prediction needs a recorded training, found none: run inscape explore "
            "--trajectory FILE."
        )
    own = subject.subject
    recorded = RecordedTraining.of(own.model, subject.data, subject.trajectory)
    yield
    x = plane.frame.at(torch.tensor([[u, v]], dtype=torch.float64))
    outputs = subject.network().outputs(x, double=True)
    output = int(outputs[0].argmax())
    query = PredictionQuery(queries=x.to(own.x.dtype), outputs=(output,))
    seconds = recorded.seconds(query)
    yield
    if seconds > LONGEST:
        query = PredictionQuery(queries=query.queries, outputs=(output,), mode="first-order")
        seconds = recorded.seconds(query)
        yield
    if seconds > LONGEST:
        raise ValueError(
            f"going through this training must take less than {LONGEST:.0f} seconds, found about "
            f"{seconds:.0f}: run inscape look --trajectory with a larger --budget."
        )
    split = recorded.split(query)
    prediction = Prediction(
        row=-1, why="", says=subject.class_name(output), truth=None, right=None, probability=None,
        output=output, value=float(outputs[0, output]),
    )  # fmt: skip
    return _facts(explained_one(split, 0, prediction, subject.data)) | {
        "output": subject.class_name(output),
        "training": recorded.words,
        "exact": query.mode == "exact",
    }


def _facts(explained: Explained) -> Facts:
    return {
        "initial": explained.initial,
        "final": explained.final,
        "up": [asdict(push) for push in explained.up],
        "down": [asdict(push) for push in explained.down],
        "others": asdict(explained.others) | {"amount": explained.others.amount},
        "rest": dict(explained.rest),
        "byClass": [asdict(push) for push in explained.by_class],
        "total": explained.total,
    }
