"""Networks in Keras files: the same function in PyTorch, and what is refused."""

import copy
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from inscape._core.precision import converted_copy
from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import fit_together, open_data, open_model
from inscape.loaders.keras import comparison
from inscape.regions import LineRegions, line_regions, local_maps
from inscape.smoothness import gradient_norm

pytest.importorskip("h5py")
from loaders.keras_files import CNN, MLP, described, draw, write_h5, write_keras

WRITERS = [write_h5, write_keras]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Compare with Keras in the tests that are about it; importing it takes seconds."""
    monkeypatch.setattr(comparison, "find_spec", lambda name: None)


def opened(path, dtype="float64"):
    return open_model(path, dtype=dtype).model


@pytest.mark.parametrize("write", WRITERS)
def test_dense_layers_are_the_matrices_of_the_file(tmp_path, write):
    net = opened(write(tmp_path / f"net{'.h5' if write is write_h5 else '.keras'}", MLP, (4,)))
    x = torch.from_numpy(draw(5, 4, seed=9)).double()
    (a, b), (c, d) = ([torch.from_numpy(w).double() for w in layer[2]] for layer in MLP)
    assert_close(net(x), torch.relu(x @ a + b) @ c + d)
    assert {name for name, _ in net.named_parameters()} >= {"layers.layer_1.weight"}


def by_hand(x):
    """Return what the small convolutional network computes, by torch's functions."""
    kernel, bias = (torch.from_numpy(w).double() for w in CNN[0][2])
    gamma, beta, mean, variance = (torch.from_numpy(w).double() for w in CNN[1][2])
    h = functional.pad(x.movedim(-1, 1), (0, 1, 0, 1))  # of 7 numbers more pads are on the right
    h = functional.conv2d(h, kernel.permute(3, 2, 0, 1), bias, 2)
    shape = (1, -1, 1, 1)
    h = (h - mean.view(shape)) / (variance.view(shape) + 1e-3).sqrt()
    h = (h * gamma.view(shape) + beta.view(shape)).clamp(0, 6)
    h = functional.max_pool2d(h, 2).movedim(1, -1).flatten(1)
    kernel, bias = (torch.from_numpy(w).double() for w in CNN[5][2])
    return h @ kernel + bias


@pytest.mark.parametrize("write", WRITERS)
def test_convolutions_pad_and_order_their_channels_as_keras_does(tmp_path, write):
    path = write(tmp_path / f"net{'.h5' if write is write_h5 else '.keras'}", CNN, (8, 8, 2))
    net = opened(path)
    x = torch.from_numpy(draw(3, 8, 8, 2, seed=7)).double()
    assert_close(net(x), by_hand(x))
    assert_close(copy.deepcopy(net)(x), by_hand(x))


def test_it_reaches_the_exact_engine(tmp_path):
    net = opened(write_h5(tmp_path / "net.h5", CNN, (8, 8, 2)))
    ends = torch.from_numpy(draw(2, 8, 8, 2, seed=7)).double()
    regions = line_regions(net, ends)
    assert isinstance(regions, LineRegions), regions
    assert len(regions.t) > 4
    places = torch.linspace(0, 1, 301, dtype=torch.float64)
    with torch.no_grad():
        values = net(torch.stack([ends[0] + t * (ends[1] - ends[0]) for t in places])).T
    for curve, knots in zip(values, regions.values.T, strict=True):
        assert_close(curve.numpy(), np.interp(places, regions.t, knots), rtol=0, atol=1e-9)
    jacobian = torch.autograd.functional.jacobian(lambda x: net(x[None])[0], ends[0])
    assert_close(local_maps(net, ends[:1]).jacobians[0], jacobian.flatten(1))


def test_images_with_their_channels_first_are_turned_and_that_is_said(tmp_path):
    model = open_model(write_h5(tmp_path / "net.h5", CNN, (8, 8, 2)))
    assert "channels last" in model.notes[0]
    layers = [("Conv2D", {"filters": 2, "kernel_size": 3}, [draw(3, 3, 3, 2), draw(2)])]
    layers += [("Flatten", {}, []), ("Dense", {"units": 2}, [draw(72, 2), draw(2)])]
    model = open_model(write_h5(tmp_path / "rgb.h5", layers, (8, 8, 3)))
    x = draw(6, 3, 8, 8)
    data = fit_together(model, open_data((x, np.arange(6) % 2)))
    assert_close(data.x.numpy(), np.moveaxis(x, 1, -1))
    assert any("channels from first to last" in note for note in data.notes)


