"""Gradients by an input as small pictures, and as words where inputs are no pictures."""

import base64
import io

import torch
from torch import Tensor

from inscape.figures.attribution import pixels_of
from inscape.figures.style import BLUE, VERMILION
from inscape.report.pictures import thumbnail
from inscape.report.words import number

#: Inputs with the largest gradients that are named.
NAMED = 3


def heat(gradient: Tensor) -> str | None:
    """Return the address of a picture of a gradient, blue where it is positive, else vermilion.

    The stronger the larger it is, transparent where it is zero; None where inputs are no pictures.
    """
    from PIL import Image

    values = pixels_of(gradient[None] if gradient.ndim == 2 else gradient)
    if values is None or thumbnail(gradient) is None:
        return None
    strongest = values.abs().argmax(0, keepdim=True)
    signed = values.gather(0, strongest)[0]
    alpha = (signed.abs() / signed.abs().max().clamp_min(1e-300) * 255).round()
    colors = torch.tensor([_rgb(VERMILION), _rgb(BLUE)])[(signed > 0).long()]
    pixels = torch.cat([colors, alpha[..., None].long()], 2).to(torch.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels.numpy(), "RGBA").save(out, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def _rgb(color: str) -> list[int]:
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


def largest(gradient: Tensor) -> str:
    """Return the inputs with the largest gradients in words.

    >>> largest(torch.tensor([0.5, -2.0]))
    'input 1: −2, input 0: 0.5'
    """
    flat = gradient.detach().flatten().double()
    order = flat.abs().argsort(descending=True, stable=True)[:NAMED].tolist()
    return ", ".join(f"input {k}: {number(float(flat[k]), 2)}" for k in order)
