"""Run a call and judge it: answered, refused, not applicable, wrong or foreign."""

import math
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fuzz.calls import Call
from fuzz.claims import Unverifiable, wrong
from fuzz.ownership import ours
from fuzz.truths import ORACLES
from inscape._core import NotApplicable

#: Instruments that compute in the precision of the data; all others do in float64.
SINGLE = frozenset({
    "gradient_norm", "path_length", "gradient_path_length", "gradient_deflection", "rugosity",
    "effective_length_scale", "fisher_rao_norm", "tangent_kernel", "neighbours", "kernel_drift",
    "weights_product", "interpolation", "extrapolation", "robustness", "magnitude_pruning",
    "disagreement", "output_cross_entropy", "layer_alignment", "procrustes_distance",
    "canonical_correlation", "mutual_neighbours",
    "node_pruning", "channel_pruning", "exhaustive_pruning", "boolean_function", "spectral_norm",
    "hessian_density", "hessian_trace", "loss_surface", "sharpness",
})  # fmt: skip
#: Headline numbers that are not negative, and those that are proportions as well.
PROPORTIONS = frozenset({"neighbours", "robustness", "disagreement", "map_transfer",
                         "map_compression", "region_sharing", "active_subspace",
                         "slice_difference", "magnitude_pruning", "node_pruning",
                         "channel_pruning", "canonical_correlation",
                         "mutual_neighbours"})  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """``outcome`` is answered, unchecked, refused, not applicable, wrong or foreign."""

    outcome: str
    text: str = ""


def judge(call: Call) -> Verdict:
    """Run a call and compare what comes of it with brute force."""
    before = _state(call)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call.run()
    except Exception as error:
        if ours(error):
            return _untouched(call, before) or Verdict("refused", str(error))
        return Verdict("foreign", _trace(error))
    return _untouched(call, before) or _answer(call, result)


def _answer(call: Call, result: Any) -> Verdict:
    if isinstance(result, NotApplicable):
        return Verdict("not applicable", result.reason)
    if call.refused:
        return Verdict("wrong", f"an answer to {', '.join(call.kinds)}: {result!r}")
    if text := _headline(call, result):
        return Verdict("wrong", text)
    try:
        text = wrong(call, ORACLES[call.instrument], result, precision(call, result))
    except Unverifiable as reason:
        return Verdict("unchecked", str(reason))
    return Verdict("wrong", text) if text else Verdict("answered")


def precision(call: Call, result: Any) -> torch.dtype:
    """Return the dtype in which an instrument computes."""
    if isinstance(call.network.f, nn.Module) and getattr(result, "exact", False) is True:
        return torch.float64
    single = call.instrument in SINGLE or not isinstance(call.network.f, nn.Module)
    return call.x.dtype if single and call.x.is_floating_point() else torch.float64


def _headline(call: Call, result: Any) -> str:
    """Return what is impossible about the one number of a result."""
    summary = result.summary()
    if summary is None:
        return ""
    if call.instrument == "region_at" and not len(result.distances):
        return ""  # affine everywhere: there is no face at any distance
    ends = [end for end in (summary.low, summary.high) if end is not None]
    if not all(map(math.isfinite, (summary.value, *ends))):
        return f"not finite: {summary}"
    if call.instrument in PROPORTIONS and not all(0 <= v <= 1 for v in (summary.value, *ends)):
        return f"a proportion out of [0, 1]: {summary}"
    signed = call.instrument in ("hessian_trace", "interpolation", "map_alignment",
                                 "layer_alignment")  # fmt: skip
    if not signed and min(summary.value, *ends, 0.0) < 0:
        return f"below zero: {summary}"
    if ends and not ends[0] <= summary.value <= ends[-1]:
        return f"an interval without its value: {summary}"
    return ""


def _state(call: Call) -> tuple[Any, ...]:
    kept = {k: v.clone() for k, v in call.network.module.state_dict().items()}
    x = call.x
    readable = (
        isinstance(x, Tensor) and x.layout is torch.strided and not (x.is_meta or x.is_nested)
    )
    return kept, x.detach().clone() if readable else None, torch.get_rng_state()


def _untouched(call: Call, before: tuple[Any, ...]) -> Verdict | None:
    """Return what a call has changed that is not its own; networks that change themselves may."""
    kept, x, random = before
    module = call.network.module
    now = module.state_dict()
    moved = [k for k in kept if not torch.equal(now[k], kept[k])]
    with torch.no_grad():
        for name in moved:
            now[name].copy_(kept[name])
    moved = [name for name in moved if not name.endswith("calls")]
    if moved:
        return Verdict("wrong", f"changed the model: {moved}")
    if x is not None and not torch.equal(call.x.detach(), x) and bool(x.isfinite().all()):
        return Verdict("wrong", "changed the data")
    if x is not None and call.x.is_leaf and call.x.grad is not None:
        return Verdict("wrong", "left a gradient at the data")
    if any(p.grad is not None for p in module.parameters()):
        module.zero_grad(set_to_none=True)
        return Verdict("wrong", "left gradients at the parameters")
    if call.network.kind != "random" and not torch.equal(random, torch.get_rng_state()):
        return Verdict("wrong", "changed the global random state")
    return None


def _trace(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)
    inside = [f for f in last if "inscape" in f.filename][-1:] or last[-1:]
    lines = str(error).splitlines()
    place = f"{inside[0].filename.rsplit('inscape/', 1)[-1]}:{inside[0].lineno}"
    return f"{type(error).__name__} at {place}: {lines[0] if lines else ''}"
