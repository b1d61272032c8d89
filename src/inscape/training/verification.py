"""Replays some updates of a recording, to see whether they come out the same."""

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from inscape.training.function_names import is_own
from inscape.training.losses import Loss
from inscape.training.recording_folder import read_checkpoints, read_steps
from inscape.training.replay import stands
from inscape.training.trajectory import Trajectory

#: Updates that are replayed.
MANY = 3
#: Difference of a replayed update from the recorded one, relative to it, that rounding can make.
ROUNDING = 1e-3
#: The same under autocast, in numbers of 8 to 11 bits.
COARSE = 2e-2


class Probes:
    """Weights one update after some checkpoints, drawn evenly from all of them."""

    def __init__(self, draws: random.Random) -> None:
        self._draws, self._count = draws, 0
        self._due: tuple[int, int] | None = None
        self._slots: dict[int, tuple[int, Tensor]] = {}

    def at(self, step: int) -> None:
        """Decide whether the update after a checkpoint is replayed later."""
        slot = self._count if self._count < MANY else self._draws.randrange(self._count + 1)
        self._count += 1
        self._due = (slot, step) if slot < MANY else None

    def after(self, step: int, parameters: Sequence[Tensor]) -> None:
        """Keep the weights after an update, if it is to be replayed."""
        if self._due is not None and step == self._due[1] + 1:
            slot, first = self._due
            weights = [p.detach().flatten().to("cpu", copy=True) for p in parameters]
            self._slots[slot] = (first, torch.cat(weights))
        if self._due is not None and step > self._due[1]:
            self._due = None

    def weights_after(self) -> dict[int, Tensor]:
        """Return the weights after updates, by the step of the checkpoint before."""
        return dict(self._slots.values())


@dataclass(frozen=True)
class Verified:
    """What replaying has shown."""

    verdict: str
    replayable: bool
    accumulate: int


def verified(
    probes: Probes,
    path: Path,
    about: Mapping[str, Any],
    model: nn.Module,
    data: tuple[Tensor, Tensor] | None,
    loss: str | Loss,
) -> Verified:
    """Replay the updates after some checkpoints, and say how they compare.

    Where gradients were accumulated, the loss may have been divided by the number of batches or
    not: what fits is taken.
    """
    loop = about["loop"]
    accumulate = loop["accumulate"]
    name = about["settings"]["optimizer"]
    if is_own(name):
        return Verified(
            f"updates of the optimizer {name!r} were not replayed, which is none of PyTorch's",
            True, accumulate,
        )  # fmt: skip
    weights_after = probes.weights_after()
    trajectory = _probed(path, about, list(weights_after))
    known = [s for s in weights_after if s in trajectory.checkpoints and trajectory.loop is not None
             and trajectory.loop.known(s, s + 1)]  # fmt: skip
    if not known:
        return Verified("no update could be replayed: none was recorded whole", True, accumulate)
    choices = dict.fromkeys((accumulate, 1)) if accumulate > 1 else {1: None}
    results = {
        choice: max(
            _difference(
                _divided(trajectory, choice), deepcopy(model), data, loss, step, weights_after[step]
            )
            for step in known
        )
        for choice in choices
    }
    best = min(results, key=lambda choice: results[choice])
    rounding = ROUNDING if loop["autocast"] is None else COARSE
    return Verified(*_words(results[best], len(known), rounding), best)


def _words(difference: float, many: int, rounding: float) -> tuple[str, bool]:
    counted = f"{many} update{'s' * (many > 1)} replayed"
    if difference == 0:
        return f"{counted} bit for bit", True
    if difference <= rounding:
        return f"{counted} to rounding ({difference:.0e} of an update)", True
    return (
        f"{counted} came out otherwise than recorded ({difference:.0%} of an update): the loop "
        "does something that is not recorded (another loss, gradients or weights that are changed "
        "in between)",
        False,
    )


def _probed(path: Path, about: Mapping[str, Any], steps: Sequence[int]) -> Trajectory:
    """Return the trajectory with some of its checkpoints only."""
    from inscape.training.recording_folder import loop_of

    arrays = read_steps(path, max_size=2**62)
    total = len(arrays["counts"])
    checkpoints, states, memory = read_checkpoints(path, total, only=steps, max_size=2**62)
    loop = loop_of(about["loop"], arrays, total)
    return Trajectory.assembled(about, states, memory, checkpoints, loop)


def _divided(trajectory: Trajectory, accumulate: int) -> Trajectory:
    assert trajectory.loop is not None
    return replace(trajectory, loop=replace(trajectory.loop, accumulate=accumulate))


def _difference(
    trajectory: Trajectory,
    model: nn.Module,
    data: tuple[Tensor, Tensor] | None,
    loss: str | Loss,
    step: int,
    weights: Tensor,
) -> float:
    """Return how far a replayed update is from the recorded one, relative to that."""
    x, y = data or (torch.zeros(0), torch.zeros(0))
    own = loss if is_own(trajectory.settings.loss) and callable(loss) else None
    before, after = list(stands(trajectory, model, x, y, step, step + 1, loss=own))
    end = after.weights.cpu()
    if torch.equal(end, weights):
        return 0.0
    moved = float((weights.double() - before.weights.cpu().double()).norm())
    missed = float((end.double() - weights.double()).norm())
    return missed / moved if moved else float("inf")
