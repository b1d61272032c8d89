"""Architectures of Hugging Face, built from a config: tokens, masks and positions of their own."""

import pytest
import torch
from torch.testing import assert_close

import inscape
from inscape.loaders import adapt
from inscape.smoothness import gradient_norm

transformers = pytest.importorskip("transformers")

VOCABULARY = 40
SMALL = {"vocab_size": VOCABULARY, "num_labels": 3, "max_position_embeddings": 16}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BUILD = {
    "Bert": {**SMALL, **BERT, "intermediate_size": 32},
    "Roberta": {**SMALL, **BERT, "intermediate_size": 32, "pad_token_id": 1},
    "Albert": {**SMALL, **BERT, "intermediate_size": 32, "embedding_size": 8},
    "DistilBert": {**SMALL, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    "GPT2": {
        "vocab_size": VOCABULARY, "num_labels": 3, "n_embd": 16, "n_layer": 2, "n_head": 2,
        "n_positions": 16, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 2,
    },
    "Llama": {**SMALL, **BERT, "intermediate_size": 32, "pad_token_id": 0},
}  # fmt: skip
#: Those to which ``inputs_embeds`` says the same: the others read the tokens for more.
SIMPLE = ("Bert", "Albert", "DistilBert")


def built(name):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**BUILD[name])
    return getattr(transformers, f"{name}ForSequenceClassification")(config).eval()


def batch(pad=0):
    ids = torch.randint(2, VOCABULARY, (9, 7), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    ids[::3, 5:], mask[::3, 5:] = pad, 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("name", BUILD)
def test_logits_from_embedded_tokens_are_those_from_tokens(name):
    net, inputs = built(name), batch(BUILD[name].get("pad_token_id", 0))
    adapted = adapt(net, take="logits", embedding=True, inputs=inputs)
    with torch.no_grad():
        assert_close(adapted(adapted.rows(inputs)), net(**inputs).logits)
    own = net.get_input_embeddings()
    assert net.get_submodule(adapted.embedding.name) is own
    assert adapted.embedding.vocabulary == VOCABULARY


@pytest.mark.parametrize("name", SIMPLE)
def test_gradients_are_those_of_autograd_by_inputs_embeds(name):
    net, inputs = built(name), batch()
    adapted = adapt(net, take="logits", embedding=True, inputs=inputs)
    x = adapted.rows(inputs)
    embedded = net.get_input_embeddings()(inputs["input_ids"]).detach().requires_grad_()
    logits = net(inputs_embeds=embedded, attention_mask=inputs["attention_mask"]).logits
    squares = sum(
        torch.autograd.grad(logits[:, k].sum(), embedded, retain_graph=True)[0].square().sum((1, 2))
        for k in range(3)
    )
    assert_close(gradient_norm(adapted, x).norms, squares.sqrt())


def test_a_look_at_a_batch_encoding_and_labels():
    net, inputs = built("Bert"), batch()
    data = {**inputs, "labels": torch.arange(9) % 3}
    look = inscape.look(net, data, budget=60, only="gradient_norm", quiet=True)
    notes = " ".join(look.model.notes)
    assert "measured in its embedding 'bert.embeddings.word_embeddings'" in notes
    assert "took its logits" in notes
    adapted = adapt(net, take="logits", embedding=True, inputs=inputs)
    by_hand = gradient_norm(adapted, adapted.rows(inputs)).summary().value
    assert look.measurements[0].summary.value == pytest.approx(by_hand, rel=1e-4)
