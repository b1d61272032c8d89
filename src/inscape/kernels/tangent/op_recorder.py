"""Recorder of the ops through which parameters act, during one call of a module.

Linear layers, convolutions, normalisations, embeddings, and parameters that are added, multiplied
or expanded: the input of each op is stored, with the edge of its output in the autograd graph.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inscape._core import UnsupportedModelError

Arguments = tuple[Any, ...]
Named = dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterOp:
    """One op z = op(a; weight, bias) of a call: its parameters, its input and its output's edge.

    ``kind`` is ``"linear"``, ``"convolution"``, ``"scale"`` (a times weight, plus a bias),
    ``"shift"`` (the weight alone is added or expanded) or ``"embedding"`` (rows of the weight,
    indexed by ``a``). ``fold`` is the axis of the samples in ``shape``, see
    :mod:`inscape.kernels.tangent.per_sample_ops`.
    """

    kind: str
    weight: str
    bias: str | None
    a: Tensor
    edge: GradientEdge
    shape: tuple[int, ...]
    options: Mapping[str, Any]
    fold: str = "first"


class OpRecorder(TorchFunctionMode):
    """Records the ops of parameters in one call, without effect on modules, hooks and threads.

    ``differentiates_itself`` is set if the module runs a backward pass, which hides parameters.
    """

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._names = {id(p): name for name, p in named.items()}
        self._versions: list[int] = []
        self.ops: list[ParameterOp] = []
        self.differentiates_itself = False

    def refuse_overwriting(self) -> None:
        """Raise if a module modifies the input of an op in place, as autograd would."""
        for op, version in zip(self.ops, self._versions, strict=True):
            if op.a._version != version:
                raise UnsupportedModelError(
                    f"the model must not modify the input of {op.weight!r}, found it changed "
                    "afterwards: remove in-place operations from its forward."
                )

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: Arguments = (),
        kwargs: Named | None = None,
    ) -> Any:
        keywords = kwargs or {}
        self.differentiates_itself |= func in BACKWARD_CALLS
        handler = HANDLERS.get(func)
        # Gradients may be switched off, or a transform of torch.func may be under way.
        if handler and torch.is_grad_enabled() and peek_interpreter_stack() is None:
            z = handler(self, func, args, keywords)
            if z is not None:
                return z
        return func(*args, **keywords)

    def _linear(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        a, weight, bias = bound_arguments(("input", "weight", "bias"), args, kwargs)
        if not self._are_parameters(weight, bias) or weight.ndim != 2:
            return None
        z = func(attached(a), weight.detach(), None if bias is None else bias.detach())
        return self._record("linear", weight, bias, a, z)

    def _convolution(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        a, weight, bias, *rest = bound_arguments(names, args, kwargs)
        batched = a.ndim == CONVOLUTIONS[func] + 2
        if not batched or not self._are_parameters(weight, bias) or isinstance(rest[1], str):
            return None
        defaults = (1, 0, 1, 1)
        values = [d if value is None else value for value, d in zip(rest, defaults, strict=True)]
        z = func(attached(a), weight.detach(), None if bias is None else bias.detach(), *values)
        options = dict(zip(names[3:], values, strict=True), kernel=tuple(weight.shape[2:]))
        return self._record("convolution", weight, bias, a, z, **options)

    def _batch_norm(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Record batch norm with running statistics as an affine map."""
        names = ("input", "running_mean", "running_var", "weight", "bias", "training")
        a, mean, var, weight, bias, training = bound_arguments(names, args[:6], kwargs)
        if training or not self._are_parameters(weight, bias):
            return None
        eps = args[7] if len(args) > 7 else kwargs.get("eps", 1e-5)
        shape = (1, -1, *(1,) * (a.ndim - 2))
        inverse = (var.detach() + eps).rsqrt()
        scale = inverse * weight.detach()
        shift = -mean.detach() * scale
        if bias is not None:
            shift = shift + bias.detach()
        hat = (a.detach() - mean.detach().view(shape)).mul_(inverse.view(shape))
        z = attached(a) * scale.view(shape) + shift.view(shape)
        return self._record_scale(weight, bias, hat, z, shape)

    def _norm(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Split a normalisation into the part without parameters, and scale and shift."""
        names = NORMS[func]
        arguments = dict(zip(names, bound_arguments(names, args, kwargs), strict=True))
        weight, bias = arguments["weight"], arguments.get("bias")
        if not self._are_parameters(weight, bias):
            return None
        a = arguments["input"]
        without_parameters = arguments | {"input": attached(a), "weight": None, "bias": None}
        hat = func(
            **{name: value for name, value in without_parameters.items() if value is not None}
        )
        channels = "normalized_shape" not in names
        shape = (1, -1, *(1,) * (a.ndim - 2)) if channels else tuple(weight.shape)
        z = hat * weight.detach().view(shape)
        if bias is not None:
            z = z + bias.detach().view(shape)
        return self._record_scale(weight, bias, hat, z, shape)

    def _prelu(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Record a PReLU as a scale of the negative part."""
        a, weight = bound_arguments(("input", "weight"), args, kwargs)
        if not self._are_parameters(weight) or a.ndim < 2:
            return None
        shape = (1, -1, *(1,) * (a.ndim - 2))
        root = attached(a)
        z = torch.where(a > 0, root, root * weight.detach().view(shape))
        return self._record_scale(weight, None, a.detach().clamp(max=0), z, shape)

    def _embedding(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale", "sparse")
        a, weight, padding, max_norm, _, scale, _ = bound_arguments(names, args, kwargs)
        if not self._are_parameters(weight) or max_norm is not None or scale or padding is not None:
            return None
        z = func(a, weight.detach()).requires_grad_() * 1
        return self._record("embedding", weight, None, a, z, rows=len(weight))

    def _elementwise(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Record a parameter that is added to or multiplied with a tensor."""
        if kwargs or len(args) != 2 or not all(isinstance(value, Tensor) for value in args):
            return None
        known = [self._are_parameters(value) for value in args]
        if sum(known) != 1:
            return None
        a, weight = args if known[1] else args[::-1]
        shape = (*(1,) * (a.ndim - weight.ndim), *weight.shape)
        if a.dtype != weight.dtype or not _broadcasts(shape, a.shape):
            return None
        z = func(attached(a), weight.detach())
        if func in SUMS:
            return self._record("shift", weight, None, a.new_empty(0), z, shape=shape)
        return self._record_scale(weight, None, a, z, shape)

    def _expanded(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Record a parameter that is expanded to a batch."""
        if not args or not self._are_parameters(args[0]):
            return None
        weight = args[0]
        z = func(weight.detach(), *args[1:], **kwargs)
        shape = (*(1,) * (z.ndim - weight.ndim), *weight.shape)
        if not _broadcasts(shape, z.shape):
            return None
        z = z.requires_grad_() * 1
        return self._record("shift", weight, None, z.new_empty(0), z, shape=shape)

    def _attention(self, func: Any, args: Arguments, kwargs: Named) -> Any:
        """Record the ops inside attention, which would otherwise be hidden."""
        with self:
            return ATTENTION(*args, **kwargs)

    def _are_parameters(self, weight: Tensor | None, bias: Tensor | None = None) -> bool:
        """Return whether the weight, and the bias if there is one, are parameters."""
        return id(weight) in self._names and (bias is None or id(bias) in self._names)

    def _record_scale(
        self, weight: Tensor, bias: Tensor | None, a: Tensor, z: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        aligned = [1] * (z.ndim - len(shape)) + list(shape)
        options = tuple(weight.numel() if size == -1 else size for size in aligned)
        return self._record("scale", weight, bias, a, z, shape=options)

    def _record(
        self, kind: str, weight: Tensor, bias: Tensor | None, a: Tensor, z: Tensor, **options: Any
    ) -> Tensor:
        self._versions.append(a._version)
        op = ParameterOp(
            kind=kind,
            weight=self._names[id(weight)],
            bias=None if bias is None else self._names[id(bias)],
            a=a.detach(),
            edge=get_gradient_edge(z),
            shape=tuple(z.shape),
            options=options,
        )
        self.ops.append(op)
        return z


def attached(a: Tensor) -> Tensor:
    """Return the input of an op such that its output is attached to the autograd graph."""
    return a if a.requires_grad else a.detach().requires_grad_()


def bound_arguments(names: tuple[str, ...], args: Arguments, kwargs: Named) -> Iterator[Any]:
    """Yield the arguments of those names, None where they are omitted."""
    by_name = dict(zip(names, args, strict=False)) | kwargs
    yield from (by_name.get(name) for name in names)


def _broadcasts(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    return len(shape) == len(size) and all(
        own in (1, other) for own, other in zip(shape, size, strict=True)
    )


def _traceable(func: Any) -> Callable[..., Any]:
    """Return a copy of a torch function whose inner calls are dispatched to the recorder."""
    inside = {**func.__globals__, "has_torch_function": lambda tensors: False}
    copy = FunctionType(func.__code__, inside, func.__name__, func.__defaults__, func.__closure__)
    copy.__kwdefaults__ = func.__kwdefaults__
    return copy


#: Calls that run a backward pass.
BACKWARD_CALLS = (torch.autograd.grad, torch.autograd.backward, Tensor.backward)

#: Convolutions as modules call them and as exported graphs do, with their dimensions.
CONVOLUTIONS: dict[Any, int] = {
    functional.conv1d: 1,
    functional.conv2d: 2,
    torch.ops.aten.conv1d.default: 1,
    torch.ops.aten.conv2d.default: 2,
}

#: Normalisations within each sample, with the names of their arguments.
NORMS: dict[Any, tuple[str, ...]] = {
    functional.layer_norm: ("input", "normalized_shape", "weight", "bias", "eps"),
    functional.rms_norm: ("input", "normalized_shape", "weight", "eps"),
    functional.group_norm: ("input", "num_groups", "weight", "bias", "eps"),
}

SUMS = (torch.add, Tensor.add)
ATTENTION = _traceable(functional.multi_head_attention_forward)

Handler = Callable[[OpRecorder, Any, Arguments, Named], Any]

HANDLERS: dict[Any, Handler] = {
    functional.linear: OpRecorder._linear,
    torch.ops.aten.linear.default: OpRecorder._linear,
    **dict.fromkeys(CONVOLUTIONS, OpRecorder._convolution),
    **dict.fromkeys(NORMS, OpRecorder._norm),
    functional.batch_norm: OpRecorder._batch_norm,
    functional.prelu: OpRecorder._prelu,
    functional.embedding: OpRecorder._embedding,
    functional.multi_head_attention_forward: OpRecorder._attention,
    **dict.fromkeys((*SUMS, torch.mul, Tensor.mul), OpRecorder._elementwise),
    **dict.fromkeys((Tensor.expand, Tensor.expand_as, Tensor.repeat), OpRecorder._expanded),
}
