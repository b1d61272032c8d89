"""Nested outputs, random draws that are not measured, categories: what applies, and why not."""

import warnings
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch.nn.utils import prune

import inscape
from inscape.errors import UnsupportedModelError
from inscape.kernels import tangent_kernel
from inscape.loaders import open_model
from inscape.regions import local_maps
from inscape.smoothness import gradient_norm
from zoo.models_modules import NestedUNet, Tabular, VariationalEncoder, made
from zoo.rows import draw


@pytest.mark.parametrize(
    ("take", "shape"), [("masks.full", (2, 8, 8)), ("features.1", (4, 4, 4)), (1, (2, 8, 8))]
)
def test_outputs_inside_outputs_are_taken_by_names_with_dots(take, shape):
    model, x = made(NestedUNet), draw(3, 1, 8, 8)
    assert inscape.adapt(model, take=take)(x).shape == (3, *shape)


def test_tensors_beside_nested_ones_keep_their_places_and_are_taken_by_themselves():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 3, batch_first=True)

        def forward(self, x):
            outputs, state = self.lstm(x)
            return {"state": state, "outputs": outputs}

    model, x = Recurrent().eval(), torch.randn(2, 5, 4)
    assert torch.equal(inscape.adapt(model)(x), model(x)["outputs"])
    assert torch.equal(inscape.adapt(model, take=0)(x), model(x)["outputs"])
    assert torch.equal(inscape.adapt(model, take="state.1")(x), model(x)["state"][1])


def test_an_error_names_nested_outputs():
    model, x = made(NestedUNet), draw(3, 1, 8, 8)
    with pytest.raises(UnsupportedModelError, match=r"take='masks.half'\), or --take"):
        gradient_norm(model, x)
    names = r"found dict of masks.half, masks.full, features.0, features.1: say which"
    with pytest.raises(UnsupportedModelError, match=names):
        inscape.adapt(model)(x)
    with pytest.raises(UnsupportedModelError, match=r"did you mean 'masks.half'"):
        inscape.adapt(model, take="mask.half")(x)


def test_of_many_outputs_an_error_names_the_first():
    class Many(torch.nn.Module):
        def forward(self, x):
            return [x] * 30

    with pytest.raises(UnsupportedModelError, match=r"10, 11 and 18 more: say which"):
        inscape.adapt(Many())(torch.zeros(2, 3))


def test_the_cause_that_an_adapter_names_is_not_taken_for_a_wrong_shape():
    with pytest.raises(UnsupportedModelError, match="say which") as caught:
        tangent_kernel(inscape.adapt(made(NestedUNet)), draw(3, 1, 8, 8))
    assert "reshape the data" not in str(caught.value)


def test_random_draws_that_the_measured_output_does_not_use_are_no_obstacle():
    model, x = inscape.adapt(made(VariationalEncoder), take=1), draw(2, 6)
    maps = local_maps(model, x)
    expected = torch.func.vmap(torch.func.jacrev(lambda row: _mean(model.model, row)))(x)
    torch.testing.assert_close(maps.jacobians, expected)


def _mean(model, row):
    return model.mean(model.encoder(row).relu())


def test_random_draws_of_the_measured_output_are_refused():
    with pytest.raises(ValueError, match="remove random draws from its forward"):
        gradient_norm(inscape.adapt(made(VariationalEncoder), take=0), draw(2, 6))


def test_a_table_that_embeds_one_column_is_not_blamed_on_the_tokenizer():
    inputs = {"categories": torch.tensor([[0, 8], [4, 1]]), "numbers": draw(2, 6)}
    with pytest.raises(UnsupportedModelError, match="reads the tokens in another way too"):
        inscape.adapt(made(Tabular), inputs=inputs, embedding=True)
    model = inscape.adapt(made(Tabular), inputs=inputs)
    torch.testing.assert_close(model(model.rows(inputs)), made(Tabular)(**inputs))


@dataclass(slots=True)
class Detection:
    """What a detector returns, without a ``__dict__``."""

    scores: torch.Tensor
    hidden: torch.Tensor


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 5), torch.nn.Linear(5, 2)

    def forward(self, x):
        hidden = self.body(x).relu()
        return Detection(self.head(hidden), hidden)


def test_outputs_of_a_dataclass_with_slots_have_names():
    model, x = made(Detector), draw(3, 4)
    assert torch.equal(inscape.adapt(model, take="scores")(x), model(x).scores)
    with pytest.raises(UnsupportedModelError, match=r"returns scores \(0\), hidden \(1\)"):
        inscape.adapt(model, take="score")(x)


class Remembering(torch.nn.Module):
    """Changes its buffers in every call; ``uses`` tells whether the output depends on them."""

    def __init__(self, uses=True):
        super().__init__()
        self.layer, self.uses = torch.nn.Linear(4, 3), uses
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return self.layer(x - self.mean if self.uses else x).relu()


def test_a_buffer_that_every_call_changes_is_named():
    with pytest.raises(ValueError, match="let its forward change 'mean' in training mode only"):
        gradient_norm(made(Remembering), draw(3, 4))


