"""
Rugosity: wrong labels crumple the function
===========================================

Every network here fits all of its hundred labels. The more of them are wrong, the more its slope
must change around the digits to get each one right.
"""

import matplotlib.pyplot as plt

from inscape.data import digits_binary
from inscape.figures.style import BLUE, styled
from inscape.models import two_layer
from inscape.smoothness import rugosity
from inscape.training import fit

data = digits_binary(4, 9, n=100)
wrong = (0, 2, 4, 6, 8, 10)
summaries = []
for count in wrong:
    y = data.y.clone()
    y[:count] *= -1
    net = two_layer(64, 256, init="glorot", scale=0.01)
    fit(net, data.x, y, optimizer="adam", lr=0.01, epochs=2000, stop_loss=1e-3)
    summaries.append(rugosity(net, data.x_test, directions=16).summary())

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    means = [summary.value for summary in summaries]
    errors = [
        [summary.value - summary.low for summary in summaries],
        [summary.high - summary.value for summary in summaries],
    ]
    ax.errorbar(wrong, means, errors, color=BLUE, marker="o", markersize=4, capsize=3)
    ax.set(xlabel="wrong labels among the hundred", xticks=wrong, ylim=(0, None))
    ax.set_ylabel("rugosity\n(change of slope per unit of input)")
    ax.set_title("around test digits: mean over 64 of them, 95% interval")
plt.show()
