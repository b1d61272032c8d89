"""What the explorer answers, beside the instruments, brute force and closed forms."""

import numpy as np
import pytest
import torch
from shapely import Polygon
from torch.testing import assert_close

from explorer.conftest import explored_case
from inscape._core.anytime import finished
from inscape.explorer import requests as asks
from inscape.explorer.cells import at_centroids
from inscape.explorer.class_pieces import class_pieces, crossed_cells
from inscape.explorer.jobs import Job
from inscape.explorer.raster import LONGEST, pixels_of
from inscape.explorer.session import Session
from inscape.regions import plane_regions
from inscape.sensitivity import active_subspace


def window_of(ask):
    facts, _ = ask("plane")
    return {"centre": facts["centre"], "half": facts["half"]}


def polygons(arrays, prefix=""):
    vertices, at = arrays["vertices"].reshape(-1, 2).astype(float), 0
    for count in arrays["counts"]:
        yield vertices[arrays["corners"][at : at + count]]
        at += count


def test_cells_are_those_of_plane_regions_and_cover_the_window(ask, session):
    window = window_of(ask)
    facts, arrays = ask("cells", **window)
    plane = session.plane_of(asks.PlaneRequest())
    (u, v), (a, b) = window["centre"], window["half"]
    domain = torch.tensor([[u - a, v - b], [u + a, v - b], [u + a, v + b], [u - a, v + b]])
    model, x = session.subject.subject.model, session.subject.x
    expected = plane_regions(model, x, plane=plane.frame, domain=domain)
    assert facts["cells"] == expected.cells
    assert facts["complete"]
    areas = [Polygon(places).area for places in polygons(arrays)]
    assert sum(areas) == pytest.approx(4.0, abs=1e-5)
    assert_close(
        torch.tensor(areas, dtype=torch.float64).sort().values * facts["unitArea"],
        expected.areas.sort().values,
        rtol=1e-3, atol=1e-5,  # vertices travel in float32
    )  # fmt: skip


def test_the_raster_shows_the_classes_of_the_network(ask, session):
    window = window_of(ask)
    facts, arrays = ask("raster", **window, width=9, height=7, seconds=5)
    assert (facts["width"], facts["height"]) == (9, 7)
    plane = session.plane_of(asks.PlaneRequest()).frame
    (u, v), (a, b) = window["centre"], window["half"]
    for row in range(7):
        for column in range(9):
            at = [u + a * ((2 * column + 1) / 9 - 1), v + b * ((2 * row + 1) / 7 - 1)]
            y = session.subject.subject.model(plane.at(torch.tensor([at], dtype=torch.float64)))
            assert arrays["classes"][9 * row + column] == int(y.argmax())
            assert arrays["confidence"][9 * row + column] == pytest.approx(
                255 * float(y.detach().softmax(1).max()), abs=0.51
            )


def test_a_zoom_of_ten_to_the_minus_nine_shows_the_same_corner(ask):
    """A vertex in the middle of ever smaller windows keeps its edges, at the same angles."""
    window = window_of(ask)
    facts, arrays = ask("cells", **window)
    places = arrays["vertices"].reshape(-1, 2)
    corners = np.bincount(arrays["corners"], minlength=len(places))
    inner = np.flatnonzero((np.abs(places).max(1) < 0.9) & (corners == 4))
    assert len(inner)
    centre = np.array(window["centre"])
    half = np.array(window["half"])
    at = centre + places[inner[0]] * half
    for size in (1e-3, 1e-6):  # find it again, ever more precisely
        small = {"centre": at.tolist(), "half": (half * size).tolist()}
        facts, arrays = ask("cells", **small)
        near = arrays["vertices"].reshape(-1, 2)
        near = near[np.abs(near).max(1).argmin()]
        at = at + near * half * size
    deep = {"centre": at.tolist(), "half": (half * 1e-9).tolist()}
    facts, arrays = ask("cells", **deep)
    assert facts["cells"] == 4
    assert sum(Polygon(p).area for p in polygons(arrays)) == pytest.approx(4.0, abs=1e-5)


def test_class_pieces_cover_the_crossed_cells_and_have_their_class(subject, session, ask):
    window = window_of(ask)
    request = asks.CellsRequest(**window)
    facts, _ = finished(session.cells(request, Job(60.0)))
    regions = session.views.get(facts["view"], "page").regions
    pieces, crossed = class_pieces(subject, regions), crossed_cells(subject, regions)
    assert crossed
    at = 0
    covered = dict.fromkeys(crossed, 0.0)
    for count, number, cell in zip(pieces.counts, pieces.classes, pieces.cells, strict=True):
        polygon = Polygon(pieces.vertices[at : at + count])
        at += count
        covered[int(cell)] += polygon.area
        middle = torch.tensor([list(polygon.centroid.coords[0])], dtype=torch.float64)
        y = subject.network().outputs(regions.frame.at(middle), double=True)
        if polygon.area > 1e-9:
            assert int(y.argmax()) == number
    for cell, area in covered.items():
        assert area == pytest.approx(Polygon(regions.polygon(cell).tolist()).area, rel=1e-9)


