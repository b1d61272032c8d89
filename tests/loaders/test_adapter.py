"""Networks that take or return something else become functions of one tensor."""

from collections import OrderedDict
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import inscape
from inscape.errors import DataError, UnsupportedModelError
from inscape.kernels import tangent_kernel
from inscape.loaders import adapt, one_output, open_data, open_model
from inscape.regions import line_regions
from inscape.smoothness import gradient_norm


class ModelOutput(OrderedDict):
    """As Hugging Face has it: a dictionary whose values are attributes as well."""


class Both(NamedTuple):
    mean: torch.Tensor
    spread: torch.Tensor


class Returns(nn.Module):
    """A small network that puts what it computes into something else."""

    def __init__(self, put):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.put = put

    def forward(self, x):
        y = self.net(x)
        return self.put(y)


PUTS = {
    "model output": (lambda y: ModelOutput(loss=y.sum(), logits=y), "logits"),
    "dictionary of one": (lambda y: {"scores": y, "text": "no tensor"}, "scores"),
    "tuple of one": (lambda y: (y, None), "0"),
    "object": (lambda y: SimpleNamespace(logits=y, hidden=y[:, :1]), "logits"),
}


def seeded(put):
    torch.manual_seed(0)
    return Returns(put).eval()


@pytest.mark.parametrize("name", PUTS)
def test_the_output_that_everybody_means_is_taken_and_said(name):
    put, chosen = PUTS[name]
    net, x = seeded(put), torch.randn(6, 4)
    opened = one_output(open_model(net), open_data(x))
    assert_close(opened.model(x), net.net(x))
    assert f"took its {chosen}" in opened.notes[-1]


def test_a_model_of_one_tensor_is_left_alone():
    net = nn.Linear(4, 2).eval()
    assert one_output(open_model(net), open_data(torch.randn(5, 4))).model is net


@pytest.mark.parametrize("take", ["spread", 1, "1"])
def test_an_output_by_name_and_by_place(take):
    net, x = seeded(lambda y: Both(y, 2 * y)), torch.randn(6, 4)
    assert_close(adapt(net, take=take)(x), 2 * net.net(x))


def test_several_outputs_ask_which_and_a_wrong_name_is_told_the_right_ones():
    net, x = seeded(lambda y: {"mean": y, "spread": 2 * y}), torch.randn(6, 4)
    with pytest.raises(UnsupportedModelError, match=r"found dict of mean, spread.*--take NAME"):
        adapt(net)(x)
    with pytest.raises(UnsupportedModelError, match=r"'sprad' where.*did you mean 'spread'"):
        adapt(net, take="sprad")(x)
    with pytest.raises(UnsupportedModelError, match=r"found 2 where it returns mean \(0\), spread"):
        adapt(net, take=2)(x)
    with pytest.raises(UnsupportedModelError, match=r"returns none"):
        adapt(seeded(lambda y: "text"), take="logits")(x)


def test_instruments_measure_it_with_its_parameters():
    net, x = seeded(lambda y: {"mean": y, "spread": 2 * y}), torch.randn(6, 4)
    adapted = adapt(net, take="mean")
    plain = net.net
    assert_close(gradient_norm(adapted, x).norms, gradient_norm(plain, x).norms)
    assert_close(tangent_kernel(adapted, x).kernel, tangent_kernel(plain, x).kernel)
    assert line_regions(adapted, x).summary() == line_regions(plain, x).summary()


class TwoInputs(nn.Module):
    """Numbers and a kind of row, masked, scaled by something that is the same for all."""

    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(5, 3)
        self.last = nn.Linear(3, 2)

    def forward(self, numbers, kind, *, mask, scale):
        return (self.last(scale * numbers + self.kinds(kind)) * mask, kind)


def several(n=6):
    torch.manual_seed(1)
    return {
        "numbers": torch.randn(n, 3),
        "kind": torch.randint(5, (n,)),
        "mask": torch.randint(2, (n, 2)).bool(),
    }


