"""Matrix products of a stack whose summation order does not depend on the slot.

A BLAS may choose its kernel by the address of a matrix: Intel's MKL on AMD processors adds up in
another order where a matrix does not begin on a cache line, and in a stack of small matrices most
slots do not. So every slot of both factors, and of the product, begins on a cache line here: a
factor is copied, once for all its products, to memory with room between the slots, and rows or
columns of zeros are added to it until a slot of the product fills whole cache lines.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from inscape.ensembles.graph_cleanup import source

#: Bytes of a cache line, to which PyTorch aligns every tensor that it allocates.
LINE = 64

#: Multiplications below which PyTorch sums in a loop of its own, the same for every slot.
NATIVE = 400


class AlignedFactor(nn.Module):
    """A stack of matrices in memory where each begins on a cache line, with zeros behind it.

    Args:
        like: A stack of the same shape and strides.
        rows: Rows for which there is room, counted along the larger stride.
        columns: Columns for which there is room.
    """

    def __init__(self, like: Tensor, rows: int, columns: int) -> None:
        super().__init__()
        step = _rounded_up(rows * columns, LINE // like.element_size())
        buffer = torch.zeros(len(like) * step, dtype=like.dtype, device=like.device)
        self._room = buffer.as_strided((len(like), rows, columns), (step, columns, 1))
        self._inside = self.part(like, *like.shape[1:])

    def part(self, like: Tensor, rows: int, columns: int) -> Tensor:
        """Return the memory as a stack of ``rows x columns`` with the strides of another."""
        if _is_transposed(like):
            return self._room[:, :columns, :rows].mT
        return self._room[:, :rows, :columns]

    def forward(self, factor: Tensor) -> Tensor:
        """Copy the factor into the memory, and return that."""
        return self._inside.copy_(factor)


class AlignedProduct(nn.Module):
    """The product of two stacks of matrices, aligned in every slot.

    Args:
        size: Rows and columns of the product.
        parts: For each factor the memory that it was copied to, None if it was not.
    """

    def __init__(self, size: tuple[int, int], parts: tuple[Tensor | None, Tensor | None]) -> None:
        super().__init__()
        self._size, (self._left, self._right) = size, parts

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the product of each slot."""
        left = left if self._left is None else self._left
        right = right if self._right is None else self._right
        product = torch.bmm(left, right)
        rows, columns = self._size
        if product.shape[1:] == self._size:
            return product
        return product[:, :rows, :columns].contiguous()


