"""What moves on the screen is what moved in training."""

import itertools

import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection
from PIL import Image
from torch.testing import assert_close

from cases import dense, points
from inscape.figures import caption, draw
from inscape.figures.animation import animate
from inscape.figures.evolution import stills
from inscape.figures.hues import by_map, by_pattern, scale
from inscape.regions.region_evolution import region_evolution
from inscape.training import fit

X = points(20, 2)
Y = (X[:, :1] * X[:, 1:]).sign()


@pytest.fixture(scope="module")
def evolution():
    run = fit(dense(2, 6, 5, 1), X, Y, optimizer="adam", lr=0.05, epochs=12, record=3)
    return region_evolution(run.model, X, trajectory=run.trajectory)


def test_a_line_for_each_layer(evolution):
    ax = draw(evolution)
    for op in range(2):
        drawn = torch.from_numpy(np.asarray(ax.lines[op].get_ydata()))
        assert_close(drawn, 100 * evolution.differs[:, op])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    expected = [
        f"nonlinear layer {k + 1}: settled at step {int(evolution.settled[k])}" for k in range(2)
    ]
    assert labels == expected
    assert caption(evolution).startswith("How much of each layer")


def test_stills_are_some_of_the_steps_the_first_and_the_last_among_them(evolution):
    figure = stills(evolution, 3)
    titles = [ax.get_title() for ax in figure.axes]
    cells = evolution.cells.tolist()
    assert titles == [f"step {6 * k}: {cells[2 * k]} cells" for k in range(3)]
    for place, ax in zip((0, 2, 4), figure.axes, strict=True):
        (mosaic,) = [
            collection for collection in ax.collections if isinstance(collection, PolyCollection)
        ]
        assert len(mosaic.get_paths()) == cells[place]
    assert len(stills(evolution, 99).axes) == 5


def test_colours_are_those_of_the_last_step_where_the_pattern_is(evolution):
    first, last = evolution.regions_at(0), evolution.regions_at(-1)
    for colors in (by_pattern(last, last), by_pattern(last)):
        assert np.array_equal(colors, by_pattern(last))
    old = {
        bytes(p): t for p, t in zip(first.patterns.numpy(), by_pattern(first, last), strict=True)
    }
    new = {bytes(p): t for p, t in zip(last.patterns.numpy(), by_pattern(last), strict=True)}
    shared = old.keys() & new.keys()
    assert shared
    assert all(np.array_equal(old[key], new[key]) for key in shared)
    assert by_map(first, None, last).shape == (first.cells, 3)
    assert scale(last, "value", 0)[1].vmax > 0


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_moving_picture_has_a_frame_for_each_step(evolution, tmp_path, suffix):
    path = animate(evolution, tmp_path / f"moving{suffix}", seconds=2.0, pixels=120)
    with Image.open(path) as moving:
        assert moving.n_frames == 5
        assert moving.size == (120, 129)
        frames = []
        for k in range(5):
            moving.seek(k)
            frames.append(np.asarray(moving.convert("RGB")).astype(int))
    assert all(np.abs(first - second).max() > 50 for first, second in itertools.pairwise(frames))


def test_times_add_up_and_the_last_stays_longest(evolution, tmp_path):
    path = animate(evolution, tmp_path / "moving.gif", seconds=1.8, pixels=80)
    times = []
    with Image.open(path) as moving:
        for k in range(5):
            moving.seek(k)
            times.append(moving.info["duration"])
    assert sum(times) == pytest.approx(1800, abs=50)
    assert times[-1] == pytest.approx(5 * times[0], abs=10)


def test_one_step_is_a_picture(tmp_path):
    run = fit(dense(2, 4, 1), X, Y, epochs=1, record=1)
    single = region_evolution(run.model, X, trajectory=run.trajectory, steps=[1])
    with Image.open(animate(single, tmp_path / "still.GIF", pixels=80)) as picture:
        assert getattr(picture, "n_frames", 1) == 1


def test_bad_arguments_are_named(evolution, tmp_path):
    with pytest.raises(ValueError, match=r"one of .gif, .webp, .png, .mp4, found '.avi'"):
        animate(evolution, tmp_path / "moving.avi")
    with pytest.raises(ValueError, match=r"seconds must be above 0, found 0"):
        animate(evolution, tmp_path / "moving.gif", seconds=0)
