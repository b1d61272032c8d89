"""What stands on the paper is what stands in the result."""

import math

import pytest
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.figures import caption, draw, has_figure, rendered
from inscape.figures.attribution import parts, pushers
from inscape.figures.kernels import attribution, cloud, matrix, nearest, posterior, waterfall
from inscape.kernels import (
    PathKernel,
    Rbf,
    gaussian_process,
    kernel_drift,
    neighbours,
    path_kernel,
    tangent_kernel,
)
from inscape.training import fit

X = points(12, 2)
LABELS = torch.arange(12) % 3


def split(samples=12, *, decay=0.0) -> PathKernel:
    draw_of = points(3, samples, 2, seed=6)
    initial, final = points(3, 2), points(3, 2, seed=2)
    rest = torch.full((3, 2), decay, dtype=torch.float64)
    return PathKernel(
        initial=initial, final=final, samples=draw_of, decay=rest, penalty=0 * rest,
        rounding=0 * rest, residual=final - initial - draw_of.sum(1) - rest, steps=None,
        mode="exact",
        optimizer="sgd", passes=1, bytes=0, nodes=3,
    )  # fmt: skip


def trained():
    model = dense(2, 6, 1)
    y = points(12, 1, seed=8)
    run = fit(model, X, y, lr=0.05, epochs=10, record=5, weight_decay=0.1, progress=False)
    return model, y, run.trajectory


def test_matrix_shows_the_trace():
    result = tangent_kernel(dense(2, 6, 2), X)
    (picture,) = draw(result).get_images()
    assert_close(torch.as_tensor(picture.get_array()), result.trace)
    assert caption(result) == "The trace of the tangent kernel between all points."


def test_matrix_brings_a_class_together_and_centres_signed_values():
    result = tangent_kernel(dense(2, 6, 1), X, outputs="trace", normalised=True)
    ax = matrix(result, labels=LABELS)
    order = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    (picture,) = ax.get_images()
    assert_close(torch.as_tensor(picture.get_array()), result.trace[order][:, order])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2"]
    assert list(ax.get_xticks()) == [1.5, 5.5, 9.5]
    low, high = picture.get_clim()
    assert low == -high or (low == 0 and result.trace.min() >= 0)


def test_matrix_refuses_labels_of_two_sets():
    result = tangent_kernel(dense(2, 6, 1), X, others=X[:4], outputs="trace")
    with pytest.raises(ValueError, match=r"12 labels for a kernel of shape \(12, 4\): leave"):
        matrix(result, labels=LABELS)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_parts_add_up_to_the_prediction(decay):
    result = split(decay=decay)
    for query in range(3):
        for output in range(2):
            amounts = [amount for _, amount, _ in parts(result, query, output, count=3)]
            change = result.final[query, output] - result.initial[query, output]
            assert math.fsum(amounts) == pytest.approx(float(change))
    names = [name for name, _, _ in parts(result, 0, 0, count=3)]
    assert names[-1] == "residual"
    assert ("weight decay" in names) == (decay > 0)
    assert "penalties" not in names


def test_samples_without_a_name_stand_together():
    result = split()
    added = result.samples[0, :, 1]
    up, down = pushers(result, 0, 1, count=2)
    named = {name: amount for name, amount, _ in parts(result, 0, 1, count=2)}
    rest = [float(added[k]) for k in range(12) if k not in (*up, *down)]
    assert named["8 others together"] == pytest.approx(math.fsum(rest))
    assert not any("others" in name for name, _, _ in parts(result, 0, 1, count=12))


def test_pushers_are_the_strongest_on_either_side():
    result = split()
    added = result.samples[1, :, 0]
    up, down = pushers(result, 1, 0, count=2)
    assert up == added.argsort(descending=True)[:2].tolist()
    assert down == added.argsort()[:2].tolist()
    few = split(samples=1)
    assert sum(map(len, pushers(few, 0, 0))) == 1
    assert len(parts(few, 0, 0)) == 2


def test_waterfall_goes_from_start_to_end():
    result = split()
    ax = waterfall(result, 2, 1, count=3)
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    starts = [bar.get_x() for bar in ax.patches]
    assert starts[0] == float(result.initial[2, 1])
    assert_close(starts[1:], ends[:-1])
    assert ends[-1] == pytest.approx(float(result.final[2, 1]))
    low, high = ax.get_xlim()
    assert low < min(starts + ends)
    assert high > max(starts + ends)


def test_figure_of_a_real_training_shows_the_output_that_moved_most():
    model, y, trajectory = trained()
    result = path_kernel(model, X, y, trajectory=trajectory, queries=X[:2])
    ax = draw(result)
    assert ax.get_xlabel() == "output 0 at query 0"
    assert ax.get_yticklabels()[-1].get_text() == "after training"
    assert has_figure(result)


