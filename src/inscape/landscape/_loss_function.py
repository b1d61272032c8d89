"""The loss of a network on its data as a function of the parameters: value, gradient, products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape.functional.hessian_products import (
    GaussNewtonProducts,
    HessianProducts,
    Term,
    joined,
)
from inscape.functional.jacobians import Probe, probe
from inscape.functional.substitution import checked_copy, refuse_unread
from inscape.training import Loss
from inscape.training.losses import check_targets, loss_function

Matrix = Literal["hessian", "gauss_newton"]
#: A scalar function of a module, such as the residual of a differential equation.
ModuleLoss = Callable[[nn.Module], Tensor]

#: Default bytes of the graphs that are kept from product to product.
GRAPHS = 2**29
#: Memory of a double backward pass, in multiples of what a forward pass saves.
DOUBLE_BACKWARD = 3
#: Rows by which a loss is tested to be a mean, and how far rounding may move it.
TESTED, ROUNDING = 4, 1e-3


@dataclass(frozen=True, kw_only=True)
class LossFunction:
    """A copy of a network with its data, and the parameters that count.

    ``names`` and ``tensors`` are the parameters of the copy, of which the others are fixed. A
    ``module_loss`` replaces data and loss.
    """

    model: nn.Module
    x: Tensor
    y: Tensor | None
    loss: str | Loss
    module_loss: ModuleLoss | None
    names: tuple[str, ...]
    decay: float
    memory: int
    probed: Probe

    @property
    def tensors(self) -> list[Tensor]:
        """Return the parameters that count."""
        named = dict(self.model.named_parameters())
        return [named[name] for name in self.names]

    @property
    def size(self) -> int:
        """Return their number."""
        return sum(tensor.numel() for tensor in self.tensors)

    @property
    def loss_name(self) -> str:
        """Return the name of the loss."""
        loss = self.loss if self.module_loss is None else self.module_loss
        return loss if isinstance(loss, str) else getattr(loss, "__name__", "loss")

    def products(self, matrix: Matrix = "hessian") -> HessianProducts:
        """Return the products with the Hessian, or the Gauss-Newton matrix, at this point."""
        kind = GaussNewtonProducts if matrix == "gauss_newton" else HessianProducts
        terms, fits = self._terms()
        return kind(terms, self.tensors, decay=self.decay, kept=fits)

    def value(self) -> float:
        """Return the loss, weight decay included."""
        return self.products().value()

    def gradient(self) -> Float[Tensor, " p"]:
        """Return the gradient, weight decay included."""
        return self.products().gradient()

    def vector(self) -> Float[Tensor, " p"]:
        """Return the parameters as a vector."""
        return joined([tensor.detach() for tensor in self.tensors])

    @torch.no_grad()
    def place(self, vector: Float[Tensor, " p"]) -> None:
        """Set the parameters of the copy."""
        parts = self.products().split(vector.to(self.tensors[0]))
        for tensor, part in zip(self.tensors, parts, strict=True):
            tensor.copy_(part)

    def without_decay(self) -> "LossFunction":
        """Return the same function without its regulariser."""
        return self.changed(decay=0.0)

    def changed(self, **fields: object) -> "LossFunction":
        """Return the same objective with other fields; the copy of the network is shared."""
        return LossFunction(**{**self.__dict__, **fields})

    def in_double(self) -> "LossFunction":
        """Return the same function in float64, on a copy of its own."""
        if self.tensors[0].dtype == torch.float64:
            return self
        model = _copy(self.model, self.x, self.names, torch.float64)
        return self.changed(model=model, probed=_halved(self.probed))

    def _terms(self) -> tuple[list[Term], bool]:
        """Return the parts of the function, and whether all their graphs fit into memory."""
        if self.module_loss is not None:
            module_loss = self.module_loss
            return [Term(1.0, lambda: module_loss(self.model))], True
        fits = len(self.x) * _graph_bytes(self.probed) <= self.memory // 2
        return [self._term(span) for span in self.spans()], fits

    def spans(self) -> list[slice]:
        """Return the mini-batches into which the data are cut."""
        n = len(self.x)
        rows = self.probed.rows(self.memory // (2 * DOUBLE_BACKWARD), gradients=0)
        count = -(-n // rows)
        return [slice(k * n // count, (k + 1) * n // count) for k in range(count)]

    def _term(self, span: slice) -> Term:
        return Term(
            weight=(span.stop - span.start) / len(self.x),
            value=lambda: self._batch_loss(self.outputs(span), span),
            outputs=lambda: self.outputs(span),
            output_hessian=partial(self._output_hessian, span),
        )

    def outputs(self, span: slice) -> Tensor:
        """Return the outputs for some samples."""
        y: Tensor = self.model(self.x[span].to(self.tensors[0], copy=True))
        return y

    def labels(self, span: slice, outputs: Tensor) -> Tensor:
        """Return the labels of some samples, real ones shaped as the outputs."""
        assert self.y is not None
        y = self.y[span]
        if y.is_floating_point():
            y = y.to(outputs.dtype)
            y = y.reshape(outputs.shape) if y.numel() == outputs.numel() else y
        return y

    def _batch_loss(self, outputs: Tensor, span: slice) -> Tensor:
        return loss_function(self.loss)(outputs, self.labels(span, outputs))

    def _output_hessian(self, span: slice, outputs: Tensor, tangents: Tensor) -> Tensor:
        """Return the Hessian of the loss by the outputs times a tangent."""
        if self.loss == "mse":
            return 2 / outputs.numel() * tangents
        if self.loss == "bce_logits":
            p = outputs.sigmoid()
            return p * (1 - p) * tangents / outputs.numel()
        if self.loss == "cross_entropy":
            p, y = outputs.softmax(1), self.labels(span, outputs)
            mass = y.sum(1, keepdim=True) if y.is_floating_point() else 1.0
            centred = tangents - (p * tangents).sum(1, keepdim=True)
            return mass * p * centred * (outputs.shape[1] / outputs.numel())
        with torch.enable_grad():
            y = outputs.detach().requires_grad_()
            (first,) = torch.autograd.grad(self._batch_loss(y, span), y, create_graph=True)
            if not first.requires_grad:
                return torch.zeros_like(y)
            (second,) = torch.autograd.grad(first, y, tangents)
        return second


def loss_function_of(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    parameters: Sequence[str] | None = None,
    weight_decay: float = 0.0,
    double: bool = False,
    memory: int = GRAPHS,
) -> LossFunction | None:
    """Return the checked objective on a copy of the network; None if it has no parameters."""
    checks.module(model)
    checks.whole(1, memory=memory)
    checks.number(weight_decay=weight_decay)
    probed = probe(model, x)
    name: str | Loss = "module loss"
    if module_loss is None:
        name = _checked_loss(model, x, y, loss)
        refuse_unread(model, x)
    names = _chosen(model, parameters)
    if not names:
        return None
    dtype = torch.float64 if double else next(model.parameters()).dtype
    return LossFunction(
        model=_copy(model, x, names, dtype),
        x=x,
        y=None if y is None else y.detach(),
        loss=name,
        module_loss=module_loss,
        names=names,
        decay=float(weight_decay),
        memory=memory,
        probed=_halved(probed) if dtype != x.dtype else probed,
    )


def _checked_loss(
    model: nn.Module, x: Tensor, y: Tensor | None, loss: str | Loss | None
) -> str | Loss:
    """Return the loss, by default that of the kind of labels, or raise what does not match."""
    if y is None:
        raise ValueError(
            "the loss needs labels, found y=None: pass y, or a function of the module as "
            "module_loss."
        )
    checks.labels(y, x)
    name = loss if loss is not None else ("mse" if y.is_floating_point() else "cross_entropy")
    measure = loss_function(name)
    outputs = checks.call(model, x[:TESTED].clone()).detach()
    check_targets(name, y, outputs)
    labels = y[:TESTED]
    if labels.is_floating_point() and labels.numel() == outputs.numel():
        labels = labels.to(outputs.dtype).reshape(outputs.shape)
    value = measure(outputs, labels)
    if value.numel() != 1:
        raise ValueError(
            f"the loss must return one number, found shape {tuple(value.shape)}: take its mean."
        )
    _refuse_sums(measure, outputs, labels, float(value))
    return name


def _refuse_sums(measure: Loss, outputs: Tensor, labels: Tensor, value: float) -> None:
    """Raise if the loss of a batch is not the mean of the losses of its samples."""
    single = [float(measure(outputs[k : k + 1], labels[k : k + 1])) for k in range(len(outputs))]
    mean, size = sum(single) / len(single), max(map(abs, single))
    if not abs(mean - value) <= ROUNDING * max(size, abs(value)):
        raise ValueError(
            f"the loss must be a mean over samples, found {value:.4g} for {len(single)} samples "
            f"whose mean is {mean:.4g}: average over the batch, or pass module_loss, which is "
            "evaluated on all data at once."
        )


def _chosen(model: nn.Module, parameters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the parameters that count: named ones, or those of named modules."""
    known = [name for name, tensor in model.named_parameters() if tensor.is_floating_point()]
    if parameters is None:
        return tuple(known)
    wanted = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    for name in wanted:
        if not any(_is_in(key, name) for key in known):
            raise ValueError(
                f"parameters must name parameters or modules of the model, found {name!r}: choose "
                f"among {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}."
            )
    return tuple(key for key in known if any(_is_in(key, name) for name in wanted))


def _is_in(key: str, name: str) -> bool:
    return key == name or key.startswith(f"{name}.")


def _copy(model: nn.Module, x: Tensor, names: Sequence[str], dtype: torch.dtype) -> nn.Module:
    """Return a copy in some precision whose chosen parameters alone require gradients."""
    copied = checked_copy(model, x.to(next(model.parameters()))).to(dtype)
    for name, parameter in copied.named_parameters():
        parameter.requires_grad_(name in names)
        parameter.grad = None
    return copied


def _halved(probed: Probe) -> Probe:
    """Return the probe of the same network with numbers twice as long."""
    return Probe(
        f=probed.f,
        outputs=probed.outputs,
        row_bytes=2 * probed.row_bytes,
        has_gradient=probed.has_gradient,
        gradient_bytes=2 * probed.gradient_bytes,
    )


def _graph_bytes(probed: Probe) -> int:
    """Return the bytes of the first-order graph of one sample."""
    return DOUBLE_BACKWARD * max(1, probed.row_bytes - probed.outputs * probed.gradient_bytes)
