"""Figure 6.3: what a network multiplies each pixel of one zero with, for each of its outputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure, Panel
from inscape.lab.records import Record
from inscape.lab.statistics import mean_estimate

Array = npt.NDArray[Any]
Key = tuple[str, int, str]  # net, copy, optimizer
#: Pixels around ink that count as ink: three convolutions and pools see that far at most twice.
MARGIN = 2
NAMES = {"sgd": "SGD", "adamw": "AdamW"}
NETS = ("linear", "dense", "simple", "complex")


def jaggedness(image: Array) -> float:
    r"""Return how much coefficients vary from pixel to pixel, for what they are.

    .. math:: J(C) = \frac{\sum_{i,j} |C_{i+1,j} - C_{i,j}| + |C_{i,j+1} - C_{i,j}|}
                          {\sum_{i,j} |C_{i,j}|}

    0 for one grey, near 4 where neighbours have opposite signs everywhere.
    """
    given = np.asarray(image, dtype=float)
    steps = np.abs(np.diff(given, axis=0)).sum() + np.abs(np.diff(given, axis=1)).sum()
    size = np.abs(given).sum()
    return float(steps / size) if size else float("nan")


def near_ink(image: Array, margin: int = MARGIN) -> Array:
    """Return which pixels are ink, or within ``margin`` pixels of it."""
    ink = np.asarray(image) > 0.01
    near = np.zeros_like(ink)
    for down in range(-margin, margin + 1):
        for right in range(-margin, margin + 1):
            rows, columns = np.nonzero(ink)
            rows = np.clip(rows + down, 0, ink.shape[0] - 1)
            columns = np.clip(columns + right, 0, ink.shape[1] - 1)
            near[rows, columns] = True
    return near


def on_ink(image: Array, coefficients: Array) -> float:
    """Return the share of the coefficients' magnitude that lies near ink, over all outputs."""
    sizes = np.abs(np.asarray(coefficients, dtype=float))
    return float(sizes[:, near_ink(image)].sum() / sizes.sum())


def shown(records: Sequence[Record]) -> dict[Key, Record]:
    """Return the records that hold coefficients."""
    return {
        (r.settings["net"], r.settings["copy"], r.settings["optimizer"]): r
        for r in records
        if "coefficients" in r.values
    }


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return log ratios of jaggedness, AdamW over SGD, and where coefficients are."""
    found = shown(records)
    results: dict[str, Estimate] = {}
    for net in NETS:
        ratios = _ratios(found, net)
        if ratios:
            results[f"jagged/{net}"] = mean_estimate(ratios)
    shares = {
        kind: [
            on_ink(record.values["image"], record.values["coefficients"])
            for (net, _, _), record in found.items()
            if net in nets
        ]
        for kind, nets in (("convolutional", ("simple", "complex")), ("dense", ("dense",)))
    }
    return results | {f"on ink/{k}": mean_estimate(v) for k, v in shares.items() if v}


def _ratios(found: dict[Key, Record], net: str) -> list[float]:
    """Return the log ratio for each copy, over its outputs: networks are units, outputs are not."""
    ratios: list[float] = []
    for name, copy, optimizer in found:
        other = found.get((net, copy, "adamw"))
        if name == net and optimizer == "sgd" and other is not None:
            own = found[net, copy, "sgd"].values["coefficients"]
            pairs = zip(other.values["coefficients"], own, strict=True)
            logs = np.array([np.log(jaggedness(a) / jaggedness(b)) for a, b in pairs])
            if np.isfinite(logs).any():
                ratios.append(float(logs[np.isfinite(logs)].mean()))
    return ratios


def conclude(records: Sequence[Record]) -> list[str]:
    """Say the mean jaggedness of every kind of network by both optimizers."""
    found = shown(records)
    said = []
    for net in NETS:
        levels = {
            optimizer: np.mean(
                [
                    jaggedness(one)
                    for (name, _, by), record in found.items()
                    if (name, by) == (net, optimizer)
                    for one in record.values["coefficients"]
                ]
            )
            for optimizer in NAMES
        }
        said.append(f"{net}: {levels['sgd']:.2f} by SGD, {levels['adamw']:.2f} by AdamW")
    return [f"Mean jaggedness of the coefficients: {'; '.join(said)}."]


def draw(records: Sequence[Record]) -> Figure:
    """Draw the coefficients: rows are networks, columns outputs; grey is zero."""
    from inscape.figures.panels import panels

    found = shown(records)
    rows = sorted(found, key=lambda key: (key[2] == "adamw", NETS.index(key[0]), key[1]))
    figure, (ax,) = panels(1, size=(6.2, 0.62 * len(rows) + 0.5))
    image = next(iter(found.values())).values["image"]
    strips = [_strip(image, found[key].values["coefficients"]) for key in rows]
    _mosaic(ax, strips, [f"{net} {copy}, {NAMES[by]}" for net, copy, by in rows])
    return figure


def _strip(image: Array, coefficients: Array) -> Array:
    """Return the image and the coefficients of each output in one row, all within [-1, 1]."""
    scaled = [np.asarray(one, dtype=float) / (np.abs(one).max() or 1) for one in coefficients]
    tiles = [np.asarray(image, dtype=float) * 2 - 1, *scaled]
    framed = [np.pad(tile, 1, constant_values=np.nan) for tile in tiles]
    return np.concatenate(framed, axis=1)


def _mosaic(ax: Panel, strips: Sequence[Array], names: Sequence[str]) -> None:
    whole = np.concatenate(list(strips), axis=0)
    side = strips[0].shape[0]
    ax.imshow(whole, cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_yticks([side * (k + 0.5) for k in range(len(strips))], names, fontsize=6.5)
    words = ["image", *(str(k) for k in range(strips[0].shape[1] // side - 1))]
    ax.set_xticks([side * (k + 0.5) for k in range(len(words))], words, fontsize=6.5)
    ax.tick_params(length=0)
    ax.set_xlabel("coefficients of output")


EXPERIMENT = Experiment(
    shows="Figure 6.3",
    title="Linear coefficients of each output at one zero of MNIST, for every network",
    same_as="table-6.1",
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            **{
                f"jagged-{net}: jagged/{net} > 0": f"Coefficients of {net} networks are more "
                "jagged with AdamW than with SGD."
                for net in NETS
            },
            "on-ink: on ink/convolutional > 0.9": "Convolutional networks have non-zero "
            "coefficients only where the image is not zero (nine tenths of their magnitude within "
            "two pixels of it). | t interval over networks",
        },
        source="section 6.1",
        test="mean log ratio of jaggedness, t interval over outputs and copies",
    ),
    errata=("S12", "S13"),
    notes=(
        "Jaggedness is the sum of the differences between neighbouring pixels over the sum of the "
        "magnitudes; it was defined before any network was trained.",
        "Which zero the figure shows is not said but that it is the fourth of its row: here it is "
        "the fourth zero of the training images. Every image is scaled by its own largest "
        "magnitude.",
    ),
)
