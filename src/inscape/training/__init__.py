"""One plain training loop, and what it takes: losses, optimizers, schedules, penalties, replay."""

from inscape._core.trajectory import Settings, Trajectory
from inscape.training.loop import Fit, fit
from inscape.training.losses import Loss, bce_logits, cross_entropy, mse
from inscape.training.optimizers import OptimizerFactory
from inscape.training.penalties import Penalty, l2_norm
from inscape.training.replay import replay, walk
from inscape.training.schedules import Schedule, cosine, decay, steps, warmup
from inscape.training.update import DivergedError

__all__ = [
    "DivergedError",
    "Fit",
    "Loss",
    "OptimizerFactory",
    "Penalty",
    "Schedule",
    "Settings",
    "Trajectory",
    "bce_logits",
    "cosine",
    "cross_entropy",
    "decay",
    "fit",
    "l2_norm",
    "mse",
    "replay",
    "steps",
    "walk",
    "warmup",
]
