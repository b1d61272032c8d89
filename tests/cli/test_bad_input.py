"""Everything that a user can get wrong gives one sentence, an exit code, and leaves no report."""

import errno
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from inscape.report import Prepared

NETS = """
import torch
from torch import nn


def good():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def conv():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())


def nan():
    model = good()
    with torch.no_grad():
        model[2].weight[0, 0] = float("nan")
    return model


def raising():
    return Raising()


def pair():
    return Pair()


def number():
    return 3


def broken():
    raise KeyError("no such layer")


def hungry(width):
    return nn.Linear(width, 1)


class Pair(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)

    def forward(self, x):
        return super().forward(x), x


class Raising(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)

    def forward(self, x):
        raise ArithmeticError("something inside")
"""


class Intruder:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return Path.write_text, (Path("intruder-was-here"), "")


@pytest.fixture
def kit(run, tmp_path, monkeypatch):
    """Fill the working folder with good and bad files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("nets.py").write_text(NETS)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), np.arange(20) % 3
    np.savez("good.npz", x=x, y=y)
    np.savez("wide.npz", x=rng.normal(size=(20, 7)), y=y)
    np.savez("empty.npz", x=np.zeros((0, 4)))
    np.savez("uneven.npz", x=x, y=y[:7])
    np.savez("classes.npz", x=x, y=np.arange(20) % 5)
    np.savez("text.npz", x=x.astype(str), y=y)
    bad = x.copy()
    bad[3, 2] = np.nan
    np.savez("nan.npz", x=bad, y=y)
    np.savetxt("ints.csv", np.column_stack([rng.integers(0, 9, (20, 4)), y]), "%d", ",")
    Path("words.csv").write_text("a,b,c,d,label\n" + "1,2,three,4,0\n" * 9)
    Path("cut.npz").write_bytes(Path("good.npz").read_bytes()[:300])
    Path("nothing.npz").write_bytes(b"")
    torch.save(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).state_dict(), "good.pt")
    torch.save(nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 3)).state_dict(), "wide.pt")
    torch.save(nn.Linear(4, 3).state_dict(), "linear.pt")
    Path("cut.pt").write_bytes(Path("good.pt").read_bytes()[:900])
    Path("code.pt").write_bytes(pickle.dumps({"weight": Intruder()}))
    torch.save(Intruder(), "code.zip.pt")
    Path("file").write_text("")
    Path("hollow").mkdir()
    return run


def look(model="nets.py:good", data="good.npz", **more):
    """Return the words of a look, short enough to be run many times."""
    options = {"model": model, "data": data, "only": "gradient_norm", **more}
    return [
        "look",
        *(w for k, v in options.items() if v is not None for w in (f"--{k.replace('_', '-')}", v)),
    ]


CASES = {
    "wrong shape": (look(data="wide.npz"), 2, r"must accept a batch of shape \(\d+, 7\)"),
    "wrong kind of shape": (look("nets.py:conv"), 2, r"must accept a batch of shape \(\d+, 4\)"),
    "shape that does not fit": (
        look(input_shape="1x3x3"),
        2,
        r"input shape 1x3x3 must hold 9 numbers, found examples of shape \(4,\) with 4",
    ),
    "no shape": (look(input_shape="axb"), 2, "input shape must be integers .* found 'axb'"),
    "NaN in the data": (
        look(data="nan.npz"),
        2,
        "x must be finite, found NaN or Inf in 1 of 20 examples, first in example 3",
    ),
    "no rows": (
        look(data="empty.npz"),
        2,
        r"x must hold at least one example, found shape \(0, 4\)",
    ),
    "too few labels": (look(data="uneven.npz"), 2, "one label for each of the 20 examples"),
    "too many classes": (
        look(data="classes.npz"),
        2,
        "an output for each class, found 3 outputs and 5 classes",
    ),
    "text for numbers": (look(data="text.npz"), 2, "x must hold real numbers, found dtype <U"),
    "text in a table": (look(data="words.csv"), 2, "found 'three' in row 0 of the column 'c'"),
    "no such column": (look(data="words.csv", target="labl"), 2, "did you mean 'label'"),
    "truncated data": (look(data="cut.npz"), 2, "found a truncated archive"),
    "empty data file": (look(data="nothing.npz"), 2, "must hold data, found an empty file"),
    "missing data file": (look(data="god.npz"), 2, "found no god.npz: did you mean 'good.npz'"),
    "unknown data set": (look(data="mnits"), 2, "no data set is called 'mnits': did you mean mnis"),
    "missing data folder": (
        look(data="mnist", data_dir="nowhere"),
        2,
        "must name a folder, found nowhere, which is none",
    ),
    "data that are not there": (
        look(data="mnist", data_dir="hollow"),
        2,
        "mnist needs 4 files and lacks train-images.*inscape data fetch mnist",
    ),
    "no data": (look(data=None), 2, "--data must say what to measure the model on, found none"),
    "returns a tuple": (look("nets.py:pair"), 2, r"must return one tensor, found tuple of 0, 1"),
    "no such output": (look("nets.py:pair", take="logit"), 2, r"returns 0 \(0\), 1 \(1\)"),
    "raises inside": (look("nets.py:raising"), 2, "ArithmeticError: something inside"),
    "NaN weights": (look("nets.py:nan"), 2, "weights must be finite, found NaN or Inf in '2.weig"),
    "no model comes back": (look("nets.py:number"), 2, "found .*int"),
    "factory raises": (look("nets.py:broken"), 2, "it raised KeyError: 'no such layer'"),
    "factory with arguments": (look("nets.py:hungry"), 2, "must need no arguments, found width"),
    "no such factory": (look("nets.py:god"), 2, "found no 'god' in it: did you mean 'good'"),
    "no such file": (look("net.py:good"), 2, "found no net.py: did you mean 'nets.py'"),
    "no such module": (look("no.such:net"), 2, "found no 'no.such' here"),
    "no factory": (look("nets.py"), 2, "must be written MODULE:FACTORY or FILE.py:FACTORY"),
    "weights alone": (look("good.pt"), 2, "found weights without their architecture"),
    "foreign format": (look("net.tflite"), 2, r"found \.tflite, which is not supported"),
    "other sizes": (
        look(weights="wide.pt"),
        2,
        r"'0.weight' is \(8, 4\) in the model and \(9, 4\) in the file",
    ),
    "other layers": (
        look(weights="linear.pt"),
        2,
        r"the model has '0.weight' \(8, 4\), .* the file has 'weight' \(3, 4\)",
    ),
    "truncated weights": (look(weights="cut.pt"), 2, "(damaged|truncated)"),
    "missing weights": (
        look(weights="god.pt"),
        2,
        "must be an existing file, found no god.pt",
    ),
    "a pickle with code": (look(weights="code.pt"), 2, "a pickle that would run code.*--trust"),
    "torch.save of code": (look(weights="code.zip.pt"), 2, "a pickle that would run code.*--trust"),
    "weights of no model": (look(None, None, weights="good.pt"), 2, "--weights describes a model"),
    "data of no model": (look(None), 2, "--data describes a model of your own, found no --model"),
    "negative limit": (look(limit=-5), 2, "--limit must be at least 1, found -5"),
    "zero budget": (look(budget=0), 2, "--budget must be a positive number of seconds, found 0"),
    "no seed": (look(seed="abc"), 2, "Invalid value for '--seed'"),
    "negative seed": (look(seed=-1), 2, "--seed must be an integer from 0"),
    "zero threads": (look(threads=0), 2, "--threads must be at least 1, found 0"),
    "many threads": (look(threads=10**20), 2, "--threads must be at most 1024, found 1000"),
    "no size": (look(max_size="much"), 2, "--max-size must be a size such as 4GB or 500MB, found"),
    "small size": (
        look(max_size="10"),
        2,
        r"must unpack to at most 10 bytes, found .*--max-size 1MB \(max_size=\d+\)",
    ),
    "size of no model": (look(None, None, max_size="1GB"), 2, "--max-size describes a model of yo"),
    "no user": (look(weights="~nobody-here/a.pt"), 2, "found ~nobody-here/a.pt, and no such user"),
    "long name": (look(weights="a" * 300 + ".pt"), 2, "file name too long"),
    "undecodable": (look(out="bad\udcff"), 2, r"text in UTF-8, found 'bad\\udcff': rename"),
    "unknown instrument": (
        look(only="pth_length"),
        2,
        "no instrument or family is called 'pth_length'",
    ),
    "unknown device": (look(device="tpu"), 2, "device must be auto, cpu, cuda.* found 'tpu'"),
    "absent device": (look(device="cuda:7"), 2, "device 'cuda:7' must exist on this machine"),
    "unknown precision": (look(dtype="float16"), 2, "Invalid value for '--dtype'"),
    "no divisor": (look(divide="x"), 2, "divide must be a number to divide by, or auto, found 'x'"),
    "no normalisation": (look(normalise="1"), 2, "normalise must be MEAN,STD .* found '1'"),
    "loss against labels": (look(loss="bce_logits"), 2, "must have one output, found 3"),
    "output under a file": (
        look(out="file/x"),
        1,
        "cannot write into the folder .*: not a dir",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_and_no_report(kit, name):
    words, code, text = CASES[name]
    before = set(Path().rglob("*"))
    done = kit(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.rstrip("\n").splitlines()[-1]
    assert last.startswith(("inscape: ", "Error: ")), done.stderr
    assert re.search(text, last), last
    assert set(Path().rglob("*")) == before


def test_trust_runs_the_code(kit):
    assert not Path("intruder-was-here").exists()
    kit(*look(weights="code.zip.pt"), "--trust")
    assert Path("intruder-was-here").exists()


@pytest.mark.parametrize("data", ["ints.csv", "good.npz"])
def test_whole_numbers_are_no_error(kit, data):
    done = kit(*look(data=data), "--no-page")
    assert done.exit_code == 0, done.stderr
    assert "was in training mode: switched to eval" in done.stderr


def test_a_full_disk_loses_no_numbers(kit, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    done = kit(*look())
    assert done.exit_code == 1
    assert "gradient_norm" in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("inscape: the report could not be written to ")
    assert "no space left on device" in last
    assert list(Path("reports").iterdir()) == []


def test_an_interrupt_leaves_no_report(kit, monkeypatch):
    def interrupt(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(Prepared, "run", interrupt)
    done = kit(*look())
    assert done.exit_code == 130
    assert done.stderr.endswith("inscape: interrupted: nothing was left half written.\n")
    assert not Path("reports").exists()


def test_a_real_interrupt(kit):
    words = [*look(), "--only", "gradient_path_length", "--only", "path_length"]
    with subprocess.Popen(
        [sys.executable, "-m", "inscape", *words], stderr=subprocess.PIPE, text=True
    ) as running:
        said = next(line for line in running.stderr if line.startswith("looking: "))
        running.send_signal(signal.SIGINT)
        said += running.stderr.read()
    assert running.returncode == 130
    assert said.endswith("\ninscape: interrupted: nothing was left half written.\n")
    assert not Path("reports").exists()


def test_the_disk_is_checked_before_the_model(kit):
    done = kit(*look("nets.py:broken", out="file/x"))
    assert done.exit_code == 1


def test_really_as_a_process(process, kit):
    done = process(*look(weights="wide.pt"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("inscape: the weights in wide.pt must be those of the model")
    assert done.stderr.count("\n") == 1
