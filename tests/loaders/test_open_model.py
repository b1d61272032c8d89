"""Opening objects: mode, precision, device, wrappers."""

import threading
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.loaders import choose_device, open_model

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def test_a_model_in_eval_mode_is_taken_as_it_is():
    model = nn.Linear(3, 2).eval()
    opened = open_model(model)
    assert opened.model is model
    assert opened.source == "Linear object"
    assert opened.notes == ()
    assert not opened.was_training


def test_a_model_in_training_mode_is_copied_and_switched():
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).train()
    opened = open_model(model)
    assert model[1].training
    assert opened.model is not model
    assert not any(module.training for module in opened.model.modules())
    assert opened.was_training
    assert opened.notes == ("was in training mode: switched to eval (a copy; yours is unchanged)",)
    assert_close(opened.model(X), model[0](X))


def test_one_layer_in_training_mode_is_enough():
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval()
    model[1].train()
    assert open_model(model).was_training


def test_precision_is_converted_on_a_copy_and_said():
    model = nn.Linear(3, 2).eval()
    opened = open_model(model, dtype="float64")
    assert model.weight.dtype == torch.float32
    assert opened.model.weight.dtype == torch.float64
    assert opened.notes == ("converted from float32 to float64 (a copy; yours is unchanged)",)
    assert open_model(opened.model, dtype=torch.float64).model is opened.model


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([torch.float16], torch.float32),
        ([torch.bfloat16, torch.float32], torch.float32),
        ([torch.float32, torch.float64], torch.float64),
    ],
)
def test_half_and_mixed_precision_become_one(given, expected):
    model = nn.Sequential(*(nn.Linear(3, 3, dtype=dtype) for dtype in given)).eval()
    opened = open_model(model)
    assert {parameter.dtype for parameter in opened.model.parameters()} == {expected}
    assert opened.notes[0].startswith("converted from ")


def test_wrappers_are_opened_and_said():
    model = nn.Linear(3, 2).eval()
    opened = open_model(nn.DataParallel(model))
    assert opened.model is model or opened.was_training
    assert "took the module inside DataParallel" in opened.notes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns itself when the compiler is imported
        compiled = open_model(torch.compile(model))
    assert compiled.model is model
    assert "took the module inside OptimizedModule" in compiled.notes


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (nn.Linear, "type object must be .*found the class Linear itself"),
        (torch.relu, "found a builtin_function_or_method"),
        (None, "found None"),
        (torch.ones(2), "found a Tensor"),
    ],
)
def test_other_objects_are_refused(spec, text):
    with pytest.raises(TypeError, match=text):
        open_model(spec)


class NoCopy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()  # deepcopy refuses it

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def test_what_cannot_be_copied_is_left_to_the_user():
    model = NoCopy()
    with pytest.raises(UnsupportedModelError, match=r"deepcopy raised TypeError.*model\.eval\(\)"):
        open_model(model)
    assert open_model(model.eval()).model is model


def test_devices():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "cpu:", "gpu"])
def test_unknown_devices(name):
    with pytest.raises(ValueError, match=f"device must be auto, cpu, cuda, .*found '{name}'"):
        choose_device(name)


def test_devices_that_are_not_here(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:1", "mps"):
        with pytest.raises(ValueError, match=f"device '{name}' must exist .*found 0 of kind"):
            open_model(nn.Linear(1, 1), device=name)
    with pytest.raises(ValueError, match="device 'cpu:1' must exist on this machine, found 1"):
        choose_device("cpu:1")


def test_auto_prefers_cuda_then_mps(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("mps")
    with pytest.raises(ValueError, match="float64 must be computed on cpu or cuda"):
        open_model(nn.Linear(1, 1), device="mps", dtype="float64")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("auto") == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"device 'cuda:2' must exist .*found 2 of kind 'cuda'"):
        choose_device("cuda:2")


def test_unknown_precision():
    with pytest.raises(ValueError, match="dtype must be float32 or float64, found float16"):
        open_model(nn.Linear(1, 1), dtype="float16")


def test_a_model_without_numbers_is_refused():
    with pytest.raises(UnsupportedModelError, match="found 'weight' on the device 'meta': build"):
        open_model(nn.Linear(3, 2, device="meta"))


def test_moving_is_done_on_a_copy_and_said(monkeypatch):
    monkeypatch.setattr("inscape.loaders.model.choose_device", lambda name: torch.device(name))
    model = nn.Linear(3, 2).eval()
    opened = open_model(model, device="meta")  # the one other device that every machine has
    assert opened.notes == ("moved to meta (a copy; yours is unchanged)",)
    assert opened.model.weight.device.type == "meta"
    assert model.weight.device.type == "cpu"
