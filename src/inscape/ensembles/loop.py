"""The back end ``"loop"``: networks one by one, the reference of the other back ends."""

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from inscape.ensembles.member import LostMembersError, Member
from inscape.runtime.progress import progress as progress_bar
from inscape.training.loop import fit
from inscape.training.options import FitOptions
from inscape.training.update import DivergedError


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], options: FitOptions
) -> None:
    """Return None, since the loop trains every network."""


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    options: FitOptions,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train each network by :func:`inscape.training.fit`, and yield it.

    A member that diverges does not stop the others; when all are done, :class:`LostMembersError`
    says what happened to it.
    """
    lost: dict[int, DivergedError] = {}
    label = f"training {len(models)} networks"
    with progress_bar(len(models), label=label, quiet=options.quiet) as bar:
        for index, (model, x, y, seed) in enumerate(zip(models, xs, ys, seeds, strict=True)):
            try:
                member = _trained(index, model, x, y, options, seed)
            except DivergedError as error:
                lost[index] = error
            else:
                yield member
            bar.advance()
    if lost:
        raise LostMembersError(lost)


def _trained(
    index: int, model: nn.Module, x: Tensor, y: Tensor, options: FitOptions, seed: int
) -> Member:
    run = fit(model, x, y, seed=seed, **vars(options))
    return Member(
        index=index,
        model=run.model,
        loss=run.loss,
        epochs=run.epochs,
        steps=run.steps,
        stopped=run.stopped,
    )
