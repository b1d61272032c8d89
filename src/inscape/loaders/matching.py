"""Match a model and data: does it accept the examples, and do its outputs fit the labels?"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.functional.final_activation import ends_in_probability, lie_between_0_and_1
from inscape.functional.jacobians import probe
from inscape.loaders.adapter import Adapted, adapt
from inscape.loaders.classes import by_name
from inscape.loaders.data import OpenedData
from inscape.loaders.input_preparation import reshaped
from inscape.loaders.label_matching import (
    MAY_BE_PROBABILITIES,
    guessed_anew,
    with_fitting_labels,
)
from inscape.loaders.model import OpenedModel
from inscape.loaders.outputs import only_name, selected, tensors_in

#: Examples of each class whose outputs are looked at for probabilities.
SEEN = 10


def fit_together(opened: OpenedModel, data: OpenedData) -> OpenedData:
    """Return the data as this model wants them; a few examples pass through it.

    Precision and device follow the model. Where the model refuses the examples and nobody said an
    input shape, flattening them, or making square images of them, is tried and said. A classifier
    that knows what its classes are called has labels found by their names. Labels are checked
    against the outputs; one output for two classes means a logit, or a probability where the model
    is seen to end in a sigmoid.

    Args:
        opened: What ``open_model`` returned.
        data: What ``open_data`` returned.
    """
    data = by_name(_like_the_weights(opened, data), opened.classes)
    checks.in_eval_mode(opened.model)
    checks.weights(opened.model, data.x)
    data, output = _accepted(opened, data)
    data = guessed_anew(data, output)
    single = data.task == "classes" and output.ndim <= 2 and output[0].numel() == 1
    probability = single and ends_in_probability(opened.model, data.x)
    data = with_fitting_labels(data, output, probability=probability)
    x, y = data.measured
    probe(opened.model, x)
    logits = y is not None and data.loss == "bce_logits" and not probability
    if logits and y is not None and _look_like_probabilities(opened, x, y):
        data = replace(data, notes=(*data.notes, MAY_BE_PROBABILITIES))
    return data


@torch.no_grad()
def one_output(opened: OpenedModel, data: OpenedData, take: str | int | None = None) -> OpenedModel:
    """Return a model that returns one tensor, and say which of several that is.

    Args:
        opened: What ``open_model`` returned.
        data: What ``open_data`` returned; two examples of them pass through the model.
        take: The name or place of an output; None takes the only one, or the logits.
    """
    checks.in_eval_mode(opened.model)
    data = _like_the_weights(opened, data)
    opened = _with_derivatives(opened, data)
    for shape in _shapes(data):
        try:
            output = _whole_output(opened.model, reshaped(data.x[:2], shape)[0])
        except Exception:  # fit_together says what is wrong with these examples
            continue
        break
    else:
        return opened
    if isinstance(output, Tensor) and take is None:
        return opened
    selected(output, take)  # refuses a name that is not there
    name = only_name(tensors_in(output), output) if take is None else take
    note = f"returns a {type(output).__name__}: took its {name}"
    others = [key for key in tensors_in(output) if key != str(name)]
    note += f", not {', '.join(others)}" if others else ""
    model = opened.model
    adapted = model.taking(name) if isinstance(model, Adapted) else adapt(model, take=name)
    return replace(opened, model=adapted, notes=(*opened.notes, note))


#: What autograd says where a forward takes derivatives, and gradients are not enabled.
_NO_GRAPH = "does not require grad and does not have a grad_fn"


def _with_derivatives(opened: OpenedModel, data: OpenedData) -> OpenedModel:
    """Return a model whose forward takes derivatives as one that is called with gradients."""
    for shape in _shapes(data):
        try:
            _whole_output(opened.model, reshaped(data.x[:2], shape)[0])
        except Exception as error:  # fit_together says what is wrong with these examples
            if _NO_GRAPH in str(error):
                break
        else:
            return opened
    else:
        return opened
    adapted = opened.model if isinstance(opened.model, Adapted) else adapt(opened.model)
    note = "takes derivatives in its forward: called with gradients enabled"
    return replace(opened, model=adapted.differentiating(), notes=(*opened.notes, note))


def _whole_output(model: nn.Module, x: Tensor) -> Any:
    """Return all that a model returns; of an adapted one, what the model inside returns."""
    return model.whole_output(x) if isinstance(model, Adapted) else model(x)


@torch.no_grad()
def accepts(opened: OpenedModel, data: OpenedData) -> bool:
    """Tell whether the model takes the examples as floating-point numbers, in an obvious shape."""
    data = _like_the_weights(opened, data)
    for shape in _shapes(data):
        try:
            opened.model(reshaped(data.x[:2], shape)[0])
        except Exception:  # of any kind: it is the model's own code
            continue
        return True
    return False


@torch.no_grad()
def _look_like_probabilities(opened: OpenedModel, x: Tensor, y: Tensor) -> bool:
    rows = torch.cat([torch.nonzero(y.flatten() == k).flatten()[:SEEN] for k in (0, 1)])
    return lie_between_0_and_1(checks.call(opened.model, x[rows]), y[rows])


def _like_the_weights(opened: OpenedModel, data: OpenedData) -> OpenedData:
    weight = next((p for p in opened.model.parameters() if p.is_floating_point()), None)
    if weight is None or (weight.dtype == data.x.dtype and weight.device == data.x.device):
        return data

    def moved(tensor: Tensor) -> Tensor:
        return tensor.to(weight.device, weight.dtype if tensor.is_floating_point() else None)

    notes = data.notes
    if weight.dtype != data.x.dtype:
        notes += (f"converted the data to {str(weight.dtype).removeprefix('torch.')} as the model",)
    return replace(
        data,
        x=moved(data.x),
        y=None if data.y is None else moved(data.y),
        x_test=None if data.x_test is None else moved(data.x_test),
        y_test=None if data.y_test is None else moved(data.y_test),
        notes=notes,
    )


def _accepted(opened: OpenedModel, data: OpenedData) -> tuple[OpenedData, Tensor]:
    """Return the data in the first shape that the model takes, and its output for two examples."""
    shapes = _shapes(data)
    first: UnsupportedModelError | None = None
    for shape in shapes:
        x, _ = reshaped(data.x[:2], shape)
        try:
            with torch.no_grad():
                output = checks.call(opened.model, x)
        except UnsupportedModelError as error:
            if error.__cause__ is None:  # it took the examples, but what it returned is at fault
                raise
            first = first or error
            continue
        return (data if shape == shapes[0] else _reshaped(data, shape)), output
    assert first is not None
    if len(shapes) == 1 or "--input-shape" not in str(first):
        raise first
    tried = " and ".join("x".join(map(str, shape)) for shape in shapes[1:])
    raise UnsupportedModelError(f"{first} (also tried {tried})") from first


def _shapes(data: OpenedData) -> list[tuple[int, ...]]:
    """Return the shapes to try: its own and, unless one was asked for, obvious others."""
    own = tuple(data.x.shape[1:])
    return [own] if data.settings.get("input_shape") is not None else [own, *_other_shapes(own)]


def _other_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes that examples may obviously stand for: flat examples and images."""
    if len(shape) == 1:
        images = [(c, side, side) for c in (1, 3) if (side := _side(shape[0], c)) > 1]
        return [*images, *((side, side, 1) for c, side, _ in images if c == 1)]
    flat: list[tuple[int, ...]] = [(math.prod(shape),)]
    if len(shape) == 2:
        return [(1, *shape), *flat, (*shape, 1)]
    if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[2] < min(shape[:2]):
        return [(shape[2], shape[0], shape[1]), *flat]
    if len(shape) == 3 and shape[0] in (1, 3, 4) and shape[0] < min(shape[1:]):
        return [*flat, (shape[1], shape[2], shape[0])]  # channels last, as Keras has them
    return flat


def _side(numbers: int, channels: int) -> int:
    side = math.isqrt(numbers // channels)
    return side if channels * side * side == numbers else 0


def _reshaped(data: OpenedData, shape: tuple[int, ...]) -> OpenedData:
    x, notes = reshaped(data.x, shape)
    x_test = None if data.x_test is None else reshaped(data.x_test, shape)[0]
    before, after = ("x".join(map(str, row)) for row in (data.x.shape[1:], shape))
    note = (
        f"the model refuses examples of {before}: reshaped to {after} (use --input-shape otherwise)"
    )
    settings = {**data.settings, "input_shape": shape}
    return replace(data, x=x, x_test=x_test, notes=(*data.notes, *notes, note), settings=settings)
