"""The view of a training: curves beside the instruments, films and figures by their pixels."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional
from torch.testing import assert_close

from inscape._core.anytime import finished
from inscape.explorer import requests as asks
from inscape.explorer.attribution import made_by
from inscape.explorer.cells import at_centroids, cut
from inscape.explorer.class_pieces import crossed_cells
from inscape.explorer.colours import class_colour, on_paper
from inscape.explorer.film import film
from inscape.explorer.jobs import Job
from inscape.explorer.training import about_training, training_curves
from inscape.explorer.window_figure import window_figure
from inscape.functional.substitution import checked_copy
from inscape.kernels import kernel_drift
from inscape.smoothness import gradient_norm
from inscape.training.trajectory import stand_at


def window(session):
    plane = session.plane_of(asks.PlaneRequest())
    return plane, {"centre": plane.centre, "half": plane.half}


def test_curves_are_those_of_the_instruments(trained):
    subject = trained.subject
    steps = subject.steps
    assert steps == list(range(7))
    facts, curves = finished(training_curves(subject, [1, 4]))
    assert facts["steps"] == [1, 4]
    few = subject.x[: about_training(subject)["points"]]
    drift = kernel_drift(subject.subject.model, few, trajectory=subject.trajectory, steps=steps)
    for place, step in enumerate([1, 4]):
        body = checked_copy(subject.subject.model, subject.x)
        stand_at(body, subject.trajectory, step)
        with torch.no_grad():
            y = body(subject.x)
        assert curves["loss"][place] == float(functional.cross_entropy(y, subject.y))
        right = (y.argmax(1) == subject.y).double().mean()
        assert curves["accuracy"][place] == float(right)
        steep = gradient_norm(body, few).norms.mean()
        assert curves["gradientNorm"][place] == pytest.approx(float(steep), rel=1e-12)
        both = torch.tensor([curves["fromStart"][place], curves["fromEnd"][place]])
        assert_close(both, drift.cosine[step])


def test_curves_of_both_ends_are_one(trained):
    steps = trained.subject.steps
    _, curves = finished(training_curves(trained.subject, [steps[0], steps[-1]]))
    assert curves["fromStart"][0] == pytest.approx(1.0, abs=1e-12)
    assert curves["fromEnd"][1] == pytest.approx(1.0, abs=1e-12)
    assert curves["loss"][1] < curves["loss"][0]


def test_without_a_training_there_are_no_steps(session):
    assert about_training(session.subject) == {"steps": []}
    with pytest.raises(ValueError, match="must be recorded, found none: run inscape explore"):
        finished(training_curves(session.subject, [0]))


def test_unknown_steps_are_named(trained):
    with pytest.raises(ValueError, match="one of the 7 recorded steps, found 9"):
        finished(training_curves(trained.subject, [0, 9]))


@pytest.mark.parametrize("suffix", ["gif", "webp"])
def test_a_film_has_a_frame_for_each_step(trained, suffix):
    plane, seen = window(trained)
    asked = asks.FilmRequest(**seen, format=suffix, steps=3, pixels=80)
    facts, arrays = finished(film(trained.subject, plane, asked, Job(60.0)))
    with Image.open(io.BytesIO(arrays["file"].tobytes())) as moving:
        assert moving.n_frames == facts["frames"] == 3
        moving.seek(0)
        first = np.array(moving.convert("RGB"), int)
        moving.seek(2)
        assert np.abs(np.array(moving.convert("RGB"), int) - first).max() > 50
    assert facts["name"] == f"training.{suffix}"


def test_a_film_without_its_extra_says_which(trained, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    plane, seen = window(trained)
    asked = asks.FilmRequest(**seen, format="mp4")
    with pytest.raises(ValueError, match=r"pip install 'inscape\[video\]'"):
        finished(film(trained.subject, plane, asked, Job(60.0)))


def test_a_film_with_its_extra_is_a_video(trained):
    pytest.importorskip("imageio_ffmpeg")
    plane, seen = window(trained)
    asked = asks.FilmRequest(**seen, format="mp4", steps=2, pixels=90)
    _, arrays = finished(film(trained.subject, plane, asked, Job(60.0)))
    assert arrays["file"].tobytes()[4:8] == b"ftyp"


def test_a_figure_has_the_colours_of_the_page(trained):
    """The pixel in the middle of a large cell of one class has the colour of that class."""
    subject, (plane, seen) = trained.subject, window(trained)
    steps = cut(subject.network(), plane, **seen, regions=1000, on_layer=lambda *_: None)
    regions = finished(steps)
    data = window_figure(subject, regions, colour="class", edges="none", format="png")
    image = np.array(Image.open(io.BytesIO(data)).convert("RGB"), int)
    crossed = set(crossed_cells(subject, regions))
    cell = max(set(range(regions.cells)) - crossed, key=lambda i: float(regions.areas[i]))
    number = int(at_centroids(regions).argmax(1)[cell])
    expected = 255 * np.array(on_paper(class_colour(number)))
    near = np.abs(image - expected).max(2) <= 1
    fraction = near.sum() / image[:, :, 0].size
    box = np.prod(np.array(seen["half"]) * 2)
    assert fraction > 0.3 * float(regions.areas[cell]) / box


@pytest.mark.parametrize(("format", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_figure_of_the_same_window_is_the_same_file(ask, format, magic):
    facts, _ = ask("cells", centre=[0, 0], half=[1, 1])
    first, second = (
        ask("figure", view=facts["view"], format=format)[1]["file"].tobytes() for _ in range(2)
    )
    assert first.startswith(magic)
    assert first == second


def test_the_answer_at_a_point_is_the_sum_of_what_training_added(trained):
    plane, _ = window(trained)
    u, v = plane.centre
    facts = finished(made_by(trained.subject, plane, u, v))
    x = plane.frame.at(torch.tensor([[u, v]], dtype=torch.float64))
    with torch.no_grad():
        outputs = trained.subject.subject.model(x)[0]
        first = checked_copy(trained.subject.subject.model, trained.subject.x)
        stand_at(first, trained.subject.trajectory, 0)
        initial = first(x)[0]
    best = int(outputs.argmax())
    assert facts["output"] == str(best)
    assert facts["exact"]
    assert facts["final"] == pytest.approx(float(outputs[best]), rel=1e-12)
    assert facts["initial"] == pytest.approx(float(initial[best]), rel=1e-12)
    assert facts["total"] == pytest.approx(facts["final"], rel=1e-9)
    assert abs(facts["rest"]["residual"]) < 1e-12
    by_class = sum(each["amount"] for each in facts["byClass"])
    rest = sum(facts["rest"].values())
    assert facts["initial"] + by_class + rest == pytest.approx(facts["final"], rel=1e-9)


def test_what_made_an_answer_needs_a_training(session):
    plane, _ = window(session)
    with pytest.raises(ValueError, match="needs a recorded training, found none: run inscape"):
        finished(made_by(session.subject, plane, 0.0, 0.0))


def test_a_training_that_takes_long_is_refused_with_advice(trained, monkeypatch):
    from inscape.explorer import attribution

    monkeypatch.setattr(attribution, "LONGEST", -1.0)
    plane, _ = window(trained)
    with pytest.raises(ValueError, match="run inscape look --trajectory with a larger --budget"):
        finished(made_by(trained.subject, plane, 0.0, 0.0))
