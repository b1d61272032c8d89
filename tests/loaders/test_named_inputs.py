"""Several inputs by name: mappings, data sets with columns, loaders of dictionaries, pairs."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader

import inscape
from inscape.errors import DataError
from inscape.loaders import arguments_of, one_input, one_output, open_data, open_model
from inscape.smoothness import gradient_norm


class Pair(nn.Module):
    """Two inputs of numbers, two outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(2, 4)

    def forward(self, left, right, labels=None):
        return {"sum": torch.relu(self.a(left)) + self.b(right), "left": left}


def net():
    torch.manual_seed(0)
    return Pair().eval()


def inputs(n=8):
    draw = torch.Generator().manual_seed(1)
    return {
        "left": torch.randn(n, 3, generator=draw),
        "right": torch.randn(n, 2, generator=draw),
    }


class Columns:
    """As a data set of Hugging Face: columns by name, and rows by number."""

    def __init__(self, **columns):
        self.columns = columns
        self.column_names = list(columns)

    def __getitem__(self, key):
        return self.columns[key]


def whole(n=8):
    return {**inputs(n), "labels": torch.arange(n) % 4}


def rows_of(n=8):
    return [{key: value[k] for key, value in whole(n).items()} for k in range(n)]


FORMS = {
    "mapping": whole,
    "arrays": lambda: {key: value.numpy() for key, value in whole().items()},
    "columns": lambda: Columns(text=["a"] * 8, **{k: v.tolist() for k, v in whole().items()}),
    "splits": lambda: {"train": Columns(**whole()), "test": Columns(**whole(4))},
    "loader": lambda: DataLoader(rows_of(), batch_size=3),
    "pair": lambda: (inputs(), torch.arange(8) % 4),
    "pair in order": lambda: (tuple(inputs().values()), torch.arange(8) % 4),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_and_the_same_outputs(form):
    model = net()
    data = open_data(FORMS[form](), arguments=arguments_of(model))
    opened, data = one_input(open_model(model), data)
    opened = one_output(opened, data, "sum")
    assert_close(opened.model(data.x), model(**inputs())["sum"])
    assert data.y.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert (data.x_test is not None) == (form == "splits")
    assert any("takes 2 inputs (" in note for note in opened.notes)


def test_a_look_at_two_inputs_measures_by_both():
    look = inscape.look(net(), whole(), take="sum", only="gradient_norm", budget=60, quiet=True)
    by_hand = inscape.adapt(net(), take="sum", inputs=inputs())
    expected = gradient_norm(by_hand, by_hand.rows(inputs())).summary().value
    assert look.measurements[0].summary.value == pytest.approx(expected, rel=1e-5)


def test_an_argument_that_the_file_lacks_is_named(tmp_path):
    np.savez(tmp_path / "left.npz", left=inputs()["left"].numpy(), labels=np.arange(8) % 4)
    data = open_data(str(tmp_path / "left.npz"), arguments=arguments_of(net()))
    with pytest.raises(ValueError, match=r"forward needs 'right' as well: name all inputs"):
        inscape.look(net(), data, budget=1, quiet=True)


def test_rows_of_different_lengths_are_refused():
    ragged = {"left": [[1, 2], [1, 2, 3]], "right": [[1, 2], [1, 2]]}
    with pytest.raises(DataError, match="left must be an array with examples of one length"):
        open_data(ragged, arguments=("left", "right"))
    words = {"left": np.array([["a"], ["b"]]), "right": np.zeros((2, 2))}
    with pytest.raises(DataError, match=r"'left' must hold numbers in examples .*tokenizer"):
        open_data(words, arguments=("left", "right"))


def test_three_parts_are_told_to_be_named():
    with pytest.raises(DataError, match=r"found 3 parts: .* \(\{'name': array, ...\}, y\)"):
        open_data((torch.zeros(2, 1), torch.zeros(2, 1), torch.zeros(2)))


class WideAndDeep(nn.Module):
    """Two columns of categories, each with an embedding of its own, and numbers."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(4, 3) for _ in range(2))
        self.head = nn.Linear(8, 1)

    def forward(self, kinds, numbers):
        looked_up = [table(kinds[:, k]) for k, table in enumerate(self.tables)]
        return self.head(torch.cat([*looked_up, numbers], 1).tanh())


def test_categories_with_several_embeddings_pass_as_integers_beside_numbers():
    torch.manual_seed(0)
    model = WideAndDeep().eval()
    kinds, numbers = torch.arange(12).reshape(6, 2) % 4, torch.randn(6, 2)
    data = open_data({"kinds": kinds, "numbers": numbers}, arguments=arguments_of(model))
    opened, data = one_input(open_model(model), data)
    assert "kinds holds integers and has no gradient" in opened.notes[-1]
    norms = gradient_norm(opened.model, data.x).norms
    moved = numbers.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(kinds, moved).sum(), moved)
    assert_close(norms, gradient.norm(dim=1))


class OfOneDictionary(nn.Module):
    """A batch is a dictionary, as in many training codes."""

    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, batch):
        return self.pair(batch["left"], batch["right"])["sum"]


def test_a_model_of_one_dictionary_takes_its_entries_as_inputs():
    torch.manual_seed(0)
    model, expected = OfOneDictionary().eval(), net()(**inputs())["sum"]
    by_name = inscape.adapt(model, inputs={"batch": inputs()})
    by_place = inscape.adapt(model, inputs=(inputs(),))
    assert [part.key for part in by_name.parts] == ["batch.left", "batch.right"]
    assert_close(by_name(by_name.rows({"batch": inputs()})), expected)
    assert_close(by_place(by_place.rows((inputs(),))), expected)
    with pytest.raises(DataError, match=r"inputs must be batch.left, batch.right, found batch.l"):
        by_name.rows({"batch": {"left": inputs()["left"]}})
    with pytest.raises(DataError, match=r"'batch' must have names without dots as keys, found 3"):
        inscape.adapt(model, inputs={"batch": {3: inputs()["left"]}})


def test_a_look_passes_named_arrays_to_a_model_of_one_dictionary():
    torch.manual_seed(0)
    opened = open_model(OfOneDictionary().eval())
    opened, data = one_input(opened, open_data((inputs(), torch.arange(8) % 4)))
    assert data.notes[-1] == "its inputs are entries of 'batch', the only argument of the model"
    assert_close(opened.model(data.x), net()(**inputs())["sum"])
