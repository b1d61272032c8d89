"""Figures 6.14 to 6.19: the direction along which each output of an image network varies most."""

from typing import Any

import numpy as np

from inscape.lab.experiment import Experiment, Figure, Panel, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Proportion, Quantities
from inscape.lab.records import Record, Records
from inscape.models.image_nets import HIDDEN
from inscape.papers.sattelberg import _network_claims as claimed
from inscape.papers.sattelberg import _networks
from inscape.papers.sattelberg._copies import between_optimizers, gap, keeps, kinds, of_outputs

NETS = _networks.NETS
#: Test images whose place along the direction is drawn, and singular values that are kept.
DRAWN, VALUES = 200, 256


def cell(
    data: str, net: str, optimizer: str, copy: int, epochs: int, points: int, grey: bool,
    mobilenet: int,
) -> dict[str, Any]:  # fmt: skip
    """Return what the leading direction of each output of one network looks like and explains."""
    from inscape.papers.sattelberg import _images
    from inscape.papers.sattelberg._switches import as_function
    from inscape.sensitivity import ActiveSubspace, active_subspace

    given = _images.prepared(data)
    x = given.x_test[:points]
    model = _networks.kept(net, optimizer, data, epochs, copy, mobilenet)
    straight = _networks.kept("linear", optimizer, data, epochs, copy)
    images = x[:, :1] if grey else x
    subspace = active_subspace(
        as_function(model, grey=grey), images, count=images[0].numel(), points=points, resamples=0,
        room=2**30,
    )  # fmt: skip
    assert isinstance(subspace, ActiveSubspace)  # trained networks vary
    assert subspace.total_variations is not None  # images
    assert subspace.explained is not None  # enough of them
    values = subspace.eigenvalues.clamp(min=0).sqrt()
    values = values[:, : min(values.shape[1], int((~subspace.held_out).sum()))]
    (weights, _) = (part.detach().double() for part in straight.parameters())
    weights = weights.reshape(len(weights), 3, -1).sum(1) if grey else weights
    cosines = (subspace.directions[:, 0] * weights).sum(1) / weights.norm(dim=1)
    found: dict[str, Any] = {
        "jagged": subspace.total_variations[:, 0].tolist(),
        "explained": subspace.explained[:, 0].tolist(),
        "rank": (values > 0).sum(1).tolist(),
        "fall": fall(values).tolist(),
        "likeness": cosines.abs().tolist(),
        "values": [[float(f"{v:.4g}") for v in row] for row in values[:, :VALUES].tolist()],
        "fitted on": int((~subspace.held_out).sum()),
        "accuracy": 100 * _images.accuracy(model, x, given.y_test[:points]),
    }
    if copy == 1:
        pictures = subspace.images[:, 0] * cosines.sign()[:, None, None, None]
        places = [subspace.projections[:DRAWN].T, subspace.values[:DRAWN].T]
        found["directions"] = pictures.half().numpy()
        found["places"] = np.stack(places, 1).astype(np.float16)
    return found