def test_several_inputs_are_one_row():
    torch.manual_seed(0)
    net, inputs, scale = TwoInputs().eval(), several(), torch.tensor([1.0, 2.0, 3.0])
    adapted = adapt(net, take=0, inputs=inputs, fixed={"scale": scale})
    x = adapted.rows(inputs)
    assert x.shape == (6, 3 + 1 + 2)
    assert_close(adapted(x), net(**inputs, scale=scale)[0])
    gradient = torch.func.vmap(torch.func.jacrev(lambda row: adapted(row[None])[0]))(x)
    by_hand = (net.last.weight * scale)[None] * inputs["mask"][:, :, None]
    assert_close(gradient[:, :, :3], by_hand)
    assert not gradient[:, :, 3:].any()
    norms = gradient.flatten(1).norm(dim=1)
    assert_close(gradient_norm(adapted, x).norms, norms)


def test_inputs_in_order_and_under_one_name():
    torch.manual_seed(0)
    bilinear = nn.Bilinear(2, 3, 4).eval()
    a, b = torch.randn(5, 2), torch.randn(5, 3)
    adapted = adapt(bilinear, inputs=(a, b))
    assert_close(adapted(adapted.rows((a, b))), bilinear(a, b))
    linear = nn.Linear(2, 3).eval()
    assert_close(adapt(linear, inputs="input")(a), linear(a))


def test_double_precision_goes_through():
    inputs = several()
    scale = torch.ones(3, dtype=torch.float64)
    adapted = adapt(TwoInputs().double().eval(), take=0, inputs=inputs, fixed={"scale": scale})
    x = adapted.rows({**inputs, "numbers": inputs["numbers"].double()})
    assert adapted(x).dtype == torch.float64


def test_what_is_fixed_moves_with_the_module():
    inputs = several()
    adapted = adapt(TwoInputs().eval(), take=0, inputs=inputs, fixed={"scale": torch.ones(3)})
    assert adapted.double().fixed["scale"].dtype == torch.float64
    assert not any("scale" in name for name in adapted.state_dict())


def test_inputs_that_do_not_fit():
    inputs = several()
    adapted = adapt(TwoInputs().eval(), take=0, inputs=inputs, fixed={"scale": 1.0})
    with pytest.raises(DataError, match="must be numbers, kind, mask, found numbers, kind:"):
        adapted.rows({key: inputs[key] for key in ("numbers", "kind")})
    with pytest.raises(DataError, match="one length, found 6, 6, 4 examples"):
        adapted.rows({**inputs, "mask": inputs["mask"][:4]})
    with pytest.raises(
        DataError, match=r"'numbers' must have examples of shape \(3,\), found \(2,\)"
    ):
        adapted.rows({**inputs, "numbers": inputs["numbers"][:, :2]})
    with pytest.raises(DataError, match=r"up to 16,777,216, .* found 16,777,217"):
        adapted.rows({**inputs, "kind": torch.full((6,), 2**24 + 1)})
    with pytest.raises(ValueError, match="rows of 6 numbers"):
        adapted(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="a network of one"):
        adapt(nn.Linear(2, 1)).rows({"x": torch.zeros(1, 2)})
    with pytest.raises(DataError, match="pass it as fixed"):
        adapt(TwoInputs(), inputs={"scale": torch.tensor(1.0)})
    with pytest.raises(ValueError, match="at least one tensor"):
        adapt(TwoInputs(), inputs={})


def test_the_mode_of_every_layer_stays():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net[1].eval()
    adapt(net)
    assert [net.training, net[0].training, net[1].training] == [True, True, False]


def test_a_look_takes_the_logits():
    net = seeded(lambda y: ModelOutput(loss=y.sum(), logits=y))
    x, y = torch.randn(40, 4), torch.arange(40) % 3
    look = inscape.look(net, (x, y), budget=60, only="gradient_norm", quiet=True)
    assert any("took its logits" in note for note in look.model.notes)
    assert look.measurements[0].name == "gradient_norm"
