"""Every claim names a quantity that the analysis gives, and figures come from records alone."""

from typing import Any

import numpy as np
import pytest

from inscape.figures.style import styled
from inscape.lab import catalogue
from inscape.lab.planning import plan
from inscape.lab.runner import run
from inscape.lab.store import Record, Store
from inscape.lab.verdict import judge

IDS = [listing.id for listing in catalogue.experiments("sattelberg")]
#: Their claims are about real images, or about sizes that smoke leaves out.
LARGE = {"sattelberg/table-5.1", "sattelberg/table-6.1"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("results"))


def records(id: str, store: Store) -> list[Record]:
    made = plan(id, scale="smoke", store=store)
    run(made, store=store, quiet=True)
    return made.records(store)


#: Networks that are written down, not trained: their claims hold at every scale.
BUILT = {f"figure-{number}" for number in ("3.3", "5.1", "5.2", "5.3", "5.4", "A.1", "A.2")}


@pytest.mark.parametrize("id", [id for id in IDS if catalogue.source(id) not in LARGE])
def test_smoke_gives_what_the_claims_are_about(id: str, store: Store):
    experiment = catalogue.experiment(id)
    some = records(id, store)
    found = experiment.analyse(some) if experiment.analyse else {}
    same = judge(experiment, found, "laptop")
    if id.partition("/")[2] in BUILT:
        assert {claim.of for claim in experiment.claims} <= set(found)
        assert {one.verdict for one in same} <= {"reproduced"}
    else:  # networks that smoke hardly trains may learn nothing; what is said is a number
        assert all(np.isfinite(estimate.value) for estimate in found.values())


@pytest.mark.parametrize("id", IDS)
def test_figures_are_drawn_from_records_alone(id: str, store: Store, monkeypatch):
    some = records(id, store)
    monkeypatch.setattr("inscape.data.load", None)  # drawing opens no data
    draw = catalogue.experiment(id).draw
    assert draw is not None
    with styled():
        figure = draw(some)
        figure.canvas.draw()
        assert figure.axes


def made_up(settings: dict[str, Any], dice: np.random.Generator) -> dict[str, Any]:
    values: dict[str, Any] = {"accuracy": 90 * dice.random(), "tested": 100}
    if settings["data"].startswith("mnist"):
        values["coefficients"] = dice.normal(size=(10, 8, 8))
        values["image"] = dice.random((8, 8))
    return values


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("item", ["table-6.1", "figure-6.3"])
def test_larger_scales_give_what_the_claims_are_about(item: str, scale: Any):
    table = catalogue.experiment("sattelberg/table-6.1")
    dice = np.random.default_rng(0)
    some = [
        Record(
            experiment="sattelberg/table-6.1",
            scale=scale,
            key="",
            settings=settings,
            data="",
            values=made_up(settings, dice),
            claims={},
            provenance={},
        )
        for settings in table.cells(table.axes(scale))
    ]
    assert len(some) == 28
    experiment = catalogue.experiment(f"sattelberg/{item}")
    assert experiment.analyse is not None
    assert {claim.of for claim in experiment.claims} <= set(experiment.analyse(some))
