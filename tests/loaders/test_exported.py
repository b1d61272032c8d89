"""Exported programs are replayed, agree with PyTorch's own loader, and run nothing foreign."""

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from inscape.errors import UnsupportedModelError
from inscape.loaders import open_model

ANY_BATCH = ({0: torch.export.Dim.AUTO},)


class Functional(nn.Module):
    """In-place and functional activations, a reused layer, buffers and a lifted constant."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.again = nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)
        self.relu = nn.ReLU(inplace=True)
        self.register_buffer("shift", torch.linspace(-1, 1, 6))
        self.register_buffer("nothing", torch.zeros(0, 6))

    def forward(self, x: Tensor) -> Tensor:
        h = self.relu(self.first(x - self.shift))
        h = F.relu(self.again(h)) + torch.tensor(0.5)
        left, right = self.relu(self.again(h)).chunk(2, 1)
        h = torch.cat([right, left], 1)
        return F.log_softmax(self.last(h - h.max(1, keepdim=True)[0]), 1)


class Image(nn.Module):
    """Convolution, batch norm, pooling, dropout and sizes that are read from the input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(64, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = F.max_pool2d(F.leaky_relu(self.norm(self.conv(x.view(-1, 1, 8, 8)))), 2)
        rows = h.shape[0]
        return self.last(self.drop(h.reshape(rows * 2, 32).reshape(rows, 64)))


class Recurrent(nn.Module):
    """A layer that makes zeros of a fixed dtype on a fixed device."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 7, batch_first=True)
        self.last = nn.Linear(7, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.lstm(x)[0][:, -1])


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.b(F.gelu(self.a(x)))


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "functional": (Functional, (6,)),
    "image": (Image, (64,)),
    "recurrent": (Recurrent, (4, 5)),
    "tied": (Tied, (4,)),
}


@pytest.fixture(scope="module", params=CASES)
def exported(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    export: Callable[..., Path],
) -> tuple[nn.Module, Path, tuple[int, ...]]:
    make, shape = CASES[request.param]
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.add_(0.25)  # running statistics that are not the initial ones
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    return model, export(model, torch.randn(4, *shape), path), shape


def test_replay_agrees_with_the_model_and_with_the_loader_of_pytorch(exported):
    model, path, shape = exported
    opened = open_model(path)
    x = torch.randn(7, *shape)
    assert_close(opened.model(x), model(x))
    assert_close(opened.model(x), torch.export.load(path).module()(x))
    assert not any(module.training for module in opened.model.modules())
    assert opened.source == str(path)
    assert opened.notes == ()


def test_replay_keeps_names_gradients_and_tied_weights(exported):
    model, path, shape = exported
    program = open_model(path).model
    assert set(dict(program.named_parameters())) == set(dict(model.named_parameters()))
    x = torch.randn(3, *shape)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    program(ours).sum().backward()
    model(theirs).sum().backward()
    assert_close(ours.grad, theirs.grad)


def test_replay_can_be_converted_copied_pickled_and_exported_again(exported):
    model, path, shape = exported
    x = torch.randn(3, *shape, dtype=torch.float64)
    double = open_model(path, dtype="float64").model
    assert_close(double(x), copy.deepcopy(model).double()(x))
    assert_close(pickle.loads(pickle.dumps(double))(x), double(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = torch.export.export(double, (x,), dynamic_shapes=ANY_BATCH, strict=False)
    assert_close(again.module()(x), double(x))


def test_weights_can_be_put_into_an_exported_program(linear, tmp_path):
    other = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    torch.save(other.state_dict(), tmp_path / "w.pt")
    opened = open_model(linear, weights=tmp_path / "w.pt")
    x = torch.randn(5, 3)
    assert_close(opened.model(x), other(x))


def test_fixed_batch_is_refused_with_the_way_out(export, tmp_path):
    path = export(
        nn.Linear(3, 2).eval(), torch.randn(4, 3), tmp_path / "fixed.pt2", any_batch=False
    )
    for trust in (False, True):
        with pytest.raises(
            UnsupportedModelError, match=r"exactly 4 examples: export it with .*Dim\.A"
        ):
            open_model(path, trust=trust)
    program = torch.export.load(path)
    with pytest.raises(UnsupportedModelError, match="any number of examples, found exactly 4"):
        open_model(program)


def test_exported_program_object_has_no_eval_and_is_taken_as_it_is(linear):
    program = torch.export.load(linear)
    opened = open_model(program)
    assert opened.notes == ("an exported program has no eval(): taken as it was exported",)
    assert not any(module.training for module in opened.model.modules())
    x = torch.randn(3, 3)
    assert_close(opened.model(x), program.module()(x))


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm1d(2)])
def test_training_mode_in_the_graph_is_refused(export, tmp_path, layer, trust):
    model = nn.Sequential(nn.Linear(3, 2), layer).train()
    path = export(model, torch.randn(4, 3), tmp_path / "train.pt2")
    with pytest.raises(UnsupportedModelError, match="cannot be measured: it was exported in train"):
        open_model(path, trust=trust)


def test_a_program_that_changes_itself_is_refused(changed, linear, tmp_path):
    def mutate(model: dict[str, Any]) -> None:
        arg = {"name": "relu"}
        specs = [{"buffer_mutation": {"arg": arg, "buffer_name": "b"}}]
        model["graph_module"]["signature"]["output_specs"] = specs

    path = changed(linear, tmp_path / "self.pt2", models__model_json=mutate)
    with pytest.raises(UnsupportedModelError, match=r"changes its own state.*'buffer_mutation'"):
        open_model(path)


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class TwoOutputs(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2


def test_one_tensor_goes_in_and_one_comes_out(export, tmp_path):
    x = torch.randn(4, 3)
    program = torch.export.export(TwoInputs(), (x, x), dynamic_shapes=ANY_BATCH * 2)
    torch.export.save(program, tmp_path / "two.pt2")
    with pytest.raises(UnsupportedModelError, match="has 2 inputs where one tensor is needed"):
        open_model(tmp_path / "two.pt2")
    path = export(TwoOutputs(), x, tmp_path / "out.pt2")
    with pytest.raises(UnsupportedModelError, match="has 2 outputs where one tensor is needed"):
        open_model(path)


class WithoutGradient(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            shift = x.mean(1, keepdim=True)
        return x - shift


def test_what_cannot_be_replayed_needs_trust(export, tmp_path):
    model = WithoutGradient().eval()
    path = export(model, torch.randn(4, 3), tmp_path / "hop.pt2")
    with pytest.raises(UnsupportedModelError, match=r"wrap_with_set_grad_enabled.*use --trust"):
        open_model(path)
    opened = open_model(path, trust=True)
    assert "read by torch.export.load, trusting the file" in opened.notes[0]
    x = torch.randn(5, 3)
    assert_close(opened.model(x), model(x))


class Particular(nn.Module):
    """Names dtypes, layouts and memory formats, and leaves out an argument."""

    def forward(self, x: Tensor) -> Tensor:
        h = x.to(torch.float32).contiguous(memory_format=torch.channels_last)
        h = F.interpolate(h, scale_factor=(2.0, 2.0), mode="nearest")
        h = h + torch.zeros(x.shape[0], 1, 4, 4, dtype=torch.float32, layout=torch.strided)
        return h.clamp(None, 0.5).mean((1, 2, 3), keepdim=False)[:, None]


def test_steps_that_name_what_they_need_follow_the_input(export, tmp_path):
    x = torch.randn(3, 2, 2, 2)
    model = Particular().eval()
    path = export(model, torch.randn(4, 2, 2, 2), tmp_path / "p.pt2")
    program = open_model(path).model
    assert_close(program(x), model(x))
    assert program(x.double()).dtype == torch.float64  # though the graph says float32
    assert "exported program, " in repr(program)
