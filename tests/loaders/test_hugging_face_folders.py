"""Folders of Hugging Face: opened by transformers, without code of theirs."""

import json
import os
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import open_model
from inscape.loaders.hugging_face import _refuse_large, open_hugging_face


def folder(path, *, weights="model.safetensors", **config):
    """Write a folder that looks like a model."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"model_type": "bert", **config}))
    if weights.endswith("safetensors"):
        save_file({"a": torch.zeros(1)}, path / weights)
    elif weights:
        torch.save({"a": torch.zeros(1)}, path / weights)
    return path


@pytest.mark.parametrize("key", ["auto_map", "trust_remote_code", "custom_pipelines"])
def test_code_of_the_folder_is_refused_by_its_key(tmp_path, key):
    (tmp_path / "net").mkdir()
    path = folder(tmp_path / "net" / "a", **{key: {"AutoModel": "evil.Model"}})
    with pytest.raises(
        UnsupportedModelError, match=rf"found '{key}', which requires code.*--trust"
    ):
        open_model(path)


def test_pickled_weights_are_refused_by_their_name(tmp_path):
    path = folder(tmp_path / "net", weights="pytorch_model.bin")
    with pytest.raises(UnsupportedModelError, match=r"found pickled ones \(pytorch_model.bin\)"):
        open_model(path)


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(UnsupportedModelError, match=r"as model.safetensors, found none: save it"):
        open_model(folder(tmp_path / "net", weights=""))


def test_a_description_that_is_none_is_refused(tmp_path):
    path = folder(tmp_path / "net")
    (path / "config.json").write_text("[" * 10**5)
    with pytest.raises(UnsupportedModelError, match="must hold JSON"):
        open_model(path)
    (path / "config.json").write_text("{}")
    with pytest.raises(UnsupportedModelError, match="must name its model_type"):
        open_model(path)


@pytest.mark.parametrize(
    ("key", "value", "most"),
    [("num_hidden_layers", 10**9, "4,096"), ("hidden_size", 10**12, "10,000,000")],
)
def test_sizes_that_no_model_has_are_refused(tmp_path, key, value, most):
    path = folder(tmp_path / "net", text_config={key: value})
    with pytest.raises(UnsupportedModelError, match=rf"'{key}' of at most {most}, found {value}"):
        open_model(path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "generation_config.json"])
def test_a_pipe_in_the_folder_is_refused_before_it_is_read(tmp_path, name):
    path = folder(tmp_path / "net")
    (path / name).unlink(missing_ok=True)
    os.mkfifo(path / name)
    with pytest.raises(
        (DataError, OSError, ValueError), match=rf"{name}, a pipe, socket or device"
    ):
        open_hugging_face(path, trust=False)


def test_a_description_of_any_depth_is_searched_for_sizes(tmp_path):
    path = folder(tmp_path / "net")
    config = {"hidden_size": 10**12}
    for _ in range(2000):
        config = [config]
    with pytest.raises(UnsupportedModelError, match=r"'hidden_size' of at most 10,000,000"):
        _refuse_large(path, {"a": config})


def test_tensors_of_other_folders_are_refused(tmp_path):
    path = folder(tmp_path / "net")
    index = {"weight_map": {"a": "../../other.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UnsupportedModelError, match=r"safetensors in its own folder, found '../.."):
        open_model(path)


def test_without_transformers_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'inscape\[huggingface\]'"):
        open_model(folder(tmp_path / "net"))


@pytest.fixture
def bert(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=12,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path / "bert")
    return model, tmp_path / "bert"


def test_it_is_the_model_that_was_saved(bert):
    model, path = bert
    opened = open_model(path)
    ids = torch.arange(14).reshape(2, 7)
    assert_close(opened.model(ids).logits, model(ids).logits)
    assert opened.notes[0].endswith("as BertForSequenceClassification")
    assert not opened.was_training


def test_more_parameters_than_allowed_are_refused_before_any_is_stored(bert):
    _, path = bert
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "vocab_size": 9_000_000}))
    with pytest.raises(DataError, match="must unpack to at most"):
        open_model(path, max_size=10_000_000)


def test_weights_that_are_missing_are_said(bert):
    _, path = bert
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    assert "weights are not in the folder and are random" in open_model(path).notes[1]


def test_an_unknown_kind_is_refused(bert):
    _, path = bert
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "model_type": "nothing_known"}))
    with pytest.raises(UnsupportedModelError, match="must be a model that transformers can open"):
        open_model(path)
