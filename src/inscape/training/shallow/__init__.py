"""One hidden layer of ReLUs, trained by gradients written out by hand."""

from inscape.training.shallow.loop import fit_shallow

__all__ = ["fit_shallow"]
