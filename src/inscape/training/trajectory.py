"""The trajectory of a training: checkpoints, batches and learning rates, for replay of any step.

A :class:`Trajectory` is plain data without losses and optimizers. The steps between two checkpoints
are repeated by :func:`inscape.training.replay`, which shares the update with
:func:`inscape.training.fit`.

Step ``t`` means *after* ``t`` updates: step 0 is the initial network, and update ``t`` leads from
step ``t`` to step ``t + 1`` with the batch ``rows(t)`` and the learning rate ``rates[t]``.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float64, Int64, Integer
from numpy.typing import NDArray
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import DataError
from inscape.files.archives import read_npz
from inscape.files.atomic import check_regular, written
from inscape.training.loop_record import LoopRecord
from inscape.training.recording_folder import (
    last_whole,
    loop_of,
    read_about,
    read_checkpoints,
    read_steps,
)
from inscape.training.settings import FitSettings
from inscape.training.trajectory_form import check_form

SCHEMA = 1


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trajectory:
    """Checkpoints of a training, and the batches and learning rates of all its steps.

    Everything is on the CPU. Checkpoint ``i`` was taken at step ``checkpoints[i]``, and is row
    ``i`` of every tensor in ``states``. An optimizer has no state before its first update, so a
    tensor of ``memory`` may have fewer rows; they belong to the last checkpoints.

    Attributes:
        states: Parameters and buffers, by their names in the state dict, stacked over checkpoints.
        memory: State of the optimizer, named ``"<number in trainable>.<key>"``.
        checkpoints: Steps of the checkpoints, in order; the first is 0, the last is ``steps``.
        rates: Learning rate of every update.
        order: Order of the data in every epoch; None if each update used all data.
        trainable: Names of the parameters that were trained, in the order of the optimizer.
        settings: Settings of ``fit``. Of a loop of the user's: its loss and optimizer,
            and the largest momentum, weight decay and rate of all parameter groups at its start.
        data: Fingerprint of the training data.
        loop: Record of each update of a loop of the user's; None for a training by ``fit``.
    """

    states: Mapping[str, Tensor]
    memory: Mapping[str, Tensor]
    checkpoints: Int64[Tensor, " checkpoints"]
    rates: Float64[Tensor, " steps"]
    order: Integer[Tensor, "epochs n"] | None
    trainable: tuple[str, ...]
    settings: FitSettings
    data: str
    loop: LoopRecord | None = None

    @property
    def steps(self) -> int:
        """Number of updates that were made."""
        return len(self.rates)

    def __repr__(self) -> str:
        return (
            f"Trajectory({self.steps} steps of {self.settings.optimizer}, "
            f"{len(self.checkpoints)} checkpoints)"
        )

    def at(self, step: int) -> dict[str, Tensor]:
        """Return a copy of the state dict at a checkpoint."""
        index = self._index(step)
        if int(self.checkpoints[index]) != step:
            raise ValueError(
                f"step {step} is no checkpoint, the nearest before it is "
                f"{int(self.checkpoints[index])}: use inscape.training.replay to compute it."
            )
        return {name: rows[index].clone() for name, rows in self.states.items()}

    def before(self, step: int) -> int:
        """Return the step of the last checkpoint at or before ``step``."""
        return int(self.checkpoints[self._index(step)])

    def optimizer_state(self, step: int) -> dict[int, dict[str, Tensor]]:
        """Return a copy of the optimizer's state at a checkpoint, by parameter number."""
        late = len(self.checkpoints) - self._index(step)
        state: dict[int, dict[str, Tensor]] = {}
        for name, rows in self.memory.items():
            number, _, key = name.partition(".")
            if late <= len(rows):
                state.setdefault(int(number), {})[key] = rows[-late].clone()
        return state

    def rows(self, step: int) -> slice | Int64[Tensor, " batch"]:
        """Return the samples that update ``step`` used: an index for ``x[...]``.

        A full batch is ``slice(None)``; ``torch.arange(n)[rows]`` are their indices for either.
        """
        self._check(step, self.steps - 1)
        if self.loop is not None:
            return self.loop.rows_of(step)
        if self.order is None:
            return slice(None)
        batch = self.settings.batch or 1
        per_epoch = -(-self.order.shape[1] // batch)
        epoch, place = divmod(step, per_epoch)
        return self.order[epoch, place * batch : (place + 1) * batch].long()

    def save(self, path: str | Path) -> Path:
        """Write everything to one ``.npz`` file, whole or not at all, and return its path."""
        path = Path(path)
        if path.suffix != ".npz":
            raise ValueError(
                f"a trajectory is written as .npz, found {path.name!r}: rename it to "
                f"{path.with_suffix('.npz').name!r}."
            )
        arrays = {"checkpoints": self.checkpoints, "rates": self.rates}
        arrays |= {f"states/{name}": rows for name, rows in self.states.items()}
        arrays |= {f"memory/{name}": rows for name, rows in self.memory.items()}
        if self.order is not None:
            arrays["order"] = self.order
        about = {"schema": SCHEMA, "settings": asdict(self.settings), "data": self.data}
        about["trainable"] = self.trainable
        if self.loop is not None:
            about["loop"] = self.loop.about()
            arrays |= {f"loop/{name}": tensor for name, tensor in self.loop.arrays().items()}
        stored = {name: _numpy(name, tensor) for name, tensor in arrays.items()}
        _write(path, stored | {"about": np.array(json.dumps(about))})
        return path

    @classmethod
    def load(cls, path: str | Path, *, max_size: int | None = None) -> "Trajectory":
        """Read what :meth:`save` or :func:`inscape.record_training` wrote; nothing in it is run.

        A recording that was interrupted opens as a shorter training.

        Args:
            path: The file, or the folder of a recorded loop.
            max_size: Bytes that it may unpack to; 2 GB or a quarter of memory if not given.
        """
        try:
            if Path(path).is_dir():
                return cls._of_folder(Path(path), max_size)
            check_regular(Path(path), "a trajectory")
            with Path(path).open("rb") as file:
                arrays = read_npz(file, name=path, max_size=max_size)
            about = json.loads(arrays.pop("about").item())
            _check_schema(about, path)
            return cls._from(about, {name: torch.from_numpy(a) for name, a in arrays.items()})
        except DataError:
            raise
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RuntimeError,
            RecursionError,
            BadZipFile,
        ) as error:
            fault = str(error).partition("\n")[0]
            raise DataError(
                f"{path} must be a trajectory saved by Inscape, found something else "
                f"({type(error).__name__}: {fault:.200}): save it again with "
                "trajectory.save('name.npz')."
            ) from error

    @classmethod
    def _of_folder(cls, path: Path, max_size: int | None) -> "Trajectory":
        about = read_about(path)
        _check_schema(about, path)
        arrays = read_steps(path, max_size=max_size)
        last = last_whole(path, len(arrays.get("counts", ())))
        if last == 0:
            raise DataError(
                f"{path} must hold at least one checkpoint after the first, found none: the "
                "recording ended before it; train again with a smaller every=...."
            )
        checkpoints, states, memory = read_checkpoints(path, last, max_size=max_size)
        loop = loop_of(about["loop"], arrays, last)
        return cls.assembled(about, states, memory, checkpoints, loop)

    @classmethod
    def assembled(
        cls,
        about: Mapping[str, Any],
        states: Mapping[str, Tensor],
        memory: Mapping[str, Tensor],
        checkpoints: Sequence[int],
        loop: LoopRecord,
    ) -> "Trajectory":
        """Return the trajectory of a recorded loop out of its parts."""
        tensors = {f"states/{name}": rows for name, rows in states.items()}
        tensors |= {f"memory/{name}": rows for name, rows in memory.items()}
        tensors |= {f"loop/{name}": tensor for name, tensor in loop.arrays().items()}
        tensors["checkpoints"] = torch.tensor(checkpoints)
        tensors["rates"] = loop.options[:, 0, loop.option_names.index("lr")].clone()
        return cls._from(about, tensors)

    @classmethod
    def _from(cls, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> "Trajectory":
        settings = dict(about["settings"])
        if missing := {field.name for field in fields(FitSettings)} - settings.keys():
            raise KeyError(f"settings {sorted(missing)}")
        settings["betas"] = tuple(settings["betas"])
        settings["penalties"] = tuple((c, name) for c, name in settings["penalties"])
        trajectory = cls(
            states=_under("states/", tensors),
            memory=_under("memory/", tensors),
            checkpoints=tensors["checkpoints"],
            rates=tensors["rates"],
            order=tensors.get("order"),
            trainable=tuple(about["trainable"]),
            settings=FitSettings(**settings),
            data=about["data"],
            loop=LoopRecord.of(about["loop"], _under("loop/", tensors))
            if "loop" in about
            else None,
        )
        check_form(trajectory)
        return trajectory

    def _index(self, step: int) -> int:
        self._check(step, self.steps)
        return int(torch.searchsorted(self.checkpoints, step, right=True)) - 1

    def _check(self, step: int, last: int) -> None:
        if not 0 <= step <= last:
            raise ValueError(f"step must lie between 0 and {last}, found {step}: choose another.")


def _check_schema(about: Mapping[str, Any], path: str | Path) -> None:
    if about["schema"] > SCHEMA:
        raise DataError(
            f"{path} has schema {about['schema']}, this version reads up to {SCHEMA}: "
            "update inscape."
        )


def chosen_steps(trajectory: Trajectory, steps: int | Sequence[int]) -> list[int]:
    """Return checkpoints in order: so many, evenly spaced, or those that are named."""
    known = trajectory.checkpoints.tolist()
    if isinstance(steps, Integral):
        checks.whole(2, steps=steps)
        places = torch.linspace(0, len(known) - 1, min(int(steps), len(known))).round().long()
        return [known[place] for place in places.tolist()]
    return sorted(set(checks.wholes(0, steps=steps)))


def stand_at(body: nn.Module, trajectory: Trajectory, step: int) -> None:
    """Load the weights of a checkpoint into a module."""
    try:
        body.load_state_dict(trajectory.at(step))
    except RuntimeError as error:
        raise ValueError(
            "trajectory must be that of the model, found weights of other names or shapes: "
            "pass the model that was trained."
        ) from error


def fingerprint(*tensors: Tensor) -> str:
    """Return a hash of values, shapes and types, by which data are recognised."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        values = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(values.numpy().data)
    return digest.hexdigest()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def _numpy(name: str, tensor: Tensor) -> NDArray[Any]:
    try:
        return tensor.numpy()
    except TypeError as error:
        raise TypeError(
            f"a trajectory on disk holds types that numpy knows, found {tensor.dtype} in {name!r}: "
            "train in float32 or float64 to save it."
        ) from error


def _write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with written(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
