"""Attribution of predictions to training examples: exact sums of amounts, or similar examples."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import fsum
from typing import Any

from torch import Tensor

#: The name under which a look is asked for this part alone.
ATTRIBUTION = "attribution"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The answer of the network on one measured example, and why this example was chosen.

    ``output`` is the number of the output that is explained, ``value`` what it is; ``probability``
    is that of ``says``, None where the outputs are no logits.
    """

    row: int
    why: str
    says: str
    truth: str | None
    right: bool | None
    probability: float | None
    output: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Push:
    """What one training example has added to an output."""

    row: int
    label: str | None
    amount: float


@dataclass(frozen=True, kw_only=True)
class ClassPush:
    """What all training examples of a class have added to an output."""

    label: str
    rows: int
    amount: float


@dataclass(frozen=True, kw_only=True)
class Others:
    """What the training examples that are not named have added: upwards and downwards."""

    rows: int
    up: float
    down: float

    @property
    def amount(self) -> float:
        """Return what they have added together."""
        return self.up + self.down


@dataclass(frozen=True, kw_only=True)
class Explained:
    """One output as a sum: its value before training, and all that was added to it.

    ``rest`` is by name what no training example has added; it always has the residual.
    """

    prediction: Prediction
    initial: float
    up: tuple[Push, ...]
    down: tuple[Push, ...]
    others: Others
    rest: Mapping[str, float]
    final: float
    by_class: tuple[ClassPush, ...] = ()

    @property
    def total(self) -> float:
        """Return the sum of all parts that are shown."""
        pushes = [push.amount for push in (*self.up, *self.down)]
        return fsum([self.initial, *pushes, self.others.amount, *self.rest.values()])


@dataclass(frozen=True, kw_only=True)
class SimilarExample:
    """A similar training example: by cosine of gradients (nearest is 1), or by distance."""

    row: int
    label: str | None
    nearness: float
    both: bool


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The training examples with the most similar gradients, and those nearest by distance."""

    prediction: Prediction
    by_kernel: tuple[SimilarExample, ...]
    by_distance: tuple[SimilarExample, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """Which training examples made some predictions.

    With a recorded training, ``explained`` splits each prediction exactly; without one, or where
    that cannot be, ``reason`` says why and ``nearest`` names the examples with similar
    gradients. ``left_out`` are examples for which there was no time.
    """

    rows: str
    training_rows: int
    training: str = ""
    explained: tuple[Explained, ...] = ()
    nearest: tuple[Nearest, ...] = ()
    searched: int = 0
    reason: str = ""
    advice: str = ""
    left_out: tuple[int, ...] = ()
    seconds: float = 0.0
    command: str = ""
    pictures: Mapping[str, Tensor] = field(default_factory=dict)
    amounts: Mapping[int, Tensor] = field(default_factory=dict)

    @property
    def residual(self) -> float:
        """Return the largest part of an output that no sum accounts for."""
        return max((abs(explained.rest["residual"]) for explained in self.explained), default=0.0)

    @property
    def row(self) -> str:
        """Return what one of the explained examples is called."""
        return self.rows.removesuffix("s")

    def to_dict(self) -> dict[str, Any]:
        """Return all that is shown as plain values."""
        fields = {key: value for key, value in vars(self).items() if key not in _TENSORS}
        for key in ("explained", "nearest"):
            fields[key] = [asdict(item) for item in fields[key]]
        return fields


_TENSORS = ("pictures", "amounts")
