"""A data set: inputs, labels, what they stand for and where they came from."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from inscape._core import checks
from inscape.data.catalogue import Value


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset:
    """Training and test set of one task.

    Regression labels are floats of shape (n, c); class labels are int64 of shape (n,). For the
    sets in the catalogue ``load(data.name, **data.settings)`` makes the same data again.
    """

    name: str
    x: Float[Tensor, "n *d"]
    y: Float[Tensor, "n c"] | Int[Tensor, " n"]
    task: Literal["regression", "classes"]
    x_test: Float[Tensor, "m *d"] | None = None
    y_test: Float[Tensor, "m c"] | Int[Tensor, " m"] | None = None
    notes: tuple[str, ...] = ()
    settings: dict[str, Value] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.one_of(("regression", "classes"), task=self.task)
        _check(self.x, self.y, self.task)
        if (self.x_test is None) != (self.y_test is None):
            raise ValueError(
                "x_test and y_test must be given together, found one without the other: "
                "give both or neither."
            )
        if self.x_test is not None and self.y_test is not None:
            _check(self.x_test, self.y_test, self.task)
            if self.x_test.shape[1:] != self.x.shape[1:]:
                raise ValueError(
                    f"x_test must have examples of shape {tuple(self.x.shape[1:])} as x has, found "
                    f"{tuple(self.x_test.shape[1:])}: reshape it."
                )

    @cached_property
    def hash(self) -> str:
        """Return the sha256 of all tensors: their bytes, shapes and dtypes."""
        digest = hashlib.sha256()
        for tensor in (self.x, self.y, self.x_test, self.y_test):
            if tensor is None:
                digest.update(b"none;")
                continue
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)};".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def classes(self) -> int | None:
        """Return the number of classes, or None for regression."""
        if self.task == "regression":
            return None
        if self.class_names:
            return len(self.class_names)
        labels = [y for y in (self.y, self.y_test) if y is not None]
        return 1 + max(int(y.max()) for y in labels)

    def subset(self, n: int) -> "Dataset":
        """Return the same set with only the first ``n`` training examples."""
        checks.at_least(1, n=n)
        if n > len(self.x):
            raise ValueError(
                f"n must be at most the {len(self.x)} training examples of {self.name}, found {n}: "
                "ask for fewer."
            )
        if n == len(self.x):
            return self
        note = f"subset: the first {n} of {len(self.x)} training examples"
        return replace(self, x=self.x[:n], y=self.y[:n], notes=(*self.notes, note))

    def to(
        self, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> "Dataset":
        """Return the same set in another precision or on another device; classes stay int64."""
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                f"dtype must be a floating-point type, found {dtype}: use torch.float32 or float64."
            )

        def moved(tensor: Tensor) -> Tensor:
            return tensor.to(device, dtype if tensor.is_floating_point() else None)

        return replace(
            self,
            x=moved(self.x),
            y=moved(self.y),
            x_test=None if self.x_test is None else moved(self.x_test),
            y_test=None if self.y_test is None else moved(self.y_test),
        )

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.x.shape))
        goal = f"{self.classes} classes" if self.classes else f"{self.y.shape[1]} real"
        test = "" if self.x_test is None else f", {len(self.x_test)} test examples"
        notes = "".join(f", {note}" for note in self.notes)
        return f"Dataset({self.name}: {shape} -> {goal}{test}{notes})"


def _check(x: Tensor, y: Tensor, task: str) -> None:
    checks.points(x)
    checks.labels(y, x)
    if task == "regression" and not (y.is_floating_point() and y.ndim == 2):
        raise ValueError(
            f"regression labels must be floats of shape (n, c), found {y.dtype} of shape "
            f"{tuple(y.shape)}: use y.float().reshape(len(y), -1)."
        )
    if task == "classes" and (y.dtype != torch.int64 or y.ndim != 1 or bool((y < 0).any())):
        raise ValueError(
            f"class labels must be int64 of shape (n,) counted from 0, found {y.dtype} of shape "
            f"{tuple(y.shape)} from {y.min().item()}: use y.long().flatten()."
        )
