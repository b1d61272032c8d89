"""Facts of a model and of data, as they are; nothing is changed by looking."""

import platform
from collections.abc import Callable
from datetime import UTC, datetime

import torch
from torch import Tensor, nn

import inscape
from inscape.loaders import Adapted, OpenedData, OpenedModel
from inscape.report.look.parts import DataFacts, LayerFacts, ModelFacts, Provenance


def model_facts(opened: OpenedModel, x: Tensor, *, outputs: int) -> ModelFacts:
    """Return what the model is, from its modules and from one example passed through it."""
    model = opened.model
    parameters = list(model.parameters())
    return ModelFacts(
        name=type(model.model if isinstance(model, Adapted) else model).__name__,
        source=opened.source,
        layers=layers(model, x),
        parameters=sum(p.numel() for p in parameters),
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        dtype=_distinct([str(p.dtype).removeprefix("torch.") for p in parameters]),
        device=_distinct([str(p.device) for p in parameters]),
        inputs=tuple(x.shape[1:]),
        outputs=outputs,
        notes=tuple(opened.notes),
    )


def data_facts(data: OpenedData, *, rows: int) -> DataFacts:
    """Return what the data are; ``rows`` of them were measured."""
    return DataFacts(
        name=data.name,
        n=rows,
        n_train=len(data.x),
        n_test=0 if data.x_test is None else len(data.x_test),
        shape=tuple(data.x.shape[1:]),
        task=data.task,
        measured="all examples" if data.x_test is None else "test examples",
        split=data.split,
        hash=data.hash,
        notes=tuple(data.notes),
        settings={key: value for key, value in data.settings.items() if value is not None},
        guess=data.guess,
        names=tuple(map(str, data.names)),
    )


def layers(model: nn.Module, x: Tensor) -> tuple[LayerFacts, ...]:
    """Return the modules that compute or hold parameters, with their outputs for one example."""
    shown = {
        name: module
        for name, module in model.named_modules()
        if not any(True for _ in module.children()) or any(True for _ in _own(module))
    }
    shapes: dict[str, list[tuple[int, ...] | None]] = {name: [] for name in shown}
    hooks = [module.register_forward_hook(_note(shapes[name])) for name, module in shown.items()]
    try:
        with torch.no_grad():
            model(x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    return tuple(
        LayerFacts(
            name=name or "(the model)",
            kind=type(module).__name__,
            shape=shapes[name][0] if shapes[name] else None,
            parameters=sum(p.numel() for p in _own(module)),
            calls=len(shapes[name]),
        )
        for name, module in shown.items()
    )


def _own(module: nn.Module) -> list[nn.Parameter]:
    return list(module.parameters(recurse=False))


def _note(shapes: list[tuple[int, ...] | None]) -> Callable[[nn.Module, object, object], None]:
    def hook(module: nn.Module, inputs: object, output: object) -> None:
        shapes.append(tuple(output.shape[1:]) if isinstance(output, Tensor) else None)

    return hook


def _distinct(words: list[str]) -> str:
    return " and ".join(dict.fromkeys(words)) or "none"


def provenance(x: Tensor, *, seed: int, budget: float, spent: float) -> Provenance:
    """Return with what, where and when a look was taken."""
    return Provenance(
        inscape=inscape.__version__,
        torch=torch.__version__,
        python=platform.python_version(),
        device=str(x.device),
        dtype=str(x.dtype).removeprefix("torch."),
        threads=torch.get_num_threads(),
        seed=seed,
        budget=budget,
        seconds=spent,
        date=datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
