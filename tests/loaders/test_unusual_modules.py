"""Nested outputs, random draws that are not measured, categories: what applies, and why not."""

import pytest
import torch

import inscape
from inscape.errors import UnsupportedModelError
from inscape.kernels import tangent_kernel
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
