"""Many networks at once: the plain loop for each of them, in less time."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from torch import Tensor, nn

from inscape._core import checks
from inscape.ensembles import lanes, loop, stacks
from inscape.ensembles.grouping import groups
from inscape.ensembles.member import LostMembersError, Member, Orders
from inscape.ensembles.stacks import OTHER_BITS
from inscape.training.checks import check_settings, check_start
from inscape.training.function_names import name_of, own_name
from inscape.training.losses import Loss
from inscape.training.optimizers import OptimizerFactory, build_optimizer
from inscape.training.penalties import Penalty
from inscape.training.schedules import ScheduleFunction, description
from inscape.training.update import DivergedError

#: The back ends, in the order in which "auto" asks them.
BACKENDS: dict[str, ModuleType] = {"lanes": lanes, "stacks": stacks, "loop": loop}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """By which back end the members of one kind are trained, and why by no faster one.

    Attributes:
        members: Their indices.
        backend: ``"lanes"``, ``"stacks"`` or ``"loop"``.
        refused: What speaks against each back end that was asked before it.
    """

    members: tuple[int, ...]
    backend: str
    refused: Mapping[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """What was given, one of each per member."""

    models: Sequence[nn.Module]
    xs: Sequence[Tensor]
    ys: Sequence[Tensor]
    seeds: Sequence[int]

    def of(self, members: Sequence[int]) -> "Ensemble":
        """Return the members of these indices alone."""
        return Ensemble(
            models=[self.models[i] for i in members],
            xs=[self.xs[i] for i in members],
            ys=[self.ys[i] for i in members],
            seeds=[self.seeds[i] for i in members],
        )


class Members(Iterator[Member]):
    """The members of a training, each as soon as it has left.

    Attributes:
        choices: How each kind of network is trained.
        settings: What was asked for.
    """

    def __init__(self, choices: Sequence[Choice], ensemble: Ensemble, settings: Orders) -> None:
        self.choices = tuple(choices)
        self.settings = settings
        self._members = _trained(choices, ensemble, settings)

    def __next__(self) -> Member:
        return next(self._members)


def fit_many(
    models: Sequence[nn.Module],
    x: Tensor | Sequence[Tensor],
    y: Tensor | Sequence[Tensor],
    *,
    loss: str | Loss = "mse",
    optimizer: str | OptimizerFactory = "sgd",
    lr: float = 0.01,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    batch: int | None = None,
    epochs: int = 100,
    schedule: ScheduleFunction | None = None,
    stop_loss: float | None = None,
    stop_on: str = "running",
    penalties: Sequence[tuple[float, Penalty]] = (),
    seeds: Sequence[int] | None = None,
    backend: str = "auto",
    progress: bool | None = None,
) -> Members:
    r"""Train many models in place, and yield each in eval mode as soon as it is done.

    Member ``k`` is what ``fit(models[k], x[k], y[k], seed=seeds[k], ...)`` gives, up to rounding:
    it makes the same shuffles and obeys the same rules. Its bits depend neither on the other
    members nor on their number (on one machine with one number of threads), so that those who are
    missing of an interrupted training can be trained alone. Members that diverge do not disturb the
    others; when these are done, :class:`LostMembersError` says which were lost, and how.

    Everything is checked before the first step, and the work is done while the result is iterated.

    >>> import torch
    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> lines = [nn.Linear(1, 1), nn.Linear(1, 1)]
    >>> for member in fit_many(lines, x, [2 * x, 3 * x], lr=0.5, epochs=2):
    ...     print(member.index, round(member.model.weight.item(), 3))
    0 2.0
    1 3.0

    Args:
        models: Modules to be trained, all different objects; they may differ in architecture.
        x: Inputs for all, or a sequence with those of each.
        y: Targets for all, or a sequence with those of each.
        loss: As in :func:`fit`, and so are all arguments that follow, except these:
        optimizer: See there.
        lr: See there.
        momentum: See there.
        nesterov: See there.
        weight_decay: See there.
        betas: See there.
        batch: See there.
        epochs: See there.
        schedule: See there.
        stop_loss: See there.
        stop_on: See there.
        penalties: See there.
        seeds: Seed of each member; None takes 0, 1, 2 and so on.
        backend: ``"lanes"`` (compiled, small MLPs), ``"stacks"`` (any module whose update is a
            list of tensor operations), ``"loop"`` (:func:`fit`, one by one), or ``"auto"``: for
            each kind of network the first of them that can and is no slower than the next.
        progress: See there.
    """
    orders = Orders(
        loss=own_name(loss),
        optimizer=own_name(optimizer),
        lr=lr,
        momentum=momentum,
        nesterov=nesterov,
        weight_decay=weight_decay,
        betas=betas,
        batch=batch,
        epochs=epochs,
        schedule=description(schedule),
        stop_loss=stop_loss,
        stop_on=stop_on,
        penalties=tuple((coefficient, name_of(penalty)) for coefficient, penalty in penalties),
        seed=0,
        record=None,
        loss_given=loss,
        optimizer_given=optimizer,
        schedule_given=schedule,
        penalties_given=penalties,
        progress=progress,
    )
    checks.one_of(("auto", *BACKENDS), backend=backend)
    check_settings(orders)
    ensemble = _ensemble(models, x, y, seeds)
    for model, inputs, targets in zip(models, ensemble.xs, ensemble.ys, strict=True):
        check_start(model, inputs, targets, loss)
        build_optimizer(optimizer, model, orders)  # checks its options
    ensemble = replace(ensemble, xs=_detached(ensemble.xs), ys=_detached(ensemble.ys))
    kinds = groups(models, ensemble.xs, ensemble.ys)
    choices = [_choice(kind, ensemble.of(kind), orders, backend) for kind in kinds]
    _warn_of_other_bits(choices)
    return Members(choices, ensemble, orders)


def _warn_of_other_bits(choices: Sequence[Choice]) -> None:
    """Warn once where this processor keeps networks from being trained in a stack."""
    slow = [c for c in choices if c.backend == "loop" and c.refused.get("stacks") == OTHER_BITS]
    if slow:
        warnings.warn(
            f"{sum(len(choice.members) for choice in slow)} networks are trained one by one (back "
            f"end 'loop', not 'stacks'), which is slower: {OTHER_BITS}. Their results are right; "
            "`inscape doctor` names this processor and its BLAS.",
            stacklevel=3,
        )


def _ensemble(
    models: Sequence[nn.Module],
    x: Tensor | Sequence[Tensor],
    y: Tensor | Sequence[Tensor],
    seeds: Sequence[int] | None,
) -> Ensemble:
    """Give every member its own of everything, or say what is missing."""
    if not models:
        raise ValueError("a training of many needs at least one model, found none: pass some.")
    if len(set(map(id, models))) < len(models):
        raise ValueError(
            "the models must be different objects, found one of them twice: use copy.deepcopy."
        )
    seeds = range(len(models)) if seeds is None else seeds
    xs, ys = _each(x, len(models)), _each(y, len(models))
    for name, given in (("x", xs), ("y", ys), ("seeds", seeds)):
        if len(given) != len(models):
            raise ValueError(
                f"{name} must hold one entry for each of the {len(models)} models, found "
                f"{len(given)}: pass one tensor for all, or as many as there are models."
            )
    return Ensemble(models=models, xs=xs, ys=ys, seeds=seeds)


def _each(given: Tensor | Sequence[Tensor], count: int) -> list[Tensor]:
    return [given] * count if isinstance(given, Tensor) else list(given)


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors without their history; those that were one stay one."""
    ours = {id(tensor): tensor.detach() for tensor in tensors}
    return [ours[id(tensor)] for tensor in tensors]


