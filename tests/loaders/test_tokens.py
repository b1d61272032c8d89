"""Models of tokens are measured in their embedding, and on tokens where no gradient is needed."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

import inscape
from inscape._core import instruments
from inscape.errors import DataError, UnsupportedModelError
from inscape.kernels import tangent_kernel
from inscape.loaders import adapt, one_input, open_data, open_model
from inscape.loaders.embeddings import nearest_rows
from inscape.regions import line_regions
from inscape.smoothness import gradient_norm

VOCABULARY, LENGTH = 11, 6


def tokens(n=10, *, padded=False):
    ids = torch.randint(1, VOCABULARY, (n, LENGTH), generator=torch.Generator().manual_seed(1))
    if padded:
        ids[::2, 4:] = 0
    return ids


class Transformer(nn.Module):
    """Positions are looked up first, and the mask is made of the tokens."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(LENGTH, 8)
        self.words = nn.Embedding(VOCABULARY, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, ids):
        return self.after(self.words(ids), ids != 0)

    def after(self, embedded, there):
        hidden = embedded + self.positions(torch.arange(embedded.shape[1]))
        hidden = self.encoder(hidden, src_key_padding_mask=~there) * there[..., None]
        return self.head(hidden.sum(1) / there.sum(1, keepdim=True))


class Recurrent(nn.Module):
    """A table of its own, without nn.Embedding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, 5))
        self.memory = nn.LSTM(5, 7, batch_first=True)
        self.head = nn.Linear(7, 2)

    def forward(self, ids):
        return self.after(self.table[ids])

    def after(self, embedded, there=None):
        return self.head(self.memory(embedded)[0][:, -1])


class OneHot(nn.Module):
    """One-hot rows of tokens."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(VOCABULARY * LENGTH, 2)

    def forward(self, ids):
        return self.after(functional.one_hot(ids, VOCABULARY).float())

    def after(self, embedded, there=None):
        return self.head(embedded.flatten(1))


