"""Every hostile file ends in one of our errors or is opened safely, and none of them runs code."""

import json
import os
import resource
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

import hostile.array_files
import hostile.exported_files
import hostile.nnet_files
import hostile.onnx_files
import hostile.torch_files
from hostile.kinds import KINDS

if find_spec("h5py"):
    import hostile.keras_files  # noqa: F401 - each puts its kinds on the list

#: Keras files that need h5py.
KERAS = 25 if find_spec("h5py") else 0

HERE = Path(__file__).parent
#: Bytes of address space: PyTorch takes some two gigabytes of them to begin with.
ADDRESSES = 6_000_000_000
#: Megabytes that may be taken: PyTorch takes some 300, the largest sound file here a hundred.
MEGABYTES = 900
SECONDS = 20


class Ending(NamedTuple):
    """How one file ended."""

    how: str
    text: str
    seconds: float
    peak: int


def limited() -> None:
    """Take a limit on addresses in the new process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


@pytest.fixture(scope="module")
def mark(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("mark") / "was_here"


@pytest.fixture(scope="module")
def endings(tmp_path_factory, mark) -> dict[str, Ending]:
    """Write and open every file; one process for all, which none of them may end."""
    folder = tmp_path_factory.mktemp("hostile")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, about what it has deprecated
        for kind in KINDS:
            kind.make(folder / kind.file, mark)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps([[k.opened_as, str(folder / k.file)] for k in KINDS]))
    process = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "opening.py"), str(manifest)],
        capture_output=True,
        text=True,
        timeout=1000,
        preexec_fn=limited,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        cwd=folder,
        check=False,
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    names = [kind.name for kind in KINDS]
    done = len(lines)
    assert process.returncode == 0, f"{names[done]} ended the process: {process.stderr[-2000:]}"
    return {name: Ending(*line[2:]) for name, line in zip(names, lines, strict=True)}


def test_there_are_many_kinds():
    assert len(KINDS) == 275 + KERAS  # fewer if two have one name


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_it_is_refused_by_us_or_opened(endings, name):
    ending = endings[name]
    assert ending.how in ("refused", "opened"), ending.text
    assert ending.seconds < SECONDS
    assert "\n" not in ending.text
    assert len(ending.text) < 1000


def test_no_code_of_any_file_has_run(endings, mark):
    assert endings
    assert not mark.exists()


def test_no_file_has_taken_much_memory(endings):
    before = 0
    for name, ending in endings.items():
        assert ending.peak < MEGABYTES, f"{name} raised it from {before} MB"
        before = ending.peak


#: What is sound in spite of its look, or is never read; everything else must be refused.
OPENED = {
    "data: conjugate.pt",
    "data: many_columns.csv",
    "data: path_out_of_the_folder.npz",
    "model: call_specifications.pt2",
    "model: compiled_library.pt2",
    "model: guards.pt2",
    "model: memory_of_others.pt2",
    "model: name_twice.pt2",
    "model: opset.pt2",
    "model: ranges.pt2",
    "model: sample_inputs.pt2",
    "model: size_as_code.pt2",
    "model: symbols.pt2",
    "model: tree_specification.pt2",
    "weights: stride_of_zero_that_fits.pt",
}


def test_what_is_hostile_is_refused(endings):
    opened = {name for name, ending in endings.items() if ending.how == "opened"}
    assert opened == OPENED