def test_cells_that_are_not_crossed_have_one_class_at_random_places(subject, session, ask):
    facts, _ = finished(session.cells(asks.CellsRequest(**window_of(ask)), Job(60.0)))
    regions = session.views.get(facts["view"], "page").regions
    crossed = set(crossed_cells(subject, regions))
    whole = at_centroids(regions).argmax(1)
    draw = torch.Generator().manual_seed(0)
    for cell in range(regions.cells):
        corners = regions.polygon(cell)
        weights = torch.rand(20, len(corners), generator=draw, dtype=torch.float64)
        at = (weights / weights.sum(1, keepdim=True)) @ corners
        classes = subject.network().outputs(regions.frame.at(at), double=True).argmax(1)
        assert cell in crossed or set(classes.tolist()) == {int(whole[cell])}


def test_details_of_a_cell(ask, session):
    facts, arrays = ask("cells", **window_of(ask))
    details, _ = ask("cell", view=facts["view"], cell=1)
    places = list(polygons(arrays))[1]
    assert details["area"] == pytest.approx(Polygon(places).area * facts["unitArea"], rel=1e-4)
    assert details["error"] < 1e-12
    assert details["units"] == 16
    regions = session.views.get(facts["view"], "page").regions
    assert [layer["on"] for layer in details["layers"]] == [
        int(regions.pattern(op)[1].sum()) for op in range(2)
    ]
    assert len(details["map"]) == 3


def test_a_clicked_point_has_its_gradient_and_the_distance_of_its_map(ask, session, subject):
    at = window_of(ask)["centre"]
    details, _ = ask("point", at=at)
    plane = session.plane_of(asks.PlaneRequest()).frame
    x = plane.at(torch.tensor([at], dtype=torch.float64)).requires_grad_()
    y = subject.subject.model(x)[0]
    (gradient,) = torch.autograd.grad(y.max(), x)
    assert_close(torch.tensor(details["saliency"], dtype=torch.float64), gradient.flatten())
    assert details["answer"]["class"] == int(y.argmax())
    far = (subject.x - x.detach()).norm(dim=1)
    assert details["nearest"][0]["row"] == int(far.argmin())
    jacobian = torch.autograd.functional.jacobian(lambda p: subject.subject.model(p)[0], x)
    top, *rest = y.argsort(descending=True).tolist()
    slopes = jacobian[:, 0]
    y = y.detach()
    expected = min(float((y[top] - y[k]) / (slopes[top] - slopes[k]).norm()) for k in rest)
    assert details["boundaryEstimate"] == pytest.approx(expected)


def test_similar_gradients_begin_with_the_example_itself(ask, session):
    (u, v), row = session.plane_of(asks.PlaneRequest()).frame.of(session.subject.x[:1])[0], 0
    similar, _ = ask("similar", at=[float(u), float(v)], client="similar")
    if similar["similar"] is not None:  # where there was time
        assert similar["similar"][0]["row"] == row
        assert similar["similar"][0]["cosine"] == pytest.approx(1.0)


def test_a_segment_is_linear_between_its_breakpoints(ask, session, subject):
    (u, v), (a, b) = window_of(ask).values()
    ends = [[u - a, v - b], [u + a, v + b]]
    facts, arrays = ask("segment", begin=ends[0], end=ends[1])
    t, values = arrays["t"], arrays["values"].reshape(3, -1)
    assert facts["breakpoints"] == len(t) - 2 > 3
    plane = session.plane_of(asks.PlaneRequest()).frame
    begin, end = torch.tensor(ends, dtype=torch.float64)
    middles = torch.from_numpy((t[1:] + t[:-1]) / 2)[:, None]
    y = subject.subject.model(plane.at(begin + middles * (end - begin)))
    assert_close(y.T.detach(), torch.from_numpy((values[:, 1:] + values[:, :-1]) / 2))


