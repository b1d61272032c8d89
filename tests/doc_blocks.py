"""The pages for readers (README, CONTRIBUTING, docs) and the blocks of code inside them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.name: path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
}
FENCE = re.compile(r"^```(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the number of its first line (from 0) and its text."""

    language: str
    line: int
    text: str


def blocks(page: str, *languages: str) -> list[Block]:
    """Return the blocks of a page in some languages, from the top."""
    text = PAGES[page].read_text(encoding="utf-8")
    fenced = (
        Block(match[1], text[: match.start(2)].count("\n"), match[2])
        for match in FENCE.finditer(text)
    )
    return [block for block in fenced if block.language in languages]


def shell_lines(page: str) -> Iterator[str]:
    """Yield the lines that a page tells its reader to type, without their comments."""
    for block in blocks(page, "sh", "console"):
        for line in block.text.splitlines():
            if block.language == "console" and not line.startswith("$ "):
                continue  # what the command prints
            command = re.split(r"\s+# ", line.removeprefix("$ "))[0].strip()
            if command:
                yield command
