"""Hostile .nnet files: text whose header lies."""

from pathlib import Path

from hostile.kinds import kind

HEADER = "{},6,3,{},\n{}\n0,\n-1,-1,-1,-1,-1,-1,\n1,1,1,1,1,1,\n0,0,0,0,0,0,0,\n1,1,1,1,1,1,1,\n"


@kind("model", ".nnet")
def huge_layers(path: Path, _: Path) -> None:
    """Declare a layer of 10^12 units, and bring no numbers."""
    path.write_text(HEADER.format(2, 10**12, f"6,{10**12},3,"))


@kind("model", ".nnet")
def endless_number(path: Path, _: Path) -> None:
    """Write one number of ten million digits."""
    path.write_text(HEADER.format(1, 6, "6,3,") + "9" * 10_000_000 + "\n")


@kind("model", ".nnet")
def infinite_sizes(path: Path, _: Path) -> None:
    """Declare sizes that are no numbers one can count to."""
    path.write_text(HEADER.format("inf", "nan", "6,inf,3,"))


@kind("model", ".nnet")
def no_text(path: Path, _: Path) -> None:
    """Hold bytes that are no text."""
    path.write_bytes(bytes(range(256)) * 100)
