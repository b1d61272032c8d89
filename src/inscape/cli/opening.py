"""From the options of a look to an opened model and its data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.cli import options as opt
from inscape.cli.output import Speech, page_name

if TYPE_CHECKING:
    import inscape.loaders
    import inscape.training

_Opened = tuple[
    "inscape.loaders.OpenedModel",
    "inscape.loaders.OpenedData",
    "inscape.training.Trajectory | None",
]

EXAMPLE = "digits"

_AS_GIVEN = (
    "model", "weights", "take", "embedding", "trajectory", "trust", "data", "device", "dtype",
    "work",
)  # fmt: skip
_ABOUT_DATA = ("input_shape", "normalise", "target", "labels", "loss", "data_dir", "download")


def about_data(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say how data are read, as ``open_data`` takes them."""
    scale = None if given["scale"] == "none" else given["scale"]
    return {**{key: given[key] for key in _ABOUT_DATA}, "scale": scale}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user wants to be looked at, and how: the options, read and checked."""

    model: str | None
    weights: Path | None
    take: str | None
    embedding: str | None
    trajectory: Path | None
    trust: bool
    max_size: int | None
    data: str | None
    about_data: dict[str, Any]
    limit: int | None
    device: str
    dtype: str | None
    threads: int | None
    seed: int
    budget: float
    memory: int | None
    work: str | None
    only: list[str] | None
    explain: tuple[int, ...] | None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Wanted":
        """Read the options as the command line gave them; loads nothing heavy."""
        wanted = cls(
            about_data=about_data(given),
            limit=opt.at_least_one("--limit", given["limit"]),
            threads=opt.threads(given["threads"]),
            max_size=opt.max_size(given["max_size"]),
            seed=opt.seed(given["seed"]),
            budget=opt.seconds(given["budget"]),
            memory=opt.memory(given["memory"]),
            only=opt.known_instruments(given["only"]),
            explain=opt.rows(given["explain"]),
            **{key: given[key] for key in _AS_GIVEN},
        )
        wanted._refuse_halves()
        return wanted

    @property
    def name(self) -> str:
        """Return the name of the report."""
        if self.model is None or self.data is None:
            return EXAMPLE
        return page_name(self.model, self.weights, self.data)

    def _refuse_halves(self) -> None:
        """Refuse a model without data, and anything about a model that is not there."""
        if self.model is not None:
            if self.data is None:
                raise ValueError(
                    "--data must say what to measure the model on, found none: give a file (npz, "
                    "npy, csv, pt) or the name of a data set (see: inscape data list)."
                )
            return
        own = {
            key: getattr(self, key)
            for key in ("weights", "take", "embedding", "trajectory", "data", "trust", "max_size")
        }
        own |= self.about_data
        for name, value in own.items():
            if value not in (None, False, "auto"):
                raise ValueError(
                    f"--{name.replace('_', '-')} describes a model of your own, found no --model: "
                    "give --model file.py:factory too, or leave it out to look at the example."
                )


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model and its data as they were opened, and the recorded training, if there is one."""

    model: "inscape.loaders.OpenedModel"
    data: "inscape.loaders.OpenedData"
    trajectory: "inscape.training.Trajectory | None"


def opened(wanted: Wanted, say: Speech) -> Subject:
    """Open the user's model and data, or make the example, and say what there is to say."""
    import torch

    if wanted.threads is not None:
        torch.set_num_threads(wanted.threads)
    model, data, way = _example(wanted, say) if wanted.model is None else _own(wanted)
    return Subject(model=model, data=data, trajectory=way)


def _example(wanted: Wanted, say: Speech) -> _Opened:
    from inscape.cli.example import example
    from inscape.loaders import open_data

    data = open_data(
        EXAMPLE, limit=wanted.limit, device=wanted.device, dtype=wanted.dtype or "float32"
    )
    say("no --model given: training the built-in example, a small network on digits")
    model, way = example(data, quiet=say.quiet)
    return model, data, way


def _own(wanted: Wanted) -> _Opened:
    import torch

    from inscape.loaders import arguments_of, open_data, open_model
    from inscape.training import Trajectory

    way = (
        None
        if wanted.trajectory is None
        else Trajectory.load(wanted.trajectory, max_size=wanted.max_size)
    )
    model = open_model(
        wanted.model,
        weights=wanted.weights,
        trust=wanted.trust,
        max_size=wanted.max_size,
        device=wanted.device,
        dtype=wanted.dtype,
    )
    if way is not None and wanted.weights is None and ":" in str(wanted.model):
        model = _at_the_end(model, way)
    weights = (p.dtype for p in model.model.parameters() if p.is_floating_point())
    data = open_data(
        wanted.data,
        limit=wanted.limit,
        device=wanted.device,
        dtype=wanted.dtype or next(weights, torch.float32),
        max_size=wanted.max_size,
        arguments=arguments_of(model.model),
        **wanted.about_data,
    )
    return model, data, way


def _at_the_end(
    model: "inscape.loaders.OpenedModel", way: "inscape.training.Trajectory"
) -> "inscape.loaders.OpenedModel":
    """Give what a factory has built the weights of the training's end; leave another network."""
    from inscape.loaders.factory import SEEDED

    own, end = model.model.state_dict(), way.at(way.steps)
    if {k: t.shape for k, t in own.items()} != {k: t.shape for k, t in end.items()}:
        return model
    model.model.load_state_dict(end)
    notes = tuple(note for note in model.notes if note != SEEDED)
    note = f"took the weights after the last of the {way.steps:,} updates of the trajectory"
    return replace(model, notes=(*notes, note))
