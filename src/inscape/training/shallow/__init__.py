"""Training of one hidden layer by hand-written gradients, faster than autograd."""

from inscape.training.shallow.loop import fit_shallow
from inscape.training.shallow.wide import fit_wide

__all__ = ["fit_shallow", "fit_wide"]
