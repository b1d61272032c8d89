"""Where the parameters of a module act: what goes into each map, and where its output stands.

One call of the module is watched. At every linear map, convolution, normalisation and table whose
weights are parameters of the module, the input is kept and the parameters are handed on without
their gradients. What parameters still have a gradient afterwards act elsewhere as well: nothing can
be missed, however the module is written. What no gradient comes to from the outputs is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from inscape._core import UnsupportedModelError, checks

#: Maps that are watched, as modules call them and, of some, as exported graphs do.
LINEAR = (functional.linear, torch.ops.aten.linear.default)
CONVOLUTIONS = {
    functional.conv1d: 1,
    functional.conv2d: 2,
    torch.ops.aten.conv1d.default: 1,
    torch.ops.aten.conv2d.default: 2,
}

#: Calls that go back.
BACK = (torch.autograd.grad, torch.autograd.backward, Tensor.backward)

#: How the names of operations begin that may put points in another order, as their values say.
MOVES = (
    *("Index", "Gather", "Scatter", "Sort", "Take", "Flip", "Roll", "Rot90", "Topk"),
    *("MaskedSelect", "MaskedScatter"),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Use:
    """One map z = map(a; weight, bias) of a call: its parameters, its input and its output's place.

    ``kind`` is ``"linear"``, ``"convolution"``, ``"scale"`` (a times weight, place by place) or
    ``"table"`` (rows of the weight that ``a`` numbers).
    """

    kind: str
    weight: str
    bias: str | None
    a: Tensor
    edge: GradientEdge
    shape: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Call:
    """A call: its outputs, the uses that gradients reach, and the parameters reached elsewhere.

    ``moves`` tells whether something after a map may have put points in another order.
    """

    y: Tensor
    uses: tuple[Use, ...]
    elsewhere: frozenset[str]
    moves: bool


def called(model: nn.Module, x: Tensor) -> Call:
    """Call a module and see where its parameters act; those without gradients are left out."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    watch, y = _watch(model, x, named)
    if watch.given_up:
        watch, y = _watch(model, x, {})
    nodes = _before(y)
    places = {id(p): name for name, p in named.items()}
    leaves = (id(getattr(node, "variable", None)) for node in nodes)
    return Call(
        y=y,
        uses=tuple(use for use in watch.uses if use.edge.node in nodes),
        elsewhere=frozenset(places[leaf] for leaf in leaves if leaf in places),
        moves=any(map(_moves, nodes)),
    )


def _watch(model: nn.Module, x: Tensor, named: Mapping[str, Tensor]) -> tuple["_Watch", Tensor]:
    with torch.enable_grad():
        watch = _Watch(named)
        with watch:
            y = checks.call(model, x.detach().clone()).reshape(len(x), -1)
    watch.refuse_overwriting()
    return watch, y


def names_of(use: Use) -> tuple[str, ...]:
    """Return the weight and, if there is one, the bias."""
    return (use.weight,) if use.bias is None else (use.weight, use.bias)


def _before(y: Tensor) -> set[Node]:
    """Return all that the graph of ``y`` leads to."""
    seen: set[Node] = set()
    todo = [y.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo.extend(after for after, _ in node.next_functions)
    return seen


def _moves(node: Any) -> bool:
    name: str = node.name()
    if name.startswith(("Cat", "Stack")):
        return getattr(node, "_saved_dim", 0) == 0
    return isinstance(node, BackwardCFunction) or name.startswith(MOVES)


class _Watch(TorchFunctionMode):
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
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        self.given_up |= func in BACK
        # Gradients may be switched off, or a transform of torch.func may be under way.
        if not torch.is_grad_enabled() or peek_interpreter_stack() is not None:
            return func(*args, **given)
        for try_to in (self._linear, self._convolution, self._norm, self._table):
            z = try_to(func, args, given)
            if z is not None:
                return z
        return func(*args, **given)

    def _linear(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        if func not in LINEAR:
            return None
        a, weight, bias = _bound(("input", "weight", "bias"), args, kwargs)
        if not self._knows(weight, bias) or weight.ndim != 2:
            return None
        z = func(_rooted(a), weight.detach(), None if bias is None else bias.detach())
        return self._kept("linear", weight, bias, a, z)

    def _convolution(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor | None:
        if func not in CONVOLUTIONS:
            return None
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        a, weight, bias, *rest = _bound(names, args, kwargs)
        batched = a.ndim == CONVOLUTIONS[func] + 2
        if not batched or not self._knows(weight, bias) or isinstance(rest[1], str):
            return None
        defaults = (1, 0, 1, 1)
        chosen = [d if value is None else value for value, d in zip(rest, defaults, strict=True)]
        z = func(_rooted(a), weight.detach(), None if bias is None else bias.detach(), *chosen)
        options = dict(zip(names[3:], chosen, strict=True), kernel=tuple(weight.shape[2:]))
        return self._kept("convolution", weight, bias, a, z, **options)

    def _norm(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """Split a normalisation into what it does without weights, and the weights."""
        if func is functional.batch_norm:
            names = ("input", "running_mean", "running_var", "weight", "bias", "training")
            a, mean, var, weight, bias, training = _bound(names, args[:6], kwargs)
            if training or not self._knows(weight, bias):
                return None
            rest = {"eps": kwargs.get("eps", 1e-5)} if len(args) < 8 else {"eps": args[7]}
            hat = func(_rooted(a), mean, var, None, None, False, **rest)
            shape: tuple[int, ...] = (1, -1, *(1,) * (a.ndim - 2))
        elif func is functional.layer_norm:
            a, size, weight, bias, eps = _bound(
                ("input", "normalized_shape", "weight", "bias", "eps"), args, kwargs
            )
            if not self._knows(weight, bias):
                return None
            hat = func(_rooted(a), size, None, None, 1e-5 if eps is None else eps)
            shape = tuple(size)
        else:
            return None
        z = hat * weight.detach().reshape(shape)
        if bias is not None:
            z = z + bias.detach().reshape(shape)
        return self._kept("scale", weight, bias, hat, z, shape=shape)

    def _table(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        names = ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale", "sparse")
        if func is not functional.embedding:
            return None
        a, weight, padding, max_norm, _, scale, _ = _bound(names, args, kwargs)
        if not self._knows(weight) or max_norm is not None or scale or padding is not None:
            return None
        z = func(a, weight.detach()).requires_grad_() * 1
        return self._kept("table", weight, None, a, z, rows=len(weight))

    def _knows(self, weight: Tensor | None, bias: Tensor | None = None) -> bool:
        """Tell whether the weight, and the bias if there is one, are parameters."""
        return id(weight) in self._names and (bias is None or id(bias) in self._names)

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


def _rooted(a: Tensor) -> Tensor:
    """Return the input of a map such that its output has a place in the graph."""
    return a if a.requires_grad else a.detach().requires_grad_()


def _bound(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Yield the arguments of those names, None where they are left out."""
    given = dict(zip(names, args, strict=False)) | kwargs
    yield from (given.get(name) for name in names)
