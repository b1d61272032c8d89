"""What the build adds to the wheel: the index of instruments that ``inscape list`` reads."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IndexHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes ``index.json`` beside the sources, for wheels and for editable installations."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Run ``inscape/index.py``, which needs the standard library alone."""
        runpy.run_path(str(Path(self.root, "src/inscape/index.py")), run_name="__main__")
        build_data["artifacts"].append("src/inscape/index.json")
