"""How little breaks it? Accuracy under noise and under attacks, from one step to AutoAttack."""

from inscape.robustness.apgd import Apgd
from inscape.robustness.attack import Attack, Target
from inscape.robustness.autoattack import AutoAttack
from inscape.robustness.fab import Fab
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.pgd import Pgd
from inscape.robustness.robustness import Robustness, robustness
from inscape.robustness.square import Square

__all__ = [
    "Apgd",
    "Attack",
    "AutoAttack",
    "Fab",
    "Fgsm",
    "Noise",
    "Pgd",
    "Robustness",
    "Square",
    "Target",
    "robustness",
]
