"""Sources of compiled ``torch.fx`` graphs, which PyTorch would keep for ever."""

import linecache
from collections.abc import Iterator
from contextlib import contextmanager

from torch.fx import graph_module


@contextmanager
def without_graph_sources() -> Iterator[None]:
    """Drop the sources of all graphs that are compiled inside: only tracebacks would read them."""
    sources = graph_module._loader.eval_cache
    before = set(sources)
    try:
        yield
    finally:
        for source in sources.keys() - before:
            sources.pop(source, None)
            linecache.cache.pop(source, None)
