r"""
Is my network smooth?
=====================

Ten minutes, one question. Three networks learn to tell a handwritten four from a nine. They have
the same size, reach the same training loss and do about equally well on new digits. Did they learn
the same function? We measure how rough each of them is, find what the numbers can be held against,
and end with the one command that does all of this for a network of yours.
"""

# %%
# The data
# --------
#
# An image is a row of pixels between 0 (white) and 1 (black); MNIST's have 784. The label is a
# number, +1 for a four and −1 for a nine, so that the network is a function from images to numbers.
# We train on 256 images only. Where MNIST is not on the machine, scikit-learn's smaller digits
# stand in, and the line below says so (``inscape data fetch mnist`` gets the real ones).

import matplotlib.pyplot as plt
import torch

import inscape
from inscape.data import load
from inscape.figures.style import BLUE, FAINT, GREEN, INK, VERMILION, styled
from inscape.models import two_layer
from inscape.smoothness import (
    gradient_norm,
    gradient_norm_penalty,
    gradient_path_length,
    path_length,
    weights_product,
)
from inscape.training import fit

data = load("mnist-binary:4-9", n=256, stand_in=True)
print(data)

# %%
# Three networks
# --------------
#
# Each has one hidden layer of 256 ReLUs. The first starts from small weights (a hundredth of
# Glorot's variance) and the second from Glorot's own. The third starts like the second and pays for
# being steep: a tenth of its gradient norm is added to its loss. Nothing else differs, and all stop
# at the same training loss.

starts = {
    "small start": (0.01, []),
    "usual start": (1.0, []),
    "usual + penalty": (1.0, [(0.1, gradient_norm_penalty)]),
}
networks = {}
for name, (scale, penalties) in starts.items():
    run = fit(
        two_layer(data.x.shape[1], 256, init="glorot", scale=scale),
        data.x,
        data.y,
        optimizer="adam",
        lr=1e-3,
        batch=64,
        epochs=1500,
        stop_loss=0.01,
        penalties=penalties,
    )
    assert run.stopped == "loss"
    net = networks[name] = run.model
    right = (net(data.x_test).sign() == data.y_test).double().mean()
    print(f"{name:16} training loss {run.loss:.4f}   test digits right {right:.1%}")

# %%
# By these two numbers they are hard to tell apart.
#
# Four instruments
# ----------------
#
# **Gradient norm**: how steep is the function at the digits? A tiny change of an image moves the
# output by at most this many times the length of the change. The length is taken over all pixels:
# it is 1 for one pixel turned from white to black, and also for 100 pixels changed by a tenth.
#
# **Path length**: how far does the output travel, ups and downs included, while one digit fades
# into another? From a four to a nine it has to go from +1 to −1, a way of 2; from a four to another
# four it could stay where it is.
#
# **Gradient path length**: how much does the slope change on that way? For a linear function it
# does not change at all.
#
# **Weights product**: how much would the slope change if one crossed every ReLU of the network? It
# is read off the weights of a two-layer network and exact. The other three work for any network;
# they are means over digits, or pairs of digits, and come with a 95% interval.
#
# We measure at the test digits, which no network has seen.

instruments = (gradient_norm, path_length, gradient_path_length, weights_product)
found = {}
for instrument in instruments:
    print(instrument.__name__.replace("_", " "))
    for name, net in networks.items():
        found[instrument.__name__, name] = instrument(net, data.x_test).summary()
        print(f"    {name:16} {found[instrument.__name__, name]}")

# %%
# So these are three different functions.
#
# * *The penalty decides how steep it is.* It is paid on the gradient norm and lowers that, at the
#   same training loss, while the bends change little.
# * *The start decides how much it bends.* From the small start, gradient path length and weights
#   product end much smaller, although no loss asked for it.
# * *Path length* is nearly the same for all three. We shall see why.
#
# Where do the bends come from? The weights product before the first step of training tells:

for name, (scale, _) in starts.items():
    fresh = two_layer(data.x.shape[1], 256, init="glorot", scale=scale)
    before = weights_product(fresh, data.x).summary().value
    print(f"{name:16} {before:5.2f} before, {found['weights_product', name].value:5.2f} after")

