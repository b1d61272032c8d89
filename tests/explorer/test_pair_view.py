"""The view of two networks, beside ``slice_difference``, ``disagreement`` and a fine raster."""

import numpy as np
import pytest
import torch

from cases import dense
from explorer.conftest import explored_case
from inscape._core.anytime import finished
from inscape.explorer import requests as asks
from inscape.explorer.jobs import Job
from inscape.explorer.pair import pair_cells, pair_examples
from inscape.explorer.session import Session
from inscape.explorer.subject import explored_subject
from inscape.loaders import open_data
from inscape.report import prepare
from inscape.similarity import disagreement, slice_difference


@pytest.fixture(scope="module")
def window(ask):
    facts, _ = ask("plane")
    return {"centre": facts["centre"], "half": facts["half"]}


def test_the_refinement_is_that_of_slice_difference(ask, session, window):
    facts, arrays = ask("pair/cells", **window)
    plane = session.plane_of(asks.PlaneRequest())
    (u, v), (a, b) = window["centre"], window["half"]
    corners = [[u - a, v - b], [u + a, v - b], [u + a, v + b], [u - a, v + b]]
    domain = torch.tensor(corners, dtype=torch.float64)
    own = session.subject
    expected = slice_difference(
        own.subject.model, own.x, other=own.other, plane=plane.frame, domain=domain
    )
    assert facts["cells"] == expected.cells == len(arrays["counts"])
    assert facts["area"] == pytest.approx(expected.area, rel=1e-9)
    assert facts["largest"] == pytest.approx(expected.largest, rel=1e-9)
    assert facts["exact"]
    at = torch.tensor([facts["farthest"]], dtype=torch.float64)
    x = plane.frame.at(at)
    with torch.no_grad():
        distance = (own.subject.model(x) - own.other(x)).norm()
    assert float(distance) == pytest.approx(facts["largest"], rel=1e-9)


def test_the_area_is_that_of_a_fine_raster(ask, session, window):
    facts, _ = ask("pair/cells", **window)
    asked = {**window, "width": 200, "height": 200, "seconds": 10}
    first = ask("raster", **asked)[1]["classes"]
    other = ask("raster", **asked, network="other")[1]["classes"]
    assert facts["fraction"] == pytest.approx((first != other).mean(), abs=0.02)
    assert 0 < facts["fraction"] < 1


def test_boundaries_separate_classes_of_one_network(ask, window):
    """Every edge of a boundary has cells of two classes of that network on its sides."""
    _, arrays = ask("pair/cells", **window)
    cells_of = {}
    at = 0
    for cell, count in enumerate(arrays["counts"]):
        corners = arrays["corners"][at : at + count]
        at += count
        for a, b in zip(corners, np.roll(corners, -1), strict=True):
            cells_of.setdefault(frozenset((int(a), int(b))), []).append(cell)
    for name, classes in (("firstBoundary", "classes"), ("otherBoundary", "otherClasses")):
        edges = {frozenset(map(int, ends)) for ends in arrays[name].reshape(-1, 2)}
        assert edges
        differing = {
            edge for edge, sides in cells_of.items()
            if len(sides) == 2 and len({int(arrays[classes][k]) for k in sides}) == 2
        }  # fmt: skip
        assert edges == differing


def test_examples_are_those_of_disagreement(session):
    own = session.subject
    facts, _ = finished(pair_examples(own))
    expected = disagreement(own.subject.model, own.x, other=own.other)
    differ = expected.per_sample().nonzero().flatten().tolist()
    assert sorted(each["row"] for each in facts["named"]) == differ
    assert facts["differ"] == len(differ) > 0
    distances = [each["distance"] for each in facts["named"]]
    assert distances == sorted(distances, reverse=True)
    with torch.no_grad():
        for model, accuracy in zip((own.subject.model, own.other), facts["right"], strict=True):
            assert accuracy == float((model(own.x).argmax(1) == own.y).double().mean())


def test_the_same_network_twice_agrees():
    subject = explored_case(3, 6, 3)
    subject.other = subject.subject.model
    session = Session(subject)
    assert finished(pair_examples(subject))[0]["differ"] == 0
    network = subject.network("both")
    assert network.windows is not None
    x = session.subject.x
    both = network.outputs(x, double=True)
    assert torch.equal(both[:, :3], both[:, 3:6])


def prepared_case():
    x = torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    data = open_data((x, torch.arange(12) % 2), labels="classes", dtype="float64")
    return prepare(dense(3, 4, 2), data, only="plane_regions", explain=(), page=False)


def test_networks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"as many outputs, found 2 and 3: pass one with the same"):
        explored_subject(prepared_case(), code="", other=(dense(3, 4, 3), "third", ""))
    with pytest.raises(ValueError, match=r"same inputs, found that it fails on those of shape 3"):
        explored_subject(prepared_case(), code="", other=(dense(5, 4, 2), "fifth", ""))


def test_without_another_network_the_error_says_how_to_give_one():
    session = Session(explored_case(3, 5, 2))
    asked = asks.CellsRequest(centre=(0, 0), half=(1, 1))
    with pytest.raises(ValueError, match="found none: run inscape explore --with OTHER"):
        finished(pair_cells(session, asked, Job(9.0)))


def test_a_second_network_in_another_precision_is_compared():
    subject = explored_case(3, 5, 2)
    subject.other = dense(3, 5, 2, seed=9).float()
    facts, _ = finished(pair_examples(subject))
    assert 0 <= facts["differ"] <= facts["rows"]
    session = Session(subject)
    plane = session.plane_of(asks.PlaneRequest())
    asked = asks.CellsRequest(centre=plane.centre, half=plane.half)
    answer, _ = finished(pair_cells(session, asked, Job(30.0)))
    assert answer["exact"]


def test_the_raster_of_both_is_that_of_each(ask, session, window):
    asked = {**window, "width": 60, "height": 40, "seconds": 10}
    facts, both = ask("pair/raster", **asked)
    assert (facts["width"], facts["height"]) == (60, 40)
    for name, network in (("classes", "first"), ("otherClasses", "other")):
        assert both[name].tolist() == ask("raster", **asked, network=network)[1]["classes"].tolist()
    assert (both["classes"] != both["otherClasses"]).any()
    cells, _ = ask("pair/cells", **window)
    assert 0.5 * cells["largest"] < both["differences"].max() <= cells["largest"] * (1 + 1e-6)


def test_the_figure_is_of_both_networks_alone(ask, client, window):
    both, _ = ask("pair/cells", **window)
    assert ask("pair/figure", view=both["view"])[1]["file"].tobytes().startswith(b"%PDF")
    one, _ = ask("cells", **window)
    answer = client.post("/api/pair/figure", json={"view": one["view"]})
    assert answer.status_code == 400
    assert "of a single network" in answer.json()["error"]
