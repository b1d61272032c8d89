"""The printed numbers of table 1."""

import json
from pathlib import Path
from typing import NamedTuple


class Printed(NamedTuple):
    """A mean and what stands in parentheses behind it."""

    mean: float
    error: float


def _printed() -> dict[tuple[str, str], Printed]:
    facts = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    table = next(entry for entry in facts["entries"] if entry["id"] == "table-1")
    found = {}
    for family, parameter, *numbers in table["rows"]:
        model = f"{family.lower()}-{float(parameter.partition('=')[2]):g}"
        for name, at in (("train", 0), ("test", 2), ("ood", 4)):
            found[model, name] = Printed(*numbers[at : at + 2])
    return found


#: By model and error: ``PRINTED["relu-16", "test"]``.
PRINTED = _printed()
