"""Figures of the extrapolation family: error against distance, and maps of the plane."""

import math
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from inscape.extrapolation import ZONES, ErrorMap, Extrapolation, Profile, log_errors
from inscape.figures.drawing import painter
from inscape.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREEN,
    MAGNITUDE,
    ORANGE,
    VERMILION,
    new_axes,
    quiet_grid,
    styled,
)

#: Colours of the models: the network, and its baselines.
MODELS = {
    "network": VERMILION,
    "gaussian_process": BLUE,
    "nearest_neighbour": GREEN,
    "linear": ORANGE,
}
#: Marks of the zones.
MARKS = dict(zip(ZONES, "o^x+", strict=True))


@painter.register(Extrapolation)
def _extrapolation(result: Extrapolation, ax: Axes) -> None:
    """Draw errors against the distance from the data, smoothed, with 95% intervals."""
    power = result.logarithmic
    network = log_errors(result.errors[:, 0]).exp() if power else result.errors[:, 0]
    for number, zone in enumerate(ZONES):
        inside = result.zones == number
        if result.classes or not bool(inside.any()):
            continue
        look: dict[str, Any] = {"marker": MARKS[zone], "s": 9, "color": MODELS["network"]}
        name = {"domain": "in the domain", "hull": "in the hull"}.get(zone, zone)
        at, dots = result.distances[inside].numpy(), network[inside].numpy()
        ax.scatter(at, dots, linewidths=0.7, label=name, alpha=0.3, **look)
    for k, model in enumerate(result.models):
        profile = result.profile(model)
        _curve(profile, ax, model, dash=DASHES[k], power=power)
    if power:
        ax.set_yscale("log")
    label = "fraction of wrong answers" if result.classes else "squared error"
    ax.set(xlabel="distance to the nearest data point", ylabel=label)
    if result.warnings:
        ax.set_title("read the warnings")
    quiet_grid(ax)
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


def _curve(profile: Profile, ax: Axes, model: str, *, dash: Any, power: bool) -> None:
    at, mean, low, high = (
        (part.exp() if power and k else part).numpy()
        for k, part in enumerate((profile.at, profile.mean, profile.low, profile.high))
    )
    color = MODELS[model]
    ax.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
    ax.plot(at, mean, color=color, linestyle=dash, label=model.replace("_", " "))


@painter.register(Profile)
def _profile(result: Profile, ax: Axes) -> None:
    """Draw the smoothed mean with its 95% interval."""
    at, mean, low, high = (
        part.numpy() for part in (result.at, result.mean, result.low, result.high)
    )
    ax.fill_between(at, low, high, color=BLUE, alpha=0.18, linewidth=0)
    ax.plot(at, mean, color=BLUE)
    ax.set(xlabel="distance", ylabel="smoothed mean")
    quiet_grid(ax)


@painter.register(ErrorMap)
def _error_map(result: ErrorMap, ax: Axes) -> None:
    """Draw the negative logarithm of the squared error: the brighter, the better."""
    error_picture(result, ax)


def error_picture(
    result: ErrorMap,
    ax: Axes | None = None,
    *,
    limits: tuple[float, float] | None = None,
    data: Float[Tensor, "n 2"] | None = None,
    bar: bool = True,
) -> Axes:
    """Draw a map of errors in decades, and return the axes.

    Args:
        result: The map.
        ax: Axes to draw on; new ones by default.
        limits: Decades at both ends of the colours, so that several maps share them.
        data: Points to be shown, such as those of the training.
        bar: Whether to draw the key of the colours.
    """
    with styled():
        ax = new_axes() if ax is None else ax
        decades = result.brightness / math.log(10)
        low, high = limits or tuple(
            torch.quantile(decades.flatten()[:: max(1, decades.numel() // 10**6)], q).item()
            for q in (0.005, 0.995)
        )
        extent = (*result.across, *result.up)
        picture = ax.imshow(
            decades.numpy(), origin="lower", extent=extent, cmap=MAGNITUDE, vmin=low, vmax=high
        )
        figure = ax.get_figure(root=True)
        if bar and figure is not None:
            key = figure.colorbar(picture, ax=ax, label="-log10 of the squared error")
            key.outline.set_visible(False)
        if data is not None:
            places = data.detach().cpu().numpy()
            ax.scatter(places[:, 0], places[:, 1], s=2, color=VERMILION, linewidths=0)
        ax.set(xlabel="first input", ylabel="second input", xlim=extent[:2], ylim=extent[2:])
        ax.tick_params(length=2, color=FAINT)
    return ax