def test_a_gradient_is_that_of_a_plain_loop(tmp_path):
    net = opened(write_keras(tmp_path / "net.keras", MLP, (4,)))
    x = torch.from_numpy(draw(5, 4, seed=9)).double()
    norms = []
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda r: net(r[None])[0], row)
        norms.append(float(jacobian.norm()))
    assert_close(gradient_norm(net, x).norms.tolist(), norms)


def functional_config():
    layers = described(MLP, (4,))["config"]["layers"]
    layers[1]["inbound_nodes"] = [
        {"args": [_tensor("x")], "kwargs": {"training": False}},
        {"args": [_tensor("z")], "kwargs": {}},
    ]
    layers[2]["inbound_nodes"] = [{"args": [_tensor("layer_0", 1)], "kwargs": {"mask": None}}]
    for entry in layers:
        entry["name"] = entry["config"]["name"]
    second = {"class_name": "InputLayer", "name": "z", "inbound_nodes": [],
              "config": {"name": "z", "batch_shape": [None, 4]}}  # fmt: skip
    ends = {
        "input_layers": [["x", 0, 0], ["z", 0, 0]],
        "output_layers": [["layer_0", 0, 0], ["layer_1", 0, 0]],
    }
    return {
        "class_name": "Functional",
        "config": {"name": "f", "layers": [*layers, second], **ends},
    }


def _tensor(name, node=0):
    history = [name, node, 0]
    return {"class_name": "__keras_tensor__", "config": {"shape": [], "keras_history": history}}


def test_several_inputs_and_outputs_go_by_their_names_and_layers_are_shared(tmp_path):
    net = opened(write_h5(tmp_path / "net.h5", MLP, (4,), functional_config()))
    x, z = (torch.from_numpy(draw(5, 4, seed=s)).double() for s in (1, 2))
    made = net(x, z)
    assert list(made) == ["layer_0", "layer_1"]
    a, b = (torch.from_numpy(w).double() for w in MLP[0][2])
    assert_close(made["layer_0"], torch.relu(x @ a + b))
    assert_close(net(z=z, x=x)["layer_1"], made["layer_1"])
    with pytest.raises(UnsupportedModelError, match=r"must have the inputs x, z, found 1: combine"):
        net(x)


def test_rows_of_another_shape_are_refused_with_the_shape_to_give(tmp_path):
    net = opened(write_h5(tmp_path / "net.h5", CNN, (8, 8, 2)))
    with pytest.raises(
        UnsupportedModelError, match=r"examples of 8x8x2 \(channels last\), found 2x8x8"
    ):
        net(torch.zeros(1, 2, 8, 8, dtype=torch.float64))


def test_a_layer_of_code_is_refused_by_its_name(tmp_path):
    config = described(MLP, (4,))
    config["config"]["layers"].append({"class_name": "Lambda", "config": {"name": "code"}})
    for write, name in ((write_h5, "net.h5"), (write_keras, "net.keras")):
        path = write(tmp_path / name, MLP, (4,), config)
        with pytest.raises(UnsupportedModelError, match=r"known here, found 'Lambda': use --trust"):
            open_model(path)


def test_a_near_name_is_offered(tmp_path):
    path = write_h5(tmp_path / "net.h5", [("Dens", {"units": 1}, [])], (4,))
    with pytest.raises(UnsupportedModelError, match=r"found 'Dens': did you mean 'Dense'"):
        open_model(path)


def test_weights_that_do_not_fit_the_description_are_refused_with_both_shapes(tmp_path):
    layers = [("Dense", {"units": 7}, MLP[0][2])]
    path = write_h5(tmp_path / "net.h5", layers, (4,))
    with pytest.raises(UnsupportedModelError, match=r"kernel of shape \(4, 7\), found '\(4, 8\)'"):
        open_model(path)


