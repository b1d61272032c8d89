"""One hidden layer, trained by gradients written out by hand: few units, or few inputs."""

from inscape.training.shallow.loop import fit_shallow
from inscape.training.shallow.wide import fit_wide

__all__ = ["fit_shallow", "fit_wide"]
