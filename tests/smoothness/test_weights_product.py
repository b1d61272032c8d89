import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from cases import CASES, dense, points
from inscape._core import NotApplicable, UnsupportedModelError
from inscape.smoothness import weights_product, weights_product_penalty


def by_hand(f):
    first, second = f[0].weight.detach(), f[2].weight.detach()
    return (second.norm(dim=0) * first.norm(dim=1)).sum()


@pytest.mark.parametrize("case", ["two-layer", "two-layer, three outputs", "one input"])
def test_sum_of_products_of_norms(case):
    f, x, _ = CASES[case]()
    result = weights_product(f, x)
    assert result.summary().kind == "exact"
    assert_close(torch.tensor(result.summary().value, dtype=torch.float64), by_hand(f))


class Functional(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.a, self.b = f[0], f[2]

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


class InPlace(Functional):
    def forward(self, x):
        z = self.a(x)
        return self.b(z.relu_())


class Clamped(Functional):
    def forward(self, x):
        return self.b(self.a(x).clamp(min=0))


class ByHand(Functional):
    def forward(self, x):
        return torch.relu(x @ self.a.weight.T + self.a.bias) @ self.b.weight.T + self.b.bias


class Buffered(Functional):
    """Normalises its input by buffers, has dropout and batch norm in eval mode."""

    def __init__(self, f):
        super().__init__(f)
        self.register_buffer("scale", torch.ones(3, dtype=torch.float64))
        self.norm = nn.BatchNorm1d(8, eps=0.0, dtype=torch.float64)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.b(self.drop(F.relu(self.norm(self.a(x / self.scale)))))


class Split(Functional):
    """Two ReLU calls, one half of the units each."""

    def forward(self, x):
        z = self.a(x)
        return self.b(torch.cat([torch.relu(z[:, :5]), torch.relu(z[:, 5:])], dim=1))


class Images(Functional):
    def forward(self, x):
        return self.b(F.relu(self.a(x.flatten(1)))).squeeze(1)


@pytest.mark.parametrize("style", [Functional, InPlace, Clamped, ByHand, Buffered, Split, Images])
def test_any_way_of_writing_it_gives_the_same_number(style):
    f = dense(3, 8, 1)
    ours = weights_product(style(f).eval(), points(2, 3))
    assert ours.summary().value == pytest.approx(float(by_hand(f)), rel=1e-12)


def test_convolution_is_a_layer_like_any_other():
    f = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    f = f.double().eval()
    x = points(1, 1, 4, 4)
    jacobian = torch.func.jacrev(lambda x: f[0](x).flatten())(x).reshape(8, 16)
    expected = (f[3].weight.norm(dim=0) * jacobian.norm(dim=1)).sum()
    assert weights_product(f, x).summary().value == pytest.approx(expected.item(), rel=1e-12)


class Shuffled(Functional):
    """Deals the hidden units out like cards before the second layer."""

    def forward(self, x):
        z = F.relu(self.a(x))
        return self.b(z.view(-1, 2, 4).transpose(1, 2).reshape(-1, 8))


def test_units_are_paired_with_their_own_outgoing_weights():
    f = dense(3, 8, 1)
    order = torch.arange(8).view(2, 4).T.reshape(-1)
    expected = (f[2].weight[0].abs() * f[0].weight[order].norm(dim=1)).sum().item()
    ours = weights_product(Shuffled(f).eval(), points(2, 3)).summary().value
    assert ours == pytest.approx(expected, rel=1e-12)


def test_layer_at_several_positions_has_units_at_each():
    f = dense(3, 8, 1)
    ours = weights_product(f, points(2, 4, 3))
    assert len(ours.terms) == 32
    assert ours.summary().value == pytest.approx(4 * float(by_hand(f)), rel=1e-12)


class Vector(Functional):
    def forward(self, x):
        return torch.mv(F.relu(self.a(x)), self.b.weight[0])


class Columns(Functional):
    def forward(self, x):
        return (self.b.weight @ F.relu(self.a.weight @ x.T + self.a.bias[:, None])).T


class Squared(Functional):
    def forward(self, x):
        z = F.relu(self.a(x))
        return self.b(z * z)


def test_output_by_a_vector_is_a_second_layer():
    f = dense(3, 8, 1)
    ours = weights_product(Vector(f).eval(), points(2, 3)).summary().value
    assert ours == pytest.approx(float(by_hand(f)), rel=1e-12)


class Past(Functional):
    """Asks its ReLU layer for a shape only."""

    def forward(self, x):
        return x[:, :1] + torch.zeros_like(F.relu(self.a(x)))[:, :1]


class Skip(Functional):
    def forward(self, x):
        return self.b(F.relu(self.a(x))) + x[:, :1]


class Gated(Functional):
    def forward(self, x):
        z = self.a(x)
        return self.b(F.relu(z) * z)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (dense(3, 4, 4, 1), "it has a second ReLU layer \\('relu' in module '3'\\)"),
        (dense(3, 4, 1, act=nn.Tanh), "'tanh' in module '1' is neither affine nor a ReLU"),
        (dense(3, 4, 1, act=nn.LeakyReLU), "'leaky_relu' in module '1' is neither affine"),
        (Skip(dense(3, 4, 1)).eval(), "its input also goes past the ReLU \\('add'"),
        (Gated(dense(3, 4, 1)).eval(), "'mul' is neither affine nor a ReLU"),
        (Columns(dense(3, 4, 1)).eval(), "'numpy_T' moves the batch from the first dimension"),
        (Squared(dense(3, 4, 1)).eval(), "'mul' is neither affine nor a ReLU"),
        (nn.Linear(3, 1).double().eval(), "it has no ReLU"),
        (Past(dense(3, 4, 1)).eval(), "its output does not come through the ReLU layer"),
    ],
)
def test_other_networks_are_answered_with_the_reason(model, reason):
    result = weights_product(model, points(2, 3))
    assert isinstance(result, NotApplicable)
    with pytest.raises(ValueError, match=reason):
        raise ValueError(result.status)
    assert result.status.startswith("not applicable: the model is not a two-layer ReLU network")


