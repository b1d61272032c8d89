"""An exported graph as a plain module with its own parameters and buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from torch import Tensor, nn

from inscape.intake.steps import Step


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """Where the graph reads each tensor (place -> name), its input, and where its output is."""

    tensors: Mapping[str, str]
    input: str
    output: str


class Program(nn.Module):
    """A graph of aten steps with its parameters and buffers under their own names."""

    def __init__(
        self, steps: Sequence[Step], tensors: Mapping[str, Tensor], wiring: Wiring
    ) -> None:
        """Hold the steps, and the tensors by name."""
        super().__init__()
        for name, tensor in tensors.items():
            _place(self, name, tensor)
        self._wiring = wiring
        self._steps = tuple(_with_forgetting(steps, keep=wiring.output))

    def forward(self, x: Tensor) -> Tensor:
        """Replay the steps."""
        tensors = self._wiring.tensors.items()
        values = {place: attrgetter(name)(self) for place, name in tensors}
        values[self._wiring.input] = x
        for step in self._steps:
            step.run(values, x)
        result: Tensor = values[self._wiring.output]
        return result

    def extra_repr(self) -> str:
        """Say how long the program is."""
        return f"exported program, {len(self._steps)} steps"


def _with_forgetting(steps: Sequence[Step], *, keep: str) -> list[Step]:
    """Let each step drop what no later step reads, so that a batch takes no more than it must."""
    read_later, backwards = {keep}, []
    for step in reversed(steps):
        forget = tuple(sorted((step.reads | step.makes) - read_later))
        read_later |= step.reads
        backwards.append(replace(step, forget=forget))
    return backwards[::-1]


def _place(module: nn.Module, name: str, tensor: Tensor) -> None:
    *folders, leaf = name.split(".")
    for folder in folders:
        if folder not in dict(module.named_children()):
            module.add_module(folder, nn.Module())
        module = module.get_submodule(folder)
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(leaf, tensor)
    else:
        module.register_buffer(leaf, tensor)
