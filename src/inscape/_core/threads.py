"""Threads: one pool works at a time.

PyTorch and NumPy bring a pool of threads each. Between two calls the threads of one keep their
cores busy waiting for more, while those of the other wait for the cores: a singular value
decomposition of 2000 x 784 took 43 s on two threads, and 0.4 s on one.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_pool() -> Iterator[None]:
    """Leave the threads to PyTorch while the block runs: NumPy and SciPy compute on one."""
    import scipy.linalg  # its library must be loaded to be limited  # noqa: F401
    from threadpoolctl import ThreadpoolController

    with ThreadpoolController().select(internal_api="openblas").limit(limits=1):
        yield