def fall(values: Any) -> Any:
    """Return the decades from the first singular value down to the median one, at most 9."""
    middle = values[:, values.shape[1] // 2] / values[:, 0]
    return middle.clamp(min=1e-9).log10()


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, gradients, and ten decompositions."""
    wide = min(settings["points"], 1024 if settings["grey"] else 3072)
    training = _networks.training_seconds(settings, settings["net"])
    return float(5 + training + 0.01 * settings["points"] + 1e-8 * wide**3)


def dominance(record: Record) -> float:
    """Return how many times the second singular value the first one is, over outputs."""
    return float(np.mean([row[0] / row[1] for row in record.values["values"] if row[1] > 0]))


def all_128(record: Record) -> bool:
    """Tell whether all outputs have as many non-zero singular values as there are units."""
    return set(record.values["rank"]) == {HIDDEN}


ANALYSE = Quantities(
    {
        **{
            f"jagged/{net}": between_optimizers(
                of_outputs("jagged"), net, adamw_first=True, log=True
            )
            for net in NETS
        },
        **{
            f"explained/{net}": between_optimizers(of_outputs("explained"), net, adamw_first=False)
            for net in NETS
        },
        **{f"explained by one/{net}": kinds(of_outputs("explained"), net) for net in NETS},
        **{
            f"exactly 128/dense/{optimizer}": Proportion(all_128).where(
                net="dense", optimizer=optimizer
            )
            for optimizer in _networks.OPTIMIZERS
        },
        "dense - conv likeness": gap(of_outputs("likeness"), ("dense",), ("simple", "complex")),
        "dominance/dense": kinds(dominance, "dense"),
        "tail/complex - simple": gap(of_outputs("fall"), ("complex",), ("simple",)),
    }
)


def conclude(records: Records) -> list[str]:
    """Say what the first direction explains, and how many directions there are."""
    said = []
    for net in (*NETS, "mobilenet"):
        parts = []
        for optimizer, name in (("sgd", "SGD"), ("adamw", "AdamW")):
            own = records.where(net=net, optimizer=optimizer)
            if own:
                share, rank = (np.mean(own.values(of_outputs(n))) for n in ("explained", "rank"))
                parts.append(f"{share:.0%} and {rank:.0f} directions by {name}")
        if parts:
            said.append(f"{net}: the first direction explains {', '.join(parts)}.")
    return said


def rows_of(records: Records) -> list[tuple[str, Record]]:
    """Return the first copy of each network with its name, optimizers one after the other."""
    return [
        (f"{record.settings['net']} {'SGD' if record.settings['optimizer'] == 'sgd' else 'AdamW'}",
         record)
        for optimizer in _networks.OPTIMIZERS
        for record in records.where(optimizer=optimizer, copy=1)
    ]  # fmt: skip


def _outputs(records: Records) -> tuple[list[tuple[str, Record]], int, Figure, list[Panel]]:
    """Return the rows, the number of outputs, and a figure with one axes for each."""
    from inscape.figures.panels import panels

    rows = rows_of(records)
    outputs = len(rows[0][1].values["rank"]) if rows else 0
    figure, axes = panels(len(rows) * outputs, columns=max(1, outputs), size=(0.8, 0.85))
    for k, ax in enumerate(axes):
        ax.set(xticks=[], yticks=[])
        if k < outputs:
            ax.set_title(str(k), fontsize=7)
        if k % outputs == 0:
            ax.set_ylabel(rows[k // outputs][0], fontsize=5.5)
    return rows, outputs, figure, axes


def draw_directions(records: Records) -> Figure:
    """Draw the leading direction of every output of every network as an image."""
    rows, outputs, figure, axes = _outputs(records)
    for k, ax in enumerate(axes):
        image = np.asarray(rows[k // outputs][1].values["directions"])[k % outputs].astype(float)
        top = float(np.abs(image).max()) or 1.0
        if len(image) == 1:
            ax.imshow(image[0], cmap="PuOr", vmin=-top, vmax=top)
        else:
            ax.imshow(0.5 + 0.5 * image.transpose(1, 2, 0) / top)
        ax.spines[:].set_visible(False)
    return figure


def draw_places(records: Records) -> Figure:
    """Draw every output against the place along its leading direction."""
    from inscape.figures.style import BLUE

    rows, outputs, figure, axes = _outputs(records)
    for k, ax in enumerate(axes):
        across, up = np.asarray(rows[k // outputs][1].values["places"])[k % outputs].astype(float)
        ax.plot(across, up, ".", ms=1, color=BLUE)
    return figure


def draw_values(records: Records) -> Figure:
    """Draw the singular values of each output, one panel for each network."""
    from inscape.figures.panels import panels
    from inscape.figures.style import quiet_grid

    rows = rows_of(records)
    figure, axes = panels(len(rows), columns=4, size=(1.9, 1.7))
    for ax, (name, record) in zip(axes, rows, strict=False):
        for values in record.values["values"]:
            positive = np.array([value for value in values if value > 1e-6 * values[0]])
            ax.semilogy(np.arange(1, len(positive) + 1), positive, lw=0.7)
        ax.set_title(name, fontsize=7.5)
        quiet_grid(ax)
    return figure


BASE = grid(net=[*NETS, "mobilenet"], optimizer=list(_networks.OPTIMIZERS), copy=range(1, 6))
SMOKE = grid(
    data="digits:n=64", net=["dense", "simple"], optimizer=list(_networks.OPTIMIZERS), copy=1,
    epochs=1, points=24, grey=True, mobilenet=0,
)  # fmt: skip
NOTES = (
    "The covariance of gradients is not centred; it is that of two thirds of the test images. A "
    "singular value counts as zero below 1e-6 of the largest; the first 256 are kept.",
    "What a direction explains is the share of the output's variance that a smooth function of "
    "the place along it (a Gaussian process) explains on the last third of the test images.",
    "Shown is the first copy of each network.",
)


def sensitive(shows: str, title: str, data: str = "", **more: Any) -> Experiment:
    """Return an experiment on the directions of a data set, or one that shows such records."""
    if "same_as" not in more:
        whole, grey = (60_000, True) if data == "mnist" else (50_000, False)
        reduced = (
            "The first 20,000 training images and 3 epochs instead of all and 15; the first 2,000 "
            "test images.",
        )
        shared = (
            "Five copies of each network instead of one or two, for intervals.",
            "A MobileNetV2 stands for the pretrained networks: one copy, by SGD.",
            *(("The three channels hold the same image: directions are those of the grey image, "
               "1,024 numbers.",) if grey else ()),
        )  # fmt: skip
        more |= {
            "smoke": SMOKE,
            "laptop": grid(
                grid(data=f"{data}:n=20000"), **BASE, epochs=3, points=2000, grey=grey,
                mobilenet=[0, 64],
            ),
            "paper": grid(
                grid(data=f"{data}:n={whole}"), **BASE, epochs=15, points=10_000, grey=grey,
                mobilenet=[0, 224],
            ),
            "keeps": keeps,
            "departures": {
                "smoke": ("64 of scikit-learn's digits, one epoch, 20 test images.",),
                "laptop": (*reduced, *shared),
                "paper": shared,
            },
            "cell": cell,
            "data": _networks.hash_of,
            "seconds": seconds,
            "conclude": conclude,
        }  # fmt: skip
    return Experiment(shows=shows, title=title, analyse=ANALYSE, notes=NOTES, **more)


FIGURE_6_14 = sensitive(
    shows="Figure 6.14",
    title="MNIST: leading direction of each output",
    data="mnist",
    draw=draw_directions,
    claims=claimed.FIGURE_6_14,
)
"""Figure 6.14: directions along which each output varies most, on MNIST."""


FIGURE_6_15 = sensitive(
    shows="Figure 6.15",
    title="MNIST: outputs along the leading direction",
    same_as="figure-6.14",
    draw=draw_places,
    claims=claimed.FIGURE_6_15,
)
"""Figure 6.15: how well the leading direction explains each output, on MNIST."""


FIGURE_6_16 = sensitive(
    shows="Figure 6.16",
    title="MNIST: singular values of the gradients",
    same_as="figure-6.14",
    draw=draw_values,
    claims=claimed.FIGURE_6_16,
)
"""Figure 6.16: how strongly each output varies along its directions, on MNIST."""


FIGURE_6_17 = sensitive(
    shows="Figure 6.17",
    title="CIFAR-10: leading direction of each output",
    data="cifar10",
    draw=draw_directions,
    claims=claimed.FIGURE_6_17,
)
"""Figure 6.17: directions along which each output varies most, on CIFAR-10."""


FIGURE_6_18 = sensitive(
    shows="Figure 6.18",
    title="CIFAR-10: singular values of the gradients",
    same_as="figure-6.17",
    draw=draw_values,
    claims=claimed.FIGURE_6_18,
)
"""Figure 6.18: how strongly each output varies along its directions, on CIFAR-10."""


FIGURE_6_19 = sensitive(
    shows="Figure 6.19",
    title="CIFAR-10: outputs along the leading direction",
    same_as="figure-6.17",
    draw=draw_places,
    claims=claimed.FIGURE_6_19,
)
"""Figure 6.19: how well the leading direction explains each output, on CIFAR-10."""
