"""
Active subspace: the score of a digit along one direction
=========================================================

Gradients of a class score at hundreds of digits lie mostly along one direction of the input space,
the picture beside the plot. A curve of that projection alone explains most of the score on digits
that were held out.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures import draw
from inscape.figures.style import styled
from inscape.models import mlp
from inscape.sensitivity import active_subspace
from inscape.training import fit

data = digits()
net = mlp(64, 64, 10)
x = data.x.flatten(1)
fit(net, x, data.y, loss="cross_entropy", optimizer="adam", lr=0.003, batch=64, epochs=30)
pictures = x.double().reshape(-1, 8, 8)
result = active_subspace(
    lambda z: net(z.float().flatten(1)).double(), pictures, outputs=[3], points=600
)
with styled():
    figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    draw(result, ax)
plt.show()