# %%
# From the usual start nearly all bends were there before anything was learned, and training left
# them in. From the small start there were almost none, and training made those that it needed. It
# needs more for a smaller loss: set ``stop_loss=1e-4`` and see them grow.
#
# A network can be smooth in one sense and rough in another, so ask for the one that you need:
# steepness where inputs are noisy or may be attacked, path length for what happens between the
# data, the other two for how complicated the function is.
#
# A walk
# ------
#
# Here is one of the thousand walks over which path length is a mean: a four fades into a nine.

four, nine = (data.x_test[data.y_test[:, 0] == label][0] for label in (1, -1))
share = torch.linspace(0, 1, 301)[:, None]
fading = torch.lerp(four, nine, share)
side = round(len(four) ** 0.5)
looks = dict(zip(networks, ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-.")), strict=True))

with styled():
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for name, net in networks.items():
        color, dash = looks[name]
        ax.plot(share, net(fading).detach(), color=color, linestyle=dash, label=name)
    for at in range(0, 301, 50):
        picture = ax.inset_axes((0.045 + 0.91 * at / 300 - 0.06, 1.02, 0.12, 0.2))
        picture.imshow(fading[at].reshape(side, side).numpy(), cmap="gray_r", vmin=0, vmax=1)
        picture.set_axis_off()
    ax.set(xlabel="fraction of the path from a four to a nine", ylabel="output of the network")
    ax.legend()
    figure.suptitle("one walk through the space of images")
plt.show()

# %%
# Large or small?
# ---------------
#
# A number alone says little. ``inscape.look`` runs every instrument that applies to a network, and
# takes it again for what is known: the same network *before training*, a *linear model* of the
# same data, and where there is one a *lower bound*.

looked = inscape.look(networks["usual start"], data, budget=300, quiet=True)
for row in looked.rows():
    if "value" in row:
        print(row["instrument"].replace("_", " "))
        for what in ("value", "initialisation", "linear", "bound"):
            if row[what] is not None:
                print(f"    {what:16} {row[what]:.4g}")
for score in looked.scores:
    print(f"{score.who}: {score.loss_name} {score.loss:.2g} on {score.rows}")

# %%
# In a picture, with all three networks:

lines = {
    "initialisation": {"label": "before training", "color": FAINT, "linestyle": ":"},
    "linear": {"label": "linear model", "color": INK, "linestyle": "--"},
    "bound": {"label": "lower bound", "color": INK, "linestyle": "-"},
}
with styled():
    figure, axes = plt.subplots(2, 2, figsize=(7, 4), sharey=True, layout="constrained")
    for ax, instrument in zip(axes.flat, instruments, strict=True):
        measured = next(one for one in looked.measurements if one.name == instrument.__name__)
        for kind, line in lines.items():
            reference = measured.reference(kind)
            if reference is not None and reference.value is not None:
                ax.axvline(reference.value, **line)
        for row, name in enumerate(reversed(networks)):
            ax.plot(found[instrument.__name__, name].value, row, "o", color=looks[name][0])
        ax.set(title=instrument.__name__.replace("_", " "), ylim=(-0.6, 2.6))
        ax.set_xlim(-0.02 * ax.get_xlim()[1], 1.05 * ax.get_xlim()[1])
        ax.set_yticks(range(3), reversed(networks))
        ax.tick_params(axis="y", length=0)
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
plt.show()

# %%
# Now the numbers mean something.
#
# * *Before training* (here from PyTorch's own start, which is smaller than Glorot's) the output
#   hardly moves: its path is short because nothing was learned.
# * The *linear model* never bends. On MNIST, with more pixels than images, it fits every image; and
#   it is the steepest of all, and on new digits worse than the network. Straight is not gentle.
# * The *lower bound* of path length is the mean distance between two labels, about 1: half of all
#   pairs are the same digit and the others are 2 apart. Any function that gave ±1 at the test
#   digits would travel at least that far, and what lies above is detour. All three networks are
#   close to it, so this instrument has little left to tell them apart by.
#
# Your own network
# ----------------
#
# In Python, ``inscape.look(model, (x, y)).save("report.html")`` writes all this as one page, with
# figures and definitions. From the shell, for any module and its weights:
#
# .. code-block:: console
#
#    $ inscape look --model my_code.py:make_net --weights weights.pt --data mnist-binary:4-9
#
# What each instrument measures exactly, what it costs and how to lower it in training is told in
# :doc:`/smoothness`; how to read the page, in :doc:`/report`.
