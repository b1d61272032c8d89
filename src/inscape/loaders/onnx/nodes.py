"""One step of an ONNX graph: its operator, its settings, and what it reads and makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from torch import Tensor

from inscape.errors import UnsupportedModelError

#: Letters of a name that are shown.
SHOWN = 60


def shown(name: object) -> str:
    """Return a name of a file, on one line and not too long."""
    text = str(name)
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


@dataclass(frozen=True, kw_only=True)
class Branch:
    """The steps of one side of an ``If``, and the names of what it returns."""

    nodes: "tuple[Node, ...]"
    outputs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Node:
    """A step of the graph; ``on_host`` where it computes sizes rather than values.

    An ``If`` has two branches: what is done where its condition is true, and where it is not.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    on_host: bool = False
    branches: tuple[Branch, ...] = ()
    rows: int | None = None  # where its first size is how many examples the file was written for

    @property
    def place(self) -> str:
        """Say which step this is."""
        return f"node {shown(self.name or self.outputs[0])} ({self.op})"

    @property
    def reads(self) -> set[str]:
        """Return the names that it reads, also within its branches."""
        inner = {name for branch in self.branches for name in branch.outputs}
        for node in self.steps:
            inner |= node.reads
        return (inner | {*self.inputs}) - {""}

    @property
    def steps(self) -> "tuple[Node, ...]":
        """Return the steps in both of its branches."""
        return tuple(node for branch in self.branches for node in branch.nodes)

    def refuse(self, expected: str, value: object) -> NoReturn:
        """Refuse the file because of this step."""
        raise UnsupportedModelError(
            f"{self.place} must have {expected}, found {shown(value)}: export the model another "
            "way, for example as .pt2."
        )

    def integer(self, key: str, default: int) -> int:
        """Return a setting that is an integer."""
        return int(self._typed(key, default, int))

    def number(self, key: str, default: float) -> float:
        """Return a setting that is a number."""
        return float(self._typed(key, default, (int, float)))

    def text(self, key: str, default: str) -> str:
        """Return a setting that is a word."""
        return str(self._typed(key, default, str))

    def integers(self, key: str, default: list[int] | None = None) -> list[int] | None:
        """Return a setting that is a list of integers."""
        values = self.settings.get(key, default)
        if values is not None and not all(isinstance(value, int) for value in list(values)):
            self.refuse(f"integers as {key}", values)
        return None if values is None else list(values)

    def _typed(self, key: str, default: Any, kind: Any) -> Any:
        value = self.settings.get(key, default)
        if not isinstance(value, kind):
            self.refuse(f"another kind of {key}", value)
        return value

    def axis(self, value: int, ndim: int) -> int:
        """Return the index of an axis, counted from the first."""
        if not -ndim <= value < max(ndim, 1):
            self.refuse(f"an axis of {ndim} dimensions", value)
        return value % max(ndim, 1)

    def sizes(self, value: Any, role: str) -> list[Any]:
        """Return integers that a step was given, which do not depend on the input."""
        entries = self._known(value, role)
        return [int(item) if isinstance(item, np.number) else item for item in entries]

    def numbers(self, value: Any, role: str) -> list[float]:
        """Return numbers that a step was given, which do not depend on the input."""
        return [float(item) for item in self._known(value, role)]

    def _known(self, value: Any, role: str) -> list[Any]:
        if isinstance(value, Tensor):
            self.refuse(f"{role} that does not depend on the values of the input", "one that does")
        return list(np.ravel(value))
