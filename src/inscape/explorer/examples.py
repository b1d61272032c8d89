"""Examples on the page: thumbnails of those that are images, and where they lie in a plane."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredSubject
from inscape.explorer.wire import Array
from inscape.robustness.windows import grid_of

#: Pixels of a thumbnail along its longer side, at most.
SIDE = 56
#: Examples that are drawn in a plane, at most: the nearest ones.
SHOWN = 600

Facts = dict[str, Any]


def image_grid(subject: ExploredSubject) -> tuple[int, int, int] | None:
    """Return channels, rows and columns of the inputs if they can be images, else nothing."""
    shape = tuple(subject.x.shape[1:])
    if any(size == 0 for size in shape):
        return None
    channels, rows, columns = grid_of(shape)
    is_image = min(rows, columns) >= 4 and channels in (1, 3)
    return (channels, rows, columns) if is_image else None


def thumbnails(
    subject: ExploredSubject, rows: list[int], *, train: bool = False
) -> tuple[Facts, dict[str, Array]]:
    """Return some examples as small pictures in bytes, one after the other, with their labels."""
    x = subject.subject.x_train if train else subject.x
    for row in rows:
        if not 0 <= row < len(x):
            raise ValueError(f"examples must be 0 to {len(x) - 1}, found {row}: choose another.")
    labels = [subject.label(row) for row in rows] if not train else [""] * len(rows)
    grid = image_grid(subject)
    if grid is None:
        return {"rows": rows, "labels": labels, "shape": None}, {}
    small = pictures(x[rows].detach().double().cpu(), grid)
    facts = {"rows": rows, "labels": labels, "shape": list(small.shape[1:])}
    return facts, {"pixels": small.reshape(-1)}


def pictures(x: Tensor, grid: tuple[int, int, int]) -> Array:
    """Return inputs as bytes (n, rows, columns, channels), each from its least to its largest."""
    images = x.reshape(len(x), *grid)
    step = -(-max(grid[1:]) // SIDE)
    images = torch.nn.functional.avg_pool2d(images, step, ceil_mode=True) if step > 1 else images
    low = images.flatten(1).amin(1).reshape(-1, 1, 1, 1)
    high = images.flatten(1).amax(1).reshape(-1, 1, 1, 1)
    scaled = (images - low) / (high - low).clamp(min=1e-300) * 255
    return scaled.round().permute(0, 2, 3, 1).numpy().astype(np.uint8)


def examples_in(subject: ExploredSubject, plane: ExploredPlane) -> tuple[Facts, dict[str, Array]]:
    """Return where the nearest examples lie in a plane, and how far they are from it."""
    x = subject.flat.reshape(-1, *subject.x.shape[1:])
    at = plane.frame.of(x)
    away = (x - plane.frame.at(at)).flatten(1).norm(dim=1)
    order = away.argsort(stable=True)[:SHOWN]
    labels = np.full(len(order), 65535, np.uint16)
    if subject.y is not None and subject.task == "classes":
        labels = subject.y.flatten()[order.to(subject.y.device)].cpu().numpy().astype(np.uint16)
    arrays = {
        "u": at[order, 0].numpy(),
        "v": at[order, 1].numpy(),
        "away": away[order].numpy().astype(np.float32),
        "row": order.numpy().astype(np.uint32),
        "label": labels,
    }
    return {"searched": len(x)}, arrays
