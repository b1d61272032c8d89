"""Presets: setups that each show a result of a paper, as data, with what is to be seen."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from inscape.explorer.toy.setup import ToySetup

FILE = Path(__file__).with_name("presets.json")


@dataclass(frozen=True, kw_only=True)
class Sight:
    """A measure, and between which bounds it is once the training has ended."""

    measure: str
    low: float | None
    high: float | None

    def holds(self, measures: dict[str, float]) -> bool:
        """Tell whether the measure is there and within its bounds."""
        value = measures.get(self.measure)
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A setup with its name, the result in a sentence, and where that is from.

    ``updates`` are those after which the ``sights`` are seen, ``interval`` those from one frame to
    the next.
    """

    name: str
    title: str
    sentence: str
    reference: str
    setup: ToySetup
    updates: int
    interval: int
    sights: tuple[Sight, ...]

    def facts(self) -> dict[str, Any]:
        """Return what the page shows; of the setup only what is not at its default."""
        return {
            "name": self.name,
            "title": self.title,
            "sentence": self.sentence,
            "reference": self.reference,
            "setup": self.setup.model_dump(exclude_defaults=True),
            "updates": self.updates,
            "interval": self.interval,
            "watch": list(dict.fromkeys(sight.measure for sight in self.sights)),
        }


@cache
def presets() -> tuple[Preset, ...]:
    """Return all presets in the order of the page: by work."""
    return tuple(_preset(entry) for entry in json.loads(FILE.read_text(encoding="utf-8")))


def _preset(entry: dict[str, Any]) -> Preset:
    sights = tuple(
        Sight(measure=measure, low=low, high=high) for measure, low, high in entry["sights"]
    )
    return Preset(
        name=entry["name"],
        title=entry["title"],
        sentence=entry["sentence"],
        reference=entry["reference"],
        setup=ToySetup(**entry["setup"]),
        updates=entry["updates"],
        interval=entry["interval"],
        sights=sights,
    )
