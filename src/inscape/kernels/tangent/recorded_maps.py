"""Maps that act on parameters, seen while a module is called.

Linear maps, convolutions, normalisations, tables, and parameters that are added, multiplied or
expanded as they are: the input of each is kept, and where its output stands in the graph.
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
class Use:
    """One map z = map(a; weight, bias) of a call: its parameters, its input and its output's edge.

    ``kind`` is ``"linear"``, ``"convolution"``, ``"scale"`` (a times weight, plus a bias),
    ``"shift"`` (the weight alone is added or expanded) or ``"table"`` (rows of the weight that
    ``a`` numbers). ``fold`` tells where points stand in ``shape``, see
    :mod:`inscape.kernels.tangent.per_sample_maps`.
    """

    kind: str
    weight: str
    bias: str | None
    a: Tensor
    edge: GradientEdge
    shape: tuple[int, ...]
    options: Mapping[str, Any]
    fold: str = "first"


class Watch(TorchFunctionMode):
    """Watches one call for maps of parameters; modules, hooks and other threads notice nothing.

    ``given_up`` tells that the module goes back itself, where parameters act unseen.
    """

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._names = {id(p): name for name, p in named.items()}
        self._versions: list[int] = []
        self.uses: list[Use] = []
        self.given_up = False

    def refuse_overwriting(self) -> None:
        """Refuse a module that writes over the input of a map, as autograd itself would."""
        for use, version in zip(self.uses, self._versions, strict=True):
            if use.a._version != version:
                raise UnsupportedModelError(
                    f"the model must leave alone what {use.weight!r} has taken, found it changed "
                    "afterwards: take in-place operations out of its forward."
                )

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: Arguments = (),
        kwargs: Named | None = None,
    ) -> Any:
        given = kwargs or {}
        self.given_up |= func in BACK
        handler = HANDLERS.get(func)
        # Gradients may be switched off, or a transform of torch.func may be under way.
        if handler and torch.is_grad_enabled() and peek_interpreter_stack() is None:
            z = handler(self, func, args, given)
            if z is not None:
                return z
        return func(*args, **given)

    def _linear(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        a, weight, bias = bound(("input", "weight", "bias"), args, kwargs)
        if not self._knows(weight, bias) or weight.ndim != 2:
            return None
        z = func(rooted(a), weight.detach(), None if bias is None else bias.detach())
        return self._kept("linear", weight, bias, a, z)

    def _convolution(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        a, weight, bias, *rest = bound(names, args, kwargs)
        batched = a.ndim == CONVOLUTIONS[func] + 2
        if not batched or not self._knows(weight, bias) or isinstance(rest[1], str):
            return None
        defaults = (1, 0, 1, 1)
        chosen = [d if value is None else value for value, d in zip(rest, defaults, strict=True)]
        z = func(rooted(a), weight.detach(), None if bias is None else bias.detach(), *chosen)
        options = dict(zip(names[3:], chosen, strict=True), kernel=tuple(weight.shape[2:]))
        return self._kept("convolution", weight, bias, a, z, **options)

    def _batch_norm(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Take a normalisation by running statistics as the affine map that it is."""
        names = ("input", "running_mean", "running_var", "weight", "bias", "training")
        a, mean, var, weight, bias, training = bound(names, args[:6], kwargs)
        if training or not self._knows(weight, bias):
            return None
        eps = args[7] if len(args) > 7 else kwargs.get("eps", 1e-5)
        shape = (1, -1, *(1,) * (a.ndim - 2))
        inverse = (var.detach() + eps).rsqrt()
        scale = inverse * weight.detach()
        shift = -mean.detach() * scale
        if bias is not None:
            shift = shift + bias.detach()
        hat = (a.detach() - mean.detach().view(shape)).mul_(inverse.view(shape))
        z = rooted(a) * scale.view(shape) + shift.view(shape)
        return self._scaled(weight, bias, hat, z, shape)

    def _norm(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Split a normalisation into what it does without weights, and the weights."""
        names = NORMS[func]
        given = dict(zip(names, bound(names, args, kwargs), strict=True))
        weight, bias = given["weight"], given.get("bias")
        if not self._knows(weight, bias):
            return None
        a = given["input"]
        bare = given | {"input": rooted(a), "weight": None, "bias": None}
        hat = func(**{name: value for name, value in bare.items() if value is not None})
        channels = "normalized_shape" not in names
        shape = (1, -1, *(1,) * (a.ndim - 2)) if channels else tuple(weight.shape)
        z = hat * weight.detach().view(shape)
        if bias is not None:
            z = z + bias.detach().view(shape)
        return self._scaled(weight, bias, hat, z, shape)

    def _prelu(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """Take a learned slope as a scale of what is below zero."""
        a, weight = bound(("input", "weight"), args, kwargs)
        if not self._knows(weight) or a.ndim < 2:
            return None
        shape = (1, -1, *(1,) * (a.ndim - 2))
        root = rooted(a)
        z = torch.where(a > 0, root, root * weight.detach().view(shape))
        return self._scaled(weight, None, a.detach().clamp(max=0), z, shape)

    def _table(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale", "sparse")
        a, weight, padding, max_norm, _, scale, _ = bound(names, args, kwargs)
        if not self._knows(weight) or max_norm is not None or scale or padding is not None:
            return None
        z = func(a, weight.detach()).requires_grad_() * 1
        return self._kept("table", weight, None, a, z, rows=len(weight))

    def _elementwise(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """See a parameter that is added to something, or multiplied with it, as it is."""
        if kwargs or len(args) != 2 or not all(isinstance(value, Tensor) for value in args):
            return None
        known = [self._knows(value) for value in args]
        if sum(known) != 1:
            return None
        a, weight = args if known[1] else args[::-1]
        shape = (*(1,) * (a.ndim - weight.ndim), *weight.shape)
        if a.dtype != weight.dtype or not _broadcasts(shape, a.shape):
            return None
        z = func(rooted(a), weight.detach())
        if func in SUMS:
            return self._kept("shift", weight, None, a.new_empty(0), z, shape=shape)
        return self._scaled(weight, None, a, z, shape)

    def _expanded(self, func: Any, args: Arguments, kwargs: Named) -> Tensor | None:
        """See a parameter that is expanded to a batch."""
        if not args or not self._knows(args[0]):
            return None
        weight = args[0]
        z = func(weight.detach(), *args[1:], **kwargs)
        shape = (*(1,) * (z.ndim - weight.ndim), *weight.shape)
        if not _broadcasts(shape, z.shape):
            return None
        z = z.requires_grad_() * 1
        return self._kept("shift", weight, None, z.new_empty(0), z, shape=shape)

    def _attention(self, func: Any, args: Arguments, kwargs: Named) -> Any:
        """Look into attention, whose code would hide its maps."""
        with self:
            return ATTENTION(*args, **kwargs)

    def _knows(self, weight: Tensor | None, bias: Tensor | None = None) -> bool:
        """Tell whether the weight, and the bias if there is one, are parameters."""
        return id(weight) in self._names and (bias is None or id(bias) in self._names)

    def _scaled(
        self, weight: Tensor, bias: Tensor | None, a: Tensor, z: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        aligned = [1] * (z.ndim - len(shape)) + list(shape)
        options = tuple(weight.numel() if size == -1 else size for size in aligned)
        return self._kept("scale", weight, bias, a, z, shape=options)

    def _kept(
        self, kind: str, weight: Tensor, bias: Tensor | None, a: Tensor, z: Tensor, **options: Any
    ) -> Tensor:
        self._versions.append(a._version)
        use = Use(
            kind=kind,
            weight=self._names[id(weight)],
            bias=None if bias is None else self._names[id(bias)],
            a=a.detach(),
            edge=get_gradient_edge(z),
            shape=tuple(z.shape),
            options=options,
        )
        self.uses.append(use)
        return z


def rooted(a: Tensor) -> Tensor:
    """Return the input of a map such that its output has a place in the graph."""
    return a if a.requires_grad else a.detach().requires_grad_()


def bound(names: tuple[str, ...], args: Arguments, kwargs: Named) -> Iterator[Any]:
    """Yield the arguments of those names, None where they are left out."""
    given = dict(zip(names, args, strict=False)) | kwargs
    yield from (given.get(name) for name in names)


def _broadcasts(shape: tuple[int, ...], size: tuple[int, ...]) -> bool:
    return len(shape) == len(size) and all(
        own in (1, other) for own, other in zip(shape, size, strict=True)
    )


def _open(func: Any) -> Callable[..., Any]:
    """Return a function of torch that does not hand itself on, so that its calls are seen."""
    inside = {**func.__globals__, "has_torch_function": lambda tensors: False}
    copy = FunctionType(func.__code__, inside, func.__name__, func.__defaults__, func.__closure__)
    copy.__kwdefaults__ = func.__kwdefaults__
    return copy


#: Calls that go back.
BACK = (torch.autograd.grad, torch.autograd.backward, Tensor.backward)

#: Convolutions as modules call them and as exported graphs do, with their dimensions.
CONVOLUTIONS: dict[Any, int] = {
    functional.conv1d: 1,
    functional.conv2d: 2,
    torch.ops.aten.conv1d.default: 1,
    torch.ops.aten.conv2d.default: 2,
}

#: Normalisations of each point by itself, with the names of their arguments.
NORMS: dict[Any, tuple[str, ...]] = {
    functional.layer_norm: ("input", "normalized_shape", "weight", "bias", "eps"),
    functional.rms_norm: ("input", "normalized_shape", "weight", "eps"),
    functional.group_norm: ("input", "num_groups", "weight", "bias", "eps"),
}

SUMS = (torch.add, Tensor.add)
ATTENTION = _open(functional.multi_head_attention_forward)

Handler = Callable[[Watch, Any, Arguments, Named], Any]

HANDLERS: dict[Any, Handler] = {
    functional.linear: Watch._linear,
    torch.ops.aten.linear.default: Watch._linear,
    **dict.fromkeys(CONVOLUTIONS, Watch._convolution),
    **dict.fromkeys(NORMS, Watch._norm),
    functional.batch_norm: Watch._batch_norm,
    functional.prelu: Watch._prelu,
    functional.embedding: Watch._table,
    functional.multi_head_attention_forward: Watch._attention,
    **dict.fromkeys((*SUMS, torch.mul, Tensor.mul), Watch._elementwise),
    **dict.fromkeys((Tensor.expand, Tensor.expand_as, Tensor.repeat), Watch._expanded),
}
