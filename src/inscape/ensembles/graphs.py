"""The update of one member as a graph of tensor operations, and the same graph for a stack.

A member's step (loss, penalties, gradients) is traced once; the graph is mapped over a first
dimension of slots, and traced again. The result runs without autograd and without Python code of
the model, which is where small networks spend their time.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from inscape.ensembles.aligned_products import align_products
from inscape.ensembles.even_sizes import is_view, results
from inscape.ensembles.graph_cleanup import simplify
from inscape.functional.fx_sources import without_graph_sources
from inscape.training.losses import loss_function
from inscape.training.options import FitOptions
from inscape.training.random_state import private_random_state
from inscape.training.update import scalar

MemberFunction = Callable[..., tuple[list[Tensor], list[Tensor], Tensor]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TensorNames:
    """Names of the tensors of a member: trained parameters, other parameters, and buffers."""

    trained: list[str]
    fixed: list[str]
    buffers: list[str]

    def of(self, model: nn.Module) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return the tensors of a model, detached."""
        tensors = dict(model.named_parameters()) | dict(model.named_buffers())
        trained, fixed, buffers = (
            [tensors[name].detach() for name in names]
            for names in (self.trained, self.fixed, self.buffers)
        )
        return trained, fixed, buffers


class Objective(nn.Module):
    """The loss and the penalties of a model as one module, for ``functional_call``."""

    def __init__(self, model: nn.Module, options: FitOptions) -> None:
        super().__init__()
        self.model = model
        self.loss = loss_function(options.loss)
        self.penalties = options.penalties

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective, and a vector of it, the loss and the penalties."""
        loss = scalar(self.loss(self.model(x), y), "a loss")
        total, terms = loss, []
        for coefficient, penalty in self.penalties:
            terms.append(scalar(penalty(self.model, x), "a penalty"))
            total = total + coefficient * terms[-1]
        return total, torch.stack([t.detach() for t in (total, loss, *terms)])


class Graphs:
    """The operations of a member's update and evaluation, for stacks of any width.

    Every function maps the trained, fixed and buffer tensors, a batch and its targets to gradients,
    new buffers, and the values of :class:`Objective` (an evaluation: the loss alone).
    """

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, options: FitOptions) -> None:
        self._objective = Objective(deepcopy(model).train(), options)
        self._device = x.device
        with private_random_state(x.device):
            self.names = self._named(x, y)

    def update(self, width: int, x: Tensor, y: Tensor) -> fx.GraphModule:
        """Return the update of ``width`` members on batches like ``x``."""
        return self._stacked(self._update, width, x, y)

    def evaluation(self, width: int, x: Tensor, y: Tensor) -> fx.GraphModule:
        """Return the loss of ``width`` members in eval mode on batches like ``x``."""
        self._objective.model.eval()
        try:
            return self._stacked(self._evaluation, width, x, y)
        finally:
            self._objective.model.train()

    def elements(self, x: Tensor, y: Tensor) -> int:
        """Return how many tensor elements one member's update writes."""
        nodes = self._traced(self._update, x, y).graph.nodes
        computed = [node for node in nodes if node.op == "call_function" and not is_view(node)]
        return sum(tensor.numel() for node in computed for tensor in results(node))

    def _named(self, x: Tensor, y: Tensor) -> TensorNames:
        """Return the names of the tensors; trained are those that the loss depends on."""
        trial = deepcopy(self._objective)
        with torch.enable_grad():
            total, _ = trial(x, y)
            candidates = {n: p for n, p in trial.model.named_parameters() if p.requires_grad}
            gradients = torch.autograd.grad(total, list(candidates.values()), allow_unused=True)
        pairs: Iterable[tuple[str, Tensor | None]] = zip(candidates, gradients, strict=True)
        trained = [name for name, gradient in pairs if gradient is not None]
        return TensorNames(
            trained=trained,
            fixed=[n for n, _ in trial.model.named_parameters() if n not in trained],
            buffers=[n for n, _ in trial.model.named_buffers()],
        )

    def _stacked(self, member: MemberFunction, width: int, x: Tensor, y: Tensor) -> fx.GraphModule:
        single = self._traced(member, x, y)
        many = [_repeated(part, width) for part in (*self.names.of(self._objective.model), x, y)]
        with private_random_state(self._device), torch.no_grad(), without_graph_sources():
            stacked = make_fx(vmap(single, randomness="error"))(*many)
            return align_products(simplify(stacked))

    def _traced(self, member: MemberFunction, x: Tensor, y: Tensor) -> fx.GraphModule:
        """Return the graph of one member."""

        def flat(*tensors: Any) -> Any:  # make_fx counts the self of a method as an argument
            return member(*tensors)

        with private_random_state(self._device), torch.no_grad(), without_graph_sources():
            return simplify(make_fx(flat)(*self.names.of(self._objective.model), x, y))

    def _update(
        self,
        trained: Sequence[Tensor],
        fixed: Sequence[Tensor],
        buffers: Sequence[Tensor],
        x: Tensor,
        y: Tensor,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:
        leaves = [p.detach().requires_grad_() for p in trained]
        state = self._state(leaves, fixed, [b.clone() for b in buffers])
        with torch.enable_grad():
            total, values = functional_call(self._objective, state, (x, y))
            gradients = torch.autograd.grad(total, leaves)
        return list(gradients), self._new_buffers(state), values

    def _evaluation(
        self,
        trained: Sequence[Tensor],
        fixed: Sequence[Tensor],
        buffers: Sequence[Tensor],
        x: Tensor,
        y: Tensor,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:
        state = self._state(trained, fixed, [b.clone() for b in buffers])
        objective = self._objective
        weights = {name.removeprefix("model."): tensor for name, tensor in state.items()}
        prediction = functional_call(objective.model, weights, (x,))
        return [], [], scalar(objective.loss(prediction, y), "a loss")

    def _state(
        self, trained: Sequence[Tensor], fixed: Sequence[Tensor], buffers: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        names = [*self.names.trained, *self.names.fixed, *self.names.buffers]
        tensors = [*trained, *fixed, *buffers]
        return {f"model.{name}": tensor for name, tensor in zip(names, tensors, strict=True)}

    def _new_buffers(self, state: dict[str, Tensor]) -> list[Tensor]:
        return [state[f"model.{name}"].detach() for name in self.names.buffers]


def _repeated(part: Tensor | list[Tensor], width: int) -> Tensor | list[Tensor]:
    """Return the tensors of one member, repeated for every slot of a stack."""
    if isinstance(part, list):
        return [torch.stack([tensor] * width) for tensor in part]
    return torch.stack([part] * width)
