"""Open what is to be explored, as a look opens it, with the lines of Python that do the same."""

import re
from collections.abc import Mapping
from typing import Any

from torch import nn

from inscape.explorer.subject import ExploredSubject, explored_subject
from inscape.loaders import OpenedData, one_output, open_model
from inscape.report import prepare
from inscape.report.look.example import SEED, example
from inscape.report.look.opening import opened_example, opened_subject

#: What opens the built-in example.
EXAMPLE_CODE = """import inscape, torch
from inscape.report.look.opening import opened_example

opened = opened_example(quiet=True)
model, x = opened.model.model, opened.data.measured[0]"""
#: Between what a network is and where its weights are, in what ``open_model`` calls it.
WEIGHTS = " with the weights in "
#: What trains it from another seed.
ANOTHER_CODE = """from inscape.explorer.opening import another_example

other = another_example(opened.data)"""


def explored(
    options: Mapping[str, Any],
    *,
    preparation: Mapping[str, Any],
    command: str | None = None,
    quiet: bool = False,
) -> ExploredSubject:
    """Return what the options of the command line describe, ready to be explored."""
    computing = {name: options[name] for name in ("limit", "device", "dtype")}
    if options["model"] is None:
        opened, code = opened_example(**computing, quiet=quiet), EXAMPLE_CODE
    else:
        files = {name: options[name] for name in ("weights", "trajectory", "trust", "max_size")}
        arguments = {**files, **computing, "preparation": preparation}
        opened = opened_subject(options["model"], options["data"], **arguments)
        code = _code(options["model"], options["data"], arguments)
    prepared = prepare(
        opened.model,
        opened.data,
        only="plane_regions",
        explain=(),
        seed=options["seed"],
        take=options["take"],
        embedding=options["embedding"],
        command=command,
        page=False,
    )
    other = _other(options, computing, opened.data)
    title, other_title = short_titles(prepared.opened.source, "" if other is None else other[1])
    if other is not None:
        other = other[0], other_title, other[2]
    return explored_subject(
        prepared, code=code, trajectory=opened.trajectory, other=other, title=title
    )


def short_titles(first: str, other: str = "") -> tuple[str, str]:
    """Return the names of two networks with no more folders of files than tell them apart.

    >>> short_titles("/home/me/runs/a.onnx")
    ('a.onnx', '')
    >>> short_titles("runs/1/net.onnx", "runs/2/net.onnx")
    ('1/net.onnx', '2/net.onnx')
    """
    for folders in range(1 + max(len(_parts(name)) for name in (first, other))):
        short = _shortened(first, folders), _shortened(other, folders)
        if short[0] != short[1]:
            break
    return short


def _shortened(title: str, folders: int) -> str:
    return WEIGHTS.join("/".join(_parts(name)[-1 - folders :]) for name in title.split(WEIGHTS))


def _parts(name: str) -> list[str]:
    return re.split(r"[/\\]+", name)


def _other(
    options: Mapping[str, Any], computing: Mapping[str, Any], data: OpenedData
) -> tuple[nn.Module, str, str] | None:
    """Return the second network with its title and its code; of the example another seed."""
    other, weights = options.get("other"), options.get("other_weights")
    if other is None and weights is None:
        if options["model"] is not None:
            return None
        model, title = another_example(data), "the same network, trained from another seed"
        return model, title, ANOTHER_CODE
    other = other or options["model"]
    if other is None:
        raise ValueError("--with-weights needs --model or --with: say whose weights they are.")
    arguments = {
        "weights": weights, "trust": options["trust"], "max_size": options["max_size"],
        "device": computing["device"], "dtype": computing["dtype"],
    }  # fmt: skip
    opened = one_output(open_model(other, **arguments), data, options["take"])
    other_arguments = {k: v for k, v in arguments.items() if v not in (None, False, "auto")}
    words = "".join(f", {name}={str(value)!r}" for name, value in other_arguments.items())
    code = f"other = inscape.loaders.open_model({other!r}{words}).model"
    return opened.model, opened.source, code


def another_example(data: OpenedData) -> nn.Module:
    """Return the network of the built-in example, trained from another seed."""
    return example(data, quiet=True, seed=SEED + 1)[0].model


def _code(model: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return Python that opens a model and its data with the arguments that are not the usual."""
    lines = [f"    {model!r},", f"    {data!r},"]
    usual: tuple[Any, ...] = (None, False, "auto", "none", {})
    for name, value in arguments.items():
        if name == "preparation":
            value = {k: v for k, v in value.items() if v not in usual}
        if value not in usual:
            lines.append(f"    {name}={value if isinstance(value, dict) else str(value)!r},")
    return "\n".join(
        [
            "import inscape, torch",
            "from inscape.report.look.opening import opened_subject",
            "",
            "opened = opened_subject(",
            *lines,
            ")",
            "model, x = opened.model.model, opened.data.measured[0]",
        ]
    )
