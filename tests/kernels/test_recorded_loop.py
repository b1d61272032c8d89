"""The path kernel of a recorded loop: batches that act together against one gradient per sample."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.kernels import path_kernel
from inscape.kernels.path.training_mode import TrainingModeGradients
from inscape.training import record_training
from recorded_loops import batches, data, plain, trained, two_groups, with_everything


def test_parts_of_a_batch_are_gradients_of_its_terms():
    x, y = data()
    model = with_everything().train()
    parameters = list(model.parameters())
    ends = torch.tensor([p.numel() for p in parameters]).cumsum(0).tolist()
    slices = [slice(end - p.numel(), end) for end, p in zip(ends, parameters, strict=True)]
    outputs = model(x[:7])
    given = outputs.detach().requires_grad_()
    (cotangents,) = torch.autograd.grad(nn.functional.cross_entropy(given, y[:7]), given)
    parts = TrainingModeGradients(outputs, cotangents, parameters, slices)
    rows = torch.randn(3, ends[-1], dtype=torch.float64)
    each = []
    for term in (outputs * cotangents).sum(1):
        gradients = torch.autograd.grad(term, parameters, retain_graph=True)
        each.append(torch.cat([g.flatten() for g in gradients]))
    expected = torch.stack(each)
    assert_close(parts.products(rows), rows @ expected.T)
    by_tensor = torch.stack([rows[:, own] @ expected[:, own].T for own in slices])
    assert_close(parts.by_tensor(rows), by_tensor)


SGD, NESTEROV = (torch.optim.SGD, {}), (torch.optim.SGD, {"momentum": 0.9, "nesterov": True})
ADAMW = (torch.optim.AdamW, {"eps": 1e-3})


@pytest.mark.parametrize(
    ("optimizer", "clip", "decay"),
    [
        (SGD, None, "own"), (SGD, "value", "samples"), (NESTEROV, "norm", "own"),
        (ADAMW, "norm", "samples"), (ADAMW, "value", "own"),
    ],
)  # fmt: skip
def test_parts_sum_to_the_change_of_the_output(optimizer, clip, decay, tmp_path):
    kind, options = optimizer
    model = with_everything()
    optimizer = two_groups(kind, model, **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    clips = {
        "norm": lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.3),
        "value": lambda: nn.utils.clip_grad_value_(model.parameters(), 0.02),
    }
    run = trained(
        model, optimizer, tmp_path / "run", rows=batches(8), accumulate=2, schedule=schedule,
        clip=clips.get(clip),
    )  # fmt: skip
    x, y = data()
    split = path_kernel(model, x, y, trajectory=run.trajectory, queries=x[:2], decay=decay)
    parts = split.samples.sum(1) + split.decay + split.statistics
    assert_close(split.initial + parts, split.final)
    assert_close(split.final, model(x[:2]).detach())
    assert float(split.statistics.abs().max()) > 0


def test_layers_and_steps_sum_to_samples(tmp_path):
    model = with_everything()
    run = trained(model, torch.optim.Adam(model.parameters(), lr=0.01), tmp_path / "run",
                  rows=batches(4), accumulate=2)  # fmt: skip
    x, y = data()
    split = path_kernel(
        model, x, y, trajectory=run.trajectory, queries=x[:1], by_layer=True, by_step=True
    )
    assert_close(split.layers.sum(2), split.samples)
    assert_close(split.steps.sum(1), split.samples.sum(1) + split.unknown)


def test_some_outputs_are_those_among_all(tmp_path):
    model = with_everything()
    run = trained(model, torch.optim.Adam(model.parameters(), lr=0.01), tmp_path / "run",
                  rows=batches(4), accumulate=2)  # fmt: skip
    x, y = data()
    given = {"trajectory": run.trajectory, "queries": x[:2]}
    whole = path_kernel(model, x, y, **given)
    assert_close(
        path_kernel(model, x, y, outputs=[2, 0], **given).samples, whole.samples[..., [2, 0]]
    )
    assert_close(whole.of_outputs([1]).final, whole.final[:, 1:2])
    for outputs in ([], [99], [-1]):
        with pytest.raises(ValueError, match=r"outputs must be indices from 0 to \d+, at least"):
            path_kernel(model, x, y, outputs=outputs, **given)


def test_what_is_named_beside_samples_is_in_the_rest(tmp_path):
    model = with_everything()
    run = trained(model, torch.optim.SGD(model.parameters(), lr=0.1), tmp_path / "run")
    x, y = data()
    split = path_kernel(model, x, y, trajectory=run.trajectory, queries=x[:1])
    assert "running statistics" in split.non_sample_contributions(0, 0)


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        (torch.optim.Adam, {"amsgrad": True}, "found amsgrad in adam"),
        (torch.optim.SGD, {"maximize": True}, "found maximize in sgd"),
        (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.1}, "found dampening in sgd"),
    ],
)
def test_options_that_are_not_split_are_refused_by_name(kind, options, text, tmp_path):
    model = plain()
    run = trained(model, kind(model.parameters(), lr=0.01, **options), tmp_path / "run")
    assert "bit for bit" in run.verdict
    with pytest.raises(UnsupportedModelError, match=text):
        path_kernel(model, *data(), trajectory=run.trajectory)


def test_a_recording_that_begins_late_is_refused(tmp_path):
    x, y = data()
    model = plain()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def update():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    update()
    with record_training(
        model, optimizer, loss="cross_entropy", data=(x, y), to=tmp_path / "run"
    ) as run:
        update()
        run.step(torch.arange(len(x)))
    with pytest.raises(UnsupportedModelError, match="had made updates before the recording began"):
        path_kernel(model.eval(), x, y, trajectory=run.trajectory)
