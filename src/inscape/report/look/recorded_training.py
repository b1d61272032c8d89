"""A recorded training: whether it belongs to this model and these data, and the cost of replay."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from inscape.kernels import PathKernel, path_kernel
from inscape.loaders import OpenedData
from inscape.training import walk
from inscape.training.function_names import is_own
from inscape.training.trajectory import Trajectory, fingerprint

#: Updates at the beginning of a training that are gone through to see how long one takes: the
#: first ones, and so many more.
FIRST, TIMED = 2, 8
#: First updates that take longer than this, in seconds, say enough.
LONG = 5.0


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionQuery:
    """The inputs whose predictions are explained, the outputs that predict, and how exactly."""

    queries: Tensor
    outputs: tuple[int, ...]
    mode: Literal["exact", "first-order"] = "exact"


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedTraining:
    """A recorded training with its network and its data, on the CPU."""

    model: nn.Module
    x: Tensor
    y: Tensor
    trajectory: Trajectory

    @classmethod
    def of(cls, model: nn.Module, data: OpenedData, trajectory: Trajectory) -> "RecordedTraining":
        """Refuse a training of another network or of other data, and say which."""
        body = copy.deepcopy(model).cpu()
        _same_network(body, trajectory)
        y = _targets(data, trajectory)
        return cls(model=body, x=data.x.cpu(), y=y, trajectory=trajectory)

    @property
    def words(self) -> str:
        """Return what the training was."""
        settings = self.trajectory.settings
        name = {"sgd": "gradient descent", "adam": "Adam", "adamw": "AdamW"}
        batch = "all examples at once" if settings.batch is None else f"batches of {settings.batch}"
        momentum = f" with momentum {settings.momentum:g}" if settings.momentum else ""
        updates = f"{self.trajectory.steps:,} updates of "
        words = updates + f"{name.get(settings.optimizer, settings.optimizer)}{momentum}, {batch}"
        loop = self.trajectory.loop
        return words if loop is None else f"{words} (a loop of your own; {loop.verdict})"

    def split(self, query: PredictionQuery) -> PathKernel:
        """Return what every training row has added to the outputs at the queries."""
        return self._split(self.trajectory, query)

    def seconds(self, query: PredictionQuery) -> float:
        """Go through the first updates and return what all of them are expected to take."""
        self._refuse_functions()
        steps = self.trajectory.steps
        if steps <= FIRST + TIMED:
            return self._timed(self.trajectory, query)
        first = self._timed(self._beginning(FIRST), query)  # pays for what is done once, too
        if first > LONG:
            return first * steps / FIRST
        few = self._timed(self._beginning(FIRST), query)
        many = self._timed(self._beginning(FIRST + TIMED), query)
        return few + max(many - few, 0.0) / TIMED * steps

    def _timed(self, trajectory: Trajectory, query: PredictionQuery) -> float:
        start = perf_counter()
        self._split(trajectory, query)
        return perf_counter() - start

    def _split(self, trajectory: Trajectory, query: PredictionQuery) -> PathKernel:
        split = path_kernel(
            self.model, self.x, self.y, trajectory=trajectory, queries=query.queries,
            outputs=query.outputs, mode=query.mode,
        )  # fmt: skip
        assert isinstance(split, PathKernel)
        return split

    def _beginning(self, steps: int) -> Trajectory:
        """Return the first updates as a trajectory of their own."""
        trajectory, loop = self.trajectory, self.trajectory.loop
        if loop is None or loop.known(0, steps):
            states = list(walk(trajectory, self.model, self.x, self.y, 0, steps))
            ends = (states[0], states[-1])
        else:
            ends = (trajectory.at(0), trajectory.at(int(trajectory.checkpoints[1])))
        return replace(
            trajectory,
            states={name: torch.stack([end[name] for end in ends]) for name in ends[0]},
            memory={},
            checkpoints=torch.tensor([0, steps]),
            rates=trajectory.rates[:steps],
            loop=None if loop is None else loop.cut(steps),
        )

    def _refuse_functions(self) -> None:
        """Refuse a training with functions of the user's, which no file holds."""
        settings = self.trajectory.settings
        own = [name for name in ("loss", "optimizer") if is_own(getattr(settings, name))]
        if own or settings.penalties:
            raise ValueError(
                f"a recorded training holds no functions, found {own[0] if own else 'penalties'} "
                "of your own in it: call inscape.kernels.path_kernel from Python and pass them."
            )


def _same_network(body: nn.Module, trajectory: Trajectory) -> None:
    own = {name: (tuple(t.shape), t.dtype) for name, t in body.state_dict().items()}
    recorded = {name: (tuple(t.shape[1:]), t.dtype) for name, t in trajectory.states.items()}
    for name in (*own, *recorded):
        if own.get(name) != recorded.get(name):
            raise ValueError(
                f"the trajectory must be of this network, found that of another: {name!r} is "
                f"{_kind(recorded.get(name))} in it and {_kind(own.get(name))} in the model: give "
                "the model that was trained, as it was trained."
            )
    end = trajectory.at(trajectory.steps)
    for name, tensor in body.state_dict().items():
        if not torch.equal(tensor, end[name]):
            far = float((tensor.double() - end[name].double()).abs().max())
            raise ValueError(
                f"the trajectory must end at the weights of the model, found {name!r} up to "
                f"{far:.2g} away: give the weights after its last update, or leave --weights out "
                "to take them from it."
            )


def _kind(signature: tuple[tuple[int, ...], torch.dtype] | None) -> str:
    if signature is None:
        return "missing"
    shape, dtype = signature
    return f"{'x'.join(map(str, shape)) or 'a number'} in {str(dtype).removeprefix('torch.')}"


def _targets(data: OpenedData, trajectory: Trajectory) -> Tensor:
    """Return the labels in the form that the training was given, known by its fingerprint."""
    x = data.x.cpu()
    if data.y is not None:
        for y in _forms(data.y.cpu(), x.dtype):
            if fingerprint(x, y) == trajectory.data:
                return y
    shape = "x".join(map(str, x.shape))
    labels = "without labels" if data.y is None else f"with {data.task} as labels"
    raise ValueError(
        "the trajectory must be of a training on these very data, found one on other values, types "
        f"or shapes than {data.name} has ({shape} in {str(x.dtype).removeprefix('torch.')}, "
        f"{labels}): give --data, scaled and shaped, as it was given to fit or to "
        "record_training, without --limit."
    )


def _forms(y: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    """Yield labels in the forms that losses take."""
    yield y
    if y.is_floating_point():
        yield y.flatten()
        yield y.reshape(len(y), -1)
        return
    yield y.to(dtype)
    yield y.to(dtype)[:, None]
    yield one_hot(y).to(dtype)
