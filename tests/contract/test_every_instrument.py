"""What every instrument must keep; a newcomer is held to it without a line of its own."""

import copy
import inspect
import itertools
import math
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import cache

import pytest
import torch
from torch import Tensor, nn

import inscape
from cases import CASES
from inscape._core import NotApplicable, Result, instruments
from inscape._core.result import ALIKE
from inscape.index import entries
from inscape.piecewise.planes.frame import through
from same import assert_same

REGISTER = instruments()
PAIRS = [(name, case) for name in REGISTER for case in CASES]
FUNCTION_ONLY = [pair for pair in PAIRS if REGISTER[pair[0]].reads == "function"]


def fresh(name, case, change=lambda model: model):
    """Measure a case, or the case after a change of its model."""
    model, x, y = CASES[case]()
    return REGISTER[name].measure(change(model), x, y)


measured = cache(fresh)  # results are frozen, so that tests may share them


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_answers_with_a_frozen_result_of_detached_tensors(name, case):
    result = measured(name, case)
    assert isinstance(result, Result)
    assert is_dataclass(result)
    field = fields(result)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(result, field, None)
    tensors = [v for v in result.to_dict().values() if isinstance(v, Tensor)]
    assert not any(tensor.requires_grad for tensor in tensors)


@cache
def measured_again(name, case):
    """Measure a case once more; return the result, and what it has changed in the world."""
    model, x, y = CASES[case]()
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = copy.deepcopy(model.state_dict())
    data, seeded, grad = x.clone(), torch.get_rng_state(), torch.is_grad_enabled()
    result = REGISTER[name].measure(model, x, y)
    state, modules = model.state_dict(), list(model.modules())
    left = {
        "weights": all(torch.equal(before[key], value) for key, value in state.items()),
        "gradients": all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters()),
        "what is learnt": all(p.requires_grad for p in model.parameters()),
        "mode": not any(module.training for module in modules),
        "hooks": not any(m._forward_hooks or m._backward_hooks for m in modules),
        "data": torch.equal(x, data) and not x.requires_grad,
        "random state": torch.equal(seeded, torch.get_rng_state()),
        "recording of gradients": torch.is_grad_enabled() == grad,
    }
    return result, [part for part, same in left.items() if not same]


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_same_seed_same_number(name, case):
    assert_same(measured_again(name, case)[0], measured(name, case), exactly=True)


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_leaves_the_world_as_it_was(name, case):
    assert measured_again(name, case)[1] == []


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_save_and_load_give_the_same_result(name, case, tmp_path):
    result = measured(name, case)
    path = result.save(tmp_path / "result.json")
    assert_same(result, inscape.load(path), exactly=True)


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_rows_are_tidy(name, case):
    rows = list(measured(name, case).rows())
    assert rows
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert all(isinstance(v, float | int | str | bool | None) for row in rows for v in row.values())


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_summary_is_a_number_with_its_kind_or_a_reason(name, case):
    result = measured(name, case)
    summary = result.summary()
    if summary is None:
        assert isinstance(result, NotApplicable)
        assert result.status.startswith("not applicable: ")
        return
    assert math.isfinite(summary.value)
    assert summary.kind in ("exact", "estimate", "lower bound", "upper bound")
    assert summary.basis
    if summary.kind == "estimate" and not summary.basis.endswith(ALIKE):
        assert summary.low <= summary.value <= summary.high
    assert repr(result).startswith(type(result).__name__)
    assert len(repr(result)) < 150  # a line and a half


class Overwriting(nn.Module):
    """Scales its input in place before anything else."""

    def __init__(self, inner, *, in_place):
        super().__init__()
        self.inner, self.in_place = inner, in_place

    def forward(self, x):
        return self.inner(x.mul_(2) if self.in_place else 2 * x)


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_model_that_writes_over_its_input_spoils_nothing(name, case):
    model, x, y = CASES[case]()
    data = x.clone()
    expected = REGISTER[name].measure(Overwriting(model, in_place=False).eval(), x, y)
    found = REGISTER[name].measure(Overwriting(model, in_place=True).eval(), x, y)
    assert torch.equal(x, data)
    if not isinstance(expected, NotApplicable):
        assert_same(expected, found, exactly=False)


