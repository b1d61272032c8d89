"""Training of many networks at once by the fastest back end that supports them."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Unpack

from torch import Tensor, nn

from inscape._core import checks
from inscape.ensembles import lanes, loop, stacks
from inscape.ensembles.grouping import groups
from inscape.ensembles.member import LostMembersError, Member
from inscape.ensembles.stacks import SLOT_DEPENDENT
from inscape.training.checks import check_start
from inscape.training.optimizers import build_optimizer
from inscape.training.options import FitKeywords, FitOptions, shows_options
from inscape.training.update import DivergedError

#: The back ends, in the order in which "auto" tries them.
BACKENDS: dict[str, ModuleType] = {"lanes": lanes, "stacks": stacks, "loop": loop}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The back end that trains the members of one architecture, and why no faster one does.

    Attributes:
        members: Their indices.
        backend: ``"lanes"``, ``"stacks"`` or ``"loop"``.
        refused: Reason against each back end that was tried before it.
    """

    members: tuple[int, ...]
    backend: str
    refused: Mapping[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Model, inputs, targets and seed of each member."""

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
    """The members of an ensemble, each as soon as it is trained.

    Attributes:
        choices: The back end of each architecture.
        options: The options of the training.
    """

    def __init__(self, choices: Sequence[Choice], ensemble: Ensemble, options: FitOptions) -> None:
        self.choices = tuple(choices)
        self.options = options
        self._members = _trained(choices, ensemble, options)

    def __next__(self) -> Member:
        return next(self._members)


@shows_options(FitOptions)
def fit_many(
    models: Sequence[nn.Module],
    x: Tensor | Sequence[Tensor],
    y: Tensor | Sequence[Tensor],
    *,
    seeds: Sequence[int] | None = None,
    backend: str = "auto",
    **options: Unpack[FitKeywords],
) -> Members:
    r"""Train many models in place, and yield each in eval mode as soon as it is done.

    Member ``k`` is what ``fit(models[k], x[k], y[k], seed=seeds[k], ...)`` returns, up to rounding:
    its shuffles and stop rules are the same. It depends, bit for bit, neither on the other members
    nor on their number (on one machine with one number of threads), so that the missing members of
    an interrupted training can be trained alone. Members that diverge do not disturb the others;
    when these are done, :class:`LostMembersError` says which diverged, and how.

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
        seeds: Seed of each member; None takes 0, 1, 2 and so on.
        backend: ``"lanes"`` (compiled, small MLPs), ``"stacks"`` (any module whose update is a
            list of tensor operations), ``"loop"`` (:func:`fit`, one by one), or ``"auto"``: for
            each architecture the first of them that supports it and is no slower than the next.
        **options: The options of :class:`inscape.training.FitOptions`, as in :func:`fit`.
    """
    chosen = FitOptions(**options)
    checks.one_of(("auto", *BACKENDS), backend=backend)
    ensemble = _ensemble(models, x, y, seeds)
    for model, inputs, targets in zip(models, ensemble.xs, ensemble.ys, strict=True):
        check_start(model, inputs, targets, chosen.loss)
        build_optimizer(chosen.optimizer, model, chosen)  # raises if there is nothing to train
    ensemble = replace(ensemble, xs=_detached(ensemble.xs), ys=_detached(ensemble.ys))
    kinds = groups(models, ensemble.xs, ensemble.ys)
    choices = [_choice(kind, ensemble.of(kind), chosen, backend) for kind in kinds]
    _warn_of_rounding(choices)
    return Members(choices, ensemble, chosen)


def _warn_of_rounding(choices: Sequence[Choice]) -> None:
    """Warn once if the rounding of this processor forbids to train networks in a stack."""
    slow = [c for c in choices if c.backend == "loop" and c.refused.get("stacks") == SLOT_DEPENDENT]
    if slow:
        warnings.warn(
            f"{sum(len(choice.members) for choice in slow)} networks are trained one by one (back "
            f"end 'loop', not 'stacks'), which is slower: {SLOT_DEPENDENT}. Their results are "
            "right; `inscape doctor` names this processor and its BLAS.",
            stacklevel=3,
        )


def _ensemble(
    models: Sequence[nn.Module],
    x: Tensor | Sequence[Tensor],
    y: Tensor | Sequence[Tensor],
    seeds: Sequence[int] | None,
) -> Ensemble:
    """Return model, inputs, targets and seed of each member; raise an error if one is missing."""
    if not models:
        raise ValueError("a training of many needs at least one model, found none: pass some.")
    if len(set(map(id, models))) < len(models):
        raise ValueError(
            "the models must be different objects, found one of them twice: use copy.deepcopy."
        )
    seeds = range(len(models)) if seeds is None else seeds
    xs, ys = _per_model(x, len(models)), _per_model(y, len(models))
    for name, entries in (("x", xs), ("y", ys), ("seeds", seeds)):
        if len(entries) != len(models):
            raise ValueError(
                f"{name} must hold one entry for each of the {len(models)} models, found "
                f"{len(entries)}: pass one tensor for all, or as many as there are models."
            )
    return Ensemble(models=models, xs=xs, ys=ys, seeds=seeds)


def _per_model(tensors: Tensor | Sequence[Tensor], count: int) -> list[Tensor]:
    return [tensors] * count if isinstance(tensors, Tensor) else list(tensors)


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors detached; entries that are one object stay one object."""
    detached = {id(tensor): tensor.detach() for tensor in tensors}
    return [detached[id(tensor)] for tensor in tensors]


def _choice(kind: Sequence[int], members: Ensemble, options: FitOptions, backend: str) -> Choice:
    """Return the first back end that supports the members, or the one that was named."""
    refused: dict[str, str] = {}
    training = members.models, members.xs, members.ys, options
    for name, module in BACKENDS.items():
        if backend not in ("auto", name):
            continue
        reason = stacks.slower(*training) if (backend, name) == ("auto", "stacks") else None
        reason = reason or module.reason_not(*training)
        if reason is None:
            return Choice(members=tuple(kind), backend=name, refused=refused)
        refused[name] = reason
    raise ValueError(
        f"the back end {backend!r} cannot train member {kind[0]}: {refused[backend]}; use "
        "backend='auto'."
    )


def _trained(
    choices: Sequence[Choice], ensemble: Ensemble, options: FitOptions
) -> Iterator[Member]:
    """Yield the members, architecture by architecture; raise the errors of diverged ones last."""
    lost: dict[int, DivergedError] = {}
    for choice in choices:
        part = ensemble.of(choice.members)
        train = BACKENDS[choice.backend].train
        try:
            for member in train(part.models, part.xs, part.ys, options, part.seeds):
                yield replace(member, index=choice.members[member.index])
        except LostMembersError as error:
            lost |= {choice.members[index]: fault for index, fault in error.errors.items()}
    if lost:
        raise LostMembersError(lost)
