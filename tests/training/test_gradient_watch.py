"""Norms of gradients are recorded where something changed them after the backward pass."""

import pytest
import torch
from torch import nn

from inscape.training import replay
from inscape.training.gradient_watch import FIRST
from recorded_loops import batches, data, plain, trained

STEPS, LATE = FIRST + 12, FIRST + 6


def recorded(folder, clip=None, **settings):
    """Return the model and the recording of a loop that calls a function before each update."""
    model = plain(torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    count = iter(range(STEPS))
    run = trained(
        model, optimizer, folder, rows=batches(STEPS), every=50,
        clip=None if clip is None else lambda: clip(model, next(count)), **settings,
    )  # fmt: skip
    return model, run


def scale_silently(model, limit=0.2):
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    for p in model.parameters():
        p.grad.data.mul_(min(1.0, float(limit / norm)))


def replace_gradients(model):
    for p in model.parameters():
        p.grad = p.grad * 0.5


CLIPS = {
    "clip_grad_norm_": lambda model, step: nn.utils.clip_grad_norm_(model.parameters(), 0.2),
    "clip_grad_norm_ later on": lambda model, step: (
        step >= LATE and nn.utils.clip_grad_norm_(model.parameters(), 0.2)
    ),
    "data": lambda model, step: scale_silently(model),
    "data later on": lambda model, step: step >= LATE and scale_silently(model),
    "assigned": lambda model, step: replace_gradients(model),
    "assigned later on": lambda model, step: step >= LATE and replace_gradients(model),
}


@pytest.mark.parametrize("name", CLIPS)
def test_every_update_whose_gradient_was_changed_has_its_norm(name, tmp_path):
    model, run = recorded(tmp_path / "run", CLIPS[name])
    norms = run.trajectory.loop.norms
    assert not norms[LATE if "later" in name else 0 :].isnan().any()
    if "later" in name:
        assert norms[FIRST:LATE].isnan().all()
    x, y = data(torch.float32)
    walked = replay(run.trajectory, model, x, y, STEPS)
    for key, tensor in model.state_dict().items():
        torch.testing.assert_close(walked[key], tensor, rtol=1e-5, atol=1e-6)


def test_a_loop_that_leaves_gradients_alone_needs_no_norms(tmp_path):
    model, run = recorded(tmp_path / "run")
    norms = run.trajectory.loop.norms
    assert not norms[:FIRST].isnan().any()
    assert norms[FIRST:].isnan().all()
    x, y = data(torch.float32)
    walked = replay(run.trajectory, model, x, y, STEPS)
    assert all(torch.equal(walked[k], t) for k, t in model.state_dict().items())


def test_gradients_that_are_set_to_zero_keep_their_norms(tmp_path):
    model = plain(torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad = lambda: torch.optim.Optimizer.zero_grad(optimizer, set_to_none=False)
    run = trained(model, optimizer, tmp_path / "run", rows=batches(STEPS))
    assert not run.trajectory.loop.norms.isnan().any()
    assert run.verdict.endswith("replayed bit for bit")


def test_hooks_are_gone_after_the_recording(tmp_path):
    model, _ = recorded(tmp_path / "run")
    assert not any(p._post_accumulate_grad_hooks for p in model.parameters())
