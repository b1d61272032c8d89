"""Ranger: RAdam whose weights are drawn back, every few steps, towards slower ones (Lookahead)."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

#: Lookahead's own choices, as Zhang et al. (2019) recommend: steps between, and share of the way.
EVERY = 6
SHARE = 0.5


class Ranger(torch.optim.RAdam):
    r"""RAdam (Liu et al., 2020) inside Lookahead (Zhang et al., 2019).

    .. math::
        \text{every } k \text{ steps:} \qquad
        \phi \leftarrow \phi + \alpha (\theta - \phi), \qquad \theta \leftarrow \phi

    The moments of RAdam go on as they are. All that it keeps is in its state, so that a recorded
    training can be replayed.

    Args:
        params: Parameters to be trained.
        lr: Learning rate.
        betas: Decay rates of RAdam's two moments.
        weight_decay: Decay of the weights, added to the gradient.
        every: Steps :math:`k` from one pull to the next.
        share: Share :math:`\alpha` of the way that the slow weights go.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        *,
        every: int = EVERY,
        share: float = SHARE,
    ) -> None:
        super().__init__(params, lr, betas, weight_decay=weight_decay)
        self.every = every
        self.share = share

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make one step of RAdam, and where it is time draw the weights back."""
        trained = [p for group in self.param_groups for p in group["params"]]
        first = {p: p.clone() for p in trained if not self.state[p]}
        loss: float | None = super().step(closure)
        for parameter in trained:
            state = self.state[parameter]
            if not state:  # it has had no gradient yet
                continue
            slow: Tensor = state.setdefault("slow", first.get(parameter))
            if int(state["step"]) % self.every == 0:
                slow.lerp_(parameter, self.share)
                parameter.copy_(slow)
        return loss
