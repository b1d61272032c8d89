"""Drift across widths: whether wider networks move their tangent kernel less, and by which law."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from inscape._core import Result, Row, Summary
from inscape.kernels.kernel_drift import KernelDrift


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DriftAcrossWidths(Result):
    """How far the kernels of networks moved in training, one entry for each network.

    Columns of ``norms`` are the start and the end; all else is the end against the start.
    """

    nonfinite: ClassVar[Mapping[str, str]] = {
        "correlation": "NaN where a kernel does not vary",
        "cosine": "NaN where a kernel vanishes",
    }

    widths: Int64[Tensor, " networks"]
    change: Float64[Tensor, " networks"]
    cosine: Float64[Tensor, " networks"]
    correlation: Float64[Tensor, " networks"]
    norms: Float64[Tensor, "networks 2"]
    power: float
    low: float | None
    high: float | None

    def rows(self) -> Iterator[Row]:
        """Yield one row for each network."""
        for k, width in enumerate(self.widths.tolist()):
            yield {
                "width": width,
                "change": float(self.change[k]),
                "cosine": float(self.cosine[k]),
                "correlation": float(self.correlation[k]),
                "norm at start": float(self.norms[k, 0]),
                "norm at end": float(self.norms[k, 1]),
            }

    def summary(self) -> Summary:
        """Return the power of the width with which the change goes."""
        widths = sorted(set(self.widths.tolist()))
        basis = f"{len(self.widths)} networks of widths {widths[0]} to {widths[-1]}"
        return Summary(value=self.power, kind="estimate", basis=basis, low=self.low, high=self.high)


def drift_across_widths(drifts: Mapping[int, Sequence[KernelDrift]]) -> DriftAcrossWidths:
    r"""Compare how far training moves the tangent kernels of narrow and wide networks.

    .. math:: \frac{|K_T - K_0|_F}{|K_0|_F} \approx a \, \mathrm{width}^{\mathrm{power}}

    The power is that of a straight line through the logarithms of all networks, with Student's
    interval from three networks on. It is between -1/2 and -1 in the lazy limit, where units begin
    at random and are divided by the root of the width (the change begins with -1/2 by chance and
    has a part of -1 by rule), and 0 where features are learned at every width.

    Args:
        drifts: By width, what :func:`kernel_drift` has found for one or more networks.
    """
    pairs = [(width, one) for width in sorted(drifts) for one in drifts[width]]
    widths = torch.tensor([width for width, _ in pairs])
    if len(set(widths.tolist())) < 2 or int(widths.min()) < 1:
        raise ValueError(
            "drift_across_widths needs drifts of networks of two or more widths, all positive, "
            f"found widths {sorted(drifts)}: measure kernel_drift for others, too."
        )
    change = torch.stack([one.change[-1, 0] for _, one in pairs])
    if not bool((change > 0).all() and change.isfinite().all()):
        at = int(widths[~((change > 0) & change.isfinite())][0])
        raise ValueError(
            f"drift_across_widths needs kernels that moved, found one at width {at} that did not "
            "or that vanishes: train longer, or leave that network out."
        )
    power, low, high = _line(widths.double().log(), change.log())
    return DriftAcrossWidths(
        widths=widths,
        change=change,
        cosine=torch.stack([one.cosine[-1, 0] for _, one in pairs]),
        correlation=torch.stack([one.correlation[-1, 0] for _, one in pairs]),
        norms=torch.stack([one.norms[[0, -1]] for _, one in pairs]),
        power=power,
        low=low,
        high=high,
    )


def _line(
    x: Float64[Tensor, " networks"], y: Float64[Tensor, " networks"]
) -> tuple[float, float | None, float | None]:
    """Return the slope of the line through points, with a 95% interval from three points on."""
    from scipy.stats import linregress, t

    found = linregress(x.numpy(), y.numpy())
    slope = float(found.slope)
    if len(x) < 3:
        return slope, None, None
    half = float(t.ppf(0.975, len(x) - 2) * found.stderr)
    return slope, slope - half, slope + half
