"""The completion of shapes: shapes, boundaries, filters, flips, and how networks are judged."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import nn

from inscape.lab.records import Records
from inscape.lab.store import Record
from inscape.models import unet
from inscape.papers.courtois import shape_completion as _unet
from inscape.papers.courtois import shape_completion as figure_9
from inscape.papers.courtois._flips import Flipped, flipped
from inscape.papers.courtois._shapes import (
    KINDS,
    boundary,
    filled,
    halved,
    overlap,
    parity,
    raw_shapes,
    shapes,
)

SIDE = 96


@pytest.fixture(scope="module")
def raw():
    return {kind: raw_shapes(12, SIDE, kind, seed=3) for kind in KINDS}


@pytest.mark.parametrize("kind", list(KINDS))
def test_shapes_are_connected_and_keep_off_the_border(raw, kind):
    for shape in raw[kind]:
        assert ndimage.label(shape)[1] == 1
        assert not shape[[0, -1]].any()
        assert not shape[:, [0, -1]].any()
        assert ndimage.label(~shape, np.ones((3, 3)))[1] == 1  # no holes


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_flood_fills_every_boundary(raw, kind):
    for shape in raw[kind]:
        edge = boundary(shape)
        assert (edge == (shape & ~ndimage.binary_erosion(shape, np.ones((3, 3))))).all()
        assert (filled(edge) == shape).all()
        assert (ring_by_ring(edge) == shape).all()


def ring_by_ring(edge):
    """Fill by a second method: let the outside grow by one pixel until the boundary stops it."""
    outside = np.zeros_like(edge)
    outside[0] = outside[-1] = outside[:, 0] = outside[:, -1] = True
    while True:
        grown = ndimage.binary_dilation(outside, np.ones((3, 3))) & ~edge
        if (grown == outside).all():
            return ~outside
        outside = grown


def test_parity_fills_only_what_is_crossed_a_pixel_at_a_time():
    edge = np.array([[0, 1, 0, 0, 1, 0], [0, 1, 1, 0, 1, 0]], dtype=bool)
    assert parity(edge).astype(int).tolist() == [[0, 1, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1]]


def test_grades_are_harder_one_by_one(raw):
    edges = {kind: boundary(shape).sum((1, 2)).mean() for kind, shape in raw.items()}
    assert edges["training"] < edges["harder"] < edges["much harder"]


def test_halving_is_pillows_lanczos():
    picture = torch.rand(24, 32, generator=torch.Generator().manual_seed(1))
    theirs = Image.fromarray(picture.numpy()).resize((16, 12), Image.Resampling.LANCZOS)
    torch.testing.assert_close(
        halved(picture[None])[0], torch.from_numpy(np.array(theirs)).clamp(0, 1), rtol=0, atol=1e-5
    )  # pillow's own weights are of single precision
    torch.testing.assert_close(halved(torch.ones(1, 8, 8)), torch.ones(1, 4, 4))
    with pytest.raises(ValueError, match=r"halved from an even size, found 5: pad it"):
        halved(torch.ones(1, 4, 5))


def test_pictures_do_not_depend_on_their_number():
    (x, y), (more, _) = shapes(2, 16, seed=5), shapes(66, 16, seed=5)
    assert x.shape == y.shape == (2, 1, 16, 16)
    assert torch.equal(x, more[:2])
    assert not torch.equal(more[64:], more[:2])
    assert 0 <= x.min() < x.max() <= 1
    assert (y > 0.5).sum() > (x > 0.5).sum()
    with pytest.raises(
        ValueError, match=r"kind must be one of 'training', 'harder', 'much harder'"
    ):
        shapes(1, 16, "easy")
    with pytest.raises(ValueError, match=r"side must be at least 16, found 8"):
        shapes(1, 8)


def test_overlap_is_counted():
    one, other = torch.zeros(2, 2, 1, 4, 4)
    one[0, :, :2], other[0, :, 1:3] = 1.0, 0.9
    assert overlap(one, other).tolist() == pytest.approx([1 / 3, 0.0])


def test_flips_inside_are_flips_of_both_sides():
    x, y = torch.rand(2, 9, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    body = nn.Conv2d(1, 1, 3, padding=1).double()
    nn.init.normal_(body.weight, generator=torch.Generator().manual_seed(1))
    model = Flipped(body)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        ours = (model.train()(x) - y).square().mean()
        torch.manual_seed(3)
        upside, mirrored = torch.rand(2, 9, 1, 1, 1) < 0.5
    theirs = (body(flipped(x, upside, mirrored)) - flipped(y, upside, mirrored)).square().mean()
    torch.testing.assert_close(ours, theirs)
    assert 0 < upside.sum() < 9
    assert 0 < mirrored.sum() < 9
    assert torch.equal(model.eval()(x), body(x))
    both = flipped(x, upside, mirrored)
    for k, (up, left) in enumerate(zip(upside.flatten(), mirrored.flatten(), strict=True)):
        axes = [axis for axis, flip in ((-2, up), (-1, left)) if flip]
        assert torch.equal(both[k], x[k].flip(axes))


def test_the_diagram_reads_the_network():
    blocks = figure_9.net_cell(32, [2, 3, 4])["blocks"]
    assert [(b["part"], b["channels"], b["side"]) for b in blocks] == [
        ("down", 2, 32),
        ("down", 3, 16),
        ("down", 4, 8),
        ("up", 3, 16),
        ("up", 2, 32),
        ("last", 1, 32),
    ]
    model = unet(channels=[2, 3, 4])
    assert blocks[1]["weights"] == sum(p.numel() for p in model.down[1].parameters())


def record(training, harder, much, seed=0):
    values = {
        "overlap/training": np.array(training),
        "overlap/harder": np.array(harder),
        "overlap/much harder": np.array(much),
    }
    return Record(
        schema=1, experiment="courtois/section-6.2.3", scale="smoke", key=str(seed),
        settings={"seed": seed}, data="none", values=values, claims={}, provenance={},
    )  # fmt: skip


def test_analysis_takes_means_and_worsts():
    first, second = (
        record([1.0, 0.98], [0.9, 0.8], [0.6, 0.4]),
        record([0.99], [0.95], [0.7], seed=1),
    )
    records = Records([first, second])
    found = _unet.QUANTITIES(records)
    assert found["overlap/training"].value == pytest.approx(0.99)
    assert found["worst/much harder"].value == pytest.approx(0.55)
    assert found["fall/much harder"].value == pytest.approx(0.99 - 0.6)
    assert found["fall/between"].value == pytest.approx(0.9 - 0.6)
    assert "worst 40.0%" in _unet.conclude(records)[2]
