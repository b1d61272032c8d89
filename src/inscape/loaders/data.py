"""Opening data: a file, a loader, tensors or a name; every guess is noted and recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.errors import DataError
from inscape.loaders.arrays import Array, Arrays
from inscape.loaders.device import choose_device, choose_dtype
from inscape.loaders.input_preparation import Preparation, read_preparation
from inscape.loaders.labels import Labels, Name, Task, read_labels
from inscape.loaders.parts import Parts
from inscape.loaders.sources import DataSource, find_source

Loss = Literal["mse", "cross_entropy", "bce_logits"]
LOSSES: dict[str, Loss] = {
    "mse": "mse",
    "cross_entropy": "cross_entropy",
    "bce_logits": "bce_logits",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedData:
    """Inputs and labels ready for a model, with facts and notes about them.

    ``parts`` are the inputs that a row of ``x`` holds for a model with several, or with integers;
    once tokens are embedded, ``tokens`` and ``tokens_test`` are the examples before.
    ``guess`` is the note on what the labels are taken for, empty where somebody said it; ``names``
    are what class numbers stand for, empty where these are the labels themselves.
    """

    x: Float[Tensor, "n *d"]
    y: Float[Tensor, "n *c"] | Int[Tensor, " n"] | None = None
    x_test: Float[Tensor, "m *d"] | None = None
    y_test: Float[Tensor, "m *c"] | Int[Tensor, " m"] | None = None
    name: str
    task: Task
    loss: Loss | None = None
    hash: str
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    guess: str = ""
    names: tuple[Name, ...] = ()
    parts: Parts = ()
    tokens: Tensor | None = None
    tokens_test: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def split(self) -> Literal["test", "all"]:
        """Return the name of the examples to measure on: the test examples if there are any."""
        return "all" if self.x_test is None else "test"

    @property
    def measured(self) -> tuple[Tensor, Tensor | None]:
        """Return x and y of the examples to measure on."""
        return (self.x, self.y) if self.x_test is None else (self.x_test, self.y_test)


def open_data(
    spec: object,
    *,
    input_shape: str | tuple[int, ...] | None = None,
    divide: str | float | None = None,
    normalise: str | tuple[Any, Any] | None = None,
    labels: str = "auto",
    loss: str = "auto",
    limit: int | None = None,
    target: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = False,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype = torch.float32,
    max_size: int | None = None,
    arguments: Sequence[str] = (),
) -> OpenedData:
    """Open data for measuring a model on them.

    Args:
        spec: ``(x, y)`` or ``x`` as tensors or arrays, where x may be a dictionary or a tuple of
            several inputs; a mapping of columns, a DataLoader, an inscape Dataset; or, as text, the
            path of a .npz, .npy, .csv or .pt, or the name of a data set.
        input_shape: Shape of one input, ``1x28x28`` or ``(1, 28, 28)``.
        divide: A number to divide the inputs by; ``auto`` divides integers up to 255 by 255.
        normalise: ``MEAN,STD``, ``MEANS/STDS`` by channel, ``mnist`` or ``cifar10``; applied last.
        labels: ``classes``, ``regression``, ``none``, or ``auto`` to guess and say so.
        loss: ``mse``, ``cross_entropy``, ``bce_logits``, or ``auto`` to follow the labels.
        limit: Keep at most so many examples of each split, drawn with seed 0.
        target: Name of the label's column in a .csv; the last one if not given.
        data_dir: Where to look for the files of a named data set first.
        download: Fetch the files of a named data set if they are missing.
        device: Where to put the data.
        dtype: Precision of the inputs.
        max_size: Bytes that a file may unpack to; 2 GB or a quarter of memory if not given.
        arguments: Names that the model's forward has: arrays of these names are its inputs.
    """
    checks.one_of(("auto", *LOSSES), loss=loss)
    if limit is not None:
        checks.at_least(1, limit=limit)
    place = choose_device(device)
    precision = choose_dtype(dtype, place) or torch.float32
    source = find_source(
        spec,
        limit=limit,
        target=target,
        with_labels=labels != "none",
        dtype=precision,
        data_dir=data_dir,
        download=download,
        max_size=max_size,
        arguments=arguments,
    )
    preparation = {"input_shape": input_shape, "divide": divide, "normalise": normalise}
    form = {"limit": limit, "place": place, "dtype": precision}
    return _prepared(source, preparation, form, labels=labels, loss=loss, target=target)


def _prepared(
    source: DataSource,
    preparation: Mapping[str, Any],
    form: Mapping[str, Any],
    *,
    labels: str,
    loss: str,
    target: str | None,
) -> OpenedData:
    """Return the data of a source with inputs prepared, labels read, both in the given form."""
    arrays = source.arrays
    _refuse_preparation(arrays, **preparation)
    wish = source.task if labels == "auto" and source.task else labels
    read = read_labels(arrays.y, arrays.y_test, wish=wish, dtype=form["dtype"])
    prepare, notes = read_preparation(arrays.x, **preparation)
    ready = _Ready(prepare=prepare, **form)
    data = ready.data(source, read, loss=_loss(loss, read.task))
    settings = {**prepare.settings, "labels": read.task, "loss": loss, "limit": ready.limit}
    return replace(
        data,
        notes=tuple(dict.fromkeys((*arrays.notes, *read.notes, *notes, *ready.notes))),
        settings={**settings, "target": target, "dataset": source.settings or None},
    )


def _refuse_preparation(arrays: Arrays, **wishes: Any) -> None:
    """Refuse to scale or to shape several inputs at once."""
    several = len(arrays.parts) > 1 or any(part.key != 0 for part in arrays.parts)
    requested = [name for name, wish in wishes.items() if wish is not None]
    if several and requested:
        raise DataError(
            f"--{requested[0].replace('_', '-')} must have one array to apply to, found the inputs "
            f"{', '.join(str(part.key) for part in arrays.parts)}: prepare them before saving."
        )


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """Makes the examples of both splits ready: which, in which form, where."""

    prepare: Preparation
    limit: int | None
    place: torch.device
    dtype: torch.dtype
    notes: list[str] = field(default_factory=list)

    def data(self, source: DataSource, labels: Labels, *, loss: Loss | None) -> OpenedData:
        """Return both splits, not yet with notes and settings."""
        x, y = self.split(source.arrays.x, labels.y, "examples")
        x_test, y_test = None, None
        if source.arrays.x_test is not None:
            x_test, y_test = self.split(source.arrays.x_test, labels.y_test, "test examples")
        return OpenedData(
            x=x,
            y=y,
            x_test=x_test,
            y_test=y_test,
            name=source.name,
            task=labels.task,
            loss=loss,
            hash=source.hash,
            guess=labels.guess,
            names=labels.names,
            parts=source.arrays.parts,
        )

    def split(self, x: Array, y: Tensor | None, samples: str) -> tuple[Tensor, Tensor | None]:
        """Return inputs and labels of the examples that are kept."""
        if self.limit is not None and len(x) > self.limit:
            self.notes.append(f"kept {self.limit} of {len(x)} {samples}, drawn with seed 0")
            rows = torch.randperm(len(x), generator=generator(0))[: self.limit].sort().values
            x, y = x[rows.numpy()], None if y is None else y[rows]
        inputs, notes = self.prepare.apply(x, self.dtype)
        self.notes.extend(notes)
        for name, tensor in (("x", inputs), ("y", y)):
            if tensor is not None and not bool(tensor.isfinite().all()):
                raise DataError(
                    f"{name} must fit into {self.dtype}, found numbers that become infinite: "
                    "scale them, or use --dtype float64."
                )
        return inputs.to(self.place), None if y is None else y.to(self.place)


def _loss(wish: str, task: Task) -> Loss | None:
    """Return the loss that goes with the labels, or refuse one that does not."""
    if wish == "auto":
        return {"regression": "mse", "classes": "cross_entropy", "unlabelled": None}[task]
    if task == "unlabelled":
        raise DataError(f"loss {wish} must have labels, found none: give y, or leave out --loss.")
    if task == "regression" and wish != "mse":
        raise DataError(
            f"loss {wish} must have classes as labels, found real numbers: use --labels classes, "
            "or --loss mse."
        )
    return LOSSES[wish]
