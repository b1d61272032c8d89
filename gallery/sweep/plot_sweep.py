"""
A sweep over weight decays
==========================

Six networks learn the same digits with ever more weight decay. A sweep measures all of them on the
same test digits: weight decay makes the function flatter, and the rank correlation says how surely.
"""

import matplotlib.pyplot as plt

import inscape
from inscape.data import digits_binary
from inscape.figures.style import BLUE, styled
from inscape.models import mlp
from inscape.training import fit

data = digits_binary(4, 9, n=64)
decays = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
nets = {}
for decay in decays:
    net = nets[f"decay {decay}"] = mlp(64, 32, 1)
    fit(net, data.x, data.y, optimizer="adam", lr=0.003, epochs=300, weight_decay=decay)

result = inscape.sweep(
    nets, data, only="gradient_norm,path_length", columns={"decay": decays}, quiet=True
)
correlations = [pair for pair in result.correlations if pair.column == "decay"]
tau = {pair.instrument: pair.tau for pair in correlations}

with styled():
    figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    rows = [result.measurement(name, "gradient_norm").summary for name in nets]
    ends = [[r.value - r.low for r in rows], [r.high - r.value for r in rows]]
    ax.errorbar(range(len(rows)), [r.value for r in rows], ends, fmt="o-", color=BLUE)
    ax.set_xticks(range(len(rows)), decays)
    ax.set(xlabel="weight decay", ylabel="gradient norm at test digits", ylim=(0, None))
    ax.set_title(f"Kendall's tau {tau['gradient_norm'].value:.2f} over {len(rows)} networks")
plt.show()
