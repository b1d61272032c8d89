"""Random draws of synthetic data sets: two private generators, float64, rounded once."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from inscape._core import checks, generator
from inscape.data.catalogue import Value
from inscape.data.dataset import Dataset


def streams(seed: int) -> tuple[torch.Generator, torch.Generator]:
    """Return one generator for the training set and an independent one for the test set."""
    checks.at_least(0, seed=seed)
    test_seed = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]
    return generator(seed), generator(int(test_seed) >> 1)


def sizes(n: int, n_test: int) -> None:
    """Refuse fewer than one training row or fewer than no test set."""
    checks.at_least(1, n=n)
    checks.at_least(0, n_test=n_test)


def word(dtype: torch.dtype) -> str:
    """Return the name of a floating dtype as settings hold it."""
    if not dtype.is_floating_point:
        raise TypeError(
            f"dtype must be a floating-point type, found {dtype}: use torch.float32 or float64."
        )
    return str(dtype).removeprefix("torch.")


def regression(
    name: str,
    train: tuple[Float[Tensor, "n *d"], Float[Tensor, "n c"]],
    test: tuple[Float[Tensor, "m *d"], Float[Tensor, "m c"]],
    *,
    dtype: torch.dtype,
    settings: dict[str, Value],
    notes: tuple[str, ...] = (),
) -> Dataset:
    """Round both halves to ``dtype`` and leave out an empty test half."""
    x, y, x_test, y_test = (tensor.to(dtype) for tensor in (*train, *test))
    return Dataset(
        name=name,
        x=x,
        y=y,
        task="regression",
        x_test=x_test if len(x_test) else None,
        y_test=y_test if len(x_test) else None,
        notes=notes,
        settings={**settings, "dtype": word(dtype)},
    )


def two_classes(
    name: str,
    train: tuple[Float[Tensor, "n *d"], Int[Tensor, " n"]],
    test: tuple[Float[Tensor, "m *d"], Int[Tensor, " m"]],
    *,
    labels: str,
    class_names: tuple[str, str],
    dtype: torch.dtype,
    settings: dict[str, Value],
) -> Dataset:
    """Make a set of two classes, labelled 0 and 1, or -1 and +1 as a regression."""
    checks.one_of(("regression", "classes"), labels=labels)
    settings = {**settings, "labels": labels}
    (x, y), (x_test, y_test) = train, test
    if labels == "regression":
        signed, signed_test = (2.0 * y - 1)[:, None], (2.0 * y_test - 1)[:, None]
        return regression(name, (x, signed), (x_test, signed_test), dtype=dtype, settings=settings)
    return Dataset(
        name=name,
        x=x.to(dtype),
        y=y,
        task="classes",
        x_test=x_test.to(dtype) if len(x_test) else None,
        y_test=y_test if len(x_test) else None,
        settings={**settings, "dtype": word(dtype)},
        class_names=class_names,
    )
