"""A trusted TorchScript archive is measured like the network that it was made of."""

import copy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, jvp, vmap
from torch.testing import assert_close

from inscape.kernels import tangent_kernel
from inscape.loaders import open_model
from inscape.report import look

X = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))


class Mixed(nn.Module):
    """Layers in layers, running statistics, dropout and a branch, which a script keeps."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.5))
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        if h.shape[1] > 4:
            h = 2 * h
        return self.last(h)


@pytest.fixture
def pair(tmp_path) -> tuple[nn.Module, Path]:
    model = Mixed()
    model(X)  # running statistics that are not the initial ones
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        torch.jit.script(model).save(tmp_path / "script.pt")
    return model, tmp_path / "script.pt"


def test_it_has_the_names_the_outputs_and_the_gradients_of_the_network(pair):
    model, path = pair
    script = open_model(path, trust=True).model
    assert script.state_dict().keys() == model.state_dict().keys()
    assert_close(script(X), model(X))
    for parameters in (script.parameters(), model.parameters()):
        for parameter in parameters:
            parameter.grad = None
    script(X).square().sum().backward()
    model(X).square().sum().backward()
    for ours, theirs in zip(script.parameters(), model.parameters(), strict=True):
        assert_close(ours.grad, theirs.grad)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by torch.func.jvp
def test_substituted_parameters_reach_it_under_every_transform(pair):
    model, path = pair
    script = open_model(path, trust=True).model
    doubled = {name: 2 * value.detach() for name, value in model.named_parameters()}

    def outputs(net: nn.Module, x: Tensor) -> Tensor:
        return functional_call(net, doubled, (x,))

    assert_close(outputs(script, X), outputs(model, X))
    assert_close(script(X), model(X))  # and are gone afterwards

    def jacobian(net: nn.Module) -> dict[str, Tensor]:
        def single(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return functional_call(net, parameters, (x[None],))[0]

        return vmap(jacrev(single), (None, 0))(doubled, X)

    for name, ours in jacobian(script).items():
        assert_close(ours, jacobian(model)[name])
    tangent = torch.ones_like(X)
    assert_close(jvp(script, (X,), (tangent,))[1], jvp(model, (X,), (tangent,))[1])
    assert_close(tangent_kernel(script, X).kernel, tangent_kernel(model, X).kernel)


def test_it_can_be_copied_converted_and_switched(pair):
    model, path = pair
    script = open_model(path, trust=True, dtype="float64").model
    assert_close(script(X.double()), copy.deepcopy(model).double()(X.double()))
    twin = copy.deepcopy(script)
    twin.train()
    assert not torch.equal(twin(X.double()), twin(X.double()))  # dropout is at work
    assert_close(script(X.double()), copy.deepcopy(model).double()(X.double()))


def test_a_script_that_was_saved_in_training_mode_is_switched(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(Mixed().train()).save(tmp_path / "train.pt")
    opened = open_model(tmp_path / "train.pt", trust=True)
    assert opened.was_training
    assert_close(opened.model(X), opened.model(X))


def test_it_is_looked_at_to_the_end(pair, tmp_path):
    _, path = pair
    y = np.arange(8) % 2
    report = look(
        open_model(path, trust=True),
        (X.numpy(), y),
        only=["gradient_norm", "fisher_rao_norm"],
        budget=600,
        quiet=True,
    )
    assert {measured.name for measured in report.measurements} == {
        "gradient_norm",
        "fisher_rao_norm",
    }
    page = report.save(tmp_path / "page.html").read_text()
    assert "fisher_rao_norm" in page or "Fisher" in page


@pytest.mark.parametrize("how", ["trace", "script", "freeze"])
def test_every_kind_of_script_is_looked_at(tmp_path, how):
    """A frozen script has no parameters: what needs them is left out, and the rest is measured."""
    model = Mixed().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.trace(model, X) if how == "trace" else torch.jit.script(model)
        script = torch.jit.freeze(script) if how == "freeze" else script
        script.save(tmp_path / "net.pt")
    opened = open_model(tmp_path / "net.pt", trust=True)
    assert_close(opened.model(X), model(X))
    names = ["gradient_norm", "path_length"]
    report = look(opened, (X.numpy(), np.arange(8) % 2), only=names, budget=600, quiet=True)
    assert {measured.name for measured in report.measurements} == {*names}
    assert report.save(tmp_path / "page.html").stat().st_size > 10_000
