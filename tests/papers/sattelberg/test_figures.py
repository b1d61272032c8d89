"""Claims name quantities that the analysis gives; of written networks they hold."""

from typing import Any

import numpy as np
import pytest

from inscape.lab import catalogue
from inscape.lab.planning import plan
from inscape.lab.runner import run
from inscape.lab.store import Record, Store
from inscape.lab.verdict import judge

#: Networks that are written down, not trained: their claims hold at every scale.
BUILT = [f"figure-{number}" for number in ("3.3", "5.1", "5.2", "5.3", "5.4", "A.1", "A.2")]


@pytest.mark.parametrize("item", BUILT)
def test_claims_about_written_networks_hold_at_every_scale(item: str, tmp_path):
    """The contract runs, analyses and draws all experiments; of these it knows the verdicts."""
    store = Store(tmp_path)
    made = plan(f"sattelberg/{item}", scale="smoke", store=store)
    run(made, store=store, quiet=True)
    experiment = catalogue.experiment(f"sattelberg/{item}")
    assert experiment.analyse is not None
    found = experiment.analyse(made.records(store))
    assert {claim.of for claim in experiment.claims} <= set(found)
    assert {one.verdict for one in judge(experiment, found, "laptop")} <= {"reproduced"}


def made_up(settings: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    values: dict[str, Any] = {"accuracy": 90 * rng.random(), "tested": 100}
    if settings["data"].startswith("mnist"):
        values["coefficients"] = rng.normal(size=(10, 8, 8))
        values["image"] = rng.random((8, 8))
    return values


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("item", ["table-6.1", "figure-6.3"])
def test_larger_scales_give_what_the_claims_are_about(item: str, scale: Any):
    table = catalogue.experiment("sattelberg/table-6.1")
    rng = np.random.default_rng(0)
    some = [
        Record(
            experiment="sattelberg/table-6.1",
            scale=scale,
            key="",
            settings=settings,
            data="",
            values=made_up(settings, rng),
            claims={},
            provenance={},
        )
        for settings in table.cells(table.axes(scale))
    ]
    assert len(some) == 28
    experiment = catalogue.experiment(f"sattelberg/{item}")
    assert experiment.analyse is not None
    assert {claim.of for claim in experiment.claims} <= set(experiment.analyse(some))
