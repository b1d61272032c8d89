"""What stands on the paper is what stands in the result."""

import pytest
import torch
from matplotlib.patches import Rectangle
from torch.testing import assert_close

from inscape.figures import caption, draw, has_figure
from inscape.figures.spectra import NAMES
from inscape.smoothness import GradientDeflection, Rugosity
from inscape.spectra import (
    DistanceFromInit,
    FisherRaoNorm,
    ParameterNorm,
    SpectralNorm,
    conv_spectrum,
    effective_rank,
)

SOME = torch.rand(200, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def spectral(*norms: float, name: str = "layer") -> SpectralNorm:
    names = tuple(f"{name}{k}" for k in range(len(norms)))
    values = torch.tensor(norms, dtype=torch.float64)
    return SpectralNorm(norms=values, layers=names, converged=True, outputs=1)


def moved(count: int) -> DistanceFromInit:
    return DistanceFromInit(
        distances=SOME[:count],
        before=2 * SOME[:count],
        after=3 * SOME[:count],
        names=tuple(f"p{k}" for k in range(count)),
        parameters=99,
    )


@pytest.mark.parametrize(
    ("result", "mean"),
    [
        (Rugosity(changes=SOME, distance=0.1, directions=4, outputs=1, seed=0), "mean"),
        (
            GradientDeflection(deflections=SOME, distances=SOME, knots=3, outputs=1, seed=0),
            "mean",
        ),
        (
            FisherRaoNorm(squares=SOME, loss="squared_error", labels="data", outputs=1, seed=0),
            "root mean square",
        ),
    ],
    ids=["rugosity", "gradient_deflection", "fisher_rao_norm"],
)
def test_histogram_holds_every_sample_and_marks_the_summary(result, mean):
    ax = draw(result)
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert sum(bar.get_height() for bar in bars) == len(SOME)
    assert set(ax.lines[0].get_xdata()) == {result.summary().value}
    assert list(ax.lines[1].get_xdata()) == [result.summary().low, result.summary().high]
    assert ax.texts[0].get_text() == f"{mean} {result.summary().value:.4g}"


def test_layers_stand_in_their_order_on_a_logarithmic_scale():
    ax = draw(spectral(3.0, 0.5, 40.0))
    dots = torch.as_tensor(ax.lines[0].get_xydata())
    assert_close(dots, torch.tensor([[0, 3.0], [1, 0.5], [2, 40.0]], dtype=torch.float64))
    assert ax.get_yscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["layer0", "layer1", "layer2"]
    low, high = ax.get_ylim()
    assert low < 0.5
    assert high > 40


def test_very_many_layers_have_no_names():
    ax = draw(spectral(*[1.5] * (NAMES + 1)))
    assert not ax.texts
    assert not any("layer" in tick.get_text() for tick in ax.get_xticklabels())


def test_long_names_are_slanted_and_a_dead_layer_can_be_drawn():
    ax = draw(spectral(0.0, 2.0, name="features.block."))
    assert ax.get_xticklabels()[0].get_rotation() == 30
    assert ax.get_ylim()[0] > 0


def test_tensors_have_a_bar_for_the_way_and_a_tick_for_the_start():
    ax = draw(moved(4))
    bars = [patch.get_width() for patch in ax.patches]
    assert bars == SOME[:4].tolist()
    assert list(ax.lines[0].get_xdata()) == (2 * SOME[:4]).tolist()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["p0", "p1", "p2", "p3"]
    assert ax.get_xlabel() == "distance from the start; tick: norm at the start"


def test_of_many_tensors_those_that_moved_most_are_shown():
    ax = draw(moved(100))
    shown = {int(tick.get_text()[1:]) for tick in ax.get_yticklabels()}
    assert shown == set(SOME[:100].topk(NAMES).indices.tolist())
    assert ax.get_xlabel().endswith("(the 16 that moved most, of 100)")


@pytest.mark.parametrize("result", [spectral(1.0), moved(2)])
def test_caption_says_what_is_seen(result):
    assert has_figure(result)
    assert caption(result).endswith(".")


def layers() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).eval()


def test_ranks_stand_below_the_largest_ones_possible():
    result = effective_rank(layers(), torch.ones(1, 4))
    ax = draw(result)
    assert list(ax.lines[0].get_ydata()) == result.ranks.tolist()
    assert list(ax.lines[1].get_ydata()) == pytest.approx([3**0.5, 2**0.5])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "2"]


def test_every_layer_has_a_curve_of_its_singular_values():
    result = conv_spectrum(layers(), torch.ones(1, 4))
    ax = draw(result)
    assert [line.get_label() for line in ax.lines] == ["0", "2"]
    heights = [sorted(set(line.get_ydata()), reverse=True) for line in ax.lines]
    assert heights == [result.singular_values(k).tolist() for k in (0, 1)]
    assert list(ax.lines[1].get_xdata()) == [0, 0.5, 0.5, 1]


def norms(steps: int, reason: str = "") -> ParameterNorm:
    return ParameterNorm(
        layers=("a", "b"),
        steps=torch.arange(steps),
        norms=1 + SOME[: 2 * steps].reshape(steps, 2),
        path_norms=SOME[: 0 if reason else steps],
        order=2,
        parameters=9,
        reason=reason,
    )


def test_norms_of_layers_and_over_a_training():
    ax = draw(norms(1))
    assert [bar.get_height() for bar in ax.patches] == norms(1).norms[0].tolist()
    ax = draw(norms(3))
    assert list(ax.lines[0].get_ydata()) == norms(3).totals.tolist()
    assert list(ax.lines[1].get_ydata()) == SOME[:3].tolist()
    assert len(draw(norms(3, "it has a tanh")).lines) == 1