class SequenceFirst(nn.Module):
    """Turns (rows, length) into (length, rows), as recurrent layers of PyTorch have it."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 5)
        self.memory, self.head = nn.GRU(5, 7), nn.Linear(7, 2)

    def forward(self, ids):
        return self.head(self.memory(self.words(ids.t()))[0][-1])

    def after(self, embedded, there=None):
        return self.head(self.memory(embedded.transpose(0, 1))[0][-1])


def table(net):
    if isinstance(net, OneHot):
        return torch.eye(VOCABULARY)
    return net.table if isinstance(net, Recurrent) else net.words.weight


def seeded(kind, *args, **kwargs):
    torch.manual_seed(0)
    return kind(*args, **kwargs).eval()


@pytest.mark.parametrize("kind", [Transformer, Recurrent, OneHot, SequenceFirst])
def test_gradients_in_the_embedding_are_those_by_hand(kind):
    net, ids = seeded(kind), tokens(padded=kind is Transformer)
    adapted = adapt(net, embedding=True, inputs=ids)
    x = adapted.rows(ids)
    assert_close(x, table(net)[ids].detach())
    assert_close(adapted(x), net(ids))
    by_hand = x.clone().requires_grad_()
    outputs = net.after(by_hand, ids != 0)
    squares = sum(
        torch.autograd.grad(outputs[:, k].sum(), by_hand, retain_graph=True)[0].square().sum((1, 2))
        for k in range(outputs.shape[1])
    )
    assert_close(gradient_norm(adapted, x).norms, squares.sqrt())


@pytest.mark.parametrize("padding", [None, 0])
@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
def test_bags_of_words_are_piecewise_linear_in_their_embedding(mode, padding):
    bag = seeded(nn.EmbeddingBag, VOCABULARY, 5, mode=mode, padding_idx=padding)
    net = nn.Sequential(bag, nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)).eval()
    ids = tokens(padded=True)
    adapted = adapt(net, embedding=True, inputs=ids)
    x = adapted.rows(ids)
    assert_close(adapted(x), net(ids))
    if mode == "mean" and padding is None:
        plain = nn.Sequential(*net[1:]).eval()
        means = x.mean(1)
        assert line_regions(adapted, x).summary() == line_regions(plain, means).summary()


def test_what_reads_parameters_is_measured_on_tokens():
    net, ids = seeded(Transformer), tokens(padded=True)
    kernel = tangent_kernel(net, ids).kernel
    rows = []
    for row in ids:
        for output in net(row[None])[0]:
            gradients = torch.autograd.grad(
                output, list(net.parameters()), retain_graph=True, allow_unused=True
            )
            rows.append(torch.cat([g.flatten() for g in gradients if g is not None]))
    outer = torch.stack(rows) @ torch.stack(rows).T
    by_hand = outer.reshape(len(ids), 3, len(ids), 3).transpose(1, 2)
    assert_close(kernel.to(by_hand), by_hand, rtol=1e-3, atol=1e-4)  # single precision
    adapted = adapt(net, embedding=True, inputs=ids)
    on_tokens = adapted.on_tokens()
    assert_close(tangent_kernel(on_tokens, on_tokens.rows(ids)).kernel, kernel)


@pytest.mark.parametrize("name", [n for n, one in instruments().items() if one.reads == "function"])
def test_token_ids_are_refused_by_what_moves_through_the_input(name):
    net, ids = seeded(Transformer), tokens()
    with pytest.raises(TypeError, match=r"found token ids: .*embedding=True, inputs=x\), at"):
        instruments()[name].measure(net, ids, torch.zeros(len(ids), dtype=torch.long))


def test_the_embedding_can_be_named_and_others_are_listed():
    net, ids = seeded(Transformer), tokens()
    assert adapt(net, embedding="words", inputs=ids).embedding.parameter == "words.weight"
    with pytest.raises(UnsupportedModelError, match=r"found 'wrds' where it uses 'words'.*did you"):
        adapt(net, embedding="wrds", inputs=ids)
    with pytest.raises(UnsupportedModelError, match="no lookup whose ids change with the input"):
        adapt(seeded(nn.Flatten), embedding=True, inputs=ids)


def test_as_many_sequences_as_tokens_are_told_apart():
    net = seeded(SequenceFirst)
    ids = torch.arange(LENGTH * LENGTH).reshape(LENGTH, LENGTH) % VOCABULARY
    adapted = adapt(net, embedding=True, inputs={"ids": ids})
    assert_close(adapted(adapted.rows({"ids": ids})), net(ids))


def test_sequences_of_another_length_than_the_examples():
    net = seeded(Recurrent)
    adapted = adapt(net, embedding=True, inputs=tokens())
    longer = torch.cat([tokens(), tokens()], 1)
    assert_close(adapted(adapted.rows(longer)), net(longer))


class Masked(nn.Module):
    """Tokens and a mask by name, something fixed, and one of two outputs."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, input_ids, attention_mask, *, scale):
        embedded = self.words(input_ids) * attention_mask[..., None]
        return {"hidden": embedded, "logits": scale * self.head(embedded.sum(1))}


def masked_inputs():
    ids = tokens(padded=True)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def test_masks_follow_the_row_and_have_no_gradient():
    net, inputs = seeded(Masked), masked_inputs()
    adapted = adapt(net, embedding=True, inputs=inputs, fixed={"scale": 2.0})
    x = adapted.rows(inputs)
    assert x.shape == (10, LENGTH * 4 + LENGTH)
    assert_close(adapted(x), net(**inputs, scale=2.0)["logits"])
    squares = (2 * net.head.weight).square().sum() * inputs["attention_mask"].sum(1)
    assert_close(gradient_norm(adapted, x).norms, squares.sqrt())


def test_inputs_in_order():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(VOCABULARY, 4), nn.Linear(4, 2)

        def forward(self, ids, weights):
            return self.head((self.words(ids) * weights[..., None]).sum(1))

    net, ids = seeded(Two), tokens()
    weights = torch.rand(len(ids), LENGTH)
    adapted = adapt(net, embedding=True, inputs=(ids, weights))
    assert_close(adapted(adapted.rows((ids, weights))), net(ids, weights))


