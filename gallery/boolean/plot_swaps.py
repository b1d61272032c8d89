"""
Swaps: a Boolean function along a line
======================================

Weights put the inputs of a function on a line. Parity needs as many changes as it has inputs; two
functions of four inputs need one more than that, whatever the weights.
"""

import matplotlib.pyplot as plt

from inscape.boolean import parity, swaps, table
from inscape.figures.style import styled

functions = {
    "x1 alone": table(255, 4),
    "parity of four inputs": parity(4),
    "function 1785": table(1785, 4),
    "function 7140": table(7140, 4),
}

with styled():
    figure, axes = plt.subplots(4, 1, figsize=(5.6, 6.4), layout="constrained")
    for ax, (name, function) in zip(axes, functions.items(), strict=True):
        found = swaps(function)
        found.plot(ax)
        weights = ", ".join(map(str, found.weights.tolist()))
        ax.set_title(f"{name}, swaps: {found.swaps}, weights {weights}")
        ax.set_xlabel("weighted sum of the inputs" if ax is axes[-1] else "")
plt.show()