def test_control_flow_that_cannot_be_exported_is_answered_with_the_reason():
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    result = weights_product(Branch().eval(), points(2, 3))
    assert "torch.export" in result.status


@pytest.mark.parametrize("style", [lambda f: f, Functional, ByHand, Split])
def test_penalty_is_the_measure_and_has_its_closed_gradient(style):
    f = dense(3, 8, 1)
    model, x = style(f), points(4, 3)
    penalty = weights_product_penalty(model, x)
    assert_close(penalty.detach(), by_hand(f))
    (g,) = torch.autograd.grad(penalty, f[2].weight)
    assert_close(g, f[2].weight.detach().sign() * f[0].weight.detach().norm(dim=1))


def test_penalty_follows_the_weights_and_the_modules():
    f, x = dense(3, 8, 1), points(4, 3)
    weights_product_penalty(f, x)
    with torch.no_grad():
        f[0].weight *= 2
    assert_close(weights_product_penalty(f, x).detach(), by_hand(f))
    f[0] = nn.Linear(3, 8, dtype=torch.float64)
    assert_close(weights_product_penalty(f, x).detach(), by_hand(f))


def test_penalty_works_and_leaves_the_mode_in_training():
    f, x = dense(3, 8, 1).train(), points(4, 3)
    assert_close(weights_product_penalty(f, x).detach(), by_hand(f))
    assert f.training


def test_penalty_refuses_other_networks():
    with pytest.raises(UnsupportedModelError, match="needs a two-layer ReLU network, but it has a"):
        weights_product_penalty(dense(3, 4, 4, 1), points(2, 3))


class Scaled(Functional):
    k = 1.0

    def forward(self, x):
        return self.k * super().forward(x)


def test_penalty_follows_plain_attributes():
    f, x = Scaled(dense(3, 8, 1)), points(4, 3)
    before = weights_product_penalty(f, x)
    f.k = 3.0
    assert_close(weights_product_penalty(f, x), 3 * before)


def test_penalty_leaves_every_module_in_its_own_mode():
    f = dense(3, 8, 1).train()
    f[1].eval()
    weights_product_penalty(f, points(4, 3))
    assert [module.training for module in f] == [True, False, True]