def test_a_buffer_that_the_output_does_not_use_is_no_obstacle_to_exact_maps():
    model, x = made(lambda: Remembering(uses=False)), draw(3, 4)
    maps = local_maps(model, x)
    torch.testing.assert_close(maps.values, model(x))
    jacobians = torch.func.vmap(torch.func.jacrev(lambda row: model.layer(row).relu()))(x)
    torch.testing.assert_close(maps.jacobians, jacobians)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, mask):
        return self.layer(x * mask).relu()


def test_integers_in_rows_are_what_exact_maps_are_refused_for():
    inputs = {"x": draw(3, 4), "mask": torch.ones(3, 4, dtype=torch.long)}
    model = made(Gated)
    several = inscape.adapt(model, inputs=inputs)
    maps = local_maps(several, several.rows(inputs))
    assert "pass those inputs as fixed={...} to inscape.adapt" in str(maps.note)
    alone = inscape.adapt(model, inputs="x", fixed={"mask": inputs["mask"][:1]})
    assert local_maps(alone, inputs["x"]).patterns is not None


def pruned():
    layer = prune.l1_unstructured(torch.nn.Linear(4, 6), "weight", amount=0.5)
    return torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(6, 2))


def normed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the older of two ways, and still common
        layer = torch.nn.utils.weight_norm(torch.nn.Linear(4, 6))
    return torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(6, 2))


@pytest.mark.parametrize("make", [pruned, normed])
def test_weights_that_hooks_compute_are_copied(make):
    torch.manual_seed(0)
    model, x = make(), torch.randn(5, 4)
    before = model(x)
    opened = open_model(model, dtype="float64").model
    assert torch.allclose(opened(x.double()).float(), before, atol=1e-6)
    with torch.no_grad():  # the copy computes with weights of its own
        for parameter in opened.parameters():
            parameter.zero_()
            break
    assert not torch.allclose(opened(x.double()).float(), before)
    assert torch.equal(model(x), before)
    assert model[0].weight.dtype == torch.float32
    slopes = gradient_norm(model.eval(), x).norms
    assert torch.allclose(slopes[0], torch.func.jacrev(model)(x[0]).norm(), rtol=1e-5)


def test_a_partial_module_is_told_how_to_fix_its_arguments():
    scaled = partial(made(NestedUNet), gain=2.0)
    with pytest.raises(TypeError, match=r"return inscape.adapt\(model, fixed=\{'gain': ...\}\)"):
        open_model(scaled)


class KeepsItsState(torch.nn.Module):
    """Goes on from the state of its last call, until a batch of another size comes."""

    def __init__(self):
        super().__init__()
        self.cell, self.h = torch.nn.GRUCell(4, 3), None

    def forward(self, x):
        if self.h is None or len(self.h) != len(x):
            self.h = x.new_zeros(len(x), 3)
        self.h = self.cell(x, self.h)
        return self.h


def test_a_state_that_is_kept_from_call_to_call_is_refused():
    with pytest.raises(ValueError, match="differ: let its forward not keep 'h' from call to call"):
        gradient_norm(made(KeepsItsState), draw(3, 4))
    with pytest.raises(ValueError, match="two calls with the same batch differ"):
        tangent_kernel(made(KeepsItsState), draw(3, 4))


class Forces(torch.nn.Module):
    """An energy, and the forces that it exerts: minus its gradient."""

    def __init__(self):
        super().__init__()
        self.energy = torch.nn.Sequential(
            torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
        )

    def forward(self, x):
        x = x.requires_grad_(True)
        energy = self.energy(x)
        (slope,) = torch.autograd.grad(energy.sum(), x, create_graph=True)
        return {"energy": energy, "forces": -slope}


def test_a_forward_that_takes_derivatives_is_looked_at():
    model, x = made(Forces), draw(6, 4)
    look = inscape.look(model, x, take="forces", only="gradient_norm", budget=60, quiet=True)
    hessians = [torch.autograd.functional.hessian(lambda r: model.energy(r)[0], row) for row in x]
    expected = torch.linalg.matrix_norm(torch.stack(hessians)).mean()
    assert look.measurements[0].summary.value == pytest.approx(float(expected), rel=1e-5)
    assert any("called with gradients enabled" in note for note in look.model.notes)
    assert not x.requires_grad


class ByName(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, *, pixels, scale=1.0):
        return scale * self.layer(pixels)


class SecondByName(ByName):
    def forward(self, tokens=None, pixels=None):
        return self.layer(pixels)


@pytest.mark.parametrize("kind", [ByName, SecondByName])
def test_an_input_that_must_be_named_is_passed_on_by_its_name(kind):
    model, x = made(kind), draw(6, 4)
    named = {"pixels": x, "labels": torch.arange(6) % 3}
    look = inscape.look(model, named, only="gradient_norm", budget=60, quiet=True)
    norm = float(torch.linalg.matrix_norm(model.layer.weight.detach()))
    assert look.measurements[0].summary.value == pytest.approx(norm)
    assert any("is called with pixels=..." in note for note in look.model.notes)
