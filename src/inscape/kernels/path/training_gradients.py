"""The training problem: data, loss, penalties and network, with per-sample gradients."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.precision import converted_copy
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import TRIAL, refuse_mixing, trial_samples
from inscape.functional.substitution import checked_copy
from inscape.kernels.path.linear_chain import LinearChain, Network, SampleGradients
from inscape.kernels.path.module_network import ModuleNetwork
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty

#: Optimizers whose updates are known to be linear in past gradients.
KNOWN = ("sgd", "adam", "adamw")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingProblem:
    """Data, loss and penalties of a training, and its network."""

    model: nn.Module
    x: Tensor
    y: Tensor
    loss: Loss
    penalties: Sequence[tuple[float, Penalty]]
    trainable: tuple[str, ...]
    network: Network
    shape: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        loss: Loss,
        penalties: Sequence[tuple[float, Penalty]],
        trainable: Sequence[str],
        outputs: Sequence[int] | None = None,
    ) -> "TrainingProblem":
        """Return the problem for a copy of a module.

        Chains of linear layers keep all outputs at queries, whatever ``outputs`` says.
        """
        body = checked_copy(model, x).eval()
        with torch.no_grad():
            shape = tuple(body(x[:1].clone()).shape[1:])
        return cls(
            model=body,
            x=x,
            y=y,
            loss=loss,
            penalties=penalties,
            trainable=tuple(trainable),
            network=LinearChain.of(body, trainable) or ModuleNetwork(body, trainable, outputs),
            shape=shape,
        )

    @property
    def precision(self) -> float:
        """Return the machine epsilon of the dtype of training."""
        return max(torch.finfo(self.model.get_parameter(n).dtype).eps for n in self.trainable)

    def gradients(self, batch: slice | Tensor, weights: Float64[Tensor, " p"]) -> SampleGradients:
        """Return the per-sample gradients of the loss of a batch.

        They are computed in the dtype of training: for a nearly fitted sample in float32 the
        gradient is the difference of two close numbers, with a relative error of some 1e-5 that the
        training made, too.
        """
        return self.gradients_at(self.x[batch], self.y[batch], weights)

    def gradients_at(
        self, x: Tensor, y: Tensor, weights: Float64[Tensor, " p"], divisor: int = 1
    ) -> SampleGradients:
        """Return the per-sample gradients of the loss of a batch, divided by ``divisor``."""

        def cotangents_of(outputs: Tensor) -> Tensor:
            outputs = outputs.detach().requires_grad_()
            with torch.enable_grad():
                loss_input = outputs.reshape(len(x), *self.shape).clone()  # a loss may act in place
                value = self.loss(loss_input, y) / divisor
            (cotangents,) = torch.autograd.grad(value, outputs)
            return cotangents

        return self.network.samples(weights, x, cotangents_of)

    def penalty_gradient(
        self, batch: slice | Tensor, weights: Float64[Tensor, " p"]
    ) -> Float64[Tensor, " p"] | None:
        """Return the gradient of all penalties, None if there are none."""
        if not self.penalties:
            return None
        body = copy.deepcopy(self.model)
        named = dict(body.named_parameters())
        parameters = [named[name].requires_grad_() for name in self.trainable]
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(weights.to(parameters[0].dtype), parameters)
        x = self.x[batch]
        with torch.enable_grad():
            total = sum(
                (coefficient * penalty(body, x) for coefficient, penalty in self.penalties),
                x.new_zeros(()),
            )
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)
        return torch.cat([gradient.double().flatten() for gradient in gradients])


def refuse_unknown(optimizer: str) -> None:
    """Raise for an optimizer whose updates are not known to be linear in past gradients."""
    if optimizer not in KNOWN:
        raise UnsupportedModelError(
            f"the path kernel supports sgd, adam and adamw, found {optimizer!r}: "
            "train with one of them."
        )


def refuse_outputs(outputs: Sequence[int] | None, shape: tuple[int, ...]) -> None:
    """Raise for indices of outputs that the network does not have."""
    count = math.prod(shape)
    if outputs is not None and not (outputs and all(0 <= k < count for k in outputs)):
        raise ValueError(
            f"outputs must be indices from 0 to {count - 1}, at least one, found "
            f"{list(outputs)}: leave it out to split all outputs."
        )


def refuse_shape(queries: Tensor, x: Tensor) -> None:
    """Raise if queries differ in shape from the training samples."""
    if queries.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"queries must have the shape of the training's points, {tuple(x.shape[1:])} each, "
            f"found {tuple(queries.shape[1:])}: reshape them, or pass one query as query[None]."
        )


def in_float64(model: nn.Module, x: Tensor) -> nn.Module:
    """Return a copy of a module in float64, or raise if it does not run in float64."""
    body = converted_copy(model, torch.float64)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            copy.deepcopy(body)(x[:1].to(torch.float64, copy=True))
    except Exception as error:
        raise UnsupportedModelError(
            "the path kernel computes in float64, but in float64 the model raised "
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; register all tensors "
            "that its forward reads (as a submodule or by register_buffer), so that "
            "model.double() converts them."
        ) from error
    return body


def refuse_inseparable(model: nn.Module, x: Tensor) -> None:
    """Raise if training mode mixes samples, draws random numbers, or changes the function."""
    samples = trial_samples(x)
    remedy = (
        "keep such layers in eval mode (layer.eval(); layer.train = lambda mode=True: layer) or "
        "train without them."
    )

    def fresh_call(z: Tensor) -> Tensor:
        y: Tensor = copy.deepcopy(model).train()(z.clone())
        return y

    body = copy.deepcopy(model).train()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        before = {name: own.clone() for name, own in body.state_dict().items()}
        trained = checks.call(body, samples.clone()).reshape(TRIAL, -1)
        changed = [name for name, own in body.state_dict().items() if not own.equal(before[name])]
        try:
            refuse_mixing(fresh_call, samples, trained)
        except ValueError as error:
            raise UnsupportedModelError(
                "the path kernel needs a training in which each sample acts for itself, found "
                f"batch statistics or random draws in training mode: {remedy}"
            ) from error
        if changed:
            raise UnsupportedModelError(
                "the path kernel needs a training that only the optimizer moves, found "
                f"{changed[0]!r} written by a pass in training mode: {remedy}"
            )
        evaluated = copy.deepcopy(model).eval()(samples.clone()).reshape(TRIAL, -1)
        difference = float((evaluated - trained).abs().max())
    if difference > 1e-3 * float(trained.abs().max()):
        raise UnsupportedModelError(
            "the path kernel needs a network that is in training what it is after it, found other "
            f"outputs in training mode: {remedy}"
        )
