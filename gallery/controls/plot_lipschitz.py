"""
Lipschitz constant: what is proved, and what is found
=====================================================

No chord of the function is steeper than the least of these bounds, and one was found that is as
steep as the dot. The product of norms is the bound that one reads most often.
"""

import matplotlib.pyplot as plt

from inscape.controls import lipschitz
from inscape.data import disc
from inscape.figures.style import styled
from inscape.models import two_layer
from inscape.training import fit_wide

data = disc(n=64, target="multiplication")
net = two_layer(2, 10, seed=1)
fit_wide(net, data.x, data.y, lr=0.01, steps=1000)
found = lipschitz(net, data.x)

with styled():
    figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    found.plot(ax)
    ax.set_title("x1 x2 on the disc, learned by 10 ReLUs")
plt.show()
