"""
Constructions: a network that one can write down
================================================

A Boolean function lies on a line by a weighted sum of its inputs. One hidden unit for each change
along the best line is enough; width two is enough if the network is deep.
"""

import matplotlib.pyplot as plt

from inscape.boolean import table
from inscape.boolean.constructions import narrow_network, represents, wide_network
from inscape.boolean.swaps import swaps
from inscape.figures.boolean_networks import draw_cube, draw_line
from inscape.figures.style import styled

function = table(7140, 4)
found = swaps(function)
weights = found.weights.tolist()

wide = wide_network(function, weights)
narrow = narrow_network(function, weights)
print("width", found.swaps, "is right:", represents(wide, function))
print("width 2, depth", len(narrow) // 2, "is right:", represents(narrow, function))

with styled():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.6, 3.4), width_ratios=(1, 1.3), layout="constrained"
    )
    draw_cube(function, left)
    draw_line(function, weights, right)
    left.set_title("function 7140 of four inputs")
    right.set_title(f"{found.swaps} changes, {found.swaps} hidden units")
plt.show()
