"""Seeds: one of its own for every network of a design."""

import numpy as np


def own_seed(*numbers: int) -> int:
    """Return a seed for the network that these numbers stand for."""
    return int(np.random.SeedSequence(list(numbers)).generate_state(1)[0])
