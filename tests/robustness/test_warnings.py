"""Attacks that cannot be believed say so; wrong input is refused with what to do."""

import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.robustness import Apgd, Attack, AutoAttack, Fgsm, Pgd, Square, Target, robustness
from robustness.lines import linear


def stairs(model):
    """Return the model behind a staircase, whose gradient is zero."""
    return lambda x: model((8 * x).round() / 8)


def test_a_gradient_of_zero_everywhere_is_said():
    model, x = linear(8, 3), points(40, 8)
    y = stairs(model)(x).argmax(1)
    blind = robustness(stairs(model), x, y, attack=Pgd(random_start=False), budgets=[0.5])
    assert blind.accuracy[1] == 1.0
    assert blind.warnings[0].startswith("The gradient is zero or not finite at 40 of 40")
    assert any(
        "Random steps" in warning and "gradient masking" in warning for warning in blind.warnings
    )
    assert "read the warning" in repr(blind)
    seeing = robustness(stairs(model), x, y, attack=Square(queries=100), budgets=[0.5])
    assert seeing.accuracy[1] < 0.8
    assert seeing.warnings == ()


def test_the_advice_names_nothing_that_was_just_tried():
    model, x = linear(8, 3), points(12, 8)
    y = stairs(model)(x).argmax(1)
    ensemble = AutoAttack(parts=("apgd-ce", "square"), steps=5, queries=20)
    blind = robustness(stairs(model), x, y, attack=ensemble, budgets=[0.2]).warnings[0]
    assert blind.startswith("The gradient is zero")
    assert "'square'" not in blind
    assert "'autoattack'" not in blind
    assert "queries=20000" in blind
    alone = AutoAttack(parts=("apgd-ce",), steps=5)
    assert "'square'" in robustness(stairs(model), x, y, attack=alone, budgets=[0.2]).warnings[0]


def test_local_optima_are_not_called_masking():
    x = points(60, 2)
    waves = dense(2, 16, 3, act=nn.Tanh)
    with torch.no_grad():
        waves[0].weight *= 12  # many ridges: one step of the gradient leads nowhere
    y = waves(x).argmax(1)
    found = robustness(waves, x, y, attack=Pgd(steps=3, random_start=False), budgets=[0.6])
    (warning,) = found.warnings
    assert warning.startswith(
        "Random steps or a short random search within the largest budget broke"
    )
    assert "it ended in local optima, or gradients are masked; try 'autoattack'" in warning


def test_square_is_doubted_where_inputs_are_few_numbers():
    for d, doubted in ((2, True), (9, False)):
        model, x = linear(d, 3), points(20, d)
        attack = Square(queries=20)
        found = robustness(model, x, model(x).argmax(1), attack=attack, budgets=[0.05])
        assert [warning[:19] for warning in found.warnings] == ["Inputs of 2 numbers"] * doubted


def test_gradients_that_are_not_finite_are_said_and_break_nothing():
    class Rooted(nn.Module):
        def forward(self, x):  # sqrt has an infinite slope at 0, times 0 gives NaN
            return torch.stack([x[:, 0] + 1, (0 * x[:, 1]).sqrt()], dim=1)

    x = points(6, 2).abs()
    found = robustness(Rooted().eval(), x, torch.zeros(6, dtype=torch.long), budgets=[0.1])
    assert found.accuracy.tolist() == [1.0, 1.0]
    assert any("not finite at 6 of 6" in warning for warning in found.warnings)


def test_probabilities_are_noticed():
    model = nn.Sequential(dense(3, 8, 3), nn.Softmax(dim=1)).eval()
    x = points(20, 3)
    found = robustness(model, x, model(x).argmax(1), budgets=[0.2])
    assert any(warning.startswith("The outputs are probabilities") for warning in found.warnings)


def test_a_sigmoid_is_a_probability_and_half_of_it_decides():
    logit, x = dense(3, 8, 1), points(40, 3)
    y = (logit(x)[:, 0] > 0).long()
    assert 0 < int(y.sum()) < 40
    found = robustness(nn.Sequential(logit, nn.Sigmoid()).eval(), x, y, budgets=[0.02])
    assert found.accuracy[0] == 1.0
    assert found.accuracy[1] == robustness(logit, x, y, budgets=[0.02]).accuracy[1]
    assert any(warning.endswith("before the sigmoid.") for warning in found.warnings)


@pytest.mark.parametrize("attack", ["pgd", "noise"])
def test_outputs_that_may_be_probabilities_are_doubted(attack):
    logit, x = dense(3, 8, 1), points(40, 3)
    y = (logit(x)[:, 0] > 0).long()
    found = robustness(lambda x: 1 / (1 + (-logit(x)).exp()), x, y, attack=attack, budgets=[0.1])
    assert any("but are read as logits" in warning for warning in found.warnings)
    plain = robustness(logit, x, y, attack=attack, budgets=[0.1])
    assert not any("logits" in warning for warning in plain.warnings)


def test_scores_that_are_not_numbers_count_as_wrong():
    model, x = linear(3, 3), points(20, 3)
    y = model(x).argmax(1)

    def breaks(z):  # away from the points there is no answer
        near = torch.cdist(z, x).amin(1, keepdim=True) < 0.05
        return torch.where(near, model(z), torch.nan)

    found = robustness(breaks, x, y, attack=Fgsm(), budgets=[0.01, 1.0])
    assert found.accuracy[2] == 0
    assert any(warning.startswith("Scores are not numbers at ") for warning in found.warnings)
    assert (found.answer == -1).any()
    assert not any(
        "numbers" in warning for warning in robustness(model, x, y, budgets=[0.1]).warnings
    )


