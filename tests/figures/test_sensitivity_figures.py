import numpy as np
import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.figures import caption, draw
from inscape.sensitivity import saliency


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
