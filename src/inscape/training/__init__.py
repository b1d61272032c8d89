"""The training loop, its options, losses, optimizers and schedules; recording and replay.

``fit`` trains any module. ``fit_shallow`` and ``fit_wide`` train one hidden layer faster, by
gradients written by hand. ``record_training`` and ``watch`` observe loops that are not ours.
"""

from inscape.training.callbacks import lightning_callback, trainer_callback
from inscape.training.loop import Fit, fit
from inscape.training.losses import Loss, bce_logits, cross_entropy, mse
from inscape.training.optimizers import OptimizerFactory
from inscape.training.options import FitKeywords, FitOptions
from inscape.training.penalties import Penalty, l2_norm
from inscape.training.recording import Recording, record_training
from inscape.training.replay import replay, walk
from inscape.training.schedules import Schedule, cosine, decay, plateau, steps, warmup
from inscape.training.settings import FitSettings
from inscape.training.shallow import fit_shallow, fit_wide
from inscape.training.span import fit_in_span
from inscape.training.trajectory import Trajectory
from inscape.training.update import DivergedError
from inscape.training.watch import Watch, watch

__all__ = [
    "DivergedError",
    "Fit",
    "FitKeywords",
    "FitOptions",
    "FitSettings",
    "Loss",
    "OptimizerFactory",
    "Penalty",
    "Recording",
    "Schedule",
    "Trajectory",
    "Watch",
    "bce_logits",
    "cosine",
    "cross_entropy",
    "decay",
    "fit",
    "fit_in_span",
    "fit_shallow",
    "fit_wide",
    "l2_norm",
    "lightning_callback",
    "mse",
    "plateau",
    "record_training",
    "replay",
    "steps",
    "trainer_callback",
    "walk",
    "warmup",
    "watch",
]