def _choice(kind: Sequence[int], members: Ensemble, orders: Orders, backend: str) -> Choice:
    """Ask the back ends in turn, or the one that was asked for."""
    refused: dict[str, str] = {}
    given = members.models, members.xs, members.ys, orders
    for name, module in BACKENDS.items():
        if backend not in ("auto", name):
            continue
        reason = stacks.slower(*given) if (backend, name) == ("auto", "stacks") else None
        reason = reason or module.reason_not(*given)
        if reason is None:
            return Choice(members=tuple(kind), backend=name, refused=refused)
        refused[name] = reason
    raise ValueError(
        f"the back end {backend!r} cannot train member {kind[0]}: {refused[backend]}; use "
        "backend='auto'."
    )


def _trained(choices: Sequence[Choice], ensemble: Ensemble, orders: Orders) -> Iterator[Member]:
    """Yield the members, kind after kind; what went wrong comes last."""
    lost: dict[int, DivergedError] = {}
    for choice in choices:
        part = ensemble.of(choice.members)
        train = BACKENDS[choice.backend].train
        try:
            for member in train(part.models, part.xs, part.ys, orders, part.seeds):
                yield replace(member, index=choice.members[member.index])
        except LostMembersError as error:
            lost |= {choice.members[index]: fault for index, fault in error.errors.items()}
    if lost:
        raise LostMembersError(lost)
