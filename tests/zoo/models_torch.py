"""PyTorch in its many wrappings: TorchScript, .pt2, checkpoints, wrappers; and .nnet files."""

import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

import inscape
from zoo.files import shared
from zoo.networks import (
    Detector,
    Graph,
    GRUHead,
    LowRank,
    SmallUNet,
    TransformerHead,
    TwoImages,
    Words,
)
from zoo.rows import Subject, draw, opened, row, tokens


def _mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Dropout(), nn.Linear(9, 3)).eval()


def _scripted(folder: Path, script: Any, x: torch.Tensor, how: str) -> Subject:
    script.save(folder / "net.pt")
    model, said = opened(folder / "net.pt", f"`.pt --trust`, {how}", trust=True)
    return Subject(model, x, said)


def _quietly(make: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        return make()


@row("traced U-Net", "TorchScript")
def traced(folder: Path) -> Subject:
    x = draw(3, 2, 8, 8)
    script = _quietly(lambda: torch.jit.trace(SmallUNet().eval(), x.float()))
    return _quietly(lambda: _scripted(folder, script, x, "trace"))


@row("scripted MLP", "TorchScript", fast=True)
def scripted(folder: Path) -> Subject:
    return _quietly(lambda: _scripted(folder, torch.jit.script(_mlp()), draw(3, 6), "script"))


@row("frozen CNN", "TorchScript")
def frozen(folder: Path) -> Subject:
    def make() -> Subject:
        script = torch.jit.freeze(torch.jit.script(SmallUNet().double().eval()))
        return _scripted(folder, script, draw(3, 2, 8, 8), "freeze: weights are constants")

    return _quietly(make)


def _acas(name: str, fast: bool) -> None:
    @row(f"ACAS Xu {name}", ".nnet", fast=fast)
    def make(folder: Path) -> Subject:
        model, how = opened(shared(f"acasxu/ACASXU_run2a_{name}_batch_2000.nnet"), "`.nnet`")
        return Subject(model, draw(3, 5) * 0.2, how)


for _name in ("1_1", "2_9", "5_5"):
    _acas(_name, fast=_name == "1_1")


def _exported(folder: Path, model: nn.Module, x: torch.Tensor) -> Subject:
    rows = ({0: torch.export.Dim.AUTO},)
    torch.export.save(
        torch.export.export(model, (x.float(),), dynamic_shapes=rows), folder / "net.pt2"
    )
    net, how = opened(folder / "net.pt2", "`.pt2`")
    return Subject(net, x, how)


@row("exported MLP", ".pt2", fast=True)
def exported(folder: Path) -> Subject:
    return _exported(folder, _mlp(), draw(3, 6))


@row("exported transformer", ".pt2")
def exported_transformer(folder: Path) -> Subject:
    return _exported(folder, TransformerHead().eval(), draw(3, 5, 8))


_CODE = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Dropout(), nn.Linear(9, 3))
"""


def _with_code(folder: Path, weights: Path, how: str, x: torch.Tensor) -> Subject:
    (folder / "nets.py").write_text(_CODE)
    model, said = opened(f"{folder / 'nets.py'}:build", how, weights=weights)
    return Subject(model, x, said)


@row("safetensors with code", "weights", fast=True)
def safetensors(folder: Path) -> Subject:
    save_file(_mlp().state_dict(), folder / "net.safetensors")
    return _with_code(folder, folder / "net.safetensors", "`--weights`", draw(3, 6))


@row("Lightning checkpoint", "weights", needs=("lightning",))
def lightning(folder: Path) -> Subject:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = _mlp()

    trainer = lightning.Trainer(
        logger=False, enable_checkpointing=False, accelerator="cpu", default_root_dir=folder,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.strategy.connect(Module())
    trainer.save_checkpoint(folder / "last.ckpt")
    return _with_code(folder, folder / "last.ckpt", "`--weights last.ckpt`", draw(3, 6))


@row("torch.compile", "wrapped")
def compiled(folder: Path) -> Subject:
    model, how = opened(torch.compile(_mlp()), "module, unwrapped")
    return Subject(model, draw(3, 6), how)


@row("DataParallel", "wrapped")
def parallel(folder: Path) -> Subject:
    model, how = opened(nn.DataParallel(_mlp()), "module, unwrapped")
    return Subject(model, draw(3, 6), how)


@row("weight norm, spectral norm", "wrapped", fast=True)
def parametrised(folder: Path) -> Subject:
    net = _mlp()
    torch.nn.utils.parametrizations.weight_norm(net[0])
    torch.nn.utils.parametrizations.spectral_norm(net[3])
    model, how = opened(net.eval(), "module")
    return Subject(model, draw(3, 6), how)


@row("low-rank adapters (LoRA)", "wrapped")
def low_rank(folder: Path) -> Subject:
    net = _mlp()
    net[0] = LowRank(net[0])
    model, how = opened(net.eval(), "module")
    return Subject(model, draw(3, 6), how)


@row("GRU module", "module")
def gru(folder: Path) -> Subject:
    model, how = opened(GRUHead().eval(), "module")
    return Subject(model, draw(3, 7, 4), how)


@row("two images in, a tuple out", "several", fast=True)
def two_images(folder: Path) -> Subject:
    model, _ = opened(TwoImages().eval(), "")
    inputs = (draw(3, 4, 4), draw(3, 4, 4, seed=1))
    net = inscape.adapt(model, take=0, inputs=inputs)
    return Subject(net, net.rows(inputs), "`adapt(take=0, inputs=(a, b))`")


@row("graph network with a fixed adjacency", "several")
def graph(folder: Path) -> Subject:
    model, _ = opened(Graph().eval(), "")
    net = inscape.adapt(model, inputs="x", fixed={"adjacency": draw(5, 5, seed=3)})
    return Subject(net, draw(3, 5, 3), "`adapt(inputs='x', fixed=...)`")


@row("boxes and scores, a named tuple out", "several")
def detector(folder: Path) -> Subject:
    model, _ = opened(Detector().eval(), "")
    return Subject(inscape.adapt(model, take="boxes"), draw(3, 1, 8, 8), "`adapt(take='boxes')`")


@row("a dictionary out: its pooled vector", "several")
def pooled(folder: Path) -> Subject:
    return _words("pooled")


@row("token ids and a mask in", "tokens", fast=True)
def words(folder: Path) -> Subject:
    return _words("logits")


def _words(take: str) -> Subject:
    model, _ = opened(Words().eval(), "")
    mask = torch.ones(3, 7, dtype=torch.float64)
    mask[1, 5:] = 0
    inputs = {"ids": tokens(3, 7, 20), "mask": mask}
    net = inscape.adapt(model, take=take, inputs=inputs, embedding=True)
    return Subject(net, net.rows(inputs), f"`adapt(take={take!r}, inputs=..., embedding=True)`")