def test_an_honest_network_leaves_no_doubt():
    model, x = dense(3, 16, 3), points(40, 3)
    assert robustness(model, x, model(x).argmax(1), budgets=[0.1, 0.3]).warnings == ()


X = points(6, 3)
MODEL = linear(3, 3)
Y = MODEL(X).argmax(1)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budgets": [0.5, 0.1]}, r"budgets must rise, found \[0.5, 0.1\]: sort them"),
        ({"budgets": [0.1, 0.1]}, r"budgets must rise, .* each one once"),
        ({"budgets": [-0.1, 0.1]}, r"budgets must be finite and not negative, found \[-0.1, 0.1\]"),
        ({"budgets": [float("nan")]}, r"budgets must be finite and not negative, found \[nan\]"),
        ({"budgets": [0.0]}, r"budgets must hold a number above 0, found \[0.0\]: add one"),
        ({"bounds": (0.0, 1.0)}, r"x must lie within the bounds 0 to 1, found -.* of 6 points"),
        ({"bounds": (1.0, 0.0)}, r"bounds must be \(lowest, highest\) .* or None for no bounds"),
        ({"attack": "deepfool"}, r"attack must be one of 'noise', 'fgsm', .* found 'deepfool'"),
        ({"points": 0}, r"points must be at least 1, found 0: raise points"),
        ({"examples": -1}, r"examples must be at least 0, found -1: raise examples"),
        ({"y": None}, r"needs the class number of each point, found data without labels: pass y"),
        ({"y": Y + 1}, r"class numbers must lie between 0 and 2, .* found .* to 3 in shape \(6,\)"),
        ({"y": Y[:4]}, r"y must hold one label for each of the 6 points, found shape \(4,\)"),
        (
            {"y": torch.stack([Y, Y], 1)},
            r"found .* in shape \(6, 2\): renumber y",
        ),
    ],
)
def test_wrong_input_is_refused(change, text):
    settings = {"y": Y, "budgets": [0.1], **change}
    with pytest.raises(ValueError, match=text):
        robustness(MODEL, X, settings.pop("y"), **settings)


def test_a_model_in_training_mode_is_refused():
    with pytest.raises(ValueError, match=r"must be in eval mode, .* call model.eval\(\) first"):
        robustness(linear(3, 3).train(), X, Y)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budgets": 0.1}, r"budgets must be a list of numbers, found 0.1: pass e.g. \[0.1\]"),
        ({"budgets": "0.1"}, r"budgets must be a list of numbers, found '0.1'"),
        ({"budgets": ["a"]}, r"budgets must be a list of numbers, found \['a'\]: pass e.g. \[0.1"),
        ({"budgets": [None]}, r"budgets must be a list of numbers, found \[None\]"),
        ({"budgets": torch.tensor(0.1)}, r"list of numbers, found tensor\(0.1.*\): pass e.g. \[0."),
        ({"budgets": torch.rand(2, 2)}, r"budgets must be a list of numbers, found tensor\("),
        ({"bounds": (None, 1.0)}, r"bounds must be two numbers or tensors, .* found \(None, 1.0\)"),
        ({"bounds": 1.0}, r"bounds must be two numbers or tensors, .* found 1.0: for one that"),
        ({"bounds": (0.0, 0.5, 1.0)}, r"bounds must be two numbers or tensors"),
    ],
)
def test_wrong_kinds_of_settings_are_refused(unchecked, change, text):
    with pytest.raises(TypeError, match=text):
        robustness(MODEL, X, Y, **change)


def test_wrong_words_are_refused(unchecked):
    with pytest.raises(ValueError, match="norm must be one of 'l2', 'linf', found 'l1'"):
        robustness(MODEL, X, Y, norm="l1")
    with pytest.raises(ValueError, match="norm must be one of 'l2', 'linf', found 'l1'"):
        Pgd(norm="l1")
    with pytest.raises(ValueError, match="reading must be one of 'steepest', 'sign', found 'up'"):
        Fgsm(reading="up")
    with pytest.raises(ValueError, match="loss must be one of 'ce', 'dlr', 'targeted', found 'x'"):
        Apgd(loss="x")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Pgd(steps=0), "steps must be at least 1, found 0: raise steps"),
        (lambda: Pgd(step_size=-1.0), "must be a positive fraction of the budget, found -1"),
        (lambda: Apgd(restarts=0), "restarts must be at least 1, found 0"),
        (lambda: Square(queries=0), "queries must be at least 1, found 0"),
        (lambda: Square(start=0.0), "start must be a fraction between 0 and 1, found 0"),
        (lambda: AutoAttack(parts=()), "parts must be at least 1, found 0"),
        (lambda: AutoAttack(parts=("pgd",)), "parts must be one of 'apgd-ce', .* found 'pgd'"),
    ],
)
def test_attacks_refuse_settings_that_cannot_be(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_an_attack_of_ones_own(unchecked):
    class Nothing(Attack):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing must define passes\(\)"):
        Nothing().passes(3)
    with pytest.raises(NotImplementedError, match=r"Nothing must define perturb\(\)"):
        Nothing().perturb(None)

    class Mirror(Attack):
        follows_gradients = False

        def passes(self, classes: int) -> float:
            return 1.0

        def perturb(self, target: Target) -> torch.Tensor:
            return -target.x

    found = robustness(MODEL, X, Y, attack=Mirror(), budgets=[0.01, 20.0])
    assert found.attack == "mirror"
    assert found.settings == "mirror(l2)"
    assert found.accuracy[1] >= found.accuracy[2]
    assert found.accuracy[2] < 1.0
