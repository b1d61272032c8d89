"""What holds for the tests and for the examples in docstrings alike."""

import gc

import jaxtyping
import pytest
import torch

import shapes

#: Before the package is imported: what --jaxtyping-packages writes before every function.
jaxtyping.jaxtyped = shapes.jaxtyped

#: What is imported and collected stays: nothing is gained by walking through it again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector see only what the tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Start every test, and the fixtures made for it, from one seed, with checked annotations."""
    torch.default_generator.manual_seed(0)
    jaxtyping.config.update("jaxtyping_disable", False)
