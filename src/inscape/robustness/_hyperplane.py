"""The nearest point of a hyperplane inside a box, in either norm."""

import torch
from jaxtyping import Float
from torch import Tensor

#: Newton steps; each frees the path of at least one coordinate, a few are enough.
STEPS = 60


def nearest(
    x: Float[Tensor, "n D"],
    normal: Float[Tensor, "n D"],
    gap: Float[Tensor, " n"],
    norm: str,
    low: Float[Tensor, "#n D"] | None,
    high: Float[Tensor, "#n D"] | None,
) -> Float[Tensor, "n D"]:
    r"""Return the step to the nearest ``z`` in the box with :math:`\langle w, z - x\rangle = gap`.

    .. math:: z(t) = \mathrm{clip}(x + t v), \quad v = w \;\text{(l2)}, \quad
              v = \mathrm{sign}(w) \;\text{(linf)}

    By convexity the solution lies on this path, along which :math:`\langle w, z(t) - x \rangle`
    rises, ever more slowly as coordinates meet the box. Newton's method from the left thus never
    overshoots and ends in finitely many steps; without a box it needs one. Where the plane does not
    meet the box, the corner nearest to it is returned.
    """
    towards = normal * torch.where(gap < 0, -1.0, 1.0).to(x.dtype)[:, None]
    wanted = gap.abs()
    v = towards if norm == "l2" else towards.sign()
    if low is None or high is None:
        return v * (wanted / (towards * v).sum(1).clamp_min(_tiny(x)))[:, None]
    room = torch.where(towards > 0, high - x, low - x)  # how far each coordinate may go
    t = torch.zeros_like(wanted)
    for _ in range(STEPS):
        step = _clipped(t[:, None] * v, room)
        short = wanted - (towards * step).sum(1)
        slope = (towards * v).where(step.abs() < room.abs(), 0.0).sum(1)
        go = (short > 1e-6 * wanted) & (slope > 0)
        if not bool(go.any()):
            return step
        t = t + torch.where(go, short / slope.clamp_min(_tiny(x)), 0.0)
    return _clipped(t[:, None] * v, room)


def _clipped(step: Float[Tensor, "n D"], room: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
    return torch.where(step.abs() < room.abs(), step, room.where(step != 0, 0.0))


def _tiny(like: Tensor) -> float:
    return torch.finfo(like.dtype).tiny
