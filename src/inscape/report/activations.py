"""Activations of ReLU units on examples: units that are never on, and copies of other units."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from inscape._core import generator

#: Numbers that stand for what a unit does on all examples: its products with random directions.
SKETCH = 32
#: Examples of each batch that are sketched, at most.
SKETCHED = 64
#: Units are copies if the cosine of what they do is above one minus this: a multiple within 1.4%.
SAME = 1e-4
#: Layers of more units are not searched for copies.
MOST = 8192


@dataclass(eq=False, kw_only=True)
class Activations:
    """What is noted of each ReLU layer while examples pass through.

    Attributes:
        silent: Which units were off on all examples.
        sketches: Products of what each unit did with random directions.
    """

    silent: dict[str, Bool[Tensor, " units"]] = field(default_factory=dict)
    sketches: dict[str, Float64[Tensor, "units k"]] = field(default_factory=dict)

    def hook(self, name: str) -> Callable[[nn.Module, object, Tensor], None]:
        """Return a hook that notes what the units, or channels of images, of a layer do."""
        draws = generator(0)

        def note(module: nn.Module, inputs: object, output: Tensor) -> None:
            flat = output.detach() if output.ndim > 1 else output.detach()[None]
            off = (flat.transpose(0, 1).flatten(1) <= 0).all(1).cpu()
            self.silent[name] = off & self.silent[name] if name in self.silent else off
            if len(off) > MOST:
                return
            units = flat[:SKETCHED].transpose(0, 1).flatten(1).double().cpu()
            directions = torch.randn(units.shape[1], SKETCH, generator=draws, dtype=torch.float64)
            sketch = units @ directions
            self.sketches[name] = sketch + self.sketches.get(name, torch.zeros_like(sketch))

        return note

    def copies(self) -> dict[str, Bool[Tensor, " units"]]:
        """Tell for each layer which units are a positive multiple of an earlier one.

        By random projections, which keep multiples and tell apart what is none; dead units do not
        count.
        """
        duplicates = {}
        for name, sketch in self.sketches.items():
            length = sketch.norm(dim=1, keepdim=True)
            unit = sketch / length.clamp(min=1e-300)
            cosine = (unit @ unit.T).tril(-1)
            alive = (length[:, 0] > 0) & ~self.silent[name]
            same = (cosine > 1 - SAME) & alive & alive[:, None]
            duplicates[name] = same.any(1)
        return duplicates


@contextmanager
def recorded(model: nn.Module, units: Activations | None) -> Iterator[None]:
    """Note what the ReLU units of a model do while the block runs."""
    hooks = []
    if units is not None:
        for name, module in model.named_modules():
            if type(module) in (nn.ReLU, nn.ReLU6):
                hooks.append(module.register_forward_hook(units.hook(name)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