def test_bad_tokens_and_masks():
    net, inputs = seeded(Masked), masked_inputs()
    adapted = adapt(net, embedding=True, inputs=inputs, fixed={"scale": 2.0})
    ids = inputs["input_ids"].clone()
    ids[3, 1] = 40
    with pytest.raises(DataError, match=r"0 and 10, .*'words', found 40 in example 3.*tokenizer"):
        adapted.rows({**inputs, "input_ids": ids})
    with pytest.raises(DataError, match=r"'attention_mask' must have one number for each of 'inp"):
        adapted.rows({**inputs, "attention_mask": inputs["attention_mask"][:, :5]})
    with pytest.raises(DataError, match="inputs must hold the tokens, 'input_ids', found att"):
        adapted.rows({"attention_mask": inputs["attention_mask"]})
    with pytest.raises(ValueError, match="must be in eval mode"):
        adapt(Masked(), embedding=True, inputs=inputs, fixed={"scale": 2.0})


def test_tokens_that_the_model_uses_twice_are_the_nearest_ones():
    assert nearest_rows(torch.tensor([[[0.2, 0.9], [3.0, 0.1]]]), torch.eye(2)).tolist() == [[1, 0]]
    net, ids = seeded(Transformer), tokens(padded=True)
    embedding = adapt(net, embedding=True, inputs=ids).embedding
    assert embedding.reads_ids
    assert not adapt(seeded(Recurrent), embedding=True, inputs=ids).embedding.reads_ids


def test_the_model_is_left_alone():
    net, ids = seeded(Transformer), tokens()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    adapted = adapt(net, embedding=True, inputs=ids)
    gradient_norm(adapted, adapted.rows(ids))
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    tangent_kernel(net, ids)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_a_look_at_tokens_says_where_it_measures():
    net, ids = seeded(Transformer), tokens(24, padded=True)
    look = inscape.look(
        net, (ids, ids[:, 0] % 3), budget=60, only=["gradient_norm", "fisher_rao_norm"], quiet=True
    )
    assert any("expects tokens: measured in its embedding 'words'" in n for n in look.model.notes)
    assert {measured.name for measured in look.measurements} == {"gradient_norm", "fisher_rao_norm"}
    values = {measured.name: measured.summary.value for measured in look.measurements}
    adapted = adapt(net, embedding=True, inputs=ids)
    norm = gradient_norm(adapted, adapted.rows(ids)).summary().value
    assert values["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    fisher = inscape.spectra.fisher_rao_norm(net, ids, ids[:, 0] % 3).summary().value
    assert values["fisher_rao_norm"] == pytest.approx(fisher, rel=1e-4)


def test_integers_that_a_model_takes_as_numbers_stay_numbers():
    net = seeded(nn.Linear, LENGTH, 2)
    opened, data = one_input(open_model(net), open_data((tokens(), torch.arange(10) % 2)))
    assert opened.model is net
    assert data.tokens is None
    with pytest.raises(ValueError, match="an embedding must be looked up with integers"):
        one_input(open_model(net), open_data(torch.randn(4, LENGTH)), "words")


def test_named_arrays_of_a_file_are_the_inputs(tmp_path):
    inputs = masked_inputs()
    path = tmp_path / "tokens.npz"
    np.savez(path, **{k: v.numpy() for k, v in inputs.items()}, labels=np.arange(10) % 3)
    data = open_data(str(path), arguments=("input_ids", "attention_mask", "labels"))
    assert [part.key for part in data.parts] == ["input_ids", "attention_mask"]
    assert data.y.tolist() == [k % 3 for k in range(10)]
    assert "inputs are input_ids 6, attention_mask 6, y is 'labels'" in data.notes
    with pytest.raises(DataError, match="--divide must have one array to apply to, found the inpu"):
        open_data(str(path), arguments=("input_ids", "attention_mask"), divide=255)
