"""Assembly of a tangent kernel from blocks of samples and outputs."""

import itertools
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from inscape.kernels.tangent.factored_gradients import DenseGradient, ParameterGradient
from inscape.kernels.tangent.inputs import floating_like
from inscape.kernels.tangent.kernel_block import KernelBlock
from inscape.kernels.tangent.memory_plan import MemoryPlan
from inscape.kernels.tangent.vjp import BackwardPass, all_gradients
from inscape.runtime.progress import progress


@dataclass(frozen=True, eq=False, kw_only=True)
class AssembledKernel:
    """A kernel and the squared gradient norms of both sets of samples.

    Its axes are ``i, n, j, m`` for all pairs of outputs, ``i, n, m`` for equal ones, ``n, m`` for
    the trace; those of the squared norms ``i, n``, or ``n`` for the trace.
    """

    kernel: Tensor
    squared_norms: tuple[Float[Tensor, "*r n"], Float[Tensor, "*r m"]]
    methods: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Slice:
    """A range of outputs at a range of samples."""

    outputs: slice
    samples: slice


def assembled_kernel(
    model: nn.Module,
    x: Tensor,
    others: Tensor | None,
    *,
    outputs: str,
    count: int,
    plan: MemoryPlan,
    vectors: Float[Tensor, "count c"] | None = None,
) -> Generator[None, None, AssembledKernel]:
    """Return the kernel of all samples, computed block by block; yield between blocks.

    With ``vectors``, these linear combinations replace the outputs.
    """
    right_x = x if others is None else others
    n, m = len(x), len(right_x)
    shapes = {"full": (count, n, count, m), "diagonal": (count, n, m), "trace": (n, m)}
    like = floating_like(model, x)
    pairs = list(_pairs(len(x), len(right_x), count, plan, outputs, symmetric=others is None))
    kernel = like.new_empty(shapes[outputs]) if len(pairs) > 1 else like.new_empty(0)
    if outputs == "trace":
        kernel.zero_()
    squared_norms = [like.new_zeros(count, len(x)), like.new_zeros(count, len(right_x))]
    methods: dict[str, str] = {}
    cached: tuple[_Slice, BackwardPass] | None = None
    with progress(len(pairs), label="multiplying gradients") as bar:
        for left_slice, right_slice in pairs:
            if cached is None or cached[0] != left_slice:
                cached = left_slice, _backward(model, x, left_slice, vectors)
            same = others is None and left_slice == right_slice
            right = cached[1] if same else _backward(model, right_x, right_slice, vectors)
            norm_views = (
                None
                if others is None
                else _squared_norm_views(squared_norms, left_slice, right_slice)
            )
            product = _Product(model, cached[1], right, outputs, plan, norm_views)
            block = product.block(like)
            methods.update(product.methods)
            if len(pairs) == 1:
                kernel = block
                break
            _store(
                kernel,
                outputs,
                left_slice,
                right_slice,
                block,
                mirrored=others is None and not same,
            )
            bar.advance(1)
            yield
    totals = [s.sum(0) if outputs == "trace" else s for s in squared_norms]
    if others is None:
        totals = [_diagonal(kernel, outputs)] * 2
    return AssembledKernel(
        kernel=kernel, squared_norms=(totals[0], totals[1]), methods=tuple(methods.items())
    )


def _backward(model: nn.Module, x: Tensor, part: _Slice, vectors: Tensor | None) -> BackwardPass:
    """Return a forward pass at some samples, ready for VJPs of its outputs or combinations."""
    points = x[part.samples]
    if vectors is None:
        return BackwardPass(model, points, outputs=part.outputs)
    return BackwardPass(model, points, vectors[part.outputs, None].expand(-1, len(points), -1))


