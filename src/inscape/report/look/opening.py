"""Open the model and the data of a look as the user describes them, or the built-in example."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from inscape.loaders import OpenedData, OpenedModel, arguments_of, open_data, open_model
from inscape.loaders.factory import SEEDED
from inscape.report.look.example import EXAMPLE, example
from inscape.training import Trajectory

#: What stands before the names of weights where ``inscape.adapt`` was recorded.
ADAPTED = "model."


@dataclass(frozen=True, kw_only=True)
class OpenedSubject:
    """A model and its data as they were opened, and the recorded training, if there is one."""

    model: OpenedModel
    data: OpenedData
    trajectory: Trajectory | None


def opened_example(
    *,
    limit: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
    quiet: bool = False,
) -> OpenedSubject:
    """Return the built-in example: a small network that is trained on digits, and its training."""
    data = open_data(EXAMPLE, limit=limit, device=device, dtype=dtype or "float32")
    model, trajectory = example(data, quiet=quiet)
    return OpenedSubject(model=model, data=data, trajectory=trajectory)


def opened_subject(
    model: str,
    data: str,
    *,
    weights: Path | None = None,
    trajectory: Path | None = None,
    trust: bool = False,
    max_size: int | None = None,
    limit: int | None = None,
    device: str = "auto",
    dtype: str | None = None,
    preparation: Mapping[str, Any] | None = None,
) -> OpenedSubject:
    """Open a model, its data and its recorded training.

    Args:
        model: As for ``inscape.loaders.open_model``.
        data: As for ``inscape.loaders.open_data``.
        weights: File of the weights.
        trajectory: File of the recorded training; a factory without weights gets its last ones.
        trust: Whether files may run code when they are opened.
        max_size: Bytes that a file may unpack to.
        limit: Points of each split that are used.
        device: Where to compute.
        dtype: Precision; that of the weights by default.
        preparation: Further arguments of ``open_data``: how the model wants its inputs.
    """
    recorded = None if trajectory is None else Trajectory.load(trajectory, max_size=max_size)
    opened = open_model(
        model, weights=weights, trust=trust, max_size=max_size, device=device, dtype=dtype
    )
    if recorded is not None and weights is None and ":" in model:
        opened = _at_the_end(opened, recorded)
    dtypes = (p.dtype for p in opened.model.parameters() if p.is_floating_point())
    inputs = open_data(
        data,
        limit=limit,
        device=device,
        dtype=dtype or next(dtypes, torch.float32),
        max_size=max_size,
        arguments=arguments_of(opened.model),
        **(preparation or {}),
    )
    return OpenedSubject(model=opened, data=inputs, trajectory=recorded)


def _at_the_end(opened: OpenedModel, trajectory: Trajectory) -> OpenedModel:
    """Load the last weights of a training into what a factory built; leave another network."""
    own, end = opened.model.state_dict(), trajectory.at(trajectory.steps)
    if all(name.startswith(ADAPTED) for name in end) and not own.keys() <= end.keys():
        end = {name.removeprefix(ADAPTED): tensor for name, tensor in end.items()}
    if {k: t.shape for k, t in own.items()} != {k: t.shape for k, t in end.items()}:
        return opened
    opened.model.load_state_dict(end)
    notes = tuple(note for note in opened.notes if note != SEEDED)
    note = f"took the weights after the last of the {trajectory.steps:,} updates of the trajectory"
    return replace(opened, notes=(*notes, note))
