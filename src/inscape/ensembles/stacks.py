"""The back end ``"stacks"``: the weights of many networks stacked, and one update for all.

It supports any module whose update can be traced as a graph of tensor operations. The members of a
stack are trained epoch by epoch; when one is done, a waiting one takes its slot.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from inscape.ensembles.grouping import groups, kind_of
from inscape.ensembles.member import LostMembersError, Member
from inscape.ensembles.program import Program
from inscape.ensembles.stack import Progress, Stack
from inscape.runtime.progress import progress as progress_bar
from inscape.training.checks import check_end
from inscape.training.options import FitOptions
from inscape.training.schedules import Schedule
from inscape.training.update import DivergedError, Update

#: Measured on two cores: the loop is as fast where one member's update writes more elements.
MANY_ELEMENTS = 2**19

#: Reason where a trial has failed on this processor.
SLOT_DEPENDENT = "on this machine a network is rounded differently in other slots of a stack"

#: Programs by options and architecture, or why there is none: they take a while to build.
_PROGRAMS: WeakKeyDictionary[FitOptions, dict[Hashable, Program | str]] = WeakKeyDictionary()


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], options: FitOptions
) -> str | None:
    """Return why these networks cannot be trained in a stack, or None if they can."""
    if not isinstance(options.optimizer, str):
        return "the optimizer is a function of your own, and a stack knows sgd, adam and adamw"
    if options.optimizer not in ("sgd", "adam", "adamw"):
        return f"a stack knows sgd, adam and adamw, found {options.optimizer!r}"
    schedule = options.schedule
    if isinstance(schedule, Schedule) and schedule.listens:
        return "the schedule depends on the losses of each training"
    kinds = len(groups(models, xs, ys))
    if kinds > 1:
        return f"a stack holds networks of one kind on data of one shape, found {kinds} kinds"
    if any(_hooked(model) for model in models):
        return "a module has hooks, which a stack would not call"
    program = _program(models[0], xs[0], ys[0], options)
    if isinstance(program, str):
        return program
    try:
        admitted = program.admits(program.widths[0])
    except Exception as error:  # whatever the code of a user may raise; the loop says it again
        return _untraceable(error)
    if admitted:
        return None
    names = program.uneven(program.widths[0])
    return f"{SLOT_DEPENDENT} (by {', '.join(names)})" if names else SLOT_DEPENDENT


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    options: FitOptions,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train networks of one architecture in a stack, and yield each when it is done.

    The weights of a model change when it is done. One whose loss diverges keeps its weights, in
    eval mode; when all others are done, :class:`LostMembersError` says what happened.
    """
    program = _program(models[0], xs[0], ys[0], options)
    if isinstance(program, str):
        raise ValueError(f"these networks cannot be trained in a stack: {program}.")
    stack = Stack(program, models, xs, ys, seeds)
    waiting = deque(range(len(models)))
    per_epoch, lost = len(program.sizes), dict[int, DivergedError]()
    total = len(models) * options.epochs * per_epoch
    label = f"training {len(models)} networks"
    with progress_bar(total, label=label, quiet=options.quiet) as bar:
        while stack.fill(waiting):
            stack.epoch(bar)
            for progress in [p for p in stack.active if p.ended(options.epochs, options.stop_loss)]:
                bar.advance((options.epochs - progress.epochs) * per_epoch)
                model, seed = stack.leave(progress), seeds[progress.member]
                update = Update.of(model, options, seed=seed, points=len(xs[progress.member]))
                try:
                    member = _member(progress, update, options)
                except DivergedError as error:
                    lost[progress.member] = error
                else:
                    yield member
    if lost:
        raise LostMembersError(lost)


def slower(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], options: FitOptions
) -> str | None:
    """Return why a stack would be slower than the loop, or None if it would not be."""
    program = _program(models[0], xs[0], ys[0], options)
    if isinstance(program, Program) and program.elements > MANY_ELEMENTS:
        return (
            f"an update of one network writes {program.elements:,} elements, and above "
            f"{MANY_ELEMENTS:,} a stack no longer fits the caches and is slower than the loop"
        )
    return None


def _program(model: nn.Module, x: Tensor, y: Tensor, options: FitOptions) -> Program | str:
    """Return the program of members of this architecture, or why there is none."""
    programs, kind = _PROGRAMS.setdefault(options, {}), kind_of(model, x, y)
    if kind not in programs:
        programs[kind] = _traced(model, x, y, options)
    return programs[kind]


def _traced(model: nn.Module, x: Tensor, y: Tensor, options: FitOptions) -> Program | str:
    try:
        return Program(model, x, y, options)
    except Exception as error:  # as above
        return _untraceable(error)


def _untraceable(error: Exception) -> str:
    lines = str(error).splitlines() or ["no text"]
    return (
        "the update cannot be traced as tensor operations for a stack "
        f"({type(error).__name__}: {lines[0]})"
    )


def _hooked(model: nn.Module) -> bool:
    """Return whether any submodule has hooks."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(part, kind) for part in model.modules() for kind in kinds)


def _member(progress: Progress, update: Update, options: FitOptions) -> Member:
    if progress.diverged_values is not None:
        raise update.diverged(progress.steps, update.listed(progress.diverged_values))
    check_end(update, progress.steps - 1)
    return Member(
        index=progress.member,
        model=update.model,
        loss=progress.loss,
        epochs=progress.epochs,
        steps=progress.steps,
        stopped="loss" if progress.stopped(options.stop_loss) else "epochs",
    )
