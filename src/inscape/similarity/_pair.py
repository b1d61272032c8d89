"""Two networks on the same examples: shared checks, and their local maps side by side."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import UnsupportedModelError, checks
from inscape._core.checks import Function
from inscape._core.sampling import generator
from inscape.functional.jacobians import Probe, chunks, jacobians, probe
from inscape.functional.precision import in_precision
from inscape.runtime.progress import progress

#: A second network. Its weights alone are refused with a word, not by their type.
Other = Function | Mapping[str, Tensor] | None
#: Reason where there is one network only.
NO_OTHER = "it needs a second network: pass other=, a function of the same examples"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two probed networks, and the same ``n`` examples as each of them takes them."""

    first: Probe
    second: Probe
    x: Tensor
    other_x: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, memory: int) -> int:
        """Return how many examples fit into ``memory`` bytes with the Jacobians of both."""
        return min(self.first.rows(memory // 2), self.second.rows(memory // 2))

    def batches(self, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the same examples for both networks, at most so many at once."""
        parts = zip(chunks(self.x, rows), chunks(self.other_x, rows), strict=True)
        with progress(len(self), label="two networks") as bar:
            for x, other_x in parts:
                yield x, other_x
                bar.advance(len(x))

    def outputs(self, rows: int) -> tuple[Float[Tensor, "n c"], Float[Tensor, "n c"]]:
        """Return the outputs of both networks, one row for each example."""
        both = [
            (_outputs(self.first, x), _outputs(self.second, other_x))
            for x, other_x in self.batches(rows)
        ]
        first, second = (torch.cat(side) for side in zip(*both, strict=True))
        return first, second

    def maps(
        self, rows: int
    ) -> Iterator[tuple[Float64[Tensor, "m c D"], Float64[Tensor, "m c D"]]]:
        r"""Yield the rows :math:`(\nabla f_j(x), b_j)` of both networks, eqs (7.2) and (7.3).

        The last column is the intercept :math:`b = f(x) - J(x) x` of each local map.
        """
        for x, other_x in self.batches(rows):
            yield _coefficients(self.first, x), _coefficients(self.second, other_x)


def paired(
    f: Function,
    x: Float[Tensor, "n *d"],
    other: Other,
    other_x: Float[Tensor, "m *e"] | None,
    *,
    same_inputs: bool,
    same_outputs: bool = True,
) -> Pair:
    """Return two networks that fit each other, or raise what does not.

    Args:
        f: The first network.
        x: Examples as it takes them.
        other: The second network.
        other_x: The same examples as the second network takes them, if otherwise.
        same_inputs: Whether the local maps are compared, which needs inputs of one size.
        same_outputs: Whether the outputs are compared, which needs as many of each.
    """
    other = checked(other)
    second_x = in_dtype_of(other, x) if other_x is None else other_x
    first = probe(f, x)
    second = probe(other, second_x)
    if len(x) != len(second_x):
        raise ValueError(
            f"x and other_x must hold the same examples, found {len(x)} and {len(second_x)}: pass "
            "each example once as either network takes it."
        )
    if same_outputs and first.outputs != second.outputs:
        raise ValueError(
            f"both networks must have the same number of outputs, found {first.outputs} and "
            f"{second.outputs}: compare the classes they share, e.g. "
            "inscape.adapt(model, take=...)."
        )
    if same_inputs and x[0].numel() != second_x[0].numel():
        raise ValueError(
            f"local maps are compared number by number, so both inputs must be of one size, found "
            f"{x[0].numel()} and {second_x[0].numel()}: put the preprocessing of each network "
            "into it, so that both take the same input."
        )
    return Pair(first=first, second=second, x=x, other_x=second_x)


def paired_maps(
    f: Function, x: Float[Tensor, "n *d"], other: Other, other_x: Float[Tensor, "m *e"] | None
) -> Pair:
    """Return two networks in float64 whose local maps are to be compared."""
    first, wide, _ = in_precision(f, x, "float64")
    second_x = x if other_x is None else other_x
    second, other_wide, _ = in_precision(checked(other), second_x, "float64")
    pair = paired(first, wide, second, other_wide, same_inputs=True)
    pair.first.need_gradient()
    pair.second.need_gradient()
    return pair


def checked(other: Other) -> Function:
    """Return the second network, or raise if it is none."""
    if not callable(other):
        raise TypeError(
            f"other must be a function or a module, found {type(other).__name__}: pass the second "
            "network itself; load a state_dict into a module first."
        )
    return other


def in_dtype_of(network: Function, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
    """Return points in the dtype of a module's parameters, or as they are."""
    parameters = network.parameters() if isinstance(network, nn.Module) else iter(())
    like = next((p for p in parameters if p.is_floating_point()), None)
    return x if like is None else x.to(like.dtype)


def _outputs(network: Probe, x: Tensor) -> Tensor:
    with torch.no_grad():
        return checks.call(network.f, x.clone()).reshape(len(x), -1)


def _coefficients(network: Probe, x: Tensor) -> Tensor:
    slopes = jacobians(network.f, x).detach()
    intercepts = _outputs(network, x) - torch.einsum("ncd,nd->nc", slopes, x.flatten(1))
    maps = torch.cat([slopes, intercepts.unsqueeze(2)], dim=2)
    checks.finite(maps.flatten(1).sum(1), "points")
    return maps


def perturbed(model: Any, x: Tensor, y: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return a second network for contract and report: a copy with noise on its weights."""
    if not isinstance(model, nn.Module):
        raise UnsupportedModelError("an example of a second network needs a module.")
    other, draw = copy.deepcopy(model), generator(1)
    with torch.no_grad():
        for p in other.parameters():
            noise = torch.randn(p.shape, generator=draw, dtype=torch.float64).to(p)
            p.add_(0.3 * noise * p.detach().square().mean().sqrt())
    return {"other": other}
