"""Why an exact instrument does not apply to a model."""

import torch
from torch import Tensor, nn

from inscape._core import NotApplicable, UnsupportedModelError, checks
from inscape._core.checks import Function


def refusal(name: str, f: Function, x: Tensor, error: UnsupportedModelError) -> NotApplicable:
    """Return that the instrument does not apply; raise where the model cannot process the data."""
    weights = f.parameters() if isinstance(f, nn.Module) else ()
    dtype = next((weight.dtype for weight in weights if weight.is_floating_point()), x.dtype)
    with torch.no_grad():
        checks.call(f, x[:1].detach().to(dtype, copy=True))
    return NotApplicable(what=name, reason=str(error))
