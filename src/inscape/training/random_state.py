"""The dice of a training: dropout and its like draw from global generators, so we lend them ours.

Each update has a seed of its own, made from the seed of the training and the number of the step.
So a step can be repeated without those before it, and nothing of it has to be stored.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

MASK = 2**64 - 1


@contextmanager
def private_dice(device: torch.device) -> Iterator[None]:
    """Give the global generators back as they were, whatever the block draws from them."""
    states = [rng.get_state() for rng in _global_dice(device)]
    try:
        yield
    finally:
        for rng, state in zip(_global_dice(device), states, strict=True):
            rng.set_state(state)


def seed_dice(seed: int, step: int, device: torch.device) -> None:
    """Seed the global generators for one update; call it inside :func:`private_dice` only."""
    for rng in _global_dice(device):
        rng.manual_seed(step_seed(seed, step))


def step_seed(seed: int, step: int) -> int:
    """Mix seed and step into 63 bits (the finaliser of SplitMix64), alike on every machine."""
    mixed = (seed * 0xD1342543DE82EF95 + step * 0x9E3779B97F4A7C15) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return (mixed ^ (mixed >> 31)) >> 1


def _global_dice(device: torch.device) -> list[torch.Generator]:
    """Return the generators that a module on ``device`` may draw from."""
    if device.type == "cpu":
        return [torch.default_generator]
    if device.type == "mps":
        return [torch.default_generator, torch.mps._get_default_mps_generator()]
    module = torch.get_device_module(device)
    return [torch.default_generator, module.default_generators[device.index or 0]]


def random_states(device: torch.device) -> list[torch.Tensor]:
    """Return the states of the generators that a module on ``device`` may draw from."""
    return [rng.get_state() for rng in _global_dice(device)]


def set_random_states(states: torch.Tensor, device: torch.device) -> None:
    """Set these generators to states that stand one after the other, inside `private_dice` only."""
    at = 0
    for rng in _global_dice(device):
        size = rng.get_state().numel()
        rng.set_state(states[at : at + size].clone())
        at += size
