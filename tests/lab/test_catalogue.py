"""Experiments are found by their files, without importing them."""

import subprocess
import sys
from pathlib import Path

import pytest

from inscape.lab import catalogue
from inscape.lab.experiment import claim_hash


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> Path:
    """Return a folder in the place of ``inscape/papers``."""
    monkeypatch.setattr(catalogue, "PAPERS", tmp_path)
    for paper, stem in [
        ("volhejn", "table_4_10"),
        ("volhejn", "table_4_2"),
        ("volhejn", "figure_1"),
        ("author", "main_result"),
    ]:
        (tmp_path / paper).mkdir(exist_ok=True)
        text = f'"""What {stem} shows.\n\nMore."""\nimport nowhere\n\nEXPERIMENT = Experiment()\n'
        (tmp_path / paper / f"{stem}.py").write_text(text)
    (tmp_path / "volhejn" / "_tables.py").write_text('EXPERIMENT = Experiment(same_as="x")\n')
    (tmp_path / "volhejn" / "helpers.py").write_text("EXPERIMENTS = 3\n")
    (tmp_path / "volhejn" / "published.json").write_text('{"entries": []}')
    return tmp_path


def test_files_become_listings_in_the_order_of_numbers(shelf):
    assert [listing.id for listing in catalogue.experiments()] == [
        "author/main-result",
        "volhejn/figure-1",
        "volhejn/table-4.2",
        "volhejn/table-4.10",
    ]
    assert catalogue.papers() == ["author", "volhejn"]
    listing = catalogue.experiments("volhejn")[-1]
    assert (listing.paper, listing.item) == ("volhejn", "table-4.10")
    assert listing.title == "What table_4_10 shows."


def test_a_paper_has_facts(shelf):
    assert catalogue.paper_facts("volhejn") == {"entries": []}
    assert catalogue.paper_facts("author") == {}


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("volhejn/table-4.3", r"did you mean volhejn/table-4\.2 or volhejn/table-4\.10"),
        ("volhejn/table_4_2", r"did you mean volhejn/table-4\.2"),
        ("zebra", r"choose from author/main-result, .* \(inscape list shows them\)\."),
    ],
)
def test_an_unknown_experiment_is_refused_with_the_nearest(shelf, id, said):
    with pytest.raises(ValueError, match=rf"no experiment is called '{id}': {said}"):
        catalogue.experiment(id)


def test_an_unknown_paper_is_refused_with_the_nearest(shelf):
    with pytest.raises(ValueError, match=r"no paper is called 'volhej': did you mean volhejn\?"):
        catalogue.experiments("volhej")
    with pytest.raises(ValueError, match="no paper is called 'zebra'"):
        catalogue.paper_facts("zebra")


def test_listing_loads_no_torch():
    code = (
        "from inscape.lab import catalogue; catalogue.experiments(); import sys; "
        "print(' '.join({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"torch", "numpy", "matplotlib", "joblib"}


def test_the_lab_offers_what_it_lists():
    import inscape.lab

    for name in inscape.lab.__all__:
        assert getattr(inscape.lab, name) is not None
    assert dir(inscape.lab) == sorted(inscape.lab.__all__)
    with pytest.raises(AttributeError, match=r"'inscape.lab' has no attribute 'nothing'"):
        inscape.lab.nothing  # noqa: B018


def test_a_file_of_ones_own_is_an_experiment(toy):
    assert catalogue.experiment(toy.table).shows == "Table 1"
    assert catalogue.experiment(toy.table) is catalogue.experiment(toy.table)
    assert catalogue.name_of(toy.table) == "own-toys/table-1"
    assert catalogue.name_of(toy.together) == "own-toys/table-2.1"
    assert catalogue.source(toy.table) == toy.table


def test_a_relative_path_is_the_same_experiment(toy, monkeypatch):
    monkeypatch.chdir(toy.folder)
    assert catalogue.name_of("table_1.py") == "own-toys/table-1"
    assert catalogue.source("figure_1.py") == toy.table


def test_what_shows_the_same_records_lends_its_claims(toy):
    assert catalogue.source(toy.figure) == toy.table
    claims = catalogue.claims(toy.table)
    assert list(claims) == ["one", "up", "figure-1/down"]
    hashes = catalogue.claim_hashes(toy.table)
    assert hashes["up"] == claim_hash(claims["up"])
    assert hashes["figure-1/down"] == claim_hash(catalogue.experiment(toy.figure).claims[0])


def test_a_circle_is_refused(toy):
    text = Path(toy.figure).read_text()
    for stem, other in (("circle_a", "circle-b"), ("circle_b", "circle-a")):
        (toy.folder / f"{stem}.py").write_text(text.replace("table-1", other))
    with pytest.raises(
        ValueError, match=r"found the circle own-toys/circle-a -> .*-b -> .*-a: give"
    ):
        catalogue.source(str(toy.folder / "circle_a.py"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a Python file, found none at .*nowhere\.py"):
        catalogue.experiment(str(tmp_path / "nowhere.py"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", r"own\.py must define EXPERIMENT, .*, found NoneType: write EXPERIMENT = "),
        ("1 / 0", r"own\.py must be importable, but it raised ZeroDivisionError: .*; fix it"),
        ("raise SystemExit(3)", r"own\.py must be importable, but it raised SystemExit: 3; fix"),
    ],
)
def test_a_file_without_an_experiment_is_refused(tmp_path, text, said):
    path = tmp_path / "own.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        catalogue.experiment(str(path))
