"""Model meets data: shapes, outputs, labels, and how good it is."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from inscape.errors import DataError, UnsupportedModelError
from inscape.loaders import fit_together, open_data, open_model, performance

torch.manual_seed(0)
ROWS = torch.rand(30, 16)
DIGITS = torch.arange(30) % 3
CONV = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
COLOUR = nn.Sequential(nn.Conv2d(3, 2, 2), nn.Flatten(), nn.Linear(18, 3)).eval()
FLAT = nn.Linear(16, 3).eval()


def together(model, data, **options):
    return scored(open_model(model), open_data(data, **options))


def scored(opened, data):
    fitted = fit_together(opened, data)
    x, y = fitted.measured
    labelled = y is not None and fitted.loss is not None
    return fitted, performance(opened.model, x, y, fitted.loss) if labelled else None


# --- inputs


def test_rows_that_fit_are_left_alone():
    data, result = together(FLAT, (ROWS, DIGITS), labels="classes")
    assert_close(data.x, ROWS, rtol=0, atol=0)
    assert data.notes == ()
    assert result.n == 30


@pytest.mark.parametrize(
    ("model", "shape", "wanted"),
    [
        (CONV, (16,), (1, 4, 4)),
        (CONV, (4, 4), (1, 4, 4)),
        (CONV, (4, 4, 1), (1, 4, 4)),
        (FLAT, (1, 4, 4), (16,)),
        (FLAT, (4, 4), (16,)),
    ],
)
def test_obvious_shapes_are_tried_and_said(model, shape, wanted):
    x = ROWS.reshape(30, *shape)
    data, result = together(model, {"x": x, "y": DIGITS, "x_test": x[:6], "y_test": DIGITS[:6]})
    assert_close(data.x, ROWS.reshape(30, *wanted), rtol=0, atol=0)
    assert data.x_test.shape == (6, *wanted)
    before, after = ("x".join(map(str, row)) for row in (shape, wanted))
    text = (
        f"the model refuses examples of {before}: reshaped to {after} (use --input-shape otherwise)"
    )
    assert text in data.notes
    assert data.settings["input_shape"] == wanted
    assert result == performance(model, x[:6].reshape(6, *wanted), DIGITS[:6], "cross_entropy")


def test_colour_images():
    x = torch.rand(5, 3, 4, 4)
    for form in (x.flatten(1), x.permute(0, 2, 3, 1)):
        data, _ = together(COLOUR, form)
        assert_close(data.x, x, rtol=0, atol=0)


def test_a_shape_that_was_asked_for_is_not_changed():
    with pytest.raises(
        UnsupportedModelError, match=r"accept a batch of shape \(2, 4, 4\), but it ra"
    ):
        together(CONV, (ROWS, DIGITS), input_shape="4x4")


def test_rows_that_cannot_fit():
    with pytest.raises(
        UnsupportedModelError, match=r"shape \(2, 9\).*\(also tried 1x3x3 and 3x3x1\)"
    ):
        together(FLAT, torch.rand(5, 9))
    with pytest.raises(UnsupportedModelError, match=r"shape \(2, 7\), but it raised RuntimeError"):
        together(FLAT, torch.rand(5, 7))


def test_one_row_is_enough():
    data, _ = together(CONV, ROWS[:1])
    assert data.x.shape == (1, 1, 4, 4)


def test_data_follow_the_precision_of_the_model():
    model = nn.Linear(16, 1, dtype=torch.float64).eval()
    data, result = together(model, (ROWS, ROWS[:, 0]))
    assert data.x.dtype == data.y.dtype == torch.float64
    assert "converted the data to float64 as the model" in data.notes
    expected = (model(ROWS.double()) - ROWS[:, :1].double()).pow(2).mean()
    assert result.loss == pytest.approx(expected.item(), rel=1e-12)


class Tuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise KeyError("oops")


def test_models_that_are_no_function_of_the_rows():
    with pytest.raises(
        UnsupportedModelError, match=r"must return one tensor, found tuple.*command line\.$"
    ):
        together(Tuple().eval(), ROWS)
    with pytest.raises(
        UnsupportedModelError, match=r"it raised KeyError: 'oops'.*also tried 1x4x4"
    ):
        together(Raises().eval(), ROWS)
    broken = nn.Linear(16, 1).eval()
    with torch.no_grad():
        broken.weight[0, 3] = torch.nan
    with pytest.raises(ValueError, match="weights must be finite, found NaN or Inf in 'weight'"):
        together(broken, ROWS)
    opened = open_model(FLAT)
    try:
        with pytest.raises(ValueError, match="the model must be in eval mode"):
            fit_together(replace(opened, model=FLAT.train()), open_data(ROWS))
    finally:
        FLAT.eval()


# --- labels


def test_no_labels_no_performance():
    data, result = together(FLAT, ROWS)
    assert result is None
    assert data.loss is None


def test_one_output_behind_a_sigmoid_is_a_probability():
    logit = nn.Linear(16, 1).eval()
    data, done = together(nn.Sequential(logit, nn.Sigmoid()).eval(), (ROWS, DIGITS % 2))
    assert data.loss == "mse"
    assert any("taken as the probability of class 1" in note for note in data.notes)
    right = ((logit(ROWS)[:, 0] > 0) == (DIGITS % 2 == 1)).float().mean().item()
    assert done.accuracy == pytest.approx(right)


def test_outputs_that_may_be_probabilities_are_noted():
    class Written(nn.Module):
        def forward(self, x):
            return 1 / (1 + (-x[:, :1]).exp())

    data, _ = together(Written().eval(), (ROWS, DIGITS % 2))
    assert data.loss == "bce_logits"
    assert any(note.endswith("if they are probabilities, use --loss mse") for note in data.notes)


def test_one_output_for_two_classes_is_a_logit():
    model = nn.Linear(16, 1).eval()
    data, result = together(model, (ROWS, DIGITS % 2))
    assert data.loss == "bce_logits"
    assert any("taken as the logit of class 1" in note for note in data.notes)
    logit = model(ROWS)[:, 0]
    right = ((logit > 0) == (DIGITS % 2 == 1)).sum().item()
    assert result.accuracy == right / 30
    expected = nn.functional.binary_cross_entropy_with_logits(logit, (DIGITS % 2).float())
    assert result.loss == pytest.approx(expected.item(), rel=1e-5)


class Squeezed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[:, 0]


@pytest.mark.parametrize("y", [ROWS[:, 0], ROWS[:, :1]])
def test_a_flat_output_takes_flat_labels(y):
    model = Squeezed().eval()
    data, result = together(model, (ROWS, y))
    assert data.y.shape == (30,)
    assert result.loss == pytest.approx((model(ROWS) - ROWS[:, 0]).pow(2).mean().item(), rel=1e-5)
    assert result.accuracy is None
    data, result = together(model, (ROWS, DIGITS % 2))
    assert data.loss == "bce_logits"
    assert result.accuracy is not None


@pytest.mark.parametrize("outputs", [1, 2])
def test_two_other_numbers_are_numbered_to_fit(outputs):
    model = nn.Linear(16, outputs).eval()
    y = torch.where(DIGITS % 2 == 1, 9, 4)
    split = {"x": ROWS, "y": y, "x_test": ROWS[:4], "y_test": y[:4]}
    data, _ = together(model, split)
    assert data.y.tolist() == (DIGITS % 2).tolist()
    assert data.y_test.tolist() == (DIGITS[:4] % 2).tolist()
    text = f"the classes 4, 9 are numbered from 0 in this order, to fit {outputs} outputs"
    assert text in data.notes


def test_more_outputs_than_classes_are_no_fault():
    data, _ = together(nn.Linear(16, 10).eval(), (ROWS, DIGITS * 2))
    assert data.y.tolist() == (DIGITS * 2).tolist()


@pytest.mark.parametrize(
    ("outputs", "y", "options", "said"),
    [
        (2, DIGITS, {}, "found 2 outputs and 3 classes up to number 2"),
        (1, DIGITS, {}, "found 1 outputs and 3 classes"),
        (1, DIGITS % 2, {"loss": "cross_entropy"}, "cross_entropy must have an output for each cl"),
        (3, DIGITS, {"loss": "bce_logits"}, "bce_logits must have one output, found 3"),
        (3, ROWS[:, 0], {}, "an output for each of the 1 columns of y, found 3: use --labels cl"),
        (2, ROWS[:, :3], {}, "an output for each of the 3 columns of y, found 2"),
    ],
)
def test_outputs_that_do_not_fit_the_labels(outputs, y, options, said):
    with pytest.raises(DataError, match=said):
        together(nn.Linear(16, outputs).eval(), (ROWS, y), **options)


def test_images_as_outputs_have_no_labels():
    model = nn.Unflatten(1, (1, 4, 4)).eval()
    with pytest.raises(
        DataError, match=r"found shape \(1, 4, 4\): flatten it, or use --labels none"
    ):
        together(model, (ROWS, DIGITS))
    assert together(model, (ROWS, DIGITS), labels="none")[1] is None


@pytest.mark.parametrize("shape", [(8, 2), (2, 8)])
def test_classes_of_pixels_or_tokens_are_no_labels_of_examples(shape):
    model = nn.Unflatten(1, shape).eval()
    y = (ROWS[:, :8] > 0.5).long()
    data = together(model, (ROWS, y))[0]
    assert (data.task, data.y, data.loss) == ("unlabelled", None, None)
    assert sum("a class for each pixel or token: not used" in note for note in data.notes) == 1
    with pytest.raises(DataError, match="--labels none for classes of pixels or tokens"):
        together(model, (ROWS, y), labels="classes")
    with pytest.raises(DataError, match="for each of the 8 columns of y, found 16"):
        together(model, (ROWS, y), labels="regression")
    with pytest.raises(DataError, match="for each of the 8 columns of y, found 16"):
        together(model, (ROWS, 2 * y))  # a class 2 that no output stands for


def test_real_labels_may_have_the_shape_of_the_outputs():
    model = nn.Unflatten(1, (2, 8)).eval()
    for y in (ROWS, ROWS.unflatten(1, (2, 8))):
        data = fit_together(open_model(model), open_data((ROWS, y)))
        assert torch.equal(data.y, ROWS.unflatten(1, (2, 8)))


def test_probabilities_are_noticed():
    soft = nn.Sequential(FLAT, nn.Softmax(1)).eval()
    text = "the outputs look like probabilities: measuring before the softmax says more"
    assert text in together(soft, (ROWS, DIGITS))[0].notes
    assert text not in together(FLAT, (ROWS, DIGITS))[0].notes


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (nn.Sequential(nn.Conv2d(1, 1, 4), nn.Flatten()), torch.where(DIGITS % 2 == 1, 9, 4)),
        (nn.Sequential(FLAT, nn.Softmax(1)), DIGITS),
        (Squeezed(), ROWS[:, 0]),
    ],
)
def test_data_that_fit_are_not_changed_again(model, y):
    opened = open_model(model.eval())
    once, result = scored(opened, open_data((ROWS, y)))
    twice, again = scored(opened, once)
    assert again == result
    assert twice.notes == once.notes
    assert_close(twice.x, once.x, rtol=0, atol=0)
    assert_close(twice.y, once.y, rtol=0, atol=0)


def test_the_test_rows_are_measured_where_there_are_any():
    split = {"x": ROWS, "y": DIGITS, "x_test": ROWS[:7], "y_test": DIGITS[:7]}
    assert together(FLAT, split)[1].n == 7


# --- performance


@pytest.mark.parametrize("n", [1, 5, 30, 2500])
def test_performance_is_that_of_one_big_batch(n):
    x = torch.rand(n, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = torch.arange(n) % 3
    model = nn.Linear(16, 3, dtype=torch.float64).eval()
    result = performance(model, x, y, "cross_entropy")
    expected = nn.functional.cross_entropy(model(x), y).item()
    assert result.loss == pytest.approx(expected, rel=1e-12)
    assert result.accuracy == (model(x).argmax(1) == y).sum().item() / n
    assert result.n == n


def test_classes_under_the_squared_loss_are_one_hot_rows():
    result = performance(FLAT, ROWS, DIGITS, "mse")
    target = nn.functional.one_hot(DIGITS, 3)
    assert result.loss == pytest.approx((FLAT(ROWS) - target).pow(2).mean().item(), rel=1e-5)
    assert result.accuracy == (FLAT(ROWS).argmax(1) == DIGITS).sum().item() / 30
    one = nn.Linear(16, 1).eval()
    with torch.no_grad():
        one.weight.zero_()
        one.bias.fill_(0.25)  # below one half, above zero
    assert performance(one, ROWS, DIGITS % 2, "mse").accuracy == 20 / 30
    assert performance(one, ROWS, torch.zeros(30).long(), "mse").accuracy == 1.0
    assert performance(one, ROWS, torch.zeros(30).long(), "bce_logits").accuracy == 0.0


def test_performance_leaves_no_gradients_and_refuses_other_words():
    model = nn.Linear(16, 3).eval()
    performance(model, ROWS, DIGITS, "cross_entropy")
    assert model.weight.grad is None
    with pytest.raises(
        ValueError, match="loss must be one of 'mse', 'cross_entropy', 'bce_logits'"
    ):
        performance(model, ROWS, DIGITS, "hinge")
    with pytest.raises(ValueError, match="one label for each of the 30 points"):
        performance(model, ROWS, DIGITS[:3], "cross_entropy")


# --- many classes in few rows


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
@pytest.mark.parametrize("outputs", [997, 1000, 5000])
def test_whole_numbers_below_the_outputs_are_classes_though_few_come_twice(outputs, dtype):
    model, y = nn.Linear(16, outputs).eval(), (997 * torch.arange(30) // 30).to(dtype)
    data, result = together(model, {"x": ROWS, "y": y, "x_test": ROWS[:4], "y_test": y[:4]})
    assert data.task == data.settings["labels"] == "classes"
    assert data.loss == "cross_entropy"
    assert torch.equal(data.y, y.long())
    text = f"y holds integers from 0 to 963 and the model has {outputs} outputs: taken as clas"
    assert [note for note in data.notes if "taken as" in note] == [data.guess]
    assert data.guess.startswith(text)
    expected = nn.functional.cross_entropy(model(ROWS[:4]), y[:4].long()).item()
    assert result.loss == pytest.approx(expected)
    assert result.accuracy is not None


def test_few_classes_of_many_outputs_are_classes():
    data, _ = together(nn.Linear(16, 1000).eval(), (ROWS, 7 * DIGITS))
    assert (data.task, data.loss) == ("classes", "cross_entropy")


def test_whole_numbers_of_one_output_stay_a_regression():
    data, result = together(nn.Linear(16, 1).eval(), (ROWS, 33 * torch.arange(30)))
    assert (data.task, data.loss) == ("regression", "mse")
    assert result.accuracy is None
    assert any("taken as regression" in note for note in data.notes)


@pytest.mark.parametrize("y", [ROWS[:, 0], -33 * torch.arange(30), 2000 * torch.arange(30)])
def test_other_numbers_are_no_classes_of_many_outputs(y):
    with pytest.raises(DataError, match="must have an output for each of the 1 columns of y"):
        together(nn.Linear(16, 1000).eval(), (ROWS, y))


def test_labels_that_were_said_to_be_real_are_not_guessed_anew():
    with pytest.raises(DataError, match="must have an output for each of the 1 columns of y"):
        together(nn.Linear(16, 1000).eval(), (ROWS, 33 * torch.arange(30)), labels="regression")
