import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import inscape
from inscape._core import Result, Row, Summary, mean_summary
from inscape._core.saving import INLINE
from inscape.smoothness import gradient_norm, path_length


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Everything(Result):
    """A result with one field of every kind."""

    nonfinite: ClassVar = {"number": "any number"}

    tensor: Float[Tensor, " n"]
    number: float
    words: tuple[str, ...]
    nothing: None = None

    def rows(self) -> Iterator[Row]:
        yield from ({"value": v} for v in self.tensor.tolist())


def everything(n=3):
    return Everything(tensor=torch.arange(float(n)), number=math.inf, words=("a", "b"))


@pytest.mark.parametrize("size", [3, INLINE + 1])
def test_json_round_trip_keeps_every_field(tmp_path, size):
    result = everything(size)
    loaded = inscape.load(result.save(tmp_path / "r.json"))
    assert type(loaded) is Everything
    assert torch.equal(loaded.tensor, result.tensor)
    assert (loaded.number, loaded.words, loaded.nothing) == (math.inf, ("a", "b"), None)
    assert (tmp_path / "r.npz").exists() == (size > INLINE)


def test_json_is_strict_json(tmp_path):
    text = everything().save(tmp_path / "r.json").read_text()
    assert "Infinity" not in text
    json.loads(text, parse_constant=lambda word: pytest.fail(word))


def test_files_appear_whole_and_leave_nothing_behind(tmp_path):
    everything(INLINE + 1).save(tmp_path / "r.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.npz"]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = everything().save(tmp_path / "r.csv")
    before = path.read_text()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        everything(9).save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tex", ".html", ".svg", ".png", ".pdf"])
def test_every_other_suffix_writes_its_form(tmp_path, suffix):
    result = gradient_norm(torch.sin, torch.rand(9, 1))
    path = result.save(tmp_path / f"r{suffix}")
    start = {".csv": b"gradient_norm", ".tex": b"\\begin", ".html": b"<p>", ".pdf": b"%PDF"}
    start |= {".svg": b"<?xml", ".png": b"\x89PNG"}
    assert path.read_bytes().startswith(start[suffix])


def test_csv_holds_the_rows(tmp_path):
    result = path_length(torch.sin, torch.rand(5, 1), pairs=4)
    lines = result.save(tmp_path / "r.csv").read_text().splitlines()
    assert lines[0] == "path_length,straight"
    assert float(lines[1].split(",")[0]) == pytest.approx(result.lengths[0].item())


def test_frame_has_the_rows():
    frame = path_length(torch.sin, torch.rand(5, 1), pairs=4).to_frame()
    assert list(frame.columns) == ["path_length", "straight"]
    assert len(frame) == 4


def test_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"one of .json, .csv, .* found '.docx': rename"):
        everything().save(tmp_path / "r.docx")


def test_parquet_without_pyarrow_names_the_extra(tmp_path):
    pytest.importorskip("pandas")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"needs the package 'pyarrow'.*inscape\[parquet\]"):
            everything().save(tmp_path / "r.parquet")
    else:
        assert everything().save(tmp_path / "r.parquet").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "must be a result saved by Inscape"),
        ("[]", "must be a result saved by Inscape"),
        ('{"result": "X", "schema": 99, "fields": {}}', "has schema 99, this version reads up to"),
        ('{"result": "X", "schema": 1, "fields": {}}', "holds a 'X', which this version does not"),
    ],
)
def test_foreign_files_are_refused(tmp_path, text, message):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        inscape.load(path)


def test_field_of_another_kind_is_refused(tmp_path, unchecked):
    result = Everything(tensor=torch.ones(1), number={1}, words=())
    with pytest.raises(
        TypeError, match="field 'number' must be a tensor or a plain value, found set"
    ):
        result.save(tmp_path / "r.json")


def test_repr_is_short_and_says_how_far_to_trust_it():
    text = repr(gradient_norm(lambda x: 2 * x, torch.rand(50, 1)))
    alike = "all alike: no interval"
    assert text == f"GradientNorm(2 (estimate); 50 points; {alike})"
    assert "<table" in gradient_norm(torch.sin, torch.rand(9, 1))._repr_html_()


def test_one_sample_has_no_interval():
    summary = mean_summary(torch.ones(1), kind="estimate", basis="1 point")
    assert (summary.low, summary.high) == (None, None)
    assert str(Summary(value=1.0, kind="exact", basis="")) == "1 (exact)"


def test_rows_must_be_defined():
    with pytest.raises(NotImplementedError, match=r"Result must define rows\(\)"):
        Result().rows()


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere must be a folder to save r.csv"):
        everything().save(tmp_path / "nowhere" / "r.csv")


TENSOR = '{"tensor": {"dtype": "%s", "shape": [%s]}, "values": [%s]}'
FIELDS = '{"result": "Everything", "schema": 1, "fields": {"number": 1.0, "words": {"tuple": []}, '


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, r"must be a result saved by Inscape, found something else \(Recursion"),
        ('{"result": ["X"], "schema": 1, "fields": {}}', "must be a result saved by Inscape"),
        ('{"result": "X", "schema": "1", "fields": {}}', "must be a result saved by Inscape"),
        ('{"result": "X", "schema": 1, "fields": []}', "must be a result saved by Inscape"),
        ('{"result": "X", "schema": 1, "fields": {}, "npz": "x"}', "must be a result saved by"),
        (FIELDS + '"tensor": ' + TENSOR % ("load", 1, 0) + "}}", "no dtype is called 'load'"),
        (FIELDS + '"tensor": ' + TENSOR % ("float32", 9, 0) + "}}", "must hold all parts of a"),
        (FIELDS + '"tensor": {"tensor": {}, "npz": "x"}}}', "must hold all parts of a Everything"),
        (FIELDS + '"more": 1}}', r"must hold all parts of a Everything, found others .*: save it"),
    ],
)
def test_hostile_files_are_refused(tmp_path, text, message, unchecked):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        inscape.load(path)


def test_an_npz_that_is_not_its_own_is_refused(tmp_path):
    path = everything(INLINE + 1).save(tmp_path / "r.json")
    npz = tmp_path / "r.npz"
    kept = npz.read_bytes()
    npz.write_bytes(kept[:-1] + b"\x01")
    with pytest.raises(ValueError, match=r"saved with r.json, found one with another hash: put it"):
        inscape.load(path)
    npz.unlink()
    with pytest.raises(ValueError, match=r"saved with r.json, found none: put it there, or save"):
        inscape.load(path)
    npz.write_bytes(kept)
    assert torch.equal(inscape.load(path).tensor, everything(INLINE + 1).tensor)


def test_results_of_older_versions_without_a_hash_are_read(tmp_path):
    path = everything(INLINE + 1).save(tmp_path / "r.json")
    content = json.loads(path.read_text())
    del content["npz"]
    path.write_text(json.dumps(content))
    assert torch.equal(inscape.load(path).tensor, everything(INLINE + 1).tensor)
    (tmp_path / "r.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"r.npz must be an npz without pickles, found something"):
        inscape.load(path)
