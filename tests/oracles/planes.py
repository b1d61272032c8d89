"""Cells of small ReLU networks in a polygon, in exact rational arithmetic: slow and obvious."""

from fractions import Fraction

Point = tuple[Fraction, Fraction]
Affine = tuple[Fraction, Fraction, Fraction]


def rational(numbers):
    """Return nested numbers as fractions, exactly."""
    if isinstance(numbers, int | float):
        return Fraction(numbers)
    return [rational(number) for number in numbers]


def at(f: Affine, p: Point) -> Fraction:
    return f[0] * p[0] + f[1] * p[1] + f[2]


def area(polygon: list[Point]) -> Fraction:
    twice = Fraction(0)
    for (a, b), (c, d) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        twice += a * d - b * c
    return twice / 2


def clipped(polygon: list[Point], f: Affine) -> list[Point]:
    """Return the part of a polygon where ``f`` is not negative."""
    kept: list[Point] = []
    for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        z, w = at(f, p), at(f, q)
        if z >= 0:
            kept.append(p)
        if (z > 0 > w) or (z < 0 < w):
            t = z / (z - w)
            kept.append((p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])))
    return kept


def negative(f: Affine) -> Affine:
    return (-f[0], -f[1], -f[2])


def cells(layers, polygon, slopes=None):
    """Return (pattern, polygon, output maps) of every cell with an area.

    ``layers`` are pairs of weights and biases; all but the last are followed by a kink with the
    slope given for the layer (0: ReLU). A unit is on where it is above zero somewhere in the cell.
    """
    layers = [(rational(w), rational(b)) for w, b in layers]
    slopes = slopes or [0] * (len(layers) - 1)
    one, zero = Fraction(1), Fraction(0)
    found = [((), [tuple(rational(p)) for p in polygon], [(one, zero, zero), (zero, one, zero)])]
    for (weight, bias), slope in zip(layers[:-1], slopes, strict=True):
        found = [
            part
            for pattern, shape, maps in found
            for part in _cut(pattern, shape, _affine(weight, bias, maps), Fraction(slope))
        ]
    weight, bias = layers[-1]
    return [(pattern, shape, _affine(weight, bias, maps)) for pattern, shape, maps in found]


def _affine(weight, bias, maps):
    return [
        tuple(
            sum((w * m[i] for w, m in zip(row, maps, strict=True)), Fraction(0))
            + (b if i == 2 else 0)
            for i in range(3)
        )
        for row, b in zip(weight, bias, strict=True)
    ]


def _cut(pattern, shape, functions, slope):
    parts = [(pattern, shape, [])]
    for f in functions:
        after = []
        for bits, polygon, maps in parts:
            for on, side in ((1, f), (0, negative(f))):
                part = clipped(polygon, side)
                if len(part) < 3 or area(part) <= 0:
                    continue
                if on and not any(at(f, p) > 0 for p in part):
                    continue  # zero all over: off
                out = f if on else tuple(slope * value for value in f)
                after.append(((*bits, on), part, [*maps, out]))
                if not on and not any(at(f, p) != 0 for p in polygon):
                    break
        parts = after
    return parts
