"""Options of Slurm jobs: from the call, the environment and a TOML file, in this order.

A file named by ``INSCAPE_SLURM_CONFIG`` may hold a table ``[slurm]``; each of its keys can also be
given alone, as in ``INSCAPE_SLURM_PARTITION=gpu``.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from inscape.lab.cluster import SLURM

CONFIG = f"{SLURM}CONFIG"


@dataclass(frozen=True, kw_only=True)
class SlurmOptions:
    """What each job of a run asks for; None leaves it to the cluster.

    Attributes:
        partition: Partition (queue) to submit to.
        account: Account to charge.
        qos: Quality of service.
        constraint: Features that a node must have.
        time: Minutes after which Slurm may stop a job; None asks for three times the estimate,
            an hour at least.
        cpus: Cores of a job; None asks for the threads of a cell.
        gpus: GPUs of a job.
        mem: Memory of a job in GB.
        setup: Shell lines to run first, e.g. ``module load python``.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    time: int | None = None
    cpus: int | None = None
    gpus: int | None = None
    mem: float | None = None
    setup: tuple[str, ...] = ()


_NAMES = tuple(field.name for field in fields(SlurmOptions))


def slurm_options(settings: Mapping[str, Any] | None = None) -> SlurmOptions:
    """Collect the options; what is given here wins over the environment, that over the file."""
    options: dict[str, Any] = {}
    for source, table in (
        (f"the file in {CONFIG}", _file()),
        ("the environment", _environment()),
        ("the argument slurm", dict(settings or {})),
    ):
        for name, value in table.items():
            options[name] = _checked(name, value, source)
    return SlurmOptions(**options)


def _environment() -> dict[str, Any]:
    return {
        name.removeprefix(SLURM).lower(): value
        for name, value in os.environ.items()
        if name.startswith(SLURM) and name != CONFIG and value
    }


def _file() -> dict[str, Any]:
    name = os.environ.get(CONFIG, "")
    if not name:
        return {}
    try:
        content = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{CONFIG} must name a TOML file, found no file {name}: correct or unset it."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name} must be a TOML file, found an error: {error}: fix it.") from None
    table = content.get("slurm")
    if not isinstance(table, dict):
        raise ValueError(
            f"{name} must hold a table [slurm], found {', '.join(content) or 'nothing'}: add it, "
            'e.g. [slurm] and below it partition = "cpu".'
        )
    return table


def _checked(name: str, value: Any, source: str) -> Any:
    match name:
        case "partition" | "account" | "qos" | "constraint" if isinstance(value, str):
            return value
        case "time" | "cpus" | "gpus":
            return int(_number(name, value, source, least=0 if name == "gpus" else 1, integer=True))
        case "mem":
            return _number(name, value, source, least=0.001, integer=False)
        case "setup":
            lines = [value] if isinstance(value, str) else value
            if isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines):
                return tuple(lines)
    if name not in _NAMES:
        raise ValueError(
            f"{source} names a Slurm option {name!r} that is not known: choose from "
            f"{', '.join(_NAMES)}."
        )
    raise ValueError(
        f"the Slurm option {name!r} in {source} must be text, found {value!r}: put it in quotes."
    )


def _number(name: str, value: Any, source: str, *, least: float, integer: bool) -> float:
    unit = {"time": " of minutes", "mem": " of GB"}.get(name, "")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not number >= least or (integer and number != int(number)):
        raise ValueError(
            f"the Slurm option {name!r} in {source} must be "
            f"{'an integer' if integer else 'a number'}{unit}, at least {least:g}, "
            f"found {value!r}: correct it."
        )
    return number