def test_layers_that_do_not_fit_together_are_refused(tmp_path):
    path = write_h5(tmp_path / "net.h5", MLP, (5,))
    with pytest.raises(UnsupportedModelError, match="layers of a Keras model must fit together"):
        open_model(path)


def test_weights_alone_are_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "only.h5", "w") as file:
        file["a"] = np.ones(3)
    with pytest.raises(
        UnsupportedModelError, match=r"no description of its layers \(weights alone"
    ):
        open_model(tmp_path / "only.h5")


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "net.keras").write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"whole Keras file \(.keras or .h5\), found one that"):
        open_model(tmp_path / "net.keras")


def test_arrays_that_keras_does_not_write_are_refused(tmp_path):
    import h5py

    path = write_h5(tmp_path / "net.h5", MLP, (4,))
    with h5py.File(path, "a") as file:
        del file["model_weights/layer_0/layer_0/w0:0"]
        group = file["model_weights/layer_0/layer_0"]
        group.create_dataset("w0:0", data=MLP[0][2][0], compression="gzip")
    with pytest.raises(DataError, match=r"plain numbers, found compressed ones: save the model"):
        open_model(path)


def test_another_backend_is_said_and_the_network_opened_all_the_same(tmp_path, monkeypatch):
    other = SimpleNamespace(backend=SimpleNamespace(backend=lambda: "jax"))
    monkeypatch.setitem(sys.modules, "keras", other)
    monkeypatch.setattr(comparison, "find_spec", lambda name: object())
    notes = open_model(write_h5(tmp_path / "net.h5", MLP, (4,))).notes
    assert any("found the backend 'jax', already imported: set KERAS_BACKEND" in n for n in notes)


def test_trust_without_keras_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    monkeypatch.delitem(sys.modules, "keras")
    real = __import__("importlib").import_module
    monkeypatch.setattr(
        "inscape.runtime.extras.import_module",
        lambda name: real(name) if name != "keras" else (_ for _ in ()).throw(ImportError()),
    )
    path = write_h5(tmp_path / "net.h5", [("Lambda", {}, [])], (4,))
    with pytest.raises(ImportError, match=r"pip install 'inscape\[keras\]'"):
        open_model(path, trust=True)


def test_the_older_hard_sigmoid_is_that_of_keras_2(tmp_path):
    import h5py

    layers = [("Activation", {"activation": "hard_sigmoid"}, [])]
    path = write_h5(tmp_path / "net.h5", layers, (4,))
    x = torch.tensor([[-4.0, -1.0, 1.0, 4.0]], dtype=torch.float64)
    assert_close(opened(path)(x), ((x + 3) / 6).clamp(0, 1))
    with h5py.File(path, "a") as file:
        file.attrs["keras_version"] = "2.4.0"
        file.attrs["model_config"] = json.dumps(described(layers, (4,)))
    assert_close(opened(path)(x), (0.2 * x + 0.5).clamp(0, 1))


class InMemory(torch.nn.Module):
    """Stands for a model of Keras, which writes itself to a file, and whose copies train."""

    __module__ = "keras.src.models.sequential"

    def __init__(self, layers, shape):
        super().__init__()
        self.description = layers, shape

    def save(self, path):
        write_keras(path, *self.description)

    def __deepcopy__(self, memo):
        return InMemory(*self.description)

    def forward(self, x):
        return 2 * x


def test_a_model_in_memory_becomes_a_plain_module(tmp_path):
    model = InMemory(MLP, (4,))
    found = open_model(model, dtype="float64")
    assert "Keras's layers as PyTorch's, with a copy of their weights" in found.notes
    x = torch.from_numpy(draw(5, 4, seed=9)).double()
    assert torch.equal(found.model(x), opened(write_keras(tmp_path / "net.keras", MLP, (4,)))(x))


def test_a_model_in_memory_with_unknown_layers_is_taken_as_it_is():
    model = InMemory([("Lambda", {"name": "double"}, [])], (4,)).eval()
    found = open_model(model)
    assert found.model is model
    assert "computed by Keras itself" in found.notes[0]
    assert "'Lambda'" in found.notes[0]


def test_a_copy_in_another_precision_keeps_the_mode():
    model = InMemory(MLP, (4,)).eval()
    assert copy.deepcopy(model).training
    assert not converted_copy(model, torch.float64).training
