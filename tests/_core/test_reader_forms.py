"""The many ways to write affine and piecewise-linear steps, all read; what is not is named."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.piecewise.graph.network import piecewise
from inscape.piecewise.lines.segments import lines
from inscape.regions import plane_regions

HIDDEN = dense(2, 32, seed=3)
KERNEL = points(18, 2).reshape(2, 2, 3, 3)
MASK = torch.arange(32) % 3 == 0


def image(h):
    return h.reshape(-1, 2, 4, 4)


def volume(h):
    return h.reshape(-1, 1, 2, 4, 4)


def upsampled(h, mode):
    return functional.interpolate(h, scale_factor=2, mode=mode)


AFFINE = {
    "hstack": lambda h: torch.hstack([h, -h]),
    "dstack": lambda h: torch.dstack([h, 2 * h]),
    "repeat": lambda h: h.repeat(1, 2),
    "tile": lambda h: torch.tile(h, (1, 2)),
    "index": lambda h: h[:, [0, 2, 1]],
    "swapaxes": lambda h: image(h).swapaxes(1, 2),
    "moveaxis": lambda h: image(h).moveaxis(1, 2),
    "repeat_interleave": lambda h: h.repeat_interleave(2, 1),
    "unfold": lambda h: h.unfold(1, 3, 2),
    "fold": lambda h: functional.fold(functional.unfold(image(h), 2), (4, 4), 2),
    "addcmul": lambda h: torch.addcmul(h, torch.full((32,), 3.0, dtype=h.dtype), h, value=-2.0),
    "lerp": lambda h: torch.lerp(h, h.flip(1), -0.3),
    "where": lambda h: torch.where(MASK, h, -2.0),
    "masked_fill": lambda h: h.masked_fill(MASK, 1.0),
    "conv_transpose2d": lambda h: functional.conv_transpose2d(image(h), KERNEL),
    "linear": lambda h: upsampled(h.reshape(-1, 2, 16), "linear"),
    "bicubic": lambda h: upsampled(image(h), "bicubic"),
    "trilinear": lambda h: upsampled(volume(h), "trilinear"),
    "pixel_shuffle": lambda h: functional.pixel_shuffle(h.reshape(-1, 4, 2, 4), 2),
    "avg_pool3d": lambda h: functional.avg_pool3d(volume(h), 2),
    "cumsum": lambda h: h.cumsum(1),
    "diff": lambda h: h.diff(dim=1),
    "rot90": lambda h: torch.rot90(image(h), 1, [2, 3]),
    "names": lambda h: torch.subtract(torch.multiply(h, 2), torch.divide(torch.negative(h), 3)),
    "like": lambda h: h.sum(1, keepdim=True).expand_as(h) + image(h).reshape_as(h),
}

KINKED = {
    "fmax": lambda h: torch.fmax(h, h.flip(1)),
    "fmin": lambda h: torch.fmin(h, h.flip(1)),
    "amax": lambda h: image(h).amax((2, 3)),
    "amin": lambda h: image(h).amin(1, keepdim=True),
    "max": lambda h: image(h).max(1)[0],
    "min": lambda h: image(h).min(dim=-1).values,
    "maxout": lambda h: h.reshape(-1, 16, 2).max(2).values,
    "adaptive_max_pool1d": lambda h: functional.adaptive_max_pool1d(h.reshape(-1, 2, 16), 5),
    "adaptive_max_pool2d": lambda h: functional.adaptive_max_pool2d(image(h), (3, 2)),
    "max_pool3d": lambda h: functional.max_pool3d(volume(h), 2, 1),
    "max_pool2d": lambda h: functional.max_pool2d(image(h), 2, return_indices=True)[0],
    "hardsigmoid": lambda h: functional.hardsigmoid(9 * h),
    "softshrink": lambda h: functional.softshrink(h, 0.2),
    "rrelu": lambda h: functional.rrelu(h, training=False),
    "clip": lambda h: h.clip(-0.1, 0.7),
}


def all_of(forms, before=lambda x: x):
    """Return the outputs of all forms beside each other."""

    def f(x):
        h = before(HIDDEN(x))
        return torch.cat([form(h).flatten(1) for form in forms.values()], 1)

    return f


@pytest.mark.parametrize("forms", [AFFINE, KINKED], ids=["affine", "kinks"])
def test_all_forms_are_read_and_cut(forms):
    # a kink after them all needs the sizes of their summands
    def f(x):
        y = all_of(forms, torch.relu if forms is AFFINE else lambda h: h)(x)
        return torch.cat([y, torch.relu(y - 0.1)], 1)

    x = points(9, 2)
    net = piecewise(f, x)
    assert len(net.ops) == 1 + (1 if forms is AFFINE else len(KINKED))
    assert_close(net.values(x, net.patterns(x)), f(x).detach())
    result = lines(net, x[:1], x[1:2])
    t = torch.linspace(0, 1, 301, dtype=torch.float64)
    right = torch.searchsorted(result.t, t).clamp(1, len(result.t) - 1)
    share = ((t - result.t[right - 1]) / (result.t[right] - result.t[right - 1]))[:, None]
    ours = torch.lerp(result.values[right - 1], result.values[right], share)
    assert_close(ours, f(torch.lerp(x[:1], x[1:2], t[:, None])).detach())


def test_a_plane_through_kinks():
    forms = {name: KINKED[name] for name in ("amin", "adaptive_max_pool2d", "softshrink")}

    def f(x):
        return all_of(forms)(x).sum(1, keepdim=True)

    corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]).double() / 4
    result = plane_regions(f, corners, domain=corners)
    assert result.complete
    assert_close(float(result.areas.sum()), 0.25)
    ours = result.values(torch.arange(result.cells), result.centroids)
    assert_close(ours, f(result.centroids).detach())


class Written(nn.Module):
    def forward(self, x):
        return torch.tensordot(torch.relu(x), torch.eye(2, dtype=x.dtype), 1)


def test_what_is_affine_but_not_known_is_named_with_its_line():
    match = (
        r"affine operations that are known to be so, .* found 'tensordot' "
        r"\(line \d+ of test_reader_forms.py\): write it by other operations if it is affine"
    )
    with pytest.raises(UnsupportedModelError, match=match):
        piecewise(Written().eval(), points(4, 2))


def test_the_length_of_a_batch_as_a_plain_number_is_read():
    x = points(7, 2)
    net = piecewise(lambda x: torch.relu(x).reshape(len(x), -1), points(4, 2))
    assert_close(net.values(x, net.patterns(x)), torch.relu(x))


@pytest.mark.parametrize(
    ("model", "cure"),
    [
        (
            lambda x: torch.sparse.mm(torch.eye(2).to_sparse(), x.T).T,
            "make its sparse tensors dense",
        ),
        (
            lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7),
            "write it by other operators, or measure what needs no graph",
        ),
    ],
)
def test_an_operator_that_cannot_be_exported_is_not_blamed_on_control_flow(model, cure):
    with pytest.raises(UnsupportedModelError, match=cure):
        piecewise(model, points(4, 2).float())


def test_the_exporter_is_silent(capfd):
    with pytest.raises(UnsupportedModelError, match="avoid control flow on tensor values"):
        piecewise(lambda x: torch.relu(x) if x.sum() > 0 else x, points(4, 2))
    assert capfd.readouterr() == ("", "")
