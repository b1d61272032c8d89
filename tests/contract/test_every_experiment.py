"""Every experiment runs at smoke scale, and keeps the promises that all experiments make."""

import json

import pytest

from inscape.figures.style import styled
from inscape.lab import Record, Store, catalogue, claim_hash, plan, run
from inscape.lab.experiment import SCALES, Experiment, Value
from inscape.lab.verdict import judge

IDS = [listing.id for listing in catalogue.experiments()]
FACTS = {paper: catalogue.paper_facts(paper) for paper in catalogue.papers()}


def found(identifier: str) -> Experiment:
    return catalogue.experiment(identifier)


SOURCES = {identifier: catalogue.source(identifier) for identifier in IDS}
#: Experiments that share their cells are tried together, so that these run once.
SHARING = {
    source: [identifier for identifier in IDS if SOURCES[identifier] == source]
    for source in dict.fromkeys(SOURCES.values())
}


@pytest.mark.parametrize("source", SHARING)
def test_smoke(source: str, tmp_path, monkeypatch):
    store = Store(tmp_path)
    todo = plan(source, scale="smoke", store=store)
    report = run(todo, store=store, quiet=True)
    assert (report.computed, report.failures) == (len(todo.cells), ())
    monkeypatch.setattr("inscape.data.load", None)  # from here on no data are opened
    for identifier in SHARING[source]:
        again = plan(identifier, scale="smoke", store=store)
        assert again.missing == ()
        look_at(found(identifier), again.records(store))


def look_at(experiment: Experiment, records: list[Record]) -> None:
    """See that the records of a run can be analysed, judged and drawn."""
    quantities = experiment.analyse(records) if experiment.analyse else {}
    judged = judge(experiment, quantities, "smoke")
    assert {one.verdict for one in judged} <= {"not run"}
    if experiment.conclude:
        assert all(line.endswith(".") for line in experiment.conclude(records))
    if experiment.draw:
        with styled():
            figure = experiment.draw(records)
            figure.canvas.draw()
            assert figure.axes


@pytest.mark.parametrize("identifier", IDS)
def test_larger_scales_have_cells_and_say_how_they_depart(identifier: str):
    experiment = found(identifier)
    if experiment.same_as:
        return
    laptop, paper = experiment.axes("laptop"), experiment.axes("paper")
    assert experiment.cells(laptop)
    assert experiment.cells(paper)
    if {k: list(v) for k, v in laptop.items()} != {k: list(v) for k, v in paper.items()}:
        assert experiment.departures.get("laptop"), f"{identifier} departs without a word"


@pytest.mark.parametrize("identifier", IDS)
def test_claims_are_whole(identifier: str):
    for claim in found(identifier).claims:
        assert claim.says.endswith(".")
        assert claim.source
        assert set(claim.scales) <= set(SCALES) - {"smoke"}
        assert claim_hash(claim) == claim_hash(claim)
        if isinstance(claim, Value):
            assert claim.at != ("", "")


#: Entries of a paper that are still to come; a new experiment takes its line out.
LATER: dict[str, set[str]] = {}


@pytest.mark.parametrize("paper", FACTS)
def test_every_entry_of_a_paper_has_its_experiment(paper: str):
    have = {listing.item for listing in catalogue.experiments(paper)}
    entries = {entry["id"] for entry in FACTS[paper]["entries"]}
    assert entries - have == LATER.get(paper, set())


@pytest.mark.parametrize("paper", FACTS)
def test_errata_are_known(paper: str):
    known = {erratum["id"] for erratum in FACTS[paper]["errata"]}
    for listing in catalogue.experiments(paper):
        assert set(found(listing.id).errata) <= known
    json.dumps(FACTS[paper])
