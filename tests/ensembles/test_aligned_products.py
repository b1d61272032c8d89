"""Products of stacks: every slot on a cache line, and views that are the same view."""

import itertools

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from inscape.ensembles.aligned_products import (
    LINE,
    NATIVE,
    AlignedFactor,
    align_products,
    padded,
)
from inscape.ensembles.graph_cleanup import simplify

SIZES = [*itertools.product((1, 9, 33), (12, 31), (2, 7, 50)), (16, 32, 64)]


def draw(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def written(function, *tensors):
    """Write down a function of every slot as stacks do."""
    return align_products(simplify(make_fx(vmap(function))(*tensors)))


def begins(stack):
    """Tell for each slot whether it begins on a cache line."""
    return [stack[k].data_ptr() % LINE == 0 for k in range(len(stack))]


@pytest.fixture
def products(monkeypatch):
    """Note the factors and the product of every call of the BLAS."""
    noted, bmm = [], torch.bmm

    def noting(left, right):
        noted.append((left, right, bmm(left, right)))
        return noted[-1][-1]

    monkeypatch.setattr(torch, "bmm", noting)
    return noted


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_every_slot_begins_on_a_cache_line(m, k, n, dtype, products):
    layouts = {
        lambda a, b: a @ b: ((m, k), (k, n)),
        lambda a, b: a.T @ b: ((k, m), (k, n)),
        lambda a, b: a @ b.T: ((m, k), (n, k)),
        lambda a, b: a.T @ b.T: ((k, m), (n, k)),
    }
    for product, shapes in layouts.items():
        left, right = (draw(5, *shape, dtype=dtype) for shape in shapes)
        found = written(product, left, right)(left, right)
        assert_close(found, vmap(product)(left, right))
        assert found.is_contiguous()
        assert len(products) == (m * k * n >= NATIVE)
        for stack in itertools.chain(*products):
            assert all(begins(stack))
        products.clear()


def test_a_part_of_a_tensor_is_copied_to_where_a_line_begins(products):
    whole, right = draw(3, 21, 16), draw(3, 16, 16)
    found = written(lambda a, b: a[5:] @ b, whole, right)(whole, right)
    assert_close(found, whole[:, 5:] @ right)
    assert len(products) == 1
    assert all(all(begins(stack)) for stack in products[0])


def test_what_is_aligned_by_itself_is_not_copied(products):
    left, right = draw(3, 16, 32), draw(3, 16, 32)
    written(lambda a, b: a @ b.T, left, right)(left, right)
    assert products[0][0].data_ptr() == left.data_ptr()
    assert products[0][1].data_ptr() == right.data_ptr()


def test_a_factor_of_several_products_is_copied_once(products):
    def function(a, b, c):
        first = a @ b
        return first @ c, first.T @ a, a.T @ c.T, torch.tanh(first) @ b

    tensors = [draw(5, 9, 9, seed=k) for k in range(3)]
    graph = written(function, *tensors)
    copies = [m for m in graph.children() if isinstance(m, AlignedFactor)]
    assert len(copies) == 5  # of a, b, c, first and tanh(first)
    for _ in range(2):  # nothing is left from one call to the next
        for ours, theirs in zip(graph(*tensors), vmap(function)(*tensors), strict=True):
            assert_close(ours, theirs)
        assert all(all(begins(stack)) for product in products for stack in product)
        tensors = [2 - tensor for tensor in tensors]


def test_a_factor_that_is_written_over_between_products_is_copied_anew():
    def function(a, b):
        first = a @ b
        before = first @ b
        return before, first.relu_() @ b, first @ b

    tensors = [draw(5, 9, 9, seed=k) for k in range(2)]
    for ours, theirs in zip(
        written(function, *tensors)(*tensors), vmap(function)(*tensors), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns"), [(1, 7), (7, 9), (12, 33), (33, 12), (8, 2), (3, 32)])
def test_padding_is_the_least_that_fills_lines(rows, columns, dtype):
    line = LINE // dtype.itemsize
    sizes = [(r, columns) for r in range(rows, rows + line)]
    sizes += [(rows, c) for c in range(columns, columns + line)]
    least = min(r * c for r, c in sizes if r * c % line == 0)
    found = padded(rows, columns, line)
    assert found in sizes
    assert found[0] * found[1] == least


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_a_convolution_have_the_same_bits_in_all_slots(dtype, samples):
    def total(weight, bias, x):
        return nn.functional.conv2d(x, weight, bias).square().sum()

    def gradients(*tensors):
        return grad(total, (0, 1, 2))(*tensors)

    for channels, kernel in itertools.product((1, 3, 7), (1, 3)):
        one = draw(7, channels, kernel, kernel), draw(7), draw(samples, channels, 7, 7)
        stacked = [torch.stack([tensor] * 8).to(dtype) for tensor in one]
        found = written(gradients, *stacked)(*stacked)
        for tensor, alone in zip(found, gradients(*(t[0] for t in stacked)), strict=True):
            assert all(torch.equal(slot, tensor[0]) for slot in tensor)
            if dtype is torch.float64:
                assert_close(tensor[0], alone)


def test_equal_views_are_one_and_parts_stay_apart():
    def function(a, b):
        turned = a.T.T.detach().reshape(6, 4)
        return turned[:2] @ b + turned[2:4] @ b, turned.T @ a.T.T

    a, b = draw(3, 6, 4), draw(3, 4, 5)
    graph = make_fx(vmap(function))(a, b)
    before = len(graph.graph.nodes)
    assert len(simplify(graph).graph.nodes) <= before - 8
    for ours, theirs in zip(graph(a, b), vmap(function)(a, b), strict=True):
        assert_close(ours, theirs)
