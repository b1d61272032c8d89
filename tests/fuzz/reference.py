"""A network in float64, evaluated one point at a time; exactly, or with the rounding of a dtype.

Stochastic arithmetic (Vignes; Parker's Monte Carlo arithmetic): every parameter, input and value
between layers is changed at random by a few units in the last place of the dtype in which an
instrument computes. How far a quantity then moves is how far rounding may move it, kinks included.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fuzz.networks import Network

#: Size of a perturbation in units of the machine epsilon: rounding of a few operations in a row.
ULPS = 4.0


@dataclass(eq=False)
class Reference:
    """A network as a function of single points, in float64.

    Args:
        network: The network.
        dtype: Precision whose rounding is imitated; None for none.
        seed: Seed of the perturbations.
        native: Whether to compute in that precision as well, for rounding inside of operations.
        state: Parameters and buffers to use instead of the network's own.
    """

    network: Network
    dtype: torch.dtype | None = None
    seed: int = 0
    native: bool = False
    state: dict[str, Tensor] | None = None
    module: nn.Module = field(init=False)
    f: Callable[[Tensor], Tensor] = field(init=False)

    def __post_init__(self) -> None:
        with torch.inference_mode(False), torch.enable_grad():
            self.compute = self.dtype if self.native and self.dtype else torch.float64
            self.module = copy.deepcopy(self.network.module).to(self.compute)
            if self.state is not None:
                self.module.load_state_dict(self.state)
            self.generator = torch.Generator().manual_seed(self.seed)
            if self.dtype is not None:
                self._perturb()
            self.f = self.network.wrap(self.module)

    def at(self, state: dict[str, Tensor]) -> "Reference":
        """Return the same reference with other parameters."""
        return Reference(self.network, self.dtype, self.seed, self.native, state)

    def rounded(self, x: Tensor) -> Tensor:
        """Return numbers with a random rounding error of the dtype, or as they are."""
        if self.dtype is None or not x.is_floating_point():
            return x
        info = torch.finfo(self.dtype)
        noise = torch.rand(2, *x.shape, generator=self.generator, dtype=torch.float64) * 2 - 1
        least = ULPS * info.smallest_normal * info.eps
        return x + (x.detach() * noise[0] * ULPS * info.eps + noise[1] * least).to(x.dtype)

    def _perturb(self) -> None:
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.copy_(self.rounded(parameter))
        for module in self.module.modules():
            if not list(module.children()):
                module.register_forward_hook(self._round_output)

    def _round_output(self, module: nn.Module, args: object, y: object) -> object:
        return self.rounded(y) if isinstance(y, Tensor) else y

    @torch.no_grad()
    def value(self, point: Tensor) -> Tensor:
        """Return the outputs at one point, flat."""
        return (
            self.f(self.rounded(point.detach().to(self.compute))[None].clone())
            .reshape(-1)
            .detach()
            .double()
        )

    def values(self, points: Tensor) -> Tensor:
        """Return the outputs at points, one row each."""
        return torch.stack([self.value(point) for point in points])

    @torch.enable_grad()
    def jacobian(self, point: Tensor) -> Tensor:
        """Return the Jacobian at one point by plain autograd, one output after the other."""
        leaf = self.rounded(point.detach().to(self.compute)).requires_grad_()
        y = self.f(leaf[None].clone()).reshape(-1)
        return torch.stack([self._gradient(output, [leaf]) for output in y])

    @torch.enable_grad()
    def parameter_jacobian(self, point: Tensor, trainable: list[str]) -> Tensor:
        """Return the gradient of every output by the named parameters, one row each."""
        named = dict(self.module.named_parameters())
        chosen = [named[name].requires_grad_() for name in trainable]
        y = self.f(self.rounded(point.detach().to(self.compute))[None].clone()).reshape(-1)
        return torch.stack([self._gradient(output, chosen) for output in y])

    @staticmethod
    def _gradient(output: Tensor, by: list[Tensor]) -> Tensor:
        if not output.requires_grad:
            return torch.cat([torch.zeros_like(tensor).flatten().double() for tensor in by])
        parts = torch.autograd.grad(
            output, by, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return torch.cat([part.flatten().double() for part in parts])

    @torch.no_grad()
    def many_values(self, points: Tensor) -> Tensor:
        """Return the outputs at many points in one batch, of a network that does not mix them."""
        y = self.f(self.rounded(points.detach().to(self.compute)).clone())
        return y.reshape(len(points), -1).detach().double()

    @torch.enable_grad()
    def jacobians(self, points: Tensor) -> Tensor:
        """Return Jacobians at many points in one batch, of a network that does not mix them."""
        leaf = self.rounded(points.detach().to(self.compute)).requires_grad_()
        y = self.f(leaf.clone()).reshape(len(points), -1)
        parts = [self._gradient(column.sum(), [leaf]) for column in y.T]
        return torch.stack(parts).reshape(len(parts), len(points), -1).movedim(0, 1)
