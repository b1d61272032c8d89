"""What was trained on what: gradients of samples and of penalties, as the training took them."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import TRIAL, refuse_mixing, trial_rows
from inscape.functional.substitution import copied
from inscape.kernels.path.gradients_between import General
from inscape.kernels.tangent.linear_chain import Chain, Network, Parts
from inscape.training.losses import Loss
from inscape.training.penalties import Penalty

#: Optimizers whose updates are known to be linear in past gradients.
KNOWN = ("sgd", "adam", "adamw")


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
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
    ) -> "Task":
        """Read the network out of a module, which is not kept.

        Chains of linear maps have all outputs of queries, whichever are asked for.
        """
        body = copied(model, x).eval()
        with torch.no_grad():
            shape = tuple(body(x[:1].clone()).shape[1:])
        return cls(
            model=body,
            x=x,
            y=y,
            loss=loss,
            penalties=penalties,
            trainable=tuple(trainable),
            network=Chain.of(body, trainable) or General(body, trainable, outputs),
            shape=shape,
        )

    @property
    def precision(self) -> float:
        """Return the least step of the training's numbers from one to the next."""
        return max(torch.finfo(self.model.get_parameter(n).dtype).eps for n in self.trainable)

    def gradients(self, rows: slice | Tensor, weights: Float64[Tensor, " p"]) -> Parts:
        """Return the part of every sample of a batch in the gradient of its loss.

        It is found in the numbers of the training: of a sample that float32 all but fits, the
        gradient is the difference of two numbers close to each other, and what the training took
        may be some 1e-5 of it off.
        """
        return self.gradients_at(self.x[rows], self.y[rows], weights)

    def gradients_at(
        self, x: Tensor, y: Tensor, weights: Float64[Tensor, " p"], divisor: int = 1
    ) -> Parts:
        """Return the part of every sample in the gradient of the loss of a batch, divided."""

        def pull(outputs: Tensor) -> Tensor:
            outputs = outputs.detach().requires_grad_()
            with torch.enable_grad():
                given = outputs.reshape(len(x), *self.shape).clone()  # a loss may write over it
                value = self.loss(given, y) / divisor
            (cotangents,) = torch.autograd.grad(value, outputs)
            return cotangents

        return self.network.samples(weights, x, pull)

    def penalty_gradient(
        self, rows: slice | Tensor, weights: Float64[Tensor, " p"]
    ) -> Float64[Tensor, " p"] | None:
        """Return the gradient of all penalties, None if there are none."""
        if not self.penalties:
            return None
        body = copy.deepcopy(self.model)
        named = dict(body.named_parameters())
        chosen = [named[name].requires_grad_() for name in self.trainable]
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(weights.to(chosen[0].dtype), chosen)
        x = self.x[rows]
        with torch.enable_grad():
            total = sum(
                (coefficient * penalty(body, x) for coefficient, penalty in self.penalties),
                x.new_zeros(()),
            )
        found = torch.autograd.grad(total, chosen, materialize_grads=True)
        return torch.cat([gradient.double().flatten() for gradient in found])


def refuse_unknown(optimizer: str) -> None:
    """Refuse an optimizer whose updates are not known to be linear in past gradients."""
    if optimizer not in KNOWN:
        raise UnsupportedModelError(
            f"the path kernel knows the updates of sgd, adam and adamw, found {optimizer!r}: "
            "train with one of them."
        )


def refuse_outputs(outputs: Sequence[int] | None, shape: tuple[int, ...]) -> None:
    """Refuse numbers of outputs that the network does not have."""
    count = math.prod(shape)
    if outputs is not None and not (outputs and all(0 <= k < count for k in outputs)):
        raise ValueError(
            f"outputs must be numbers from 0 to {count - 1}, at least one, found "
            f"{list(outputs)}: leave it out to split all outputs."
        )


def refuse_shape(queries: Tensor, x: Tensor) -> None:
    """Refuse queries that are no points like those of the training."""
    if queries.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"queries must have the shape of the training's points, {tuple(x.shape[1:])} each, "
            f"found {tuple(queries.shape[1:])}: reshape them, or pass one query as query[None]."
        )


def in_float64(model: nn.Module, x: Tensor) -> nn.Module:
    """Return a copy of a module in float64, or refuse a module that does not run in it."""
    body = copy.deepcopy(model).double()
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
    """Refuse a model whose training mixes samples, is random, or is of another function."""
    rows = trial_rows(x)
    cure = (
        "keep such layers in eval mode (layer.eval(); layer.train = lambda mode=True: layer) or "
        "train without them."
    )

    def anew(z: Tensor) -> Tensor:
        found: Tensor = copy.deepcopy(model).train()(z.clone())
        return found

    body = copy.deepcopy(model).train()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        before = {name: own.clone() for name, own in body.state_dict().items()}
        trained = checks.call(body, rows.clone()).reshape(TRIAL, -1)
        moved = [name for name, own in body.state_dict().items() if not own.equal(before[name])]
        try:
            refuse_mixing(anew, rows, trained)
        except ValueError as error:
            raise UnsupportedModelError(
                "the path kernel needs a training in which each sample acts for itself, found "
                f"batch statistics or random draws in training mode: {cure}"
            ) from error
        if moved:
            raise UnsupportedModelError(
                "the path kernel needs a training that only the optimizer moves, found "
                f"{moved[0]!r} written by a pass in training mode: {cure}"
            )
        evaluated = copy.deepcopy(model).eval()(rows.clone()).reshape(TRIAL, -1)
        gap = float((evaluated - trained).abs().max())
    if gap > 1e-3 * float(trained.abs().max()):
        raise UnsupportedModelError(
            "the path kernel needs a network that is in training what it is after it, found other "
            f"outputs in training mode: {cure}"
        )
