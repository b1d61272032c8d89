"""
Neighbours: which digits have similar gradients
===============================================

The nearest digits by the tangent kernel are of the query's class more often than the nearest by
distance, and both lists agree in part only. On the right, a t-SNE embedding of the gradients.
"""

import matplotlib.pyplot as plt

from inscape.data import digits
from inscape.figures.kernels import cloud
from inscape.figures.style import styled
from inscape.kernels import embedding, neighbours, tangent_kernel
from inscape.models import two_layer
from inscape.training import fit

data = digits()
net = two_layer(64, 64, 10)
rate = {"optimizer": "adam", "lr": 0.01, "batch": 64, "epochs": 20, "progress": False}
fit(net, data.x, data.y, loss="cross_entropy", **rate)
x, y = data.x_test[:250], data.y_test[:250]
result = neighbours(net, x, count=10)
right = [float((y[neighbour] == y[:, None]).double().mean()) for neighbour in
         (result.by_kernel, result.by_distance)]  # fmt: skip

with styled():
    figure, (left, middle) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    result.plot(left)
    left.set_title(f"of the same class: {right[0]:.0%} by kernel, {right[1]:.0%} by distance")
    kernel = tangent_kernel(net, x, outputs="trace", normalised=True).kernel
    cloud(embedding(kernel), y, middle)
    middle.set_title("t-SNE of the gradients of the outputs")
plt.show()
