"""The update of one member as a list of tensor operations, and the same list for a whole stack.

A member's step (loss, penalties, gradients) is run once and its operations are written down; these
are then mapped over a first dimension of slots, and written down again. What remains runs without
autograd and without Python code of the model, which is where small networks spend their time.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from inscape.ensembles.aligned import align_products
from inscape.ensembles.even_sizes import is_view, results
from inscape.ensembles.graph_cleanup import lean
from inscape.ensembles.member import Orders
from inscape.functional.fx_sources import without_graph_sources
from inscape.training.losses import loss_function
from inscape.training.random_state import private_dice
from inscape.training.update import scalar

Member = Callable[..., tuple[list[Tensor], list[Tensor], Tensor]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Names:
    """The tensors of a member: those that its loss moves, those that stay, and its buffers."""

    trained: list[str]
    fixed: list[str]
    buffers: list[str]

    def of(self, model: nn.Module) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return the tensors themselves, without their history."""
        tensors = dict(model.named_parameters()) | dict(model.named_buffers())
        trained, fixed, buffers = (
            [tensors[name].detach() for name in names]
            for names in (self.trained, self.fixed, self.buffers)
        )
        return trained, fixed, buffers


class Objective(nn.Module):
    """The loss and the penalties of a model, as one module whose weights can be lent to it."""

    def __init__(self, model: nn.Module, orders: Orders) -> None:
        super().__init__()
        self.model = model
        self.loss = loss_function(orders.loss_given)
        self.penalties = orders.penalties_given

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is minimised, and a vector of it, the loss and the penalties."""
        loss = scalar(self.loss(self.model(x), y), "a loss")
        total, terms = loss, []
        for coefficient, penalty in self.penalties:
            terms.append(scalar(penalty(self.model, x), "a penalty"))
            total = total + coefficient * terms[-1]
        return total, torch.stack([t.detach() for t in (total, loss, *terms)])


class Graphs:
    """The operations of a member's update and evaluation, for stacks of any width.

    Every function takes the trained, fixed and buffer tensors, a batch and its targets, and returns
    gradients, new buffers, and the values of :class:`Objective` (an evaluation: the loss alone).
    """

    def __init__(self, model: nn.Module, x: Tensor, y: Tensor, orders: Orders) -> None:
        self._objective = Objective(deepcopy(model).train(), orders)
        self._device = x.device
        with private_dice(x.device):
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

    def numbers(self, x: Tensor, y: Tensor) -> int:
        """Return how many numbers one member's update writes."""
        nodes = self._written(self._update, x, y).graph.nodes
        made = [node for node in nodes if node.op == "call_function" and not is_view(node)]
        return sum(tensor.numel() for node in made for tensor in results(node))

    def _named(self, x: Tensor, y: Tensor) -> Names:
        """Find the weights that the loss depends on; optimizers leave the others alone."""
        trial = deepcopy(self._objective)
        with torch.enable_grad():
            total, _ = trial(x, y)
            candidates = {n: p for n, p in trial.model.named_parameters() if p.requires_grad}
            found = torch.autograd.grad(total, list(candidates.values()), allow_unused=True)
        gradients: dict[str, Tensor | None] = dict(zip(candidates, found, strict=True))
        trained = [name for name, gradient in gradients.items() if gradient is not None]
        return Names(
            trained=trained,
            fixed=[n for n, _ in trial.model.named_parameters() if n not in trained],
            buffers=[n for n, _ in trial.model.named_buffers()],
        )

    def _stacked(self, member: Member, width: int, x: Tensor, y: Tensor) -> fx.GraphModule:
        single = self._written(member, x, y)
        many = [_repeated(part, width) for part in (*self.names.of(self._objective.model), x, y)]
        with private_dice(self._device), torch.no_grad(), without_graph_sources():
            stacked = make_fx(vmap(single, randomness="error"))(*many)
            return align_products(lean(stacked))

    def _written(self, member: Member, x: Tensor, y: Tensor) -> fx.GraphModule:
        """Return the operations of one member."""

        def flat(*tensors: Any) -> Any:  # make_fx counts the self of a method as an argument
            return member(*tensors)

        with private_dice(self._device), torch.no_grad(), without_graph_sources():
            return lean(make_fx(flat)(*self.names.of(self._objective.model), x, y))

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
        return list(gradients), self._moved(state), values

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

    def _moved(self, state: dict[str, Tensor]) -> list[Tensor]:
        return [state[f"model.{name}"].detach() for name in self.names.buffers]


def _repeated(part: Tensor | list[Tensor], width: int) -> Tensor | list[Tensor]:
    """Return the tensors of one member for every slot of a stack."""
    if isinstance(part, list):
        return [torch.stack([tensor] * width) for tensor in part]
    return torch.stack([part] * width)