@pytest.mark.parametrize(
    "kind", ["examples", "components", "gradient", "adversarial", "active", "random"]
)
def test_planes_have_orthonormal_axes_and_hold_their_examples(ask, session, kind):
    facts, arrays = ask("plane", kind=kind, rows=[0, 1, 2], seed=5)
    frame = session.plane_of(asks.PlaneRequest(kind=kind, rows=(0, 1, 2), seed=5)).frame
    assert_close(frame.gram, torch.eye(2, dtype=torch.float64))
    for anchor in facts["anchors"]:
        place = frame.at(torch.tensor([[anchor["u"], anchor["v"]]], dtype=torch.float64))
        assert_close(place[0], session.subject.x[anchor["row"]])
    away = arrays["away"]
    assert (np.diff(away) >= 0).all()


def test_the_code_of_every_plane_makes_that_plane(session):
    for kind in ("examples", "components", "gradient", "adversarial", "active", "random"):
        plane = session.plane_of(asks.PlaneRequest(kind=kind, rows=(0, 1, 2), seed=5))
        import inscape

        names = {
            "inscape": inscape, "torch": torch, "x": session.subject.x,
            "model": session.subject.subject.model,
        }  # fmt: skip
        exec(plane.code, names)
        assert_close(names["plane"].origin, plane.frame.origin)
        assert_close(names["plane"].axes, plane.frame.axes)


def test_the_adversarial_plane_holds_a_near_input_of_another_class(ask, session, subject):
    facts, _ = ask("plane", kind="adversarial", rows=[2])
    frame = session.plane_of(asks.PlaneRequest(kind="adversarial", rows=(2,))).frame
    own, found = subject.x[2], frame.at(torch.tensor([facts["found"]], dtype=torch.float64))[0]
    model = subject.subject.model
    with torch.no_grad():
        classes = model(torch.stack([own, found])).argmax(1)
    assert classes[0] != classes[1]
    distance = float((found - own).norm())
    assert distance == pytest.approx(np.hypot(*facts["found"]), rel=1e-9)
    draw = torch.Generator().manual_seed(0)  # no random direction leads to another class sooner
    steps = torch.randn(2000, 4, generator=draw, dtype=torch.float64)
    near = own + 0.9 * distance * steps / steps.norm(dim=1, keepdim=True)
    with torch.no_grad():
        assert (model(near).argmax(1) == classes[0]).all()


def test_the_active_plane_is_that_of_the_gradients(session, subject):
    """Its directions are the leading eigenvectors of the mean outer product of gradients."""
    frame = session.plane_of(asks.PlaneRequest(kind="active", rows=(1,))).frame
    model = subject.subject.model
    output = int(model(subject.x[1:2]).argmax())
    result = active_subspace(model, subject.x, outputs=[output], count=2, points=500, resamples=0)
    assert_close(frame.axes, result.images[0])
    assert_close(frame.gram, torch.eye(2, dtype=torch.float64))


def test_two_inputs_are_their_own_plane():
    session = Session(explored_case(2, 6, 3))
    assert session.about()["planes"] == ["whole"]
    facts, arrays = finished(session.plane(asks.PlaneRequest(kind="whole")))
    assert facts["anchors"] == []
    assert (arrays["away"] < 1e-12).all()


def test_a_network_that_is_not_piecewise_linear_has_a_raster_and_a_reason():
    session = Session(explored_case(3, 5, 2, act=torch.nn.Tanh))
    about = session.about()
    assert not about["exact"]
    assert "tanh" in about["refusal"]
    plane = session.plane_of(asks.PlaneRequest())
    window = {"centre": plane.centre, "half": plane.half}
    facts, arrays = finished(session.raster(asks.RasterRequest(**window, width=8, height=8)))
    assert len(arrays["classes"]) == facts["width"] * facts["height"]
    with pytest.raises(ValueError, match="tanh"):
        finished(session.cells(asks.CellsRequest(**window), Job(60.0)))
    facts, arrays = finished(session.segment(asks.SegmentRequest(begin=(0, 0), end=(1, 1))))
    assert facts["breakpoints"] is None


def test_a_single_output_competes_with_its_negative():
    session = Session(explored_case(3, 6, 1))
    plane = session.plane_of(asks.PlaneRequest())
    window = {"centre": plane.centre, "half": plane.half}
    _facts, arrays = finished(session.cells(asks.CellsRequest(**window), Job(60.0)))
    assert set(arrays["classes"]) <= {0, 1}
    assert len(session.about()["classes"]) == 2


def test_no_more_pixels_than_there_is_time_for():
    assert pixels_of(100, 100, 1e-3, 1.0) == (31, 31)
    width, height = pixels_of(300, 150, 1e-3, 1.0)
    assert width * height <= 1000
    assert pixels_of(200, 200, 0.02, 0.3) == (12, 12)  # a slow network has a coarse raster
    width, height = pixels_of(200, 200, 1.5, 0.3)  # and a very slow one a coarser one, in time
    assert 1 <= width * height * 1.5 <= LONGEST