@pytest.mark.parametrize("shape", [(16,), (1, 4, 4), (3, 4, 4)])
def test_attribution_shows_pictures_with_their_amounts(shape):
    result, x = split(), torch.rand(12, *shape)
    figure = attribution(result, 1, 0, x, queries=x[:3], count=3)
    up, down = pushers(result, 1, 0, count=3)
    titles = [ax.get_title() for ax in figure.get_axes() if ax.get_images()]
    amounts = [f"{float(result.samples[1, k, 0]):+.3g}" for k in (*up, *down)]
    assert titles[0].startswith("query 1")
    assert titles[1:] == amounts
    picture = figure.get_axes()[2].get_images()[0].get_array()
    assert picture.shape == ((4, 4, 3) if shape[0] == 3 else (4, 4))
    assert rendered(figure.get_axes()[0]).startswith(b"<?xml")


def test_attribution_without_pictures_is_the_sum_alone():
    assert len(attribution(split(), 0, 1).get_axes()) == 1
    assert len(attribution(split(), 0, x=X).get_axes()) == 1
    with_one = split(samples=1)
    assert len(attribution(with_one, x=torch.rand(1, 16)).get_axes()) == 12


def test_attribution_refuses(unchecked):
    with pytest.raises(ValueError, match=r"query must lie between 0 and 2, found 3: choose"):
        attribution(split(), 3)
    with pytest.raises(ValueError, match=r"x must hold the 12 training inputs, found 5: pass"):
        attribution(split(), x=X[:5])
    with pytest.raises(ValueError, match=r"or are squares of pixels, found \(2,\): leave them out"):
        attribution(split(), x=torch.rand(12, 16), queries=X)


def test_bars_of_neighbours_count_every_query():
    result = neighbours(dense(2, 6, 1), X, count=4)
    ax = draw(result)
    assert sum(bar.get_height() for bar in ax.patches) == 12
    shared = sum(k * bar.get_height() for k, bar in enumerate(ax.patches))
    assert shared == pytest.approx(float(result.agreement.sum()) * 4)
    assert ax.get_legend().get_texts()[1].get_text() == f"by chance: {4 * 4 / 11:.3g}"


def test_nearest_shows_both_lists():
    x = points(12, 9)
    result = neighbours(dense(9, 6, 1), x, queries=x[:2] + 0.1, count=3)
    figure = nearest(result, x, x[:2] + 0.1, query=1)
    axes = figure.get_axes()
    assert len(axes) == 7
    numbers = [int(ax.get_xlabel().split()[0]) for ax in axes[1:]]
    assert numbers == [*result.by_kernel[1].tolist(), *result.by_distance[1].tolist()]
    for ax, row in zip(axes[1:4], result.cosines[1].tolist(), strict=True):
        assert ax.get_title() == f"cos {row:.3f}"


@pytest.mark.parametrize("classes", [3, 12])
def test_cloud_has_every_point_once(classes):
    ax = cloud(X, torch.arange(12) % classes)
    assert sum(len(collection.get_offsets()) for collection in ax.collections) == 12
    assert len(ax.get_legend().get_texts()) == classes


def test_drift_draws_both_ends():
    model, _, trajectory = trained()
    result = kernel_drift(model, X, trajectory=trajectory)
    ax = draw(result)
    lines = [torch.as_tensor(line.get_ydata()) for line in ax.lines[:6]]
    expected = [getattr(result, name)[:, k] for name in ("correlation", "cosine", "change")
                for k in (0, 1)]  # fmt: skip
    assert_close(lines, expected)
    assert ax.get_legend().get_texts()[2].get_text() == f"change: {result.summary().value:.3g}"


def test_band_is_the_mean_and_two_deviations():
    x, y = points(6, 1), points(6, seed=3)
    result = gaussian_process(x, y, kernel=Rbf(length_scale=0.3), noise=1e-4)
    at = torch.linspace(-1, 1, 5).double()
    ax = posterior(result, at=at)
    mean, variance = result.predict(at[:, None])
    assert_close(torch.as_tensor(ax.lines[0].get_ydata()), mean)
    edge = torch.as_tensor(ax.collections[0].get_paths()[0].vertices)
    assert_close(edge[:, 1].max(), (mean + 2 * variance.sqrt()).max())
    assert_close(edge[:, 1].min(), (mean - 2 * variance.sqrt()).min())
    assert_close(torch.as_tensor(ax.lines[1].get_ydata()), y)
    assert len(draw(result).lines[0].get_xdata()) == 400


def test_process_of_many_inputs_shows_labels_leave_one_out():
    y = points(12, 2, seed=3)
    result = gaussian_process(X, y, noise=1e-2)
    ax = draw(result)
    for k in range(2):
        drawn = torch.as_tensor(ax.containers[k].lines[0].get_xydata())
        assert_close(drawn, torch.stack([y[:, k], result.leave_one_out()[0][:, k]], dim=1))
    with pytest.raises(ValueError, match=r"one input and one output, found 2 and 2: use draw"):
        posterior(result)
