"""What the claims of a paper are judged by beyond their wording, from its ``standing.json``.

The file has a part for each item: groups of claims, by their names, with the fields of ``Standing``
that they share, and ``outside``, by scale: why settings lie outside of the paper's range. So claims
stay as they were written before their runs, and their hashes with them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inscape.lab.experiment import STANDING, Experiment

FILE = "standing.json"

#: Experiments that were made, by the experiment of the module: what is made once is kept.
_experiments: dict[tuple[int, str], tuple[Experiment, Experiment]] = {}


def with_standing(experiment: Experiment, folder: Path, item: str) -> Experiment:
    """Return an experiment whose claims say what they are judged by.

    Args:
        experiment: As its module defines it.
        folder: The folder of its paper.
        item: Its name in the paper.
    """
    path = folder / FILE
    if not path.is_file():
        return experiment
    key = (id(experiment), str(path))
    if key not in _experiments:
        parts = json.loads(path.read_text(encoding="utf-8")).get(item, {})
        _experiments[key] = experiment, _applied(experiment, parts, f"{path.parent.name}/{item}")
    return _experiments[key][1]


def _applied(experiment: Experiment, parts: Mapping[str, Any], name: str) -> Experiment:
    """Return an experiment with the fields of each group of its claims, and what lies outside."""
    fields: dict[str, dict[str, Any]] = {}
    for group in parts.get("claims", ()):
        own = {field: value for field, value in group.items() if field != "names"}
        if unknown := sorted(set(own) - STANDING):
            raise ValueError(
                f"{FILE} of {name} must hold fields of Standing, found {', '.join(unknown)}: "
                f"choose from {', '.join(sorted(STANDING))}."
            )
        for claim in group["names"]:
            fields.setdefault(claim, {}).update(
                {k: tuple(v) if isinstance(v, list) else v for k, v in own.items()}
            )
    if unknown := sorted(set(fields) - {claim.name for claim in experiment.claims}):
        raise ValueError(
            f"{FILE} of {name} must name claims of the experiment, found {', '.join(unknown)}: "
            "correct the names."
        )
    if not fields and not parts.get("outside"):
        return experiment
    return replace(
        experiment,
        claims=tuple(replace(claim, **fields.get(claim.name, {})) for claim in experiment.claims),
        outside=parts.get("outside", {}),
    )
