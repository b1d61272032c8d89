"""Drift across widths: the scaling law of kernel drift with the width of networks."""

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
    """Kernel drift of networks in training, one entry for each network.

    Columns of ``norms`` are the start and the end; all else compares the end with the start.
    """

    nonfinite: ClassVar[Mapping[str, str]] = {
        "correlation": "NaN where a kernel does not vary",
        "cosine": "NaN where a kernel vanishes",
        "rescaled": "NaN where a kernel vanishes",
    }

    widths: Int64[Tensor, " networks"]
    change: Float64[Tensor, " networks"]
    cosine: Float64[Tensor, " networks"]
    correlation: Float64[Tensor, " networks"]
    norms: Float64[Tensor, "networks 2"]
    norm_change: Float64[Tensor, " networks"]
    rescaled: Float64[Tensor, " networks"]
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
                "norm change": float(self.norm_change[k]),
                "rescaled fraction": float(self.rescaled[k]),
                "norm at start": float(self.norms[k, 0]),
                "norm at end": float(self.norms[k, 1]),
            }

    def summary(self) -> Summary:
        """Return the exponent of the width in the scaling law of the change."""
        widths = sorted(set(self.widths.tolist()))
        basis = f"{len(self.widths)} networks of widths {widths[0]} to {widths[-1]}"
        return Summary(value=self.power, kind="estimate", basis=basis, low=self.low, high=self.high)


def drift_across_widths(drifts: Mapping[int, Sequence[KernelDrift]]) -> DriftAcrossWidths:
    r"""Return the scaling law of kernel drift with the width of networks.

    .. math:: \frac{|K_T - K_0|_F}{|K_0|_F} \approx a \, \mathrm{width}^{\mathrm{power}}

    The power is the slope of a least-squares line through the logarithms, with Student's
    confidence interval from three networks on. It is between -1/2 and -1 in the lazy regime, where
    units are random at initialisation and divided by the square root of the width (a random part of
    the change scales with -1/2, a systematic part with -1), and 0 for feature learning.

    Args:
        drifts: By width, the results of :func:`kernel_drift` for one or more networks.
    """
    pairs = [(width, drift) for width in sorted(drifts) for drift in drifts[width]]
    widths = torch.tensor([width for width, _ in pairs])
    if len(set(widths.tolist())) < 2 or int(widths.min()) < 1:
        raise ValueError(
            "drift_across_widths needs drifts of networks of two or more widths, all positive, "
            f"found widths {sorted(drifts)}: measure kernel_drift for others, too."
        )
    change = torch.stack([drift.change[-1, 0] for _, drift in pairs])
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
        cosine=torch.stack([drift.cosine[-1, 0] for _, drift in pairs]),
        correlation=torch.stack([drift.correlation[-1, 0] for _, drift in pairs]),
        norms=torch.stack([drift.norms[[0, -1]] for _, drift in pairs]),
        norm_change=torch.stack([drift.norm_change[-1, 0] for _, drift in pairs]),
        rescaled=torch.stack([drift.rescaled[-1, 0] for _, drift in pairs]),
        power=power,
        low=low,
        high=high,
    )


def _line(
    x: Float64[Tensor, " networks"], y: Float64[Tensor, " networks"]
) -> tuple[float, float | None, float | None]:
    """Return the slope of the regression line, with a 95% interval from three points on."""
    from scipy.stats import linregress, t

    fit = linregress(x.numpy(), y.numpy())
    slope = float(fit.slope)
    if len(x) < 3:
        return slope, None, None
    half_width = float(t.ppf(0.975, len(x) - 2) * fit.stderr)
    return slope, slope - half_width, slope + half_width
