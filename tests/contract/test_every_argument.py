"""What every instrument takes: arrays, frames, half precision, any memory format; and refuses."""

import copy
import inspect
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from cases import CASES
from fuzz.ownership import ours
from inscape._core import UnsupportedModelError, instruments
from inscape.smoothness import gradient_norm
from same import assert_same

pd = pytest.importorskip("pandas")

REGISTER = instruments()
#: Instruments that replay a recorded training on its very data.
REPLAYS = ("path_kernel",)


def called(name, change=lambda tensor: tensor, model=lambda net: net):
    """Measure a small case with its data, and further arguments that are tensors, changed."""
    net, x, y = CASES["two-layer"]()
    settings = REGISTER[name].example(net, x, y)
    settings = {k: change(v) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
    data = (x, y) if REGISTER[name].wants_labels else (x,)
    return REGISTER[name].function(model(net), *map(change, data), **settings)


FORMS = {
    "array": lambda tensor: tensor.numpy(),
    "array that is not contiguous": lambda tensor: np.asfortranarray(tensor.numpy()),
    "frame": lambda tensor: pd.DataFrame(tensor.numpy()) if tensor.ndim == 2 else tensor.numpy(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REGISTER)
def test_arrays_and_frames_give_the_numbers_of_tensors(name, form):
    assert_same(called(name), called(name, FORMS[form]), exactly=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [name for name in REGISTER if name not in REPLAYS])
def test_half_precision_is_measured_in_float32_and_said(name, dtype):
    def half(net):
        return copy.deepcopy(net).to(dtype)

    with pytest.warns(UserWarning, match=r"measured as a copy in float32; yours is unchanged"):
        found = called(name, lambda tensor: tensor.to(dtype), half)
    expected = called(name, lambda tensor: tensor.to(dtype).float(), lambda net: half(net).float())
    assert_same(expected, found, exactly=True)


def test_half_precision_is_said_once_and_the_model_left_alone():
    net, x = nn.Linear(3, 1).to(torch.bfloat16).eval(), torch.zeros(2, 3, dtype=torch.bfloat16)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gradient_norm(net, x)
    assert len(said) == 1
    assert net.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["gradient_norm", "path_length", "line_regions", "tangent_kernel"])
def test_channels_last_changes_nothing(name):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)
    ).double().eval()  # fmt: skip
    x = torch.randn(6, 2, 3, 3, dtype=torch.float64)
    plain = REGISTER[name].function(net, x)
    last = torch.channels_last
    turned = copy.deepcopy(net).to(memory_format=last)
    assert_same(plain, REGISTER[name].function(turned, x.to(memory_format=last)), exactly=False)


def test_float64_arrays_follow_the_model():
    net, x = nn.Linear(3, 1).eval(), np.random.default_rng(0).normal(size=(5, 3))
    assert gradient_norm(net, x).norms.dtype == torch.float32
    assert gradient_norm(net.double(), x.astype(np.float32)).norms.dtype == torch.float64
    assert gradient_norm(torch.sin, x).norms.dtype == torch.float64


def test_integers_of_a_frame_are_numbers_and_words_are_refused():
    net = nn.Linear(2, 1).eval()
    frame = pd.DataFrame({"age": [1, 2, 3], "height": [4, 5, 6]})
    numbers = torch.tensor(frame.to_numpy(), dtype=torch.float32)
    assert torch.equal(gradient_norm(net, frame).norms, gradient_norm(net, numbers).norms)
    with pytest.raises(TypeError, match=r"x must hold numbers, found the column 'name' of dtype"):
        gradient_norm(net, frame.assign(name="a"))
    with pytest.raises(TypeError, match=r"found an array of dtype <U1: encode them"):
        gradient_norm(net, np.array([["a", "b"]]))


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*[Qq]uantiz")
@pytest.mark.parametrize("name", REGISTER)
def test_quantised_models_are_refused_for_what_they_are(name):
    net, x, y = CASES["two-layer"]()
    quantised = torch.ao.quantization.quantize_dynamic(net.float(), {nn.Linear})
    data = (x, y) if REGISTER[name].wants_labels else (x,)
    with pytest.raises(UnsupportedModelError, match=r"found the quantised layer '0' \(Linear\)"):
        REGISTER[name].function(quantised, *data)


#: What no setting of any instrument is.
WRONG = (object(), 1j, b"x", [object()], (1.0, "a", None), {"a": object()}, 10**30)


@pytest.mark.parametrize("name", REGISTER)
def test_settings_of_other_types_are_refused_in_our_words(unchecked, name):
    net, x, y = CASES["two-layer"]()
    given = REGISTER[name].example(net, x, y)
    data = (x, y) if REGISTER[name].wants_labels else (x,)
    parameters = inspect.signature(REGISTER[name].function).parameters.values()
    for setting in (p.name for p in parameters if p.kind is p.KEYWORD_ONLY):
        for value in WRONG:
            with pytest.raises((TypeError, ValueError)) as caught:
                REGISTER[name].function(net, *data, **{**given, setting: value})
            assert ours(caught.value), f"{setting}={value!r}: {caught.value!r}"


@pytest.mark.parametrize("name", REGISTER)
def test_signatures_survive_the_decorators(name):
    function = REGISTER[name].function
    shape = inspect.signature(function)
    assert list(shape.parameters)[1] == "x"
    assert "Iterator" not in str(shape.return_annotation)
    assert function.__doc__
    assert function.__name__ == name
    assert "args" not in shape.parameters


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (nn.Linear, r"found the class Linear itself: pass an object, Linear\(\.\.\.\)"),
        (nn.Linear(3, 1).state_dict(), r"found a state dict, .* call its load_state_dict"),
        (torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=1), r"found an optimizer \(SGD\): pass"),
    ],
)
def test_what_is_no_model_is_refused(unchecked, model, said):
    with pytest.raises(TypeError, match=said):
        gradient_norm(model, torch.zeros(2, 3))


def test_a_model_without_values_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"found 'weight' on the device 'meta': build"):
        gradient_norm(nn.Linear(3, 1, device="meta").eval(), torch.zeros(2, 3))
