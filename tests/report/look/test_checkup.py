import pytest
import torch
from torch import nn

from inscape.report import look
from inscape.report.look import checkup as checkup_module
from inscape.report.look.checkup import Checkup
from inscape.report.look.untrained_layers import is_drawn

X = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0).long()


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 100), nn.ReLU(), nn.Linear(100, 20), nn.ReLU(), nn.Linear(20, 4)
    ).eval()


def seen(model, x=X, y=Y):
    return look(model, (x, y), only="gradient_norm", quiet=True, work="batch=1600")  # no clock


def quarters(scale=1.0):
    """Return a network that is right on all rows if they are divided by ``scale``."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]]) @ torch.eye(2, 4))
        model[0].weight.div_(scale)
        model[0].bias.zero_()
        model[2].weight.copy_(
            torch.tensor([[-1, 1, -1, 1], [1, -1, -1, 1], [-1, 1, 1, -1], [1, -1, 1, -1.0]])
        )
        model[2].bias.zero_()
    return model


def test_outputs_answers_and_labels_are_those_of_the_same_rows():
    result = seen(quarters()).checkup
    assert isinstance(result, Checkup)
    assert result.n == 300
    assert torch.equal(result.answers, result.labels)
    assert result.linear.shape == (300, 4)


def test_fresh_weights_are_seen_and_trained_ones_are_not():
    assert seen(net()).checkup.fresh == ("0", "2")  # the last has too few weights
    assert "untrained" in {finding.rule for finding in seen(net()).findings}
    model = net()
    with torch.no_grad():
        model[0].weight.mul_(1.5)
    assert seen(model).checkup.fresh == ("2",)


def test_another_scaling_is_found():
    shifted = nn.Sequential(quarters(), nn.Identity()).eval()
    with torch.no_grad():
        shifted[0][0].bias.copy_(torch.tensor([-0.5, 0.5, -0.5, 0.5]))
        shifted[0][0].weight.mul_(1 / 255)
    x = (X.clamp(-2, 2) + 2) / 4  # classes turn at one half, in units of 255
    bright = 255 * x
    right = seen(shifted, bright, Y)
    assert right.scores[0].accuracy == pytest.approx(1.0, abs=0.02)
    wrong = seen(shifted, x, Y)
    assert max(wrong.checkup.scalings, key=wrong.checkup.scalings.get).startswith("--divide 0.0039")


def test_dead_units_are_counted():
    model = net()
    with torch.no_grad():
        model[0].bias[:10] = -100.0
    result = seen(model).checkup
    assert int(result.silent["1"].sum()) >= 10
    assert result.dead >= 10 / 120


def test_a_linear_network_is_linear():
    fit = torch.linalg.lstsq(X, nn.functional.one_hot(Y).float()).solution
    model = nn.Sequential(nn.Linear(4, 4, bias=False)).eval()
    with torch.no_grad():
        model[0].weight.copy_(fit.T)
    result = seen(model).checkup
    assert result.linearity is not None
    assert result.linearity > 0.9
    assert seen(net()).checkup.linearity < result.linearity


def test_hooks_are_taken_off_again():
    model = net()
    seen(model)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_that_refuses_other_scalings_is_looked_at():
    class Strict(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            if float(x.detach().abs().max()) > 10:
                raise ValueError("out of range")
            return self.net(x)

    result = seen(Strict().eval())
    assert result.checkup is not None
    refused = "--divide 0.00392156862745098"
    assert refused not in result.checkup.scalings
    assert result.unchecked == (
        f"The model refuses inputs with {refused} and --normalise mnist (ValueError: out of "
        "range).",
    )


def test_without_time_only_the_weights_are_looked_at_and_that_is_said():
    report = look(net(), (X, Y), only="gradient_norm", quiet=True, budget=0.0)
    assert report.checkup.n == 0
    assert report.unchecked == ("There was no time to check the predictions on single examples.",)
    assert [finding.rule for finding in report.findings] == ["untrained"]


def test_what_fails_is_told_and_the_rest_is_looked_at(monkeypatch):
    def broken(model):
        raise RuntimeError("no such\nluck")

    monkeypatch.setattr(checkup_module, "drawn_layers", broken)
    result = seen(quarters())
    assert result.checkup.n == 300
    assert result.unchecked == (
        "The weights were not compared with an initialisation (RuntimeError: no such).",
    )


def test_copies_of_units_are_counted_and_only_those():
    model = net()
    assert int(seen(model).checkup.copies["1"].sum()) == 0
    with torch.no_grad():
        model[0].weight[90:] = 3 * model[0].weight[:10]
        model[0].bias[90:] = 3 * model[0].bias[:10]
    copies = seen(model).checkup.copies["1"]
    assert copies.nonzero().flatten().tolist() == list(range(90, 100))
    assert seen(model).checkup.duplicate == pytest.approx(10 / 120)


def test_every_usual_draw_is_known_and_what_training_leaves_is_not():
    torch.manual_seed(0)
    draws = [
        nn.init.kaiming_uniform_, nn.init.kaiming_normal_, nn.init.xavier_uniform_,
        nn.init.xavier_normal_, lambda w: nn.init.kaiming_uniform_(w, a=5**0.5),
        lambda w: nn.init.normal_(w, std=0.02),
    ]  # fmt: skip
    for draw in draws:
        assert is_drawn(draw(torch.empty(20, 20)))
        for shape in ((64, 48), (32, 16, 3, 3)):
            weight = draw(torch.empty(shape))
            assert is_drawn(weight)
            assert not is_drawn(1.3 * weight)
            heavy = weight * (1 + torch.randn(shape).square())  # as training leaves its tails
            assert not is_drawn(heavy)
    assert not is_drawn(torch.zeros(10, 20))
