"""Match a model and data: does it accept the examples, and do its outputs fit the labels?"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import DataError, UnsupportedModelError
from inscape.functional.final_activation import ends_in_probability, lie_between_0_and_1
from inscape.functional.jacobians import probe
from inscape.loaders.adapter import Adapted, adapt
from inscape.loaders.classes import by_name
from inscape.loaders.data import OpenedData
from inscape.loaders.input_preparation import reshaped
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
    data = _guessed_anew(data, output)
    single = data.task == "classes" and output.ndim <= 2 and output[0].numel() == 1
    probability = single and ends_in_probability(opened.model, data.x)
    data = _with_fitting_labels(data, output, probability=probability)
    x, y = data.measured
    probe(opened.model, x)
    logits = y is not None and data.loss == "bce_logits" and not probability
    if logits and y is not None and _look_like_probabilities(opened, x, y):
        data = replace(data, notes=(*data.notes, _MAY_BE_PROBABILITIES))
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


def _guessed_anew(data: OpenedData, output: Tensor) -> OpenedData:
    """Return data whose labels were guessed to be real numbers as classes, if the outputs say so.

    Integers from 0 on, one for each example, are class numbers of a model that has an output for
    each of them; many classes in few examples do not look like it by themselves.
    """
    outputs = output[0].numel()
    if data.task != "regression" or not data.guess or data.y is None or outputs < 2:
        return data
    both = data.y if data.y_test is None else torch.cat([data.y, data.y_test])
    if both[0].numel() != 1 or bool((both != both.round()).any()):
        return data
    if not 0 <= float(both.min()) <= float(both.max()) < outputs:
        return data
    guess = (
        f"y holds integers from {int(both.min())} to {int(both.max())} and the model has "
        f"{outputs} outputs: taken as classes (use --labels regression otherwise)"
    )
    return replace(
        data,
        task="classes",
        y=data.y.flatten().long(),
        y_test=None if data.y_test is None else data.y_test.flatten().long(),
        loss="cross_entropy" if data.settings.get("loss") == "auto" else data.loss,
        guess=guess,
        notes=tuple(guess if note == data.guess else note for note in data.notes),
        settings={**data.settings, "labels": "classes"},
    )


def _with_fitting_labels(data: OpenedData, output: Tensor, *, probability: bool) -> OpenedData:
    if data.y is None:
        return data
    outputs = output[0].numel()
    if data.task == "regression":
        return _with_real_labels(data, output)
    if output.ndim > 2:
        raise DataError(
            f"the model must return one output for each class to compare with class numbers, "
            f"found shape {tuple(output.shape[1:])}: flatten it, or use --labels none."
        )
    if data.settings.get("loss") == "auto" and outputs == 1 and probability:
        data = replace(data, loss="mse", notes=(*data.notes, _ONE_PROBABILITY))
    elif data.settings.get("loss") == "auto" and outputs == 1 and data.loss != "bce_logits":
        data = replace(data, loss="bce_logits", notes=(*data.notes, _ONE_LOGIT))
    if outputs > 1 and _are_probabilities(output) and _PROBABILITIES not in data.notes:
        data = replace(data, notes=(*data.notes, _PROBABILITIES))
    return _with_class_labels(data, outputs)


_ONE_LOGIT = "the model has one output: taken as the logit of class 1 (bce_logits)"
_ONE_PROBABILITY = (
    "the model ends in a sigmoid: its output is taken as the probability of class 1, which is "
    "chosen from 0.5 on (mse)"
)
_MAY_BE_PROBABILITIES = (
    "all outputs lie between 0 and 1, but are taken as logits, positive for class 1: if they are "
    "probabilities, use --loss mse"
)
_PROBABILITIES = "the outputs look like probabilities: measuring before the softmax says more"


def _are_probabilities(output: Tensor) -> bool:
    return bool((output >= 0).all()) and torch.allclose(
        output.sum(1), torch.ones_like(output[:, 0])
    )


def _with_real_labels(data: OpenedData, output: Tensor) -> OpenedData:
    assert data.y is not None
    columns, outputs = data.y[0].numel(), output[0].numel()
    if columns != outputs:
        raise DataError(
            f"the model must have an output for each of the {columns} columns of y, found "
            f"{outputs}: use --labels classes if y holds class numbers, or give other labels."
        )
    shape = output.shape[1:]
    y_test = None if data.y_test is None else data.y_test.reshape(-1, *shape)
    return replace(data, y=data.y.reshape(-1, *shape), y_test=y_test)


def _with_class_labels(data: OpenedData, outputs: int) -> OpenedData:
    """Refuse classes beyond the outputs, unless numbering them anew makes them fit."""
    assert data.y is not None
    if data.loss == "cross_entropy" and outputs == 1:
        raise DataError(
            "loss cross_entropy must have an output for each class, found one output: say "
            "--loss bce_logits."
        )
    if data.loss == "bce_logits" and outputs > 1:
        raise DataError(
            f"loss bce_logits must have one output, found {outputs}: use --loss cross_entropy."
        )
    room = max(outputs, 2)
    both = data.y if data.y_test is None else torch.cat([data.y, data.y_test])
    values = torch.unique(both)
    if int(values[-1]) < room:
        return data
    if len(values) != room:
        raise DataError(
            f"the model must have an output for each class, found {outputs} outputs and "
            f"{len(values)} classes up to number {int(values[-1])}: give other labels, or say "
            "--labels regression."
        )
    listed = ", ".join(map(str, values.tolist()[:10])) + (", ..." if room > 10 else "")
    note = f"the classes {listed} are numbered from 0 in this order, to fit {outputs} outputs"
    y_test = None if data.y_test is None else torch.searchsorted(values, data.y_test)
    y = torch.searchsorted(values, data.y)
    return replace(data, y=y, y_test=y_test, notes=(*data.notes, note))
