import numpy as np
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.figures import caption, draw
from inscape.sensitivity import active_subspace, saliency


def test_image_shows_the_integrated_gradients_of_the_first_point_channels_added():
    f = dense(12, 5, 3)
    result = saliency(lambda z: f(z.flatten(1)), points(2, 3, 2, 2))
    ax = draw(result)
    shown = torch.as_tensor(np.asarray(ax.images[0].get_array()))
    assert_close(shown, result.images()[0].sum(0))
    low, high = ax.images[0].get_clim()
    assert low == -high == -float(shown.abs().max())
    assert ax.get_title().startswith(f"output {int(result.outputs[0])}: ")
    assert ax.get_title().endswith(" not attributed")
    assert caption(result).startswith("What each input contributes")


def test_rows_have_a_mark_for_each_input():
    result = saliency(dense(5, 8, 2), points(3, 5))
    ax = draw(result)
    *_, times_input, integrated = ax.lines
    assert integrated.get_ydata().tolist() == result.integrated[0].tolist()
    shown = result.attributions("gradient_times_input")[0]
    assert times_input.get_ydata().tolist() == shown.tolist()
    assert ax.get_xlabel() == "input"


def test_summary_plot_shows_output_against_projection_and_what_it_explains():
    f = dense(6, 8, 2)
    result = active_subspace(lambda z: f(z.flatten(1)), points(60, 2, 3))
    ax = draw(result)
    fitted_on, held_out, _ = ax.lines
    assert held_out.get_xdata().tolist() == result.projections[result.held_out, 0].tolist()
    assert fitted_on.get_ydata().tolist() == result.values[~result.held_out, 0].tolist()
    shares = ", ".join(f"{share:.2f}" for share in result.explained[0].tolist())
    assert ax.get_title() == f"directions 1, 2, 3 explain {shares} of held-out variance"
    shown = torch.as_tensor(np.asarray(ax.child_axes[0].images[0].get_array()))
    assert_close(shown, result.images[0, 0])
