"""Random state of a training: dropout and its like draw from PyTorch's global generators.

Each update has a seed of its own, made from the seed of the training and the number of the step.
So a step can be repeated without those before it, and no random state has to be stored. Outside of
a training the global generators are as if it had never been.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

MASK = 2**64 - 1


@contextmanager
def private_random_state(device: torch.device) -> Iterator[None]:
    """Restore the states of the global generators after the block, whatever it draws."""
    states = [rng.get_state() for rng in global_generators(device)]
    try:
        yield
    finally:
        for rng, state in zip(global_generators(device), states, strict=True):
            rng.set_state(state)


def seed_random_state(seed: int, step: int, device: torch.device) -> None:
    """Seed the global generators for one update, inside :func:`private_random_state` only."""
    for rng in global_generators(device):
        rng.manual_seed(step_seed(seed, step))


def step_seed(seed: int, step: int) -> int:
    """Return a hash of seed and step of 63 bits (the finaliser of SplitMix64)."""
    mixed = (seed * 0xD1342543DE82EF95 + step * 0x9E3779B97F4A7C15) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return (mixed ^ (mixed >> 31)) >> 1


def global_generators(device: torch.device) -> list[torch.Generator]:
    """Return the generators that a module on ``device`` may draw from."""
    if device.type == "cpu":
        return [torch.default_generator]
    if device.type == "mps":
        return [torch.default_generator, torch.mps._get_default_mps_generator()]
    module = torch.get_device_module(device)
    return [torch.default_generator, module.default_generators[device.index or 0]]


def random_state(generators: Sequence[torch.Generator]) -> torch.Tensor:
    """Return the states of generators, one after the other."""
    if len(generators) == 1:
        return generators[0].get_state()
    return torch.cat([rng.get_state() for rng in generators])


def set_random_states(states: torch.Tensor, device: torch.device) -> None:
    """Set these generators to concatenated states, inside :func:`private_random_state` only."""
    start = 0
    for rng in global_generators(device):
        size = rng.get_state().numel()
        rng.set_state(states[start : start + size].clone())
        start += size
