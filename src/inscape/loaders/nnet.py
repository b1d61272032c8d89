"""Networks in the text format .nnet (ACAS Xu): dense layers with ReLU between them.

Lines that begin with ``//`` are remarks. Then come the number of layers, of inputs, of outputs and
the largest size; the sizes; a flag that nobody uses; smallest and largest inputs; means and ranges
of the inputs and, last, of the outputs; then each layer's weights, a row for each unit, and biases.
"""

from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor, nn

from inscape.errors import UnsupportedModelError
from inscape.files.size_limits import check_size

#: Lines of the header: counts, sizes, flag, minima, maxima, means, ranges.
HEADER = 7


def open_nnet(path: Path, *, max_size: int | None = None) -> tuple[nn.Sequential, tuple[str, ...]]:
    """Return the network of a file as it stands there, and what its inputs are divided by.

    Inputs and outputs are normalised ones, as in most published analyses.
    """
    check_size(path, path.stat().st_size, max_size=max_size)
    rows = _rows(path)
    sizes = _sizes(path, rows)
    means, ranges = (_header(path, rows, line, sizes[0]) for line in (5, 6))
    layers: list[nn.Module] = []
    at = HEADER
    for inputs, outputs in pairwise(sizes):
        weight = _block(path, rows[at : at + outputs], inputs, f"weights of layer {len(layers)}")
        bias = _block(path, rows[at + outputs : at + 2 * outputs], 1, f"biases of {len(layers)}")
        layers += [_linear(weight, bias[:, 0]), nn.ReLU()]
        at += 2 * outputs
    if len(rows) > at:
        _refuse(path, f"{at} lines of numbers", f"{len(rows)}")
    return nn.Sequential(*layers[:-1]).eval(), (_NORMALISED.format(_numbers(means, ranges)),)


_NORMALISED = (
    "expects normalised inputs, as the file has it: for inputs in their own units use "
    "--normalise {}"
)


def _rows(path: Path) -> list[list[float]]:
    """Return the numbers of each line that is no remark."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        content = (line for line in lines if line.strip() and not line.startswith("//"))
        return [[float(word) for word in line.split(",") if word.strip()] for line in content]
    except ValueError as error:  # UnicodeDecodeError is one
        raise UnsupportedModelError(
            f"{path} must be a .nnet file of numbers, found other text ({str(error)[:80]}): copy "
            "it again."
        ) from error


def _sizes(path: Path, rows: list[list[float]]) -> list[int]:
    if len(rows) < HEADER or len(rows[0]) < 4:
        _refuse(path, f"a header of {HEADER} lines, the first of 4 numbers", f"{len(rows)} lines")
    counts, sizes = rows[0], rows[1]
    if not all(size >= 1 and size.is_integer() for size in (*counts[:3], *sizes)):
        _refuse(path, "integers as sizes", f"{counts} and {sizes}")
    ends = (sizes[0], sizes[-1]) if sizes else ()
    if len(sizes) != counts[0] + 1 or ends != (counts[1], counts[2]):
        _refuse(path, f"the sizes of {counts[0]:g} layers, from {counts[1]:g} on", f"{sizes}")
    return [int(size) for size in sizes]


def _header(path: Path, rows: list[list[float]], line: int, inputs: int) -> list[float]:
    if len(rows[line]) < inputs:
        _refuse(path, f"{inputs} numbers in line {line + 1}", f"{len(rows[line])}")
    return rows[line][:inputs]


def _block(path: Path, rows: list[list[float]], columns: int, role: str) -> Tensor:
    odd = next((row for row in rows if len(row) != columns), None)
    if not rows or odd is not None:
        content = "the end of the file" if odd is None else f"{len(odd)}"
        _refuse(path, f"lines of {columns} numbers as the {role}", content)
    return torch.tensor(rows)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    if len(weight) != len(bias):
        raise UnsupportedModelError(
            f"a layer of a .nnet file must have a bias for each of {len(weight)} units, found "
            f"{len(bias)}: copy the file again."
        )
    linear = nn.Linear(weight.shape[1], len(weight), device="meta")  # draws no random numbers
    linear.weight, linear.bias = nn.Parameter(weight), nn.Parameter(bias)
    return linear


def _numbers(means: list[float], ranges: list[float]) -> str:
    return "/".join(",".join(f"{value:.9g}" for value in values) for values in (means, ranges))


def _refuse(path: Path, expected: str, content: str) -> NoReturn:
    raise UnsupportedModelError(
        f"{path} must be a whole .nnet file with {expected}, found {content}: copy it again."
    )
