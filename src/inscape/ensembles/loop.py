"""Networks one by one, in the plain loop: what the other back ends must agree with."""

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from inscape._core.progress import progress as progress_bar
from inscape.ensembles.member import LostMembersError, Member, Orders
from inscape.training.loop import fit
from inscape.training.update import DivergedError


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], settings: Orders
) -> None:
    """Return None: the loop trains whatever can be trained."""


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    settings: Orders,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train each network by :func:`inscape.training.fit`, and yield it.

    A member that diverges does not keep the next from its turn; when all are done,
    :class:`LostMembersError` says what happened to it.
    """
    lost: dict[int, DivergedError] = {}
    label = f"training {len(models)} networks"
    with progress_bar(len(models), label=label, quiet=settings.quiet) as bar:
        for index, (model, x, y, seed) in enumerate(zip(models, xs, ys, seeds, strict=True)):
            try:
                member = _trained(index, model, x, y, settings, seed)
            except DivergedError as error:
                lost[index] = error
            else:
                yield member
            bar.advance()
    if lost:
        raise LostMembersError(lost)


def _trained(
    index: int, model: nn.Module, x: Tensor, y: Tensor, orders: Orders, seed: int
) -> Member:
    run = fit(
        model,
        x,
        y,
        loss=orders.loss_given,
        optimizer=orders.optimizer_given,
        lr=orders.lr,
        momentum=orders.momentum,
        nesterov=orders.nesterov,
        weight_decay=orders.weight_decay,
        betas=orders.betas,
        batch=orders.batch,
        epochs=orders.epochs,
        schedule=orders.schedule_given,
        stop_loss=orders.stop_loss,
        stop_on=orders.stop_on,
        penalties=orders.penalties_given,
        seed=seed,
        progress=orders.progress,
    )
    return Member(
        index=index,
        model=run.model,
        loss=run.loss,
        epochs=run.epochs,
        steps=run.steps,
        stopped=run.stopped,
    )
