"""Result: the frozen answer of an instrument, that can be read, tabled, drawn and saved."""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from inscape._core.finiteness import refuse_nonfinite

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Scalar = float | int | str | bool | None
Row = Mapping[str, Scalar]
Kind = Literal["exact", "estimate", "lower bound", "upper bound"]

#: Half width of a 95% interval in standard errors.
Z95 = 1.959963984540054

#: Probability that all of n samples are on the side of a 95% interval's end.
TAIL = 0.025
#: Standard errors below this fraction of the mean are rounding: the samples are all alike.
ROUNDING = 1e-7
#: Said of a mean of samples that are all alike, whose interval nobody knows.
ALIKE = "all alike: no interval"

#: What values a quantity can have at all: no interval leaves it.
Range = tuple[float, float]
REAL: Range = (-math.inf, math.inf)
NONNEGATIVE: Range = (0.0, math.inf)
PROPORTION: Range = (0.0, 1.0)
CORRELATION: Range = (-1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The one number of a result: its value, how far it can be trusted, and from what."""

    value: float
    kind: Kind
    basis: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        """Refuse NaN, and an interval without its value: such a result has a status instead."""
        low, high = (self.value if end is None else end for end in (self.low, self.high))
        if not low <= self.value <= high:
            raise ValueError(
                f"a summary must be a number in its interval, found {self}: "
                "look at the rows of the result for those that are not finite."
            )

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.4g} ({self.kind})"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] ({self.kind})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """Numbers, settings and status of one measurement; subclasses add the fields."""

    types: ClassVar[dict[str, type["Result"]]] = {}

    #: By field, what infinity or NaN means in it; all other fields hold finite numbers.
    nonfinite: ClassVar[Mapping[str, str]] = {}

    #: Range of the summary's value, and so of its interval.
    range: ClassVar[Range] = REAL

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Result.types[cls.__name__] = cls

    def __post_init__(self) -> None:
        """Refuse NaN and infinity where they have no meaning, naming field and first row."""
        for field in fields(self):
            if field.name not in self.nonfinite:
                refuse_nonfinite(type(self).__name__, field, getattr(self, field.name))

    def rows(self) -> Iterator[Row]:
        """Yield tidy rows: the primitive behind tables, CSV and the report."""
        raise NotImplementedError(f"{type(self).__name__} must define rows().")

    def summary(self) -> Summary | None:
        """Return the headline number, or None where there is none."""
        return None

    def per_sample(self) -> Tensor | None:
        """Return one number for each sample, whose mean is the summary's value, if there are any.

        At one seed and on the same data they belong to the same samples, whatever the network, so
        that two networks can be compared sample by sample.
        """
        return None

    @property
    def status(self) -> str:
        """Return ``"ok"``, or why there is no number."""
        return "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name; tensors stay tensors."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_frame(self) -> "pd.DataFrame":
        """Return the rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the result on ``ax`` (a new one by default) and return the axes.

        In a notebook a new picture is shown below the cell.
        """
        from inscape.figures import draw, show

        axes = draw(self, ax)
        if ax is None:
            show(axes)
        return axes

    def save(self, path: str | Path) -> Path:
        """Write to ``path`` in the form that its suffix names, and return the path.

        Suffixes: json (read back with ``inscape.load``), csv, parquet, tex, html, svg, pdf, png.
        """
        from inscape._core.saving import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline()})"

    def _headline(self) -> str:
        summary = self.summary()
        return self.status if summary is None else f"{summary}; {summary.basis}"

    def _repr_html_(self) -> str:
        from inscape._core.saving import html_table

        return html_table(self)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NotApplicable(Result):
    """An analysis that does not apply to a model, with the reason instead of a number."""

    what: str
    reason: str

    @property
    def status(self) -> str:
        """Return ``"not applicable: reason"``."""
        return f"not applicable: {self.reason}"

    def rows(self) -> Iterator[Row]:
        """Yield one row with the reason."""
        yield {"what": self.what, "status": self.status}


def wilson_ends(share: Any, n: Any) -> tuple[Any, Any]:
    r"""Return the ends of Wilson's 95% interval of a fraction of ``n`` points, for all numbers.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

    >>> [round(end, 3) for end in wilson_ends(0.0, 100)]
    [0.0, 0.037]
    """
    z = Z95**2 / n
    middle = (share + z / 2) / (1 + z)
    half = (z * (share * (1 - share) + z / 4)) ** 0.5 / (1 + z)
    return middle - half, middle + half


def wilson(share: Tensor, n: float | Tensor) -> Tensor:
    """Return the 95% interval of a fraction of ``n`` independent points (Wilson's), in a last axis.

    Where all points are alike, Clopper and Pearson's, which is never too narrow.

    >>> [round(end, 4) for end in wilson(torch.tensor(0.9, dtype=torch.float64), 100).tolist()]
    [0.8256, 0.9448]
    >>> [round(end, 4) for end in wilson(torch.tensor(1.0, dtype=torch.float64), 5).tolist()]
    [0.4782, 1.0]
    """
    below, above = wilson_ends(share, n)
    low, high = torch.minimum(below, share), torch.maximum(above, share)
    unseen = 1 - torch.as_tensor(TAIL, dtype=share.dtype) ** (1 / n)
    low = torch.where(share == 1, 1 - unseen, low)
    high = torch.where(share == 0, unseen, high)
    return torch.stack([low, high], dim=-1).clamp(0, 1)


def share_summary(samples: Tensor, *, kind: Kind, basis: str) -> Summary:
    """Summarise samples that are 0 or 1 by their mean with a 95% interval (Wilson's)."""
    share = samples.double().mean()
    low, high = wilson(share, len(samples)).tolist()
    return Summary(value=float(share), kind=kind, basis=basis, low=low, high=high)


@cache
def student(n: int) -> float:
    """Return the half width of a 95% interval of a mean of ``n`` values, in standard errors.

    >>> round(student(5), 3)
    2.776
    """
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.975))


def mean_summary(samples: Tensor, *, kind: Kind, basis: str) -> Summary:
    r"""Summarise independent non-negative samples by their mean with a 95% interval.

    .. math:: m \, e^{\pm t s / m \sqrt n}, \quad t = t_{n - 1, \, 0.975}

    Student's interval for the logarithm of the mean, by the delta method: it holds no negative
    numbers, is longer above than below as skewed samples need, and comes to the usual one for many.
    Samples that are all alike have none: how far others may be from them is not known.

    >>> mean_summary(torch.tensor([0.1, 0.2, 3.0]), kind="estimate", basis="").low > 0
    True
    """
    values = samples.double()
    size = float(values.abs().max()) or 1.0  # squares overflow soon
    mean = finite_mean(values)
    if len(values) < 2:
        return Summary(value=mean, kind=kind, basis=basis)
    error = size * float((values / size).std()) / len(values) ** 0.5
    return positive_summary(mean, error, len(values), kind=kind, basis=basis)


def finite_mean(values: Tensor) -> float:
    """Return the mean of finite values, also where their sum would overflow.

    >>> finite_mean(torch.tensor([1.5e308, 1.5e308], dtype=torch.float64))
    1.5e+308
    """
    mean = float(values.mean())
    if math.isfinite(mean):
        return mean
    size = float(values.abs().max())
    return size * float((values / size).mean())


def positive_summary(mean: float, error: float, n: int, *, kind: Kind, basis: str) -> Summary:
    """Summarise ``n`` non-negative samples by mean and standard error, with a 95% interval."""
    if not mean or error <= ROUNDING * mean:
        return Summary(value=mean, kind=kind, basis=f"{basis}; {ALIKE}")
    largest = sys.float_info.max  # where the errors leave the floating-point range
    half = min(student(n) * error / mean, math.log(largest))
    low, high = mean * math.exp(-half), min(mean * math.exp(half), largest)
    return Summary(value=mean, kind=kind, basis=basis, low=low, high=high)
