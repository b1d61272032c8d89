"""Random inputs and labels: ordinary ones, odd ones that must be measured, and illegal ones."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor

Draw = Callable[[Random, tuple[int, ...], torch.dtype], Any]


def gaussian(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return three to ten Gaussian points."""
    return _gaussian(draw, draw.randint(3, 10), shape, dtype)


def _gaussian(draw: Random, n: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    return torch.randn(n, *shape, generator=generator, dtype=torch.float64).to(dtype)


def _one_row(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _gaussian(draw, 1, shape, dtype)


def _two_rows(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _gaussian(draw, 2, shape, dtype)


def _equal_rows(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _gaussian(draw, 1, shape, dtype).repeat(draw.randint(2, 6), *[1] * len(shape))


def _first_rows_equal(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = gaussian(draw, shape, dtype)
    return torch.cat([x[:1], x[:1], x])


def _strided(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = gaussian(draw, (*shape[:-1], 2 * shape[-1]), dtype)
    return x[..., ::2]


def _transposed(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = gaussian(draw, shape, dtype)
    return x.movedim(0, -1).contiguous().movedim(-1, 0)


def _expanded(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _gaussian(draw, 1, shape, dtype).expand(4, *shape)


def _requires_grad(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return gaussian(draw, shape, dtype).requires_grad_()


def _in_a_graph(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return 2 * gaussian(draw, shape, dtype).requires_grad_()


def _parameter(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.nn.Parameter(gaussian(draw, shape, dtype))


def _inference(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    with torch.inference_mode():
        return gaussian(draw, shape, dtype) + 0


def _huge(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    largest = torch.finfo(dtype).max
    size = draw.choice([1e4, 1e8, largest**0.25, largest**0.45, largest**0.9])
    return gaussian(draw, shape, torch.float64).clamp(-3, 3).mul(size).to(dtype)


def _denormal(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    tiny = torch.finfo(dtype).smallest_normal
    size = draw.choice([1e-8, tiny**0.5, tiny, tiny / 64])
    return gaussian(draw, shape, torch.float64).mul(size).to(dtype)


def _zeros(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.zeros(3, *shape, dtype=dtype)


def _lattice(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return gaussian(draw, shape, torch.float64).round().to(dtype)


def _meta(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return gaussian(draw, shape, dtype).to("meta")


def _sparse(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = gaussian(draw, shape, torch.float64)
    if len(shape) == 1 and draw.random() < 0.5:
        return x.relu().to_sparse_csr()
    return x.relu().to(dtype).to_sparse()


def _not_finite(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    x = gaussian(draw, shape, dtype)
    x.view(-1)[draw.randrange(x.numel())] = draw.choice([torch.nan, torch.inf, -torch.inf])
    return x


def _integer(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    kind = draw.choice([torch.int64, torch.int32, torch.uint8, torch.bool])
    return gaussian(draw, shape, torch.float64).abs().to(kind)


def _complex(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return gaussian(draw, shape, torch.float64).to(torch.complex128)


def _other_dtype(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    others = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
    return gaussian(draw, shape, draw.choice([other for other in others if other != dtype]))


def _other_shape(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return gaussian(draw, (*shape[:-1], shape[-1] + draw.randint(1, 2), 2), dtype)


def _too_few_dimensions(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _gaussian(draw, 1, shape, dtype).flatten()[0 : draw.choice([0, 1, 2])].squeeze()


def _no_rows(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.zeros(0, *shape, dtype=dtype)


def _no_tensor(draw: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    x = gaussian(draw, shape, torch.float64)
    return draw.choice([x.tolist(), (1.0, 2.0), None, "x", 3.0])


LEGAL: dict[str, Draw] = {
    "one row": _one_row,
    "two rows": _two_rows,
    "equal rows": _equal_rows,
    "first rows equal": _first_rows_equal,
    "strided": _strided,
    "transposed": _transposed,
    "expanded": _expanded,
    "requires_grad": _requires_grad,
    "in a graph": _in_a_graph,
    "parameter": _parameter,
    "inference tensor": _inference,
    "huge": _huge,
    "denormal": _denormal,
    "zeros": _zeros,
    "lattice": _lattice,
}
ILLEGAL: dict[str, Draw] = {
    "meta": _meta,
    "sparse": _sparse,
    "NaN or inf": _not_finite,
    "integer": _integer,
    "complex": _complex,
    "other dtype": _other_dtype,
    "other shape": _other_shape,
    "too few dimensions": _too_few_dimensions,
    "no rows": _no_rows,
    "no tensor": _no_tensor,
}
#: Kinds for which some instruments have an answer: token ids, and precisions that are converted.
PERHAPS = frozenset({"integer", "other dtype", "other shape"})


def real_labels(draw: Random, n: int, outputs: int, dtype: torch.dtype) -> Tensor:
    """Return one real number for each output."""
    return _gaussian(draw, n, (outputs,), dtype)


def class_labels(draw: Random, n: int, outputs: int, dtype: torch.dtype) -> Tensor:
    """Return one class number for each point."""
    return torch.tensor([draw.randrange(max(outputs, 2)) for _ in range(n)])


def odd_labels(draw: Random, n: int, outputs: int, dtype: torch.dtype) -> tuple[str, Any]:
    """Return labels that are odd or illegal, and what is odd about them."""
    real, classes = real_labels(draw, n, outputs, dtype), class_labels(draw, n, outputs, dtype)
    with torch.inference_mode():
        inference = real + 0
    table: dict[str, Any] = {
        "labels (n,)": real[:, 0],
        "labels require grad": real.clone().requires_grad_(),
        "inference labels": inference,
        "uint8 labels": classes.to(torch.uint8),
        "bool labels": classes.bool(),
        "one class": torch.zeros_like(classes),
        "meta labels": real.to("meta"),
        "sparse labels": real.to_sparse(),
        "complex labels": real.to(torch.complex64),
        "NaN labels": torch.full_like(real, torch.nan),
        "too few labels": real[:-1],
        "too many columns": torch.cat([real, real, real], 1),
        "class numbers too large": classes + 7,
        "negative class numbers": classes - 3,
        "no labels": None,
        "labels in a list": classes.tolist(),
        "labels without dimension": real.sum(),
        "other dtype of labels": real.to(torch.float16),
    }
    kind = draw.choice(list(table))
    return kind, table[kind]