def permuted(model):
    """Return the same function with the units of every hidden layer in another order."""
    model = copy.deepcopy(model)
    layers = [m for m in model if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for k, (first, second) in enumerate(itertools.pairwise(layers)):
            draw = torch.Generator().manual_seed(k)
            order = torch.randperm(first.out_features, generator=draw)
            first.weight.copy_(first.weight[order])
            first.bias.copy_(first.bias[order])
            second.weight.copy_(second.weight[:, order])
    return model


def rescaled(model):
    """Return the same function with every ReLU unit scaled up before and down after."""
    model = copy.deepcopy(model)
    layers = [m for m in model if isinstance(m, nn.Linear)]
    with torch.no_grad():
        for k, (first, second) in enumerate(itertools.pairwise(layers)):
            draw = torch.Generator().manual_seed(k)
            scale = 2.0 ** torch.randint(-2, 3, (first.out_features,), generator=draw).double()
            first.weight *= scale[:, None]
            first.bias *= scale
            second.weight /= scale
    return model


@pytest.mark.parametrize(("name", "case"), FUNCTION_ONLY)
def test_measure_of_the_function_does_not_see_the_order_of_units(name, case):
    skip = REGISTER[name].exempt
    assert_same(measured(name, case), fresh(name, case, permuted), exactly=False, skip=skip)


@pytest.mark.parametrize(("name", "case"), [p for p in FUNCTION_ONLY if "tanh" not in p[1]])
def test_measure_of_the_function_does_not_see_the_scale_of_units(name, case):
    skip = REGISTER[name].exempt
    assert_same(measured(name, case), fresh(name, case, rescaled), exactly=False, skip=skip)


@pytest.mark.parametrize("change", [permuted, rescaled])
def test_the_changes_themselves_change_weights_and_keep_the_function(change):
    model, x, _ = CASES["deep relu"]()
    other = change(model)
    assert not torch.equal(model[0].weight, other[0].weight)
    torch.testing.assert_close(model(x), other(x))


@pytest.mark.parametrize("name", REGISTER)
def test_signature_lets_anybody_call_it(name):
    parameters = list(inspect.signature(REGISTER[name].function).parameters.values())
    assert parameters[0].name in ("f", "model", "trajectory")
    assert parameters[1].name == "x"
    rest = parameters[3:] if REGISTER[name].wants_labels else parameters[2:]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in rest)


@pytest.mark.parametrize("name", REGISTER)
def test_declares_what_report_and_list_need(name):
    entry = REGISTER[name]
    assert "{value}" in entry.meaning
    assert entry.work(1000, 1) > 0
    assert entry.title.endswith(".")
    assert entry.cites
    assert entry.better in ("larger", "smaller", "neither")
    assert entry.larger
    doc = inspect.getdoc(entry.function)
    assert ".. math::" in doc
    assert "Args:" in doc


def test_the_index_without_imports_tells_the_same_as_the_register():
    listed = {entry.name: entry for entry in entries()}
    assert list(listed) == list(REGISTER)
    for name, entry in REGISTER.items():
        said = listed[name]
        assert (said.family, said.reads, said.cost, said.cites, said.meaning, said.title) == (
            entry.family,
            entry.reads,
            entry.cost,
            entry.cites,
            entry.meaning,
            entry.title,
        )


@pytest.mark.parametrize("name", REGISTER)
def test_training_mode_is_refused(name):
    model, x, y = CASES["two-layer"]()
    with pytest.raises(ValueError, match=r"must be in eval mode, .* call model.eval\(\) first"):
        REGISTER[name].measure(model.train(), x, y)


def test_one_name_in_every_place():
    for name, entry in REGISTER.items():
        assert entry.function.__module__.endswith(f".{name}")
        camel = "".join(word.title() for word in name.split("_"))
        assert camel in Result.types


class Centred(nn.Module):
    """Subtracts a fraction of the mean over the batch, and so mixes its rows."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y = self.inner(x)
        return y - 0.01 * y.mean(0)


@pytest.mark.parametrize("name", REGISTER)
def test_model_that_mixes_the_batch_is_refused_though_rows_are_equal(name):
    model, x, y = CASES["two-layer"]()
    x, y = x[[3, 3, *range(12)]], y[[3, 3, *range(12)]]
    plane = {"plane": through(x[-3:])} if name == "grid_regions" else {}  # not the first three
    try:
        status = REGISTER[name].measure(Centred(model).eval(), x, y, **plane).status
    except ValueError as error:
        status = str(error)
    assert re.search(
        "must act on each sample independently|each sample acts for itself|"
        "the batch must stay the first dimension",
        status,
    )


def test_every_result_of_an_instrument_declares_the_range_of_its_value():
    for name in REGISTER:
        camel = "".join(word.title() for word in name.split("_"))
        assert Result.types[camel].range != (-math.inf, math.inf), camel


NASTY = {
    "one far away": lambda x: torch.cat([x[:-1], 1e3 * x[-1:]]),
    "all but one equal": lambda x: torch.cat([x[:1].expand(len(x) - 1, -1), x[-1:]]),
    "skewed": lambda x: x * torch.linspace(0, 6, len(x), dtype=x.dtype).exp()[:, None],
    "tiny": lambda x: 1e-9 * x,
}


@pytest.mark.parametrize("nasty", NASTY)
@pytest.mark.parametrize("name", REGISTER)
def test_intervals_hold_their_value_and_stay_in_its_range(name, nasty):
    model, x, y = CASES["two-layer"]()
    try:
        result = REGISTER[name].measure(model, NASTY[nasty](x), y)
    except ValueError:  # such as three equal points for a plane
        return
    summary = result.summary()
    if summary is not None:
        low, high = (summary.value if e is None else e for e in (summary.low, summary.high))
        assert result.range[0] <= low <= summary.value <= high <= result.range[1]
