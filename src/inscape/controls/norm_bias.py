"""Norm bias: weights drawn towards any norm, as weight decay draws them towards zero."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.controls._checks import not_negative


def norm_bias(
    optimizer: torch.optim.Optimizer,
    *,
    mu: float,
    coefficient: float,
    half: bool = False,
    parameters: Iterable[Tensor] | None = None,
) -> torch.optim.Optimizer:
    r"""Let every step of an optimizer draw the norm of the parameters towards ``mu``.

    .. math:: R_\mu(\theta) = \bigl| \lVert \theta \rVert^2 - \mu^2 \bigr|, \quad
              \nabla R_\mu = 2 \, \mathrm{sign}(\lVert \theta \rVert^2 - \mu^2) \, \theta

    Goldblum's Eq. (2); the coefficient times this gradient is added to the gradients before each
    step, as it were part of the loss. With ``half`` the factor 2 is left out, as in the released
    code (G2): then ``mu=0`` is the weight decay of SGD with that coefficient. A negative
    coefficient at ``mu=0`` is a negative weight decay. Batch norm's parameters count as all others,
    unless ``parameters`` are chosen; what has no gradient counts and does not move.

    Works with every optimizer of PyTorch, those that take a closure included, in ``fit`` and in a
    loop of your own; gradients that were clipped before are not clipped again. Returns the
    optimizer, so that ``fit(..., optimizer=lambda p: norm_bias(SGD(p, 0.1), mu=50, ...))`` will do.

    Args:
        optimizer: The optimizer; its next steps are changed.
        mu: The norm; 0 or more.
        coefficient: Coefficient of the regulariser; below 0 it pushes away.
        half: Whether to take half of the gradient.
        parameters: Parameters of the optimizer that are meant; all by default.

    >>> weight = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> weight.grad = torch.zeros(2)
    >>> optimizer = norm_bias(torch.optim.SGD([weight], lr=0.1), mu=10.0, coefficient=0.5)
    >>> optimizer.step()  # shorter than 10: each step adds a tenth
    >>> [round(value, 4) for value in weight.tolist()]
    [3.3, 4.4]
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"optimizer must be a torch.optim.Optimizer, found {type(optimizer).__name__}: make "
            "one first, such as torch.optim.SGD(model.parameters(), lr=0.1)."
        )
    mu = not_negative(mu, "mu")
    checks.number(coefficient=coefficient)
    bias = _NormBias(mu, float(coefficient), _chosen(optimizer, parameters), half=half)
    optimizer.register_step_pre_hook(bias.before)
    optimizer.register_step_post_hook(bias.after)
    return optimizer


def norm_bias_penalty(model: nn.Module, x: Tensor, *, mu: float) -> Float[Tensor, ""]:
    r"""Return how far the squared norm of all trainable parameters is from that of ``mu``.

    .. math:: R_\mu(\theta) = \bigl| \lVert \theta \rVert^2 - \mu^2 \bigr|

    Goldblum's Eq. (2) as a penalty of ``fit``: ``(0.005, partial(norm_bias_penalty, mu=50))``.

    Args:
        model: Module that is being trained.
        x: Batch; not used by this penalty.
        mu: The norm; 0 or more.
    """
    squares = [p.square().sum() for p in model.parameters() if p.requires_grad]
    return (torch.stack(squares).sum() - not_negative(mu, "mu") ** 2).abs()


class _NormBias:
    """Adds the gradient before each step; a step inside of a step (Ranger) adds nothing."""

    def __init__(
        self, mu: float, coefficient: float, parameters: list[Tensor], *, half: bool
    ) -> None:
        self.mu, self.coefficient, self.parameters = mu, coefficient, parameters
        self.factor = coefficient * (1.0 if half else 2.0)
        self.depth = 0

    def before(
        self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any
    ) -> tuple[Any, Any] | None:
        if self.depth:
            self.depth += 1
            return None
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self.add()
        self.depth = 1
        if closure is None:
            return None
        biased = self._biased(closure)
        if "closure" in kwargs:
            return args, {**kwargs, "closure": biased}
        return (args[0], biased, *args[2:]), kwargs

    def after(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self.depth -= 1

    def _biased(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Return a closure whose loss and gradients are those with the regulariser."""

        def closure_with_bias() -> Any:
            try:
                loss = closure()
            except BaseException:
                self.depth = 0  # the hook after the step is not called
                raise
            return loss + self.factor / 2 * abs(self.add())

        return closure_with_bias

    @torch.no_grad()
    def add(self) -> float:
        """Add the gradient of the regulariser; return by how much the squared norm is off."""
        squares = [p.double().square().sum() for p in self.parameters]
        excess = float(torch.stack(squares).sum()) - self.mu**2
        sign = (excess > 0) - (excess < 0)
        for p in self.parameters:
            if p.grad is None:
                continue
            if p.grad.layout is not torch.strided:
                raise TypeError(
                    f"norm_bias needs dense gradients, found the layout {p.grad.layout}: build the "
                    "embedding with sparse=False, or leave it out with parameters=..."
                )
            p.grad.add_(p, alpha=sign * self.factor)
        return excess


def _chosen(optimizer: torch.optim.Optimizer, parameters: Iterable[Tensor] | None) -> list[Tensor]:
    """Return the parameters that count, which must be the optimizer's."""
    own = [p for group in optimizer.param_groups for p in group["params"]]
    if parameters is None:
        return own
    chosen = list(parameters)
    strangers = len({id(p) for p in chosen} - {id(p) for p in own})
    if strangers or not chosen:
        raise ValueError(
            f"parameters must be some of the optimizer's, found {strangers} of {len(chosen)} that "
            "are not: pass those that it was made with."
        )
    return chosen