def aligned_product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two stacks of matrices, all of them aligned in every slot."""
    rows, columns = padded(left.shape[1], right.shape[2], LINE // left.element_size())
    inner = left.shape[2]
    return AlignedProduct(
        (left.shape[1], right.shape[2]),
        (_aligned_copy(left, rows, inner), _aligned_copy(right, inner, columns)),
    ).forward(left, right)


def _aligned_copy(factor: Tensor, rows: int, columns: int) -> Tensor:
    room = (columns, rows) if _is_transposed(factor) else (rows, columns)
    memory = AlignedFactor(factor, *room)
    memory.forward(factor)
    return memory.part(factor, rows, columns)


def padded(rows: int, columns: int, line: int) -> tuple[int, int]:
    """Return the smallest matrix around ``rows x columns`` that fills whole lines of elements.

    >>> padded(12, 33, 16), padded(12, 31, 16), padded(8, 6, 16)
    ((12, 36), (12, 32), (8, 6))
    """
    taller = _rounded_up(rows, line // math.gcd(columns, line))
    wider = _rounded_up(columns, line // math.gcd(rows, line))
    return (taller, columns) if taller * columns <= rows * wider else (rows, wider)


class PairedBackward(nn.Module):
    """The gradients of a convolution of one sample, computed beside a second sample of zeros.

    With more than one sample PyTorch copies the tensors of a slot, and a copy is aligned.
    """

    def forward(self, upstream: Tensor, x: Tensor, *arguments: Any) -> list[Tensor | None]:
        """Return the gradients by the input, the weights and the biases."""
        pair = [torch.cat([tensor, torch.zeros_like(tensor)]) for tensor in (upstream, x)]
        by_input, *by_parameters = torch.ops.aten.convolution_backward(*pair, *arguments)
        return [None if by_input is None else by_input[:1], *by_parameters]


def align_products(graph: fx.GraphModule) -> fx.GraphModule:
    """Replace, in place, the operations whose sums may depend on an address; return the graph.

    A factor of several products, transposed or not, is copied once, unless an operation
    writes over tensors.
    """
    nodes = list(graph.graph.nodes)
    products = [_Product(node) for node in nodes if _is_product(node)]
    factors = [factor for product in products for factor in product.factors]
    if any(_writes(node) for node in nodes):
        for factor in factors:
            factor.memory = None if factor.memory is None else factor
    copies = _Copies(graph, factors)
    for product in products:
        parts = [copies.part(factor, product.node) for factor in product.factors]
        _replace(graph, product.node, AlignedProduct(product.size, (parts[0], parts[1])))
    for node in nodes:
        if _is_backward_of_one(node):
            _replace(graph, node, PairedBackward())
    graph.recompile()
    return graph


class _Factor:
    """A factor of a product, by its place there, and the size to which it is padded.

    Attributes:
        place: Whether it is the left one (0) or the right one (1).
        room: Its padded size in memory, along the larger stride first.
        memory: Key that factors share which show the same tensor, transposed or not; None for a
            factor that is aligned, and of the right size, by itself.
    """

    def __init__(self, node: fx.Node, place: int, size: tuple[int, int]) -> None:
        self.place, self.size = place, size
        self.like: Tensor = node.meta["val"]
        transposed = _is_transposed(self.like)
        self.room = (size[1], size[0]) if transposed else size
        matrix = self.like.mT if transposed else self.like
        self.memory: Hashable = source(node), matrix.dtype, matrix.shape, matrix.stride()
        steps = self.like.stride(0) % (LINE // self.like.element_size()) == 0
        if _is_new(source(node)) and steps and tuple(self.like.shape[1:]) == size:
            self.memory = None


class _Product:
    """A product of two stacks, and its factors as they are padded."""

    def __init__(self, node: fx.Node) -> None:
        left, right = node.args
        assert isinstance(left, fx.Node)
        assert isinstance(right, fx.Node)
        first, second = left.meta["val"], right.meta["val"]
        self.node, self.size = node, (first.shape[1], second.shape[2])
        rows, columns = padded(*self.size, LINE // first.element_size())
        inner = first.shape[2]
        self.factors = _Factor(left, 0, (rows, inner)), _Factor(right, 1, (inner, columns))


class _Copies:
    """The copies of factors in a graph, each made before the first product that reads it."""

    def __init__(self, graph: fx.GraphModule, factors: Sequence[_Factor]) -> None:
        self._graph = graph
        self._rooms: dict[Hashable, tuple[int, int]] = {}
        self._copies: dict[Hashable, tuple[fx.Node, AlignedFactor]] = {}
        for factor in factors:
            rows, columns = self._rooms.get(factor.memory, (0, 0))
            self._rooms[factor.memory] = max(rows, factor.room[0]), max(columns, factor.room[1])

    def part(self, factor: _Factor, product: fx.Node) -> Tensor | None:
        """Return the memory that a factor is copied to; None if it is aligned by itself."""
        if factor.memory is None:
            return None
        if factor.memory not in self._copies:
            self._copies[factor.memory] = self._copied(factor, product)
        node, module = self._copies[factor.memory]
        product.update_arg(factor.place, node)
        return module.part(factor.like, *factor.size)

    def _copied(self, factor: _Factor, product: fx.Node) -> tuple[fx.Node, AlignedFactor]:
        module = AlignedFactor(factor.like, *self._rooms[factor.memory])
        name = f"aligned_{len(self._copies)}"
        self._graph.add_submodule(name, module)
        with self._graph.graph.inserting_before(product):
            return self._graph.graph.call_module(name, (product.args[factor.place],)), module


def _replace(graph: fx.GraphModule, node: fx.Node, module: nn.Module) -> None:
    name = f"aligned_{node.name}"
    graph.add_submodule(name, module)
    with graph.graph.inserting_before(node):
        aligned = graph.graph.call_module(name, node.args)
    aligned.meta = node.meta
    node.replace_all_uses_with(aligned)
    graph.graph.erase_node(node)


def _is_backward_of_one(node: fx.Node) -> bool:
    """Return whether a node is the backward pass of a convolution of one sample."""
    if node.target is not torch.ops.aten.convolution_backward.default:
        return False
    upstream = node.args[0]
    assert isinstance(upstream, fx.Node)
    value = upstream.meta["val"]
    return value.device.type == "cpu" and len(value) == 1


def _is_product(node: fx.Node) -> bool:
    """Return whether a node is a matrix product that a BLAS computes."""
    if node.target is not torch.ops.aten.bmm.default:
        return False
    left, right = (factor.meta["val"] for factor in node.args if isinstance(factor, fx.Node))
    sums_by_itself = left[0].numel() * right.shape[2] < NATIVE
    return left.device.type == "cpu" and not sums_by_itself


def _is_transposed(stack: Tensor) -> bool:
    """Return whether the matrices of a stack are stored by columns."""
    return stack.stride(2) != 1


def _is_new(node: fx.Node) -> bool:
    """Return whether a node is a new tensor, which PyTorch has aligned, and not a view."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.op in ("placeholder", "call_module")
    return not (node.target.is_view or _writes(node))


def _writes(node: fx.Node) -> bool:
    """Return whether an operation writes over one of its arguments."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _rounded_up(size: int, unit: int) -> int:
    """Return the smallest multiple of the unit that is no smaller than the size."""
    return -(-size // unit) * unit