class _Product:
    """Inner products of two sets of gradients."""

    def __init__(
        self,
        model: nn.Module,
        left: BackwardPass,
        right: BackwardPass,
        outputs: str,
        plan: MemoryPlan,
        squared_norms: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._model, self._left, self._right = model, left, right
        self._outputs, self._plan, self._squared_norms = outputs, plan, squared_norms
        self.methods: dict[str, str] = {}
        for view in () if squared_norms is None else squared_norms:
            view.zero_()

    def block(self, like: Tensor) -> Tensor:
        """Return the block of the kernel."""
        left, right = self._left, self._right
        block = KernelBlock(
            self._outputs,
            (left.cotangent_count, len(left.y)),
            (right.cotangent_count, len(right.y)),
            symmetric=left is right,
            like=like,
        )
        for left_gradient, right_gradient, method in self._paired_gradients():
            used = block.add(left_gradient, right_gradient, self._plan.block_bytes)
            self.methods.update(dict.fromkeys(left_gradient.names, method or used))
            for squared_norms, gradient in zip(
                self._squared_norms or (), (left_gradient, right_gradient), strict=False
            ):
                squared_norms += gradient.squared_norms
        return block.total()

    def _paired_gradients(
        self,
    ) -> Iterator[tuple[ParameterGradient, ParameterGradient, str | None]]:
        """Yield pairs of gradients by the same parameters and of the same type.

        Where the control flow of a module depends on its input, a parameter may act differently in
        both sets, or in one of them only: then all gradients are dense.
        """
        left, right = self._left, self._right
        if left is not right and left.forms != right.forms:
            yield from self._dense()
            return
        for group in self._plan.groups:
            weights = [weight for weight in group if weight in left.layers]
            gradients = left.gradients(weights)
            if left is right:
                yield from ((gradient, gradient, None) for gradient in gradients)
            else:
                for left_gradient, right_gradient in zip(
                    gradients, right.gradients(weights), strict=True
                ):
                    yield left_gradient, right_gradient, None
        rest = left.dense_gradients()
        if rest is not None:
            right_rest = rest if left is right else right.dense_gradients()
            assert right_rest is not None
            yield rest[0], right_rest[0], rest[1]

    def _dense(self) -> Iterator[tuple[ParameterGradient, ParameterGradient, str | None]]:
        left_gradients, right_gradients = (
            all_gradients(side, self._model).by_parameter() for side in (self._left, self._right)
        )
        for name in left_gradients.keys() | right_gradients.keys():
            left_gradient, right_gradient = left_gradients.get(name), right_gradients.get(name)
            yield (
                DenseGradient(
                    names=(name,),
                    j=_zeros(self._left, right_gradient)
                    if left_gradient is None
                    else left_gradient,
                ),
                DenseGradient(
                    names=(name,),
                    j=_zeros(self._right, left_gradient)
                    if right_gradient is None
                    else right_gradient,
                ),
                "dense gradient",
            )


def _zeros(side: BackwardPass, like: Tensor | None) -> Tensor:
    """Return the zero gradients of a parameter that does not act at these samples."""
    assert like is not None
    return like.new_zeros(side.cotangent_count, len(side.y), like.shape[2])


def _squared_norm_views(
    squares: list[Tensor], left: _Slice, right: _Slice
) -> tuple[Tensor, Tensor]:
    return squares[0][left.outputs, left.samples], squares[1][right.outputs, right.samples]


def _diagonal(kernel: Tensor, outputs: str) -> Tensor:
    """Return the squared gradient norms: the diagonal of a symmetric kernel."""
    if outputs == "full":
        return kernel.diagonal(dim1=1, dim2=3).diagonal(dim1=0, dim2=1).T.clone()
    return kernel.diagonal(dim1=-2, dim2=-1).clone()


def _pairs(
    n: int, m: int, count: int, plan: MemoryPlan, outputs: str, *, symmetric: bool
) -> Iterator[tuple[_Slice, _Slice]]:
    output_slices = _slices(count, plan.outputs)
    left_slices, right_slices = (
        [
            _Slice(outputs_slice, samples)
            for outputs_slice in output_slices
            for samples in _slices(size, plan.points)
        ]
        for size in (n, m)
    )
    for index, left in enumerate(left_slices):
        for right in right_slices[index:] if symmetric else right_slices:
            if outputs == "full" or left.outputs == right.outputs:
                yield left, right


def _slices(n: int, size: int) -> list[slice]:
    count = -(-n // size)
    cuts = [n * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def _store(
    kernel: Tensor, outputs: str, left: _Slice, right: _Slice, block: Tensor, *, mirrored: bool
) -> None:
    """Store a block in the kernel, and its transpose where it is mirrored."""
    if outputs == "full":
        kernel[left.outputs, left.samples, right.outputs, right.samples] = block
        if mirrored:
            kernel[right.outputs, right.samples, left.outputs, left.samples] = block.permute(
                2, 3, 0, 1
            )
    elif outputs == "diagonal":
        kernel[left.outputs, left.samples, right.samples] = block
        if mirrored:
            kernel[left.outputs, right.samples, left.samples] = block.transpose(1, 2)
    else:
        kernel[left.samples, right.samples] += block
        if mirrored:
            kernel[right.samples, left.samples] += block.T
