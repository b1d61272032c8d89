"""Open what is to be explored, as a look opens it, with the lines of Python that do the same."""

from collections.abc import Mapping
from typing import Any

from inscape.explorer.subject import ExploredSubject, explored_subject
from inscape.report import prepare
from inscape.report.look.opening import opened_example, opened_subject

#: What opens the built-in example.
EXAMPLE_CODE = """import inscape, torch
from inscape.report.look.opening import opened_example

opened = opened_example(quiet=True)
model, x = opened.model.model, opened.data.measured[0]"""


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
    return explored_subject(prepared, code=code, trajectory=opened.trajectory)


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
