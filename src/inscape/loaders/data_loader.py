"""Reading a DataLoader to the end, without leaving a trace in any random state."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from inscape.errors import DataError
from inscape.loaders.arrays import Array, Arrays, from_names, from_pair
from inscape.loaders.files import short
from inscape.runtime.progress import progress


def is_loader(data: object) -> bool:
    """Tell a DataLoader, or a torch Dataset that one can be made of."""
    return isinstance(data, DataLoader | Dataset)


def read_loader(data: Any, *, limit: int | None, arguments: Sequence[str] = ()) -> Arrays:
    """Return the examples of a loader, in the order of a shuffle with seed 0 if it shuffles.

    Args:
        data: Yields ``x``, ``(x, y)`` or a dict of batches.
        limit: Stop when there are so many examples.
        arguments: Names that the model's forward has.
    """
    loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size=256)
    batches: list[Arrays] = []
    rows = 0
    with _untouched(loader):
        try:
            for batch in _with_progress(loader):
                batches.append(_arrays(batch, arguments))
                rows += len(batches[-1].x)
                if limit is not None and rows >= limit:
                    break
        except DataError:
            raise
        except Exception as error:
            raise DataError(
                f"the loader must yield batches of tensors, but it raised {short(error)}; "
                "fix it, or pass (x, y)."
            ) from error
    if not rows:
        raise DataError(
            "the loader must yield at least one example, found none: check its data set."
        )
    return _joined(batches, limit)


def _arrays(batch: Any, arguments: Sequence[str]) -> Arrays:
    if isinstance(batch, Mapping):
        return from_names(batch, "a batch", arguments)
    return from_pair(batch)


def _joined(batches: list[Arrays], limit: int | None) -> Arrays:
    def cat(parts: list[Array]) -> Array:
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) > 1:
            raise DataError(
                f"the loader must yield examples of one shape, found {sorted(shapes)[0]} and "
                f"{sorted(shapes)[1]}: pad or crop them."
            )
        return np.concatenate(parts)[:limit]

    labels = [batch.y for batch in batches if batch.y is not None]
    y = cat(labels) if len(labels) == len(batches) else None
    x = cat([batch.x for batch in batches])
    return Arrays(x=x, y=y, parts=batches[0].parts, notes=batches[0].notes)


def _with_progress(loader: Any) -> Iterator[Any]:
    try:
        total = len(loader)
    except TypeError:  # an iterable data set does not know its length
        yield from loader
        return
    with progress(total, label="reading batches") as bar:
        for batch in loader:
            yield batch
            bar.advance()


@contextmanager
def _untouched(loader: Any) -> Iterator[None]:
    """Draw shuffles and transforms from seed 0, then put every random state back."""
    own = {id(g): g for g in (loader.generator, getattr(loader.sampler, "generator", None)) if g}
    states = [(generator, generator.get_state()) for generator in own.values()]
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002 - transforms use it
    before = torch.random.get_rng_state()
    torch.default_generator.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        torch.random.set_rng_state(before)
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        for generator, state in states:
            generator.set_state(state)
