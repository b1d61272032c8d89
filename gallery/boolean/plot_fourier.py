"""
Fourier spectrum: parity, OR, bent and random
=============================================

Parity is one coefficient, of all inputs. OR leans on the constant and little else; a bent function
spreads evenly over all sets of inputs, and so has the largest entropy that there is.
"""

import matplotlib.pyplot as plt

from inscape.boolean import bent, disjunction, fourier, parity, random
from inscape.figures.style import styled

functions = {
    "parity": parity(4),
    "OR": disjunction(4),
    "bent": bent(4),
    "random": random(4, seed=1),
}

with styled():
    figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.0), layout="constrained", sharey=True)
    for ax, (name, function) in zip(axes.flat, functions.items(), strict=True):
        found = fourier(function)
        found.plot(ax)
        numbers = f"degree {found.degree}, influence {found.influence:g}"
        ax.set_title(f"{name}: {numbers}, entropy {found.entropy:.2f}")
plt.show()
