import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import UnsupportedModelError
from inscape.functional.hessian_products import (
    GaussNewtonProducts,
    HessianProducts,
    Term,
    joined,
)
from oracles.curvature import gauss_newton, hessian, loss_of


def cut(model, x, y, *sizes):
    """Return the terms of a mean squared error over batches of these sizes."""
    parts = zip(x.split(sizes), y.split(sizes), strict=True)
    return [
        Term(
            len(a) / len(x),
            lambda a=a, b=b: nn.functional.mse_loss(model(a), b),
            outputs=lambda a=a: model(a),
            output_hessian=lambda outputs, tangents: 2 / outputs.numel() * tangents,
        )
        for a, b in parts
    ]


def case():
    model, x = dense(3, 5, 4, 2, act=nn.Tanh), points(9, 3)
    return model, x, points(9, 2, seed=3)


@pytest.mark.parametrize("sizes", [(9,), (4, 5), (1, 6, 2)])
@pytest.mark.parametrize("kept", [False, True])
def test_uneven_batches_give_the_product_of_the_whole_hessian(sizes, kept):
    model, x, y = case()
    product = HessianProducts(cut(model, x, y, *sizes), list(model.parameters()), kept=kept)
    expected = hessian(model, x, y, "mse")
    for seed in range(2):
        vector = points(product.size, seed=seed)
        assert_close(product(vector), expected @ vector)


def test_whole_matrix_equals_that_of_autograd_and_decay_is_added_once():
    model, x, y = case()
    product = HessianProducts(cut(model, x, y, 4, 5), list(model.parameters()), decay=0.3)
    expected = hessian(model, x, y, "mse")
    expected = expected + 0.3 * torch.eye(len(expected), dtype=torch.float64)
    assert_close(product.matrix(), expected)
    vector = points(product.size)
    assert_close(product(vector), expected @ vector)


def test_product_is_the_finite_difference_of_gradients():
    model, x, y = case()
    tensors = list(model.parameters())
    product, step = HessianProducts(cut(model, x, y, 9), tensors, decay=0.1), 1e-5
    vector, gradients = points(product.size), []
    image = product(vector)
    for sign in (1, -1):
        with torch.no_grad():
            for tensor, part in zip(tensors, product.split(vector), strict=True):
                tensor += sign * step * part
        gradients.append(product.gradient())
        with torch.no_grad():
            for tensor, part in zip(tensors, product.split(vector), strict=True):
                tensor -= sign * step * part
    # central differences: the truncation is the step squared, the rounding 1e-16 over the step
    assert_close((gradients[0] - gradients[1]) / (2 * step), image, rtol=1e-6, atol=1e-8)


def test_gauss_newton_is_jacobians_around_the_hessian_of_the_loss():
    model, x, y = case()
    product = GaussNewtonProducts(cut(model, x, y, 4, 5), list(model.parameters()))
    expected = gauss_newton(model, x, y, "mse")
    vector = points(product.size)
    assert_close(product(vector), expected @ vector)
    assert_close(product.matrix(), expected)


def test_value_and_gradient_have_the_decay():
    model, x, y = case()
    product = HessianProducts(cut(model, x, y, 2, 7), list(model.parameters()), decay=0.4)
    loss, flat = loss_of(model, x, y, "mse")
    flat.requires_grad_()
    whole = loss(flat) + 0.2 * flat.square().sum()
    assert product.value() == pytest.approx(float(whole.detach()))
    assert_close(product.gradient(), torch.autograd.grad(whole, flat)[0])


def test_some_parameters_alone_are_a_block_of_the_matrix():
    model, x, y = case()
    layer = list(model[2].parameters())
    product = HessianProducts(cut(model, x, y, 9), layer)
    before = sum(p.numel() for p in model[0].parameters())
    block = slice(before, before + product.size)
    assert_close(product.matrix(), hessian(model, x, y, "mse")[block, block])


def test_parameters_without_curvature_have_zero_rows():
    weight, bias = nn.Parameter(points(3)), nn.Parameter(points(2))
    product = HessianProducts(
        [Term(1.0, lambda: weight.square().sum() + bias.sum())], [weight, bias]
    )
    assert_close(product.matrix(), torch.diag(torch.tensor([2.0, 2, 2, 0, 0]).double()))
    linear = HessianProducts([Term(1.0, lambda: bias.sum())], [bias])
    assert_close(linear(points(2)), torch.zeros(2).double())


def test_vectors_split_and_join():
    weight, bias = nn.Parameter(points(2, 3)), nn.Parameter(points(2))
    product = HessianProducts([], [weight, bias])
    vector = points(8)
    assert_close(joined(product.split(vector)), vector)
    assert [part.shape for part in product.split(vector)] == [(2, 3), (2,)]


def test_loss_without_second_derivative_is_refused():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return 3 * gradient

    weight = nn.Parameter(points(3))
    product = HessianProducts([Term(1.0, lambda: Once.apply(weight).square().sum())], [weight])
    with pytest.raises(UnsupportedModelError, match="must be twice differentiable by the param"):
        product(points(3))


def test_loss_of_several_numbers_is_refused():
    weight = nn.Parameter(points(3))
    product = HessianProducts([Term(1.0, lambda: weight**2)], [weight])
    with pytest.raises(ValueError, match=r"must be one real number, found shape \(3,\)"):
        product(points(3))
