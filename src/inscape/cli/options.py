"""The options of verbs, and the reading of their texts before anything heavy loads."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="WHAT",
        help="package.module:factory, file.py:factory, or a file (.pt2, a whole model with "
        "--trust); the built-in example if not given.",
    ),
]
Boolean = Annotated[
    str | None,
    typer.Option(
        "--boolean",
        metavar="FUNCTION",
        help="Look at a Boolean function instead: NUMBER:INPUTS, as 27030:4, or a formula, as "
        "'x1 ^ x2 & x3'.",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", metavar="FILE", help="Weights: a state_dict or safetensors."),
]
Take = Annotated[
    str | None,
    typer.Option(
        "--take",
        metavar="NAME",
        help="Which output to measure where the model returns several: a name, or 0, 1, ... "
        "Logits are taken by themselves.",
    ),
]
Embedding = Annotated[
    str | None,
    typer.Option(
        "--embedding",
        metavar="NAME",
        help="In which embedding a model of tokens is measured, where there are several; the first "
        "that tokens are looked up in if not given.",
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Open files that run code when they are opened.")
]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size",
        metavar="SIZE",
        help="Size that a file may unpack to, e.g. 4GB; 2 GB or a quarter of memory if not given.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="WHAT",
        help="A file (npz, npy, csv, pt) or a data set (see: inscape data list).",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="FOLDER", help="Where to look for data sets first."),
]
Download = Annotated[bool, typer.Option("--download", help="Fetch a data set that is missing.")]
InputShape = Annotated[
    str | None,
    typer.Option("--input-shape", metavar="CxHxW", help="Shape of one input, e.g. 1x28x28."),
]
Divide = Annotated[
    str,
    typer.Option(
        "--divide",
        metavar="NUMBER|auto|none",
        help="Divide the inputs by this; auto divides bytes by 255.",
    ),
]
Normalise = Annotated[
    str | None,
    typer.Option(
        "--normalise",
        metavar="MEAN,STD",
        help="Then subtract the mean and divide by the standard deviation: 0.5,0.25, or by channel "
        "0.49,0.48,0.45/0.25,0.24,0.26, or mnist, or cifar10.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="COLUMN", help="The label's column of a csv; else the last."),
]
Labels = Annotated[
    Literal["auto", "classes", "regression", "none"],
    typer.Option("--labels", help="What the labels are."),
]
Loss = Annotated[
    Literal["auto", "mse", "cross_entropy", "bce_logits"],
    typer.Option("--loss", help="The loss that the model was trained with."),
]
RecordedTraining = Annotated[
    Path | None,
    typer.Option(
        "--trajectory",
        metavar="FILE",
        help="The recorded training (.npz of Trajectory.save, or the folder of record_training): "
        "splits predictions into what every training example has added. A factory "
        "without --weights takes its last weights.",
    ),
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="INDICES|none",
        help="Explain the predictions of these measured examples, as 3,17; some right and some "
        "wrong ones if not given.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="Use only N points of each split.")
]
Device = Annotated[
    str, typer.Option("--device", metavar="auto|cpu|cuda[:i]|mps", help="Where to compute.")
]
DType = Annotated[
    Literal["float32", "float64"] | None,
    typer.Option("--dtype", help="Precision; as the weights have it if not given."),
]
Threads = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Threads of the processor to use.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Budget = Annotated[
    float, typer.Option("--budget", metavar="SECONDS", help="Time for measuring and the page.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory that measuring may take, e.g. 2GB; a quarter of the machine's if not given.",
    ),
]
WorkDone = Annotated[
    str | None,
    typer.Option(
        "--work",
        metavar="COUNTS",
        help="Repeat the work of an earlier look, as its repeat: line has it; no time limit then.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME,...",
        help="Only these instruments or families (see: inscape list); may be repeated.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", metavar="PATH", help="Folder of the report, or its .html file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")]
NoPage = Annotated[bool, typer.Option("--no-page", help="Write no report.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be measured and how long it takes.")
]


#: Bytes without which nothing can be measured.
LEAST_MEMORY = 50_000_000
#: More threads than any machine has; the system may fail to start them.
_MOST_THREADS = 1024


def threads(value: int | None) -> int | None:
    """Refuse a number of threads that cannot be started."""
    if value is not None and value > _MOST_THREADS:
        raise ValueError(
            f"--threads must be at most {_MOST_THREADS}, found {value}: lower it or leave it out."
        )
    return at_least_one("--threads", value)


def memory(text: str | None) -> int | None:
    """Return the bytes that measuring may take; refuse less than anything needs."""
    size = max_size(text)
    if size is not None and size < LEAST_MEMORY:
        raise ValueError(
            f"--memory must be at least {LEAST_MEMORY // 10**6}MB, found {text}: raise it or leave "
            "it out."
        )
    return size


def max_size(text: str | None) -> int | None:
    """Return the bytes that a size such as 4GB stands for; nothing if it was not given."""
    if text is None:
        return None
    from inscape.files.size_limits import read_size

    return read_size(text)


def at_least_one(option: str, value: int | None) -> int | None:
    """Refuse a number below one."""
    if value is not None and value < 1:
        raise ValueError(f"{option} must be at least 1, found {value}: raise it or leave it out.")
    return value


def require_data(data: str | None, measured: str) -> None:
    """Refuse to measure a model, or models, without data."""
    if data is None:
        raise ValueError(
            f"--data must say what to measure the {measured} on, found none: give a file (npz, "
            "npy, csv, pt) or the name of a data set (see: inscape data list)."
        )


def seconds(value: float) -> float:
    """Refuse a time budget that is not a positive number of seconds."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"--budget must be a positive number of seconds, found {value:g}.")
    return value


def seed(value: int) -> int:
    """Refuse a seed that no generator accepts."""
    if not 0 <= value < 2**63:
        raise ValueError(f"--seed must be an integer from 0 to 2^63 - 1, found {value}.")
    return value


def rows(text: str | None) -> tuple[int, ...] | None:
    """Return the row numbers in a text; no rows for the word none.

    >>> rows("3, 17"), rows("none"), rows(None)
    ((3, 17), (), None)
    """
    if text is None or text.strip() == "none":
        return None if text is None else ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ValueError(
            f"--explain must be indices of examples separated by commas, or none, found {text!r}: "
            "write for example --explain 3,17."
        )
    return tuple(int(word) for word in words)


#: Options that say how a model wants its inputs.
PREPARATION = (
    *("input_shape", "divide", "normalise", "target", "labels", "loss", "data_dir", "download"),
)


def preparation(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say how data are read, as ``open_data`` takes them."""
    divide = None if options["divide"] == "none" else options["divide"]
    return {**{name: options[name] for name in PREPARATION}, "divide": divide}
