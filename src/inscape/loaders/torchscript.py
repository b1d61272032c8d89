"""A TorchScript module as a plain module: hooks, copies and substituted parameters work on it."""

from typing import Any

import torch
from torch import nn
from torch.jit._fuser import optimized_execution

from inscape.loaders.exported_module import place


class Scripted(nn.Module):
    """A TorchScript module with its parameters and buffers under their own names.

    Each call runs the script on the parameters that this module has at that time, so those of
    ``torch.func.functional_call`` reach it. The optimiser of TorchScript is left out: it has a
    differentiation of its own, which ``torch.func`` does not see.
    """

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        """Take over parameters and buffers; the script is no submodule, for it allows no hooks."""
        super().__init__()
        self._script = (script,)
        for name, tensor in script.named_parameters():
            place(self, name, nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad))
        for name, buffer in script.named_buffers():
            place(self, name, buffer.detach())
        modes = [getattr(module, "training", False) for module in script.modules()]
        self.train(any(modes))  # a frozen script has no mode

    def forward(self, x: torch.Tensor) -> Any:
        """Run the script on the present parameters and buffers."""
        (script,) = self._script
        owners = dict(script.named_modules())
        tensors = [*self.named_parameters(), *self.named_buffers()]
        before = []
        try:
            for path, tensor in tensors:
                folder, _, name = path.rpartition(".")
                owner: Any = owners[folder]._c
                before.append((owner, name, owner.getattr(name)))
                owner.setattr(name, tensor)
            with optimized_execution(False):
                return script(x)
        finally:
            for owner, name, tensor in before:
                owner.setattr(name, tensor)

    def train(self, mode: bool = True) -> "Scripted":
        """Set the mode of the script too."""
        if hasattr(self._script[0], "training"):
            self._script[0].train(mode)
        super().train(mode)
        return self

    def extra_repr(self) -> str:
        """Return what it is."""
        return "TorchScript"
