import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close

from inscape._core import Bound, NotApplicable, Summary, instruments
from inscape.models import mlp
from inscape.report.look.baselines import (
    at_initialisation,
    attempted,
    bound_reference,
    from_results,
    ratio,
)
from inscape.report.look.linear_model import UnavailableError
from inscape.report.look.parts import Reference
from inscape.smoothness import GradientNorm, effective_length_scale


class Scaled(nn.Module):
    """A layer with a parameter that nothing draws."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 1)
        self.gain = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.inner(x)


class Forgetful(Scaled):
    def reset_parameters(self) -> None:
        self.inner.reset_parameters()


class Careful(Scaled):
    def reset_parameters(self) -> None:
        nn.init.ones_(self.gain)


class Broken(nn.Linear):
    def reset_parameters(self) -> None:
        if hasattr(self, "ready"):
            raise RuntimeError("cannot draw twice\nat all")
        self.ready = True


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo: object) -> "Uncopied":
        raise TypeError("holds a lock")


def test_fresh_weights_are_those_that_pytorch_would_draw():
    trained = mlp(4, 8, 2, seed=5, init="glorot")
    torch.manual_seed(11)
    expected = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    fresh = at_initialisation(trained, seed=11)
    for name, tensor in expected.state_dict().items():
        assert_close(fresh.state_dict()[name], tensor, rtol=0, atol=0)


def test_model_and_global_random_state_stay():
    model = mlp(4, 8, 2, seed=5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    first, second = (at_initialisation(model, seed=s) for s in (0, 1))
    assert torch.equal(state, torch.get_rng_state())
    for name, tensor in before.items():
        assert torch.equal(tensor, model.state_dict()[name])
    assert not torch.equal(first[0].weight, second[0].weight)
    assert torch.equal(first[0].weight, at_initialisation(model, seed=0)[0].weight)


def test_running_statistics_start_anew_and_other_buffers_stay():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).double()
    model.register_buffer("scale", torch.tensor(7.0))
    model(torch.randn(9, 2, generator=torch.Generator().manual_seed(0)).double())
    fresh = at_initialisation(model.eval(), seed=0)
    assert fresh[1].running_mean.tolist() == [0.0] * 3
    assert float(fresh.scale) == 7.0
    assert fresh[0].weight.dtype == torch.float64
    assert not fresh.training


def test_parent_may_draw_what_its_children_do_not():
    fresh = at_initialisation(nn.Sequential(Careful()), seed=0)
    assert fresh[0].gain.item() == 1.0


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Scaled(), r"^parameter 'gain' belongs to no module with reset_parameters$"),
        (
            nn.Sequential(weight_norm(nn.Linear(2, 2))),
            r"parameter '0\.parametrizations\.weight\.original0' belongs to no module",
        ),
        (Forgetful(), r"^reset_parameters does not draw parameter 'gain'$"),
        (Broken(2, 2), r"^reset_parameters raised: cannot draw twice$"),
        (Uncopied(2, 2), r"^the model cannot be copied \(holds a lock\)$"),
    ],
)
def test_what_cannot_be_drawn_anew_is_said(model, text):
    state = torch.get_rng_state()
    with pytest.raises(UnavailableError, match=text):
        at_initialisation(model, seed=0)
    assert torch.equal(state, torch.get_rng_state())


def test_model_without_parameters_is_its_own_beginning():
    assert at_initialisation(nn.ReLU(), seed=0)(torch.tensor([-1.0])).item() == 0.0


X = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
Y = torch.tensor([[0.0], [2.0], [1.0]], dtype=torch.float64)


def test_bound_of_the_labels():
    result = bound_reference(instruments()["path_length"], X, Y)
    assert result is not None
    assert result.value == pytest.approx(2 * (2 + 1 + 1) / 9)
    assert result.note == "for any function that fits these labels exactly"
    curve = bound_reference(instruments()["total_variation"], X, Y)
    assert curve is not None
    assert curve.value == 3.0


def test_no_bound_and_why():
    known = instruments()
    assert bound_reference(known["gradient_norm"], X, Y) is None
    silent = bound_reference(known["path_length"], X, torch.tensor([0, 1, 0]))
    assert silent == Reference(
        name="bound", label="lower bound", reason="these labels set no lower bound"
    )
    blind = bound_reference(known["path_length"], X, None)
    assert blind is not None
    assert blind.reason == "the data have no labels"

    def fails(x: Tensor, y: Tensor) -> Bound:
        raise ValueError("odd labels\nvery")

    failed = bound_reference(replace(known["path_length"], bound=fails), X, Y)
    assert failed is not None
    assert failed.reason == "odd labels"


def test_several_draws_give_mean_and_range():
    norms = [GradientNorm(norms=torch.tensor([v, v]), outputs=1, seed=0) for v in (1.0, 2.0, 6.0)]
    result = from_results("initialisation", "fresh", norms, note="three")
    assert (result.value, result.low, result.high, result.note) == (3.0, 1.0, 6.0, "three")
    single = from_results(
        "linear", "line", [GradientNorm(norms=torch.tensor([1.0, 3.0]), outputs=1, seed=0)], note=""
    )
    assert single.value == 2.0
    assert single.low == pytest.approx(2 * math.exp(-12.706205 / 2))  # Student's t, 1 degree


def test_results_without_a_number_say_why():
    missing = NotApplicable(what="weights_product", reason="no ReLU")
    assert from_results("linear", "line", [missing], note="").reason == "not applicable: no ReLU"

    class Silent(GradientNorm):
        def summary(self) -> None:
            return None

    silent = Silent(norms=torch.ones(2), outputs=1, seed=0)
    assert from_results("linear", "line", [silent], note="").reason == (
        "the result has no single number"
    )


def test_attempt_turns_errors_into_reasons():
    def fails() -> Reference:
        raise RuntimeError("no memory\nleft")

    assert attempted("linear", "line", fails).reason == "not available: no memory"


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (3.0, 2.0, "1.5 times as large"),
        (2.0, 50.0, "1/25 as large"),
        (1.02, 1.0, "about the same"),
        (1.0, 0.0, None),
        (0.0, 1.0, None),
        (1.0, None, None),
    ],
)
def test_ratios_where_they_mean_something(value, other, text):
    summary = Summary(value=value, kind="exact", basis="")
    assert ratio(summary, Reference(name="linear", label="line", value=other)) == text
    assert ratio(None, Reference(name="linear", label="line", value=1.0)) is None


@pytest.mark.parametrize(
    ("own", "other", "text"),
    [
        ("estimate", "lower bound", "at most 1/2 as large"),
        ("lower bound", "estimate", "at least 1/2 as large"),
        ("upper bound", "exact", "at most 1/2 as large"),
        ("exact", "upper bound", "at least 1/2 as large"),
        ("upper bound", "upper bound", "1/2 as large"),
        ("lower bound", "lower bound", "1/2 as large"),
    ],
)
def test_of_a_bound_one_side_is_known(own, other, text):
    reference = Reference(name="linear", label="line", value=2.0, kind=other)
    assert ratio(Summary(value=1.0, kind=own, basis=""), reference) == text
    assert reference.text(str) == ("≥ 2.0" if other == "lower bound" else "2.0")
    capped = Summary(value=2.0, kind="lower bound", basis="")
    assert (ratio(capped, reference) is None) == (other == "lower bound")


def test_references_keep_their_kind():
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    quick = {"process": False, "resamples": 2, "lines": 10}
    straight = effective_length_scale(lambda x: 2 * x, x, **quick)
    wavy = effective_length_scale(lambda x: torch.sin(9 * x), x, **quick)
    assert from_results("linear", "line", [straight], note="").kind == "lower bound"
    assert from_results("linear", "line", [wavy], note="").kind == "estimate"
    assert from_results("initialisation", "fresh", [wavy, straight], note="").kind == "lower bound"
